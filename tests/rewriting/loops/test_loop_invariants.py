"""What loops bring in, or look up, once: graph text before and after, equal results without the pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.rewriting.loops import loop_invariants

RNG = np.random.default_rng(11)
PASSES = ("hold_invariants", "drop_stacks")
BEFORE = ("fold_constants", "apply_identities", "drop_waits")


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def running_sums(x: Any, steps: Any) -> tuple[Any, Any]:
    """What a loop reads of an array, adds up and writes: stacked, and the last sum."""
    inputs = tf.TensorArray(tf.float32, 4, clear_after_read=False).unstack(x)

    def body(t, outputs, h):
        h = tf.tanh(h + inputs.read(t))
        return t + 1, outputs.write(t, h), h

    loop = [0, tf.TensorArray(tf.float32, 4, element_shape=x.shape[1:]), tf.zeros(x.shape[1:])]
    _, outputs, h = tf.while_loop(lambda t, *_: t < steps, body, loop)
    return outputs, h


def test_a_variable_that_the_body_hands_on() -> None:
    x = tf.placeholder(tf.float32, [3])
    _, y, _ = tf.while_loop(lambda i, y, k: i < 5, lambda i, y, k: (i + 1, y * k, k), [0, x, tf.exp(x)])
    before, after = text([y], [x], *BEFORE), text([y], [x], *BEFORE, "hold_invariants")
    assert [ops(lines).count("Merge") for lines in (before, after)] == [3, 2]
    assert [str(lines).count("is_constant=True") for lines in (before, after)] == [0, 1]


def test_a_variable_that_is_used_afterwards_or_changes_stays() -> None:
    x = tf.placeholder(tf.float32, [3])
    _, y, k = tf.while_loop(lambda i, y, k: i < 5, lambda i, y, k: (i + 1, y * k, k), [0, x, tf.exp(x)])
    assert ops(text([y, k], [x], *BEFORE, "hold_invariants")).count("Merge") == 3
    _, y, _ = tf.while_loop(lambda i, y, k: i < 5, lambda i, y, k: (i + 1, k, y), [0, x, tf.exp(x)])
    assert ops(text([y], [x], *BEFORE, "hold_invariants")).count("Merge") == 3


def test_a_loop_of_which_nothing_changes_but_its_counter(monkeypatch) -> None:
    x, n = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [])
    i, _, _ = tf.while_loop(
        lambda i, k, m: i < n, lambda i, k, m: (i + m // 4 + tf.cast(k[0] > 9, tf.int32), k, m), [0, x, n]
    )
    agree(monkeypatch, [i], {x: values(3), n: 7}, "hold_invariants", fires=3)


@pytest.mark.parametrize(("steps", "fires"), [(0, (2, 2)), (1, (2, 2)), (4, (4, 2))])
def test_gradients_of_arrays(monkeypatch, steps, fires) -> None:
    x, n = tf.placeholder(tf.float32, [4, 3]), tf.placeholder(tf.int32, [])
    outputs, h = running_sums(x, n)
    y = tf.reduce_sum(tf.square(outputs.stack())) if steps == 4 else tf.reduce_sum(tf.square(h))
    log = agree(monkeypatch, [y, *tf.gradients(y, x)], {x: values(4, 3), n: steps}, *PASSES, fires=fires)
    for reason in ("looked up before the loop", "passes its flow", "counts down"):
        assert reason in log


def test_an_array_of_gradients_is_looked_up_outside() -> None:
    x = tf.placeholder(tf.float32, [4, 3])
    outputs, _ = running_sums(x, 4)
    gradient = tf.gradients(outputs.stack(), x)
    before = text(gradient, [x], *BEFORE)
    after = text(gradient, [x], *BEFORE, "hold_invariants")
    for lines, inside, sums in ((before, 2, 1), (after, 0, 0)):
        entered = [line.split()[0] for line in lines if "= Enter" in line]
        lookups = [line for line in lines if "TensorArrayGradV3(" in line]
        assert sum(line.split("(")[1].split(",")[0] in entered for line in lookups) == inside
        assert sum("TensorArrayReadV3/Enter_1_grad/Add" in line for line in lines) == sums


def test_two_reads_of_one_array(monkeypatch) -> None:
    """Their gradients are two writes, whose flows are added up as they were."""
    x = tf.placeholder(tf.float32, [4, 3])
    inputs = tf.TensorArray(tf.float32, 4, clear_after_read=False).unstack(x)
    body = lambda t, y: (t + 1, y * inputs.read(t) + inputs.read(3 - t))  # noqa: E731
    _, y = tf.while_loop(lambda t, _: t < 4, body, [0, tf.ones([3])])
    agree(monkeypatch, [y, *tf.gradients(y, x)], {x: values(4, 3)}, "hold_invariants", fires=2)


def test_loops_in_loops(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [4, 3])
    inputs = tf.TensorArray(tf.float32, 4, clear_after_read=False).unstack(x)

    def outer(i, y):
        body = lambda t, z: (t + 1, tf.sin(z) * inputs.read(t))  # noqa: E731
        return i + 1, y + tf.while_loop(lambda t, _: t < 4, body, [0, y])[1]

    _, y = tf.while_loop(lambda i, _: i < 3, outer, [0, tf.ones([3])])
    agree(
        monkeypatch,
        [y, *tf.gradients(y, x)],
        {x: values(4, 3)},
        "hold_invariants",
        "drop_stacks",
        fires=(3, 0),
    )


def test_in_a_conditional(monkeypatch) -> None:
    x, p = tf.placeholder(tf.float32, [4, 3]), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: running_sums(x, 4)[1], lambda: x[0])
    for choice in (True, False):
        feed = {x: values(4, 3), p: choice}
        agree(monkeypatch, [y, *tf.gradients(y, x)], feed, "hold_invariants", "drop_stacks", fires=(1, 0))


def test_effects_of_what_the_body_hands_on(monkeypatch) -> None:
    """They happen once an iteration: a constant of the loop is also there when it ends."""
    total, x = tf.Variable(0.0), tf.placeholder(tf.float32, [])

    def body(i, k):
        added = tf.assign_add(total, k)
        with tf.control_dependencies([added]):
            return i + 1, tf.identity(k)

    i, _ = tf.while_loop(lambda i, k: i < 5, body, [0, x])
    with tf.control_dependencies([i]):
        after = total.read_value()
    log = agree(monkeypatch, [after], {x: 2.0}, "hold_invariants", fires=1, setup=total.initializer)
    assert "the same in every iteration" in log


# ---- variables that the body reads


def scaled_often(v: Any, x: Any, n: Any) -> Any:
    return tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, y * v + v.read_value()), [0, x])[1]


@pytest.fixture
def held() -> Any:
    return tf.get_variable("held", initializer=values(3), use_resource=True)


def test_a_variable_is_read_before_the_loop(monkeypatch, held) -> None:
    x, n = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [])
    y = scaled_often(held, x, n)
    for passes, inside in ((BEFORE, 2), ((*BEFORE, "hold_invariants"), 0)):
        lines = text([y], [x, n], *passes)
        entered = [line.split()[0] for line in lines if "= Enter" in line]
        reads = [line for line in lines if "= ReadVariableOp(" in line]
        assert sum(line.split("(")[1].split(",")[0].rstrip(")") in entered for line in reads) == inside
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(y))
    for steps in (0, 1, 4):
        feed = {x: values(3), n: steps}
        setup = held.initializer
        agree(monkeypatch, [y, train], feed, "hold_invariants", "drop_stacks", fires=(1, 2), setup=setup)


def test_a_variable_is_read_before_all_loops_around(monkeypatch, held) -> None:
    x = tf.placeholder(tf.float32, [3])
    y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.sin(scaled_often(held, y, 2))), [0, x])[1]
    agree(monkeypatch, [y], {x: values(3)}, "hold_invariants", fires=2, setup=held.initializer)


def test_a_variable_that_the_loop_changes_is_read_in_it(monkeypatch, held) -> None:
    x = tf.placeholder(tf.float32, [3])

    def body(i: Any, y: Any) -> Any:
        with tf.control_dependencies([held.assign_add(y)]):
            return i + 1, y + held.read_value()

    y = tf.while_loop(lambda i, _: i < 3, body, [0, x])[1]
    agree(monkeypatch, [y], {x: values(3)}, "hold_invariants", fires=0, setup=held.initializer)


def test_a_variable_that_changes_before_the_loop_reads_it_is_read_in_it(monkeypatch, held) -> None:
    x = tf.placeholder(tf.float32, [3])
    handle = tf.identity(held.handle)
    with tf.control_dependencies([handle]):
        change = held.assign_add(x)
    with tf.control_dependencies([change]):
        y = scaled_often(held, x, 3)
    agree(monkeypatch, [y], {x: values(3)}, "hold_invariants", fires=1, setup=held.initializer)


def test_what_only_a_branch_of_the_body_reads_stays(monkeypatch, held) -> None:
    x = tf.placeholder(tf.float32, [3])
    body = lambda i, y: (i + 1, tf.cond(i > 1, lambda: y * held.read_value(), lambda: y))  # noqa: E731
    y = tf.while_loop(lambda i, _: i < 3, body, [0, x])[1]
    agree(monkeypatch, [y], {x: values(3)}, "hold_invariants", fires=0, setup=held.initializer)


def test_what_the_condition_reads_of_what_the_body_changes_is_read_in_the_loop(monkeypatch) -> None:
    count = tf.get_variable("count", initializer=0.0, use_resource=True)
    limit = tf.placeholder(tf.float32, [])

    def body(i: Any) -> Any:
        with tf.control_dependencies([count.assign_add(1.0)]):
            return tf.identity(i) + 1

    steps = tf.while_loop(lambda _: count < limit, body, [0])
    agree(monkeypatch, [steps], {limit: 4.0}, "hold_invariants", fires=0, setup=count.initializer)


def test_a_variable_that_only_the_outer_loop_changes_is_read_in_that_one(monkeypatch, held) -> None:
    x = tf.placeholder(tf.float32, [3])

    def body(i: Any, y: Any) -> Any:
        y = scaled_often(held, tf.sin(y), 2)
        with tf.control_dependencies([held.assign_add(y)]):
            return i + 1, tf.identity(y)

    y = tf.while_loop(lambda i, _: i < 3, body, [0, x], parallel_iterations=1)[1]
    agree(monkeypatch, [y], {x: values(3)}, "hold_invariants", fires=1, setup=held.initializer)


def test_a_read_that_is_not_admitted_outside_stays(monkeypatch, held) -> None:
    x, n = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [])
    y = scaled_often(held, x, n)
    monkeypatch.setattr(loop_invariants, "substitute", lambda *_: None)
    found = [ops(text([y], [x, n], *passes)) for passes in (BEFORE, (*BEFORE, "hold_invariants"))]
    for op in ("ReadVariableOp", "Enter", "Mul", "AddV2"):
        assert found[0].count(op) == found[1].count(op)


def test_parts_of_what_comes_in_are_taken_once(monkeypatch) -> None:
    x, w = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.float32, [3, 6])

    def body(i: Any, h: Any) -> Any:
        first, second = tf.split(w, 2, axis=1)
        return i + 1, tf.tanh(tf.matmul(h, first)) + tf.matmul(h, second) * w[0, :3]

    y = tf.while_loop(lambda i, _: i < 3, body, [0, x])[1]
    fetches = [y, *tf.gradients(y, [x, w])]
    log = agree(monkeypatch, fetches, {x: values(2, 3), w: values(3, 6)}, *PASSES[:1], fires=2)
    assert log.count("looked up before the loop") == 2


def test_a_part_whose_size_is_not_known_stays(monkeypatch) -> None:
    x, w = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.float32, [None, 3])
    y = tf.while_loop(lambda i, _: i < 3, lambda i, h: (i + 1, h + w[:2]), [0, x])[1]
    before = text([y], [x, w], *BEFORE, "hold_invariants")
    assert ops(before).index("StridedSlice") > ops(before).index("Merge")
