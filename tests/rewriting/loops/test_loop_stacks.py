"""Stacks between loops and their gradients: graph text before and after, equal results without the pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework.declarations.operation import F

RNG = np.random.default_rng(12)
BEFORE = ("fold_constants", "apply_identities", "drop_waits")
COUNTED = "the gradient counts down instead of popping"


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def chosen(x: Any, first: int = 0, step: int = 1, end: Any = 4) -> Any:
    """A product of the rows of `x` that a counter chooses."""

    def body(i, y):
        return i + step, y * tf.gather(x, i)

    goes_on = (lambda i, _: i < end) if step > 0 else (lambda i, _: i > end)
    return tf.while_loop(goes_on, body, [first, tf.ones([3])])[1]


def gradients(y: Any, xs: Any) -> list[Any]:
    return [tf.convert_to_tensor(each) for each in tf.gradients(y, xs)]


def stacks(lines: list[str]) -> int:
    return ops(lines).count("StackV2")


def test_a_counter_is_not_pushed() -> None:
    x = tf.placeholder(tf.float32, [4, 3])
    gradient = gradients(chosen(x), x)
    before, after = text(gradient, [x], *BEFORE), text(gradient, [x], *BEFORE, "drop_stacks")
    assert (stacks(before), stacks(after)) == (3, 2)
    assert ops(after).count("StackPushV2") == ops(after).count("StackPopV2") == 2


@pytest.mark.parametrize("first, step, end", [(0, 1, 4), (0, 1, 1), (1, 2, 4), (3, -1, -1), (0, 3, 4)])
def test_counters_of_any_step(monkeypatch, first, step, end) -> None:
    x, until = tf.placeholder(tf.float32, [4, 3]), tf.placeholder(tf.int32, [])
    y = chosen(x, first, step, until)
    log = agree(monkeypatch, [y, *gradients(y, x)], {x: values(4, 3), until: end}, "drop_stacks", fires=2)
    assert COUNTED in log and "nothing that is popped is used" in log


def test_what_grows_unevenly_is_pushed(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [4, 3])

    def body(i, j, y):
        return i + 1, j + i, y * tf.gather(x, j)

    _, _, y = tf.while_loop(lambda i, *_: i < 3, body, [0, 0, tf.ones([3])])
    log = agree(monkeypatch, [y, *gradients(y, x)], {x: values(4, 3)}, "drop_stacks", fires=0)
    assert COUNTED not in log


def test_what_is_pushed_in_a_branch_stays(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [4, 3])

    def body(i, y):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: y * tf.gather(x, i), lambda: tf.sin(y))

    _, y = tf.while_loop(lambda i, _: i < 4, body, [0, tf.ones([3])])
    agree(monkeypatch, [y, *gradients(y, x)], {x: values(4, 3)}, "drop_stacks", fires=0)


def test_loops_in_loops(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [4, 3])

    def outer(i, y):
        return i + 1, y + tf.gather(x, i) * tf.sin(chosen(x * tf.reduce_sum(y)))

    _, y = tf.while_loop(lambda i, _: i < 3, outer, [0, tf.ones([3])])
    log = agree(monkeypatch, [y, *gradients(y, x)], {x: values(4, 3)}, "drop_stacks", fires=2)
    assert COUNTED in log


def test_a_stack_of_the_user_stays() -> None:
    handle = F.StackV2(-1, elem_type=tf.float32)
    with tf.control_dependencies([F.StackPushV2(handle, tf.constant(2.0))]):
        top = F.StackPopV2(handle, elem_type=tf.float32)
    assert stacks(text([top], [], *BEFORE, "drop_stacks")) == 1
    with tf.Session() as s:
        assert s.run(top) == 2.0


def test_a_recurrence_with_lengths(monkeypatch) -> None:
    x, lengths = tf.placeholder(tf.float32, [4, 5, 6]), tf.placeholder(tf.int32, [4])
    cells = [tf.nn.rnn_cell.GRUCell(3) for _ in range(2)]
    outputs, _ = tf.nn.bidirectional_dynamic_rnn(*cells, x, lengths, dtype=tf.float32)
    y = tf.reduce_sum(tf.square(tf.concat(outputs, 2)))
    variables = tf.trainable_variables()
    setup = tf.group(*[v.assign(values(*v.shape.as_list())) for v in variables])
    feed = {x: values(4, 5, 6), lengths: np.array([5, 1, 0, 3], np.int32)}
    passes = ("drop_stacks", "hold_invariants", "stack_accumulators")
    log = agree(monkeypatch, [y, *gradients(y, [x, *variables])], feed, *passes, fires=(4, 8, 0), setup=setup)
    assert COUNTED in log


@pytest.mark.parametrize("wanted", [False, True])
def test_gradients_that_nobody_asks_for_are_not_computed(monkeypatch, wanted: bool) -> None:
    """By the divisor: what it takes is pushed for that alone, and who waits for it waits for the others."""
    x, k = tf.placeholder(tf.float32, [4, 3]), tf.placeholder(tf.float32, [])

    def body(i, y):
        return i + 1, y + tf.sin(y / (k + tf.cast(i, tf.float32)))

    _, y = tf.while_loop(lambda i, _: i < 3, body, [0, x])
    fetches = [y, *tf.gradients(y, [x, k] if wanted else x, gate_gradients=True)]
    lines = text(fetches, [x, k], *BEFORE, "drop_stacks", "remove_unneeded")
    before = text(fetches, [x, k], *BEFORE[:2], "remove_unneeded")  # with their waits
    assert ("Neg" in ops(lines)) == wanted and "Neg" in ops(before)
    assert wanted or stacks(lines) < stacks(before)
    agree(monkeypatch, fetches, {x: values(4, 3), k: 1.5}, "drop_stacks", fires=0 if wanted else 1)


# ---- values from outside


def test_a_value_from_outside_is_brought_into_the_gradient(monkeypatch) -> None:
    w = tf.get_variable("w", initializer=values(3), use_resource=True)
    x, n = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [])
    y = tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, tf.sin(y) * w), [0, x])[1]
    gradient = gradients(y, [x, w.handle])
    passes = (*BEFORE, "hold_invariants")
    before, after = text(gradient, [x, n], *passes), text(gradient, [x, n], *passes, "drop_stacks")
    assert stacks(after) == stacks(before) - 1
    for steps in (0, 1, 4):
        feed = {x: values(3), n: steps}
        log = agree(monkeypatch, [y, *gradient], feed, "drop_stacks", fires=2, setup=w.initializer)
        assert "brought in instead of popped" in log


def test_what_a_loop_in_a_loop_takes_is_pushed(monkeypatch) -> None:
    w = tf.get_variable("w", initializer=values(3), use_resource=True)
    x = tf.placeholder(tf.float32, [3])
    inner = lambda y: tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, y * w), [0, y])[1]  # noqa: E731
    y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, inner(tf.sin(y))), [0, x])[1]
    feed, setup = {x: values(3)}, w.initializer
    log = agree(monkeypatch, [y, *gradients(y, [x, w.handle])], feed, "hold_invariants", fires=2, setup=setup)
    assert "brought in instead of popped" not in log


def test_a_value_that_changes_before_the_gradient_runs_is_kept(monkeypatch) -> None:
    """The gradient's loop must see what the loop took, not what the variable holds by then."""
    w = tf.get_variable("w", initializer=values(3))
    x = tf.placeholder(tf.float32, [3])
    y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.sin(y) * w.read_value()), [0, x])[1]
    with tf.control_dependencies([y]):
        later = w.assign(w * 3.0)
    with tf.control_dependencies([later]):
        dy = tf.identity(tf.ones([3]))
    gradient = tf.gradients(y, x, grad_ys=dy)
    log = agree(monkeypatch, [y, *gradient], {x: values(3)}, "drop_stacks", fires=1, setup=w.initializer)
    assert "brought in instead of popped" not in log
