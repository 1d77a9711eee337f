"""Inlining: a plan's text before and after, what is alive where, and random functions against plain calls."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.functions.function import Declare, Defun
from flowstone.rewriting.functions.function_inlining import inline_functions, is_call
from flowstone.rewriting.invariants import check
from flowstone.rewriting.simplification.partial_execution import prune


@pytest.fixture
def x():
    return tf.placeholder(tf.float32, [2], name="x")


@pytest.fixture
def p():
    return tf.placeholder(tf.bool, [], name="p")


def function(name: str, body: Callable[..., Any], *types: Any, **options: Any) -> Any:
    return Defun(*(types or (tf.float32,)), func_name=name, **options)(body)


def inlined(fetches: Sequence[Any], feeds: Sequence[Any], targets: Sequence[Any] = ()) -> list[str]:
    """The lines of the subgraph afterwards; no call is left and all invariants hold."""
    subgraph = prune(fetches, list(targets), feeds)
    inline_functions(subgraph)
    check(subgraph, "inline_functions")
    assert not any(is_call(node) for node in subgraph.nodes)
    return str(subgraph).splitlines()


def run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feed)


# ---- text


def test_a_call_becomes_the_bodys_nodes(x) -> None:
    inner = function("Inner", lambda a: tf.multiply(a, a))
    outer = function("Outer", lambda a: (inner(a, name="inside") + 1.0, a))
    y, same = outer(x, name="call")
    assert str(prune([y, same], [], [x])).splitlines() == [
        "%0 = _Arg() index=0 : float32[2]  # x",
        "%1 = Outer(%0) : float32?, float32?  # call",
        "return %1, %1:1",
    ]
    assert inlined([y, same], [x]) == [
        "%0 = _Arg() index=0 : float32[2]  # x",
        "%1 = Mul(%0, %0) : float32[2]  # call/inside/Mul",
        "%2 = Const() value=1. : float32[]  # call/add/y",
        "%3 = AddV2(%1, %2) : float32[2]  # call/add_0",
        "return %3, %0",
    ]


def test_every_call_is_logged(x) -> None:
    square = function("Squared", lambda a: a * a)
    subgraph = prune([square(square(x, name="first"), name="second")], [], [x])
    inline_functions(subgraph)
    assert subgraph.log == [
        ("inline_functions", "first", "the nodes of Squared"),
        ("inline_functions", "second", "the nodes of Squared"),
    ]


def test_a_plan_without_calls_stays_as_it_is(x) -> None:
    subgraph = prune([tf.exp(x)], [], [x])
    before = str(subgraph)
    inline_functions(subgraph)
    assert str(subgraph) == before and not subgraph.log


def test_shapes_are_known_behind_the_call(x) -> None:
    stacked = function("Stacked", lambda a: tf.stack([a, a]))
    y = stacked(x)
    assert y.shape.ndims is None
    assert any("Pack" in line and "float32[2,2]" in line for line in inlined([y], [x]))


def test_nodes_have_the_device_and_the_origin_of_the_call(x) -> None:
    with tf.device("/cpu:0"):
        y = function("Squared", lambda a: a * a)(x, name="call")
    subgraph = prune([y], [], [x])
    inline_functions(subgraph)
    (node,) = [node for node in subgraph.nodes if node.type == "Mul"]
    assert node.device == y.op.device and node.origin is y.op


# ---- order and liveness


def counting(v: Any, amount: float) -> Any:
    """A function that adds to a variable and returns its argument."""

    def body(a):
        with tf.control_dependencies([v.assign_add(amount)]):
            return tf.identity(a)

    return body


def test_effects_happen_though_only_a_result_is_fetched(x) -> None:
    v = tf.Variable(0.0, use_resource=True)
    y = function("Counts", lambda a: (tf.group(counting(v, 1.0)(a)), a)[1])(x)
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(y.op, {x: [1.0, 2.0]})
        assert session.run(v) == 1.0


def test_a_call_waits_and_is_waited_for() -> None:
    v = tf.Variable(1.0, use_resource=True)
    first = v.assign(5.0)
    with tf.control_dependencies([first]):
        y = function("Reads", lambda h: tf.identity(h), tf.float32)(v.read_value())
    with tf.control_dependencies([y]):
        last = v.assign_add(1.0)
    assert run([y, last]) == [5.0, 6.0]


def test_a_call_on_a_branch_that_is_not_taken_has_no_effect(x, p) -> None:
    v = tf.Variable(0.0, use_resource=True)
    counts = function("Counts", counting(v, 1.0))
    y = tf.cond(p, lambda: counts(x), lambda: x)
    with tf.Session() as session:
        session.run(v.initializer)
        found = []
        for taken in (False, True, False, True):
            session.run(y, {x: [1.0, 2.0], p: taken})
            found.append(float(session.run(v)))
    assert found == [0.0, 1.0, 1.0, 2.0]


def test_a_body_of_constants_is_dead_where_its_call_is(x, p) -> None:
    seven = function("Seven", lambda a: tf.constant([7.0, 7.0]))
    y = tf.cond(p, lambda: seven(x), lambda: x)
    assert run(y, {x: [1.0, 2.0], p: True}).tolist() == [7.0, 7.0]
    assert run(y, {x: [1.0, 2.0], p: False}).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("argument", ["outside", "inside", "constant"])
def test_a_call_in_a_bodys_branch_has_its_effects_where_that_is_taken(p, argument: str) -> None:
    seen: list[int] = []

    def noting(a):
        with tf.control_dependencies([tf.py_func(lambda: seen.append(1), [], [])]):
            return tf.constant(1.0)

    notes = function("Notes", noting)

    def outer(p, a):
        a = {"outside": a, "inside": a + 1.0, "constant": tf.constant(3.0)}[argument]
        return tf.cond(p, lambda: notes(a), lambda: tf.constant(2.0))

    chooses, q = function("Chooses", outer, tf.bool, tf.float32), tf.placeholder(tf.bool, [])
    y = tf.cond(q, lambda: chooses(p, 0.0), lambda: tf.constant(9.0))
    found = [
        (run(y, {p: inner, q: around}), len(seen)) for around in (False, True) for inner in (False, True)
    ]
    assert found == [(9.0, 0), (9.0, 0), (2.0, 0), (1.0, 1)]


@pytest.mark.parametrize("kind", ["cond", "while"])
def test_functions_with_control_flow_inside_control_flow(x, p, kind: str) -> None:
    def looping(a):
        return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0), [0, a])[1]

    eightfold = function("Eightfold", looping, shape_func=lambda op: [op.inputs[0].shape])
    if kind == "cond":
        y = tf.cond(p, lambda: eightfold(x), lambda: -x)
    else:
        _, y = tf.while_loop(
            lambda i, a: i < 2, lambda i, a: (i + 1, tf.cond(p, lambda: eightfold(a), lambda: -a)), [0, x]
        )
    (slope,) = tf.gradients(y, x)
    factors = {True: 8.0, False: -1.0}
    for taken, factor in factors.items():
        factor = factor if kind == "cond" else factor**2
        found = run([y, slope], {x: [1.0, 2.0], p: taken})
        np.testing.assert_allclose(found, [[factor, 2 * factor], [factor, factor]])


def test_recursion_through_others_is_refused() -> None:
    declared = Declare("First", [("a", tf.float32)], [("b", tf.float32)])
    second = function("Second", lambda a: declared(a), out_names=["b"])
    first = function("First", lambda a: second(a), out_names=["b"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="First -> Second -> First"):
        run(first(tf.constant(1.0)))


# ---- random functions


class RandomFunctions:
    """Expressions over vectors of two; with `calls`, some of their parts are functions."""

    def __init__(self, seed: int, calls: bool) -> None:
        self.random, self.calls, self.number = random.Random(seed), calls, 0

    def expression(self, a: Any, b: Any, depth: int) -> Any:
        kind = self.random.choice(["op", "call", "call", "cond", "loop"]) if depth else "op"
        if kind == "op":
            return self.random.choice([lambda: tf.sin(a) + b, lambda: a * b, lambda: a - tf.tanh(b)])()
        if kind == "call":
            return self.called(lambda a, b: self.expression(a, b, depth - 1), a, b)
        if kind == "cond":
            taken = tf.reduce_sum(a) > self.random.choice([-9.0, 0.0, 9.0])
            return tf.cond(
                taken, lambda: self.expression(a, b, depth - 1), lambda: self.expression(b, a, depth - 1)
            )
        times = self.random.choice([0, 1, 3])

        def body(i: Any, c: Any) -> Any:
            c = self.expression(c, b, depth - 1)
            c.set_shape([2])
            return i + 1, c

        return tf.while_loop(lambda i, c: i < times, body, [tf.constant(0), a])[1]

    def called(self, body: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
        self.number += 1
        captures = self.random.random() < 0.3

        def shaped(c: Any, d: Any) -> Any:
            c.set_shape([2])
            d.set_shape([2])
            return body(c, b if captures else d) + 0.5 * d

        if not self.calls:
            return shaped(a, b)
        y = Defun(tf.float64, tf.float64, func_name=f"Part{self.number}")(shaped)(a, b)
        y.set_shape([2])
        return y


@pytest.mark.parametrize("seed", range(25))
def test_calls_give_what_their_bodies_give(seed: int) -> None:
    found = []
    for calls in (True, False):
        with tf.Graph().as_default():
            a = tf.placeholder_with_default(tf.constant([0.4, -0.7], tf.float64), [2])
            b = tf.placeholder_with_default(tf.constant([1.1, 0.2], tf.float64), [2])
            y = RandomFunctions(seed, calls).expression(a, b, 4)
            slopes = [tf.zeros([2]) if s is None else s for s in tf.gradients(y, [a, b])]
            found.append(run([y, *slopes]))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)
