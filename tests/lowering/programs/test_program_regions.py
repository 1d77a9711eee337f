"""Loops and conditionals as machine code: what is joined, what stays and why, and equal results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.declarations.operation import F
from flowstone.lowering.programs import region_members
from small_loops import PROGRAMS
from three_ways import assert_equal_three_ways, programs, steps


@pytest.mark.parametrize("name", PROGRAMS)
def test_has_the_values_of_its_nodes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        fetches, feed = PROGRAMS[name]()
        fetches = fetches if isinstance(fetches, list) else [fetches]
        assert_equal_three_ways(monkeypatch, fetches, feed, tf.global_variables_initializer())


def test_what_has_no_loop_and_no_branch_stays() -> None:
    x = tf.placeholder(tf.float32, [3])
    z = tf.while_loop(lambda a: tf.reduce_sum(a) < 9.0, lambda a: a * 2.0, [x])
    far = tf.exp(tf.placeholder(tf.float32, [3], name="far"))
    found, text, _ = programs([z, far], [x, far.op.inputs[0]])
    assert len(found) == 1
    assert "Exp(" in text


def test_a_program_gives_the_predicate_of_a_branch_in_another() -> None:
    x = tf.placeholder(tf.float32, [3])
    y = tf.cond(tf.reduce_sum(x) > 1.0, lambda: x * 2.0, lambda: x * 3.0)
    (copy,) = [each for each in x.graph.get_operations() if each.name == "cond/pred_id"]
    z = tf.py_func(lambda a: a + 1.0, [y], tf.float32)
    z.set_shape([3])
    if_false, if_true = F.Switch(z, copy.outputs[0])  # as a gradient asks what the branch did
    w, _ = F.Merge([if_false - 1.0, if_true + 1.0])
    found, text, _ = programs([w], [x])
    assert len(found) == 2
    assert "Greater(" not in text and "Sum(" not in text


def test_two_loops_on_both_sides_of_what_cannot_be_compiled() -> None:
    x = tf.placeholder(tf.float32, [3])
    y = tf.while_loop(lambda a: tf.reduce_sum(a) < 9.0, lambda a: a * 2.0, [x])
    y = tf.py_func(lambda a: a + 1.0, [y], tf.float32)
    y.set_shape([3])
    z = tf.while_loop(lambda a: tf.reduce_sum(a) < 90.0, lambda a: a * 2.0, [y])
    fetches, feed = [z], {x: np.ones(3, np.float32)}
    found, text, _ = programs(fetches, [x])
    assert len(found) == 2 and "PyFunc(" in text
    assert steps(fetches, feed)[0][0].tolist() == [40.0, 40.0, 40.0]


def test_a_loop_that_reads_a_variable_before_it_is_assigned() -> None:
    v = tf.Variable(1.0, use_resource=True)
    before = v.read_value()
    with tf.control_dependencies([before]):
        assign = v.assign_add(1.0)
    with tf.control_dependencies([assign]):
        after = v.read_value()
    y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * before), [0, after])[1]
    found, plan = steps([y], {}, tf.global_variables_initializer(), runs=3)
    assert found == [2.0, 24.0, 108.0]  # 2·1, 3·2³, 4·3³
    assert "_Program(" in plan


# ---- what stays, and why


def stays(fetches: Any, feeds: Any) -> str:
    """Why the only loop of a graph is not compiled."""
    found, text, log = programs(fetches, feeds)
    assert not found and ("Enter(" in text or "Merge(" in text)
    return "; ".join(reason for _, _, reason in log)


def test_a_loop_with_an_operation_that_machine_code_does_not_have() -> None:
    y = tf.while_loop(
        lambda a: a < 9.0, lambda a: a + F.RandomGamma(np.int32([1]), 2.0)[0], [tf.constant(0.0)]
    )
    assert stays([y], []) == "not compiled: machine code has no RandomGamma"


def test_a_loop_on_large_arrays() -> None:
    x = tf.placeholder(tf.float32, [200, 200])
    y = tf.while_loop(lambda a: tf.reduce_sum(a) < 9.0, lambda a: a * 2.0, [x])
    assert "an array is large" in stays([y], [x])


def test_a_loop_with_large_products() -> None:
    x = tf.placeholder(tf.float32, [100, 100])
    y = tf.while_loop(lambda a: tf.reduce_sum(a) < 9.0, lambda a: tf.matmul(a, a), [x])
    assert "the product is large" in stays([y], [x])


@pytest.mark.parametrize("trains", [True, False])
def test_how_large_a_product_in_a_loop_may_be_is_the_machines(
    trains: bool, set_profile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell of 17 x 96 multiplies 17 x 144 x 96 numbers."""
    x = tf.placeholder(tf.float32, [17, 3, 48])
    with tf.variable_scope("cell", initializer=tf.random_uniform_initializer(-0.3, 0.3, seed=1)):
        y = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(96), x, dtype=tf.float32)[0]
    loss = tf.reduce_mean(tf.square(y))
    fetches = [loss, *tf.gradients(loss, tf.trainable_variables())] if trains else [loss]
    least = 17 * 144 * 96
    mine, other = "looped_products", "looped_products_with_gradients"
    if trains:
        mine, other = other, mine
    set_profile(**{mine: least - 1, other: 1 << 30})
    assert "not compiled" in stays(fetches, [x])
    set_profile(**{mine: least, other: 0})
    feed = {x: np.random.RandomState(0).randn(17, 3, 48).astype("f")}
    assert_equal_three_ways(monkeypatch, fetches, feed, tf.global_variables_initializer())


def test_what_is_large_around_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop over rows of a large array, whose results a large product takes before the gradient's loop."""
    x, w = tf.placeholder(tf.float64, [40, 20, 32]), tf.placeholder(tf.float64, [32, 32])
    rows = tf.scan(lambda a, row: tf.tanh(a * 0.5 + row), x, initializer=tf.zeros([20, 32], tf.float64))
    y = tf.matmul(tf.reshape(rows, [800, 32]), w)
    random = np.random.default_rng(0)
    feed = {x: random.normal(size=[40, 20, 32]), w: random.normal(size=[32, 32])}
    loss = tf.reduce_sum(y * y)
    assert_equal_three_ways(monkeypatch, [loss, *tf.gradients(loss, [x, w])], feed)


def test_large_arrays_alone_do_not_make_a_program_wide() -> None:
    x = tf.placeholder(tf.float32, [200, 200])
    y = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a + 1.0), [0, tf.constant(0.0)])[1]
    found, text, _ = programs([tf.exp(x) + y, y], [x])
    assert len(found) == 1 and "Exp(" in text


def test_what_takes_much_memory_around_a_loop_is_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    translated = region_members.translated

    def counted(subgraph: Any, nodes: Any, *arguments: Any, **keywords: Any) -> Any:
        tried.append(len(nodes))
        return translated(subgraph, nodes, *arguments, **keywords)

    monkeypatch.setattr(region_members, "translated", counted)
    x = tf.placeholder(tf.float32, [10_000])
    parts = [tf.reverse(x * float(k), [0]) for k in range(2, 50)]
    y = tf.while_loop(lambda i, _: i < 4, lambda i, a: (i + 1, a * 0.5), [0, tf.reduce_sum(tf.add_n(parts))])[
        1
    ]
    found, text, _ = programs([y], [x])
    assert len(found) == 1 and "ReverseV2" in text and len(tried) <= 3
    assert_equal_three_ways(monkeypatch, [y], {x: np.arange(10_000) / 1e4})


def test_a_loop_on_a_shape_that_is_not_known() -> None:
    x = tf.placeholder(tf.float32, [None])
    y = tf.while_loop(lambda a: tf.reduce_sum(a) < 9.0, lambda a: a * 2.0, [x])
    assert "a shape is not known before the step" in stays([y], [x])


def test_a_loop_on_strings() -> None:
    x = tf.placeholder(tf.string, [])
    y = tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, tf.identity(a)), [0, x])[1]
    assert "string" in stays([y], [x])


def test_an_array_that_grows() -> None:
    x = tf.placeholder(tf.float32, [2])
    array = tf.TensorArray(tf.float32, 0, dynamic_size=True)
    _, array = tf.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t.write(i, x)), [0, array])
    assert "TensorArray" in stays([array.stack()], [x])


def test_it_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, [3])
    y = tf.while_loop(lambda a: tf.reduce_sum(a) < 9.0, lambda a: a * 2.0, [x])
    monkeypatch.setattr(flags, "DISABLED_PASSES", flags.DISABLED_PASSES | {"join_programs"})
    found, plan = steps([y], {x: [1.0, 1.0, 1.0]})
    assert found[0].tolist() == [4.0, 4.0, 4.0]
    assert "_Program(" not in plan


# ---- errors and time limits


def test_errors_name_the_node_and_the_session_stays_usable() -> None:
    n = tf.placeholder(tf.int32, [])
    y = tf.while_loop(lambda i: i < 3, lambda i: i + 6 // n, [0], name="w")
    with tf.Session() as session:
        assert "_Program(" in session.explain(y, {n: 3})
        assert session.run(y, {n: 3}) == 4
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"(?i)division by zero.*\n.*node w/floordiv"
        ):
            session.run(y, {n: 0})
        assert session.run(y, {n: 6}) == 3


def test_an_index_outside_of_an_array() -> None:
    n = tf.placeholder(tf.int32, [])
    array = tf.TensorArray(tf.float32, 4, clear_after_read=False)
    _, array = tf.while_loop(
        lambda i, _: i < n, lambda i, t: (i + 1, t.write(i, tf.to_float(i))), [0, array], name="w"
    )
    total = array.read(0) + array.read(3)
    with tf.Session() as session:
        assert "_Program(" in session.explain(total, {n: 4})
        assert session.run(total, {n: 4}) == 3.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="index 4"):
            session.run(total, {n: 5})
        assert session.run(total, {n: 2}) == 0.0  # what is not written is zero, where the shape is known
        assert session.run(total, {n: 4}) == 3.0


def test_an_element_that_is_read_twice() -> None:
    x = tf.placeholder(tf.float32, [])
    array = tf.TensorArray(tf.float32, 2)
    _, array = tf.while_loop(lambda i, _: i < 2, lambda i, t: (i + 1, t.write(i, x)), [0, array])
    first = array.read(0)
    with tf.control_dependencies([first]):
        second = array.read(0)
    with tf.Session() as session:
        assert "_Program(" in session.explain([first, second], {x: 1.0})
        with pytest.raises(tf.errors.InvalidArgumentError, match="clear_after_read"):
            session.run([first, second], {x: 1.0})
        assert session.run(first, {x: 2.0}) == 2.0


def test_a_loop_that_does_not_end_has_a_time_limit() -> None:
    y = tf.while_loop(lambda a: a > 0.0, lambda a: a * 1.0, [tf.placeholder_with_default(1.0, [])])
    with tf.Session() as session, pytest.raises(tf.errors.DeadlineExceededError):
        session.run(y, options=tf.RunOptions(timeout_in_ms=200))


@pytest.mark.parametrize("native", [0, 1, 2])
@pytest.mark.parametrize("trains", [True, False])
def test_a_branch_that_waits_for_what_only_it_does(
    native: int, trains: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Averages that move in one branch, of images that come from the branches of another conditional."""
    monkeypatch.setattr(flags, "NATIVE", native)
    with tf.Graph().as_default(), tf.Session() as session:
        x, p = tf.placeholder(tf.float32, [None, 4, 4, 3]), tf.placeholder(tf.bool, [])
        y = tf.layers.batch_normalization(x, training=p)
        z = tf.contrib.layers.batch_norm(y, updates_collections=None, is_training=p, decay=0.5)
        session.run(tf.global_variables_initializer())
        images = np.random.RandomState(0).randn(2, 4, 4, 3).astype("f") + 1.0
        found = session.run(z, {x: images, p: trains})
        expected = images / (1 + 1e-3)
        if trains:
            normal = (images - images.mean((0, 1, 2))) / np.sqrt(images.var((0, 1, 2)) + 1e-3)
            expected = normal / np.sqrt(normal.var((0, 1, 2)) + 1e-3)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("through_switch", [True, False])
def test_a_variable_without_a_value_is_read_where_its_branch_is_taken(through_switch: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        variable, x = tf.Variable(1.0, use_resource=False), tf.placeholder(tf.float32, [3])
        known = tf.raw_ops.IsVariableInitialized(ref=variable._ref())
        total = tf.reduce_sum(x)
        fresh, old = tf.raw_ops.Switch(data=total, pred=known)
        read = variable._ref()
        if through_switch:
            read = tf.raw_ops.RefSwitch(data=read, pred=known)[1]
        moved = tf.subtract(read, tf.multiply(tf.subtract(read, old), 0.5))
        result = tf.exp(tf.raw_ops.Merge(inputs=[fresh, moved])[0])
        values = {x: np.float32([0.0, 0.25, 0.25])}
        np.testing.assert_allclose(session.run(result, values), np.exp(0.5), rtol=1e-6)
        session.run(variable.initializer)
        np.testing.assert_allclose(session.run(result, values), np.exp(0.75), rtol=1e-6)


def test_threads_share_the_rows_of_a_loop(set_profile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A product may then be as large as all of them multiply, and results are the same."""
    x = tf.placeholder(tf.float32, [16, 3, 48])
    with tf.variable_scope("cell", initializer=tf.random_uniform_initializer(-0.3, 0.3, seed=1)):
        y, last = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(40), x, dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(y))
    feed = {x: np.random.RandomState(0).randn(16, 3, 48).astype("f")}
    terms = 16 * 88 * 80

    def plan() -> str:
        return steps([loss, last], feed, tf.global_variables_initializer(), 1)[1]

    set_profile(looped_products=terms // 2, loop_team=1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert "not compiled: the product is large" in plan()
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert_equal_three_ways(monkeypatch, [loss, last], feed, tf.global_variables_initializer())
    set_profile(looped_products=terms // 2 - 1, loop_team=1)
    assert "its products are large" in plan() or "the product is large" in plan()
    set_profile(looped_products=terms // 2, loop_team=1 << 30)
    assert "not compiled: its products are large" in plan()
