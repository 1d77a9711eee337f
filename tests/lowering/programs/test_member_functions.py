"""Programs that are alike run by one function until there is machine code; others have their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.lowering.programs.member_functions import are_alike
from flowstone.lowering.programs.straight_regions import join_straight_programs
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.plans import function_calls

W = np.cos(np.arange(16)).reshape(4, 4).astype(np.float32)


def layer(x: Any, w: Any, axis: int = 1, take: Any = None) -> Any:
    """Enough small nodes for a program."""
    for _ in range(10):
        z = tf.matmul(x, w)
        z = tf.concat([z[:, 2:], z[:, :2]], 1) - tf.reduce_max(z, axis, keepdims=True)
        x = tf.tanh(z) * (x if take is None else take(x))
    return x


def apart(x: Any) -> Any:
    """The same value, between two programs."""
    y = tf.py_func(lambda a: a, [x], x.dtype)
    y.set_shape(x.shape)
    return y


def layers(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> tuple[Any, Any]:
    x = tf.placeholder(tf.float32, [4, 4])
    return second(apart(first(x))), x


LAYERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], bool]] = {
    "same": (lambda x: layer(x, x), lambda x: layer(x, x), True),
    "equal constants": (lambda x: layer(x, tf.constant(W)), lambda x: layer(x, tf.constant(W)), True),
    "other constants": (lambda x: layer(x, tf.constant(W)), lambda x: layer(x, tf.constant(W * 0.5)), False),
    "other axis": (lambda x: layer(x, x), lambda x: layer(x, x, axis=0), False),
    "other numbers": (
        lambda x: layer(x, x, take=lambda y: y * 0.5),
        lambda x: layer(x, x, take=lambda y: y * 0.25),
        False,
    ),
    "other nodes": (
        lambda x: layer(x, x, take=lambda y: tf.square(y)),
        lambda x: layer(x, x, take=lambda y: y * y),
        False,
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_which_are_alike(name: str) -> None:
    first, second, expected = LAYERS[name]
    y, x = layers(first, second)
    subgraph = prune([y], [], [x])
    join_straight_programs(subgraph)
    found = [node.attributes["members"] for node in subgraph.nodes if node.type == "_Program"]
    assert len(found) == 2
    assert are_alike(found[0], found[0]) and are_alike(found[1], found[1])
    assert are_alike(*found) == are_alike(*reversed(found)) == expected


def _compilations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one whenever nodes are compiled as a function."""
    counts: list[int] = []
    compiled = function_calls.compile_segment

    def counted(subgraph: Any, *args: Any, **kwargs: Any) -> Any:
        counts.append(len(subgraph.nodes))
        return compiled(subgraph, *args, **kwargs)

    monkeypatch.setattr(function_calls, "compile_segment", counted)
    return counts


@pytest.mark.parametrize("name", LAYERS)
def test_first_runs_compile_what_is_alike_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a step whose next run computes something else, the first is by nodes. The first layer stands between
    the constants that all share, and is another program."""
    *functions, is_alike = LAYERS[name]
    v = tf.Variable(W)
    y = functions[1](apart(functions[0](apart(functions[0](v)))))
    train = v.assign_add(apart(y) * 0.1)
    counts, found = _compilations(monkeypatch), []
    for native in (0, 1):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Session() as session:
            session.run(v.initializer)
            assert session.explain([y, train]).count("_Program(") == 3 * native
            counts.clear()
            found.append([session.run([y, train]) for _ in range(2)])
            assert len(counts) == native * (2 if is_alike else 3)
    np.testing.assert_allclose(found[1], found[0], rtol=2e-4, atol=1e-5)


def test_errors_name_the_programs_own_node(monkeypatch: pytest.MonkeyPatch) -> None:
    def part(name: str, x: Any, n: Any) -> Any:
        with tf.name_scope(name):
            return tf.cond(x[0] > 0, lambda: tf.floordiv(x, n, name="quotient") * 2, lambda: x)

    x, n, m = tf.placeholder(tf.int32, [4]), tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, [])
    y = part("second", apart(part("first", x, n)), m)
    counts = _compilations(monkeypatch)
    with tf.Session() as session:
        assert session.explain(y, {x: [1, 2, 3, 4], n: 1, m: 1}).count("_Program(") == 2
        for name, divisors, count in (("first", (0, 1), 1), ("second", (1, 0), 2), ("second", (1, 0), 2)):
            with pytest.raises(tf.errors.InvalidArgumentError, match=f"node {name}/cond/quotient"):
                session.run(y, {x: [1, 2, 3, 4], n: divisors[0], m: divisors[1]})
            assert len(counts) == count
