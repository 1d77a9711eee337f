"""Control edges that order nothing: graph text before and after, and what must go on waiting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework.declarations.operation import F
from flowstone.ops.control.control_flow import (
    enter_op,
    exit_op,
    loop_cond_op,
    merge,
    next_iteration_op,
    switch,
)


def edges(lines: list[str]) -> list[str]:
    return [line for line in lines if "^" in line]


def test_gates_of_pure_gradients_go() -> None:
    x = tf.placeholder(tf.float32, [4, 3])
    a, b = tf.exp(x), tf.sin(x)
    gated = tf.tuple([a, b])
    y = tf.square(gated[0]) * gated[1]
    names = ("apply_identities", "remove_unneeded")
    assert edges(text([y], [x], *names))
    assert not edges(text([y], [x], *names, "drop_waits"))


def test_a_wait_for_another_source_of_effects_stays() -> None:
    x = tf.placeholder(tf.float32, [2])
    noise = tf.random_uniform([2])
    with tf.control_dependencies([noise * 2.0]):
        y = tf.exp(x)
    assert edges(text([y], [x], "remove_unneeded", "drop_waits"))


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_use_of_a_variable_stays_before_its_change(monkeypatch, use_resource) -> None:
    v = tf.get_variable("v", [2], initializer=tf.zeros_initializer(), use_resource=use_resource)
    doubled, change_by = v * 2.0, tf.constant([1.0, 2.0])
    with tf.control_dependencies([tf.exp(doubled)]):
        change = v.assign_add(change_by) if use_resource else tf.assign_add(v, change_by)
    lines = text([doubled], [], "remove_unneeded", "drop_waits", targets=[change.op])
    changing = next(line for line in lines if "AssignAdd" in line)
    assert "^" in changing
    agree(
        monkeypatch, [doubled, change.op], {}, "drop_waits", fires=0, setup=tf.global_variables_initializer()
    )


def test_in_a_branch_the_edge_says_when_a_node_is_alive() -> None:
    x, p = tf.placeholder(tf.float32, [2], name="x"), tf.placeholder(tf.bool, [], name="p")
    taken = tf.cond(p, lambda: tf.exp(x), lambda: x)

    def branch() -> Any:
        with tf.control_dependencies([tf.sin(taken)]):
            return tf.cos(x)

    y = tf.cond(p, branch, lambda: x)
    for wanted in (True, False):
        with tf.Session() as s:
            found = s.run(y, {x: [0.0, 1.0], p: wanted})
        np.testing.assert_allclose(found, np.cos([0.0, 1.0]) if wanted else [0.0, 1.0], rtol=1e-6)


def test_gated_gradients_of_a_loop_are_summed_as_one_product(monkeypatch) -> None:
    w = tf.get_variable("w", [7, 7], initializer=tf.constant_initializer(0.1))
    x = tf.placeholder(tf.float32, [2, 7])
    _, h = tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), [0, x])
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(h))
    feed = {x: np.ones([2, 7], "f")}
    log = agree(monkeypatch, [train, h], feed, "drop_waits", fires=8, setup=tf.global_variables_initializer())
    assert "stack_accumulators" in log


def test_gated_gradients_let_poolings_come_first() -> None:
    x = tf.placeholder(tf.float32, [2, 8, 8, 3])
    w = tf.get_variable("w", [3, 3, 3, 4])
    pooled = tf.nn.max_pool(
        tf.nn.relu(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")), [1, 2, 2, 1], [1, 2, 2, 1], "SAME"
    )
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.square(pooled)))
    names = ("fold_constants", "apply_identities", "remove_unneeded", "pool_first")
    with_waits = ops(text([pooled], [x], *names, targets=[train]))
    without = ops(text([pooled], [x], *names, "drop_waits", targets=[train]))
    assert with_waits.index("Relu") < with_waits.index("MaxPool")
    assert without.index("Relu") > without.index("MaxPool")


def test_a_branch_of_constants_is_one_node() -> None:
    x, p = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: x - 1.0, lambda: x + 1.0)
    names = ("apply_identities", "merge_common_subexpressions", "remove_unneeded")
    assert ops(text([y], [x, p], *names)).count("Switch") == 2 and edges(text([y], [x, p], *names))
    lines = text([y], [x, p], *names, "drop_waits")
    assert sorted(ops(lines)) == ["AddV2", "Const", "Merge", "Sub", "Switch", "_Arg", "_Arg"]
    assert not edges(lines)


def test_a_constant_that_is_a_branch_stays_there() -> None:
    x, p = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.constant(2.0), lambda: x + 1.0)
    lines = text([y], [x, p], "apply_identities", "remove_unneeded", "drop_waits")
    assert len(edges(lines)) == 1 and "Const(^" in edges(lines)[0]


def test_a_wait_for_a_loops_body_stays_where_nothing_else_does_it() -> None:
    x = tf.placeholder(tf.int32, [])
    entered = enter_op(x, frame_name="loop", is_constant=False, parallel_iterations=10)
    i, _ = merge([entered, entered])
    left, inside = switch(i, loop_cond_op(i < 5))
    with tf.control_dependencies([tf.identity(inside)]):
        doubled = i + i
    i.op._update_input(1, next_iteration_op(doubled))
    lines = text([exit_op(left)], [x], "apply_identities", "remove_unneeded", "drop_waits")
    pivot = next(line for line in lines if "Identity" in line).split(" = ")[0]
    assert [line.split("AddV2")[1][:13] for line in edges(lines)] == [f"(%2, %2, ^{pivot})"[:13]]


def enqueue_constants(queue: Any, v: Any, i: Any) -> list[Any]:
    return [queue.enqueue(tf.constant(1.0) + tf.constant(1.0)), tf.assign_add(v, 1.0)]


def enqueue_sizes(queue: Any, v: Any, i: Any) -> list[Any]:
    return [queue.enqueue(tf.cast(tf.size(tf.fill([2, 2], i)), tf.float32)), tf.assign_add(v, 1.0)]


def enqueue_in_a_loop(queue: Any, v: Any, i: Any) -> list[Any]:
    def body(j: Any) -> Any:
        with tf.control_dependencies([queue.enqueue(tf.random_uniform([])), tf.assign_add(v, 1.0)]):
            return j + 2

    return [tf.while_loop(lambda j: j < 2, body, [0])]


@pytest.mark.parametrize("effects", [enqueue_constants, enqueue_sizes, enqueue_in_a_loop])
@pytest.mark.parametrize("device", ["/cpu:0", "/cpu:1"])
def test_effects_in_a_body_happen_once_an_iteration(effects, device) -> None:
    with tf.device(device):
        queue, v = tf.FIFOQueue(20, [tf.float32], [[]]), tf.Variable(0.0)

        def body(i: Any) -> Any:
            with tf.control_dependencies(effects(queue, v, i)):
                return i + 1

    i = tf.while_loop(lambda i: i < 3, body, [0])
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as s:
        s.run(tf.global_variables_initializer())
        assert s.run(i) == 3
        assert s.run([queue.size(), v]) == [3, 3.0]


def test_beside_a_conditional_what_is_only_waited_for_does_not_run():
    """The gradient with respect to the input, for which that by the weights waits, is needed by nobody."""
    x, w = tf.placeholder(tf.float32, [5, 4]), tf.get_variable("w", [4, 3])
    mean = tf.cond(tf.placeholder(tf.bool, []), lambda: tf.constant(1.0), lambda: tf.constant(2.0))
    y = tf.matmul(x * 2.0, w) * mean
    (gradient,) = tf.gradients(y, w, gate_gradients=True)
    assert ops(text([gradient], [x])).count("MatMul") == 3
    assert ops(text([gradient], [x], "fold_constants", "drop_waits")).count("MatMul") == 1


def test_those_who_wait_for_a_conditional_are_not_made_to_wait_for_a_branch():
    x = tf.placeholder(tf.float32, [])
    done = tf.cond(x > 0, lambda: tf.identity(x), lambda: x * 2)
    with tf.control_dependencies([done]):
        y = tf.identity(x + 1)
    for disabled in ("", "drop_waits"):
        with tf.Session() as session:
            assert session.run(y, {x: -1.0}) == 0.0, disabled
            assert session.run(y, {x: 1.0}) == 2.0, disabled


def test_a_wait_for_what_follows_a_loop_stays_outside_the_loop() -> None:
    """Beside a conditional, where a wait also says when a node is alive."""
    x = tf.placeholder(tf.float32, [])
    first = tf.while_loop(lambda v: v < 3.0, lambda v: v + x, [x])
    with tf.control_dependencies([tf.identity(first + 1.0)]):
        start = tf.constant(0.0)
    second = tf.while_loop(lambda v: v < 2.0, lambda v: v + x, [start])
    chosen = tf.cond(x > 0.0, lambda: second * 2.0, lambda: second)
    with tf.Session() as s:
        assert s.run([second, chosen], {x: 1.0}) == [2.0, 4.0]
        assert "Exit" in s.explain([second, chosen], {x: 1.0})


def test_a_gradients_computations_do_not_wait_for_pops_that_the_next_iteration_waits_for(monkeypatch) -> None:
    x, v = tf.placeholder(tf.float32, [3, 5]), tf.get_variable("v", [5], initializer=tf.ones_initializer())

    def body(i: Any, h: Any) -> Any:
        a, b = tf.sigmoid(h * v), tf.tanh(h)
        return i + 1, a * h + (1.0 - a) * b

    _, h = tf.while_loop(lambda i, _: i < 4, body, [0, x])
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(h))
    names = ("fold_constants", "apply_identities", "remove_unneeded")
    lines = text([h], [x], *names, "drop_waits", targets=[train])
    waiting = {line.split(" = ")[1].split("(")[0] for line in edges(lines) if " = " in line}
    pops = [line for line in lines if "StackPopV2(" in line]
    assert len(pops) > 2 and not waiting & {
        "Mul",
        "Neg",
        "Sub",
        "TanhGrad",
        "SigmoidGrad",
        "AddN",
        "Identity",
    }
    (trigger,) = [line for line in lines if "ControlTrigger(" in line]
    assert all("^" + line.split(" = ")[0] in trigger for line in pops)
    assert any("^" + trigger.split(" = ")[0] in line for line in lines if "NextIteration(" in line)
    feed = {x: np.random.RandomState(1).randn(3, 5)}
    setup = tf.global_variables_initializer()
    agree(monkeypatch, [train, h], feed, "drop_waits", fires=25, setup=setup)


def test_two_pops_of_one_stack_keep_their_order() -> None:
    """Only a computation between them says which comes first."""
    stack = F.StackV2(tf.constant(-1), elem_type=tf.float32)
    first = F.StackPushV2(stack, tf.constant(1.0))
    with tf.control_dependencies([first]):
        second = F.StackPushV2(stack, tf.constant(2.0))
    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([second]):
        last = F.StackPopV2(stack, elem_type=tf.float32)
    with tf.control_dependencies([last]):
        between = tf.exp(x)
    with tf.control_dependencies([between]):
        earlier = F.StackPopV2(stack, elem_type=tf.float32)
    with tf.Session() as s:
        assert s.run([earlier, last, between], {x: 0.0}) == [1.0, 2.0, 1.0]
    assert "^" in next(line for line in text([earlier, last, between], [x], "drop_waits") if "Exp(" in line)
