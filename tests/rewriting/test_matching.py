"""The matcher: each kind of term, captures, the order in which ways are tried, and what hinders a match."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any, NamedTuple

import numpy as np
import pytest

import flowstone as tf
from flowstone import lowering
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.matching import Either, Number, Op, Pattern, Rules, Surroundings, Through, Value
from flowstone.rewriting.simplification.partial_execution import prune


class Pair(NamedTuple):
    """Two outputs."""

    x: PlanOutput
    y: PlanOutput


class Inside(NamedTuple):
    """An output, the root and the nodes."""

    x: PlanOutput
    root: PlanNode
    nodes: tuple[PlanNode, ...]


class Scaled(NamedTuple):
    """An output and a number."""

    x: PlanOutput
    factor: Any = 1.0


X, Y = Value("x"), Value("y")


def graph_of(*fetches: Any, targets: Any = ()) -> Subgraph:
    placeholders = [
        op.outputs[0] for op in tf.get_default_graph().get_operations() if op.type == "Placeholder"
    ]
    return prune(list(fetches), list(targets), placeholders)


def found(pattern: Pattern[Any], *fetches: Any, **how: Any) -> list[Any]:
    subgraph = graph_of(*fetches, **how)
    return list(pattern.find(subgraph.nodes, Surroundings.of(subgraph)))


def value(name: str) -> Any:
    return tf.placeholder(tf.float32, [2, 2], name=name)


def names(*outputs: PlanOutput) -> list[str]:
    return [x.op.name for x in outputs]


def test_inputs_in_order_and_of_ops_that_commute_both_ways() -> None:
    a, b = value("a"), value("b")
    difference = Pattern(Op("Sub", Op("Neg", X), Y), Pair)
    total = Pattern(Op("Add|AddV2", Op("Neg", X), Y), Pair)
    assert [names(*match) for match in found(difference, -a - b)] == [["a", "b"]]
    assert not found(difference, b - -a)
    for y in (-a + b, b + -a):
        assert [names(*match) for match in found(total, y)] == [["a", "b"]]


def test_what_is_captured_twice_is_the_same_output() -> None:
    a, b = value("a"), value("b")
    pattern = Pattern(Op("Mul", Op("Sigmoid", X), Op("Tanh", X)), Single)
    assert names(*found(pattern, tf.sigmoid(a) * tf.tanh(a))[0]) == ["a"]
    assert not found(pattern, tf.sigmoid(a) * tf.tanh(b))


class Single(NamedTuple):
    """An output."""

    x: PlanOutput


def test_another_way_is_tried_where_what_follows_fails() -> None:
    a, b = value("a"), value("b")
    both = Op("Mul", X, Y)
    pattern = Pattern(Op("Sub", both, Op("Neg", X)), Pair)
    assert [names(*match) for match in found(pattern, a * b - -b)] == [["b", "a"]]
    where = Pattern(both, Pair, where=lambda match: names(match.x) == ["b"])
    assert [names(*match) for match in found(where, a * b)] == [["b", "a"]]


def test_numbers_attributes_and_values_with_conditions() -> None:
    a = value("a")
    halved = Pattern(Op("Mul", X, Number("factor", lambda n: n.shape == () and n < 1)), Scaled)
    assert [float(match.factor) for match in found(halved, a * 0.5)] == [0.5]
    assert not found(halved, a * 2.0) and not found(halved, a * a)
    columns = Pattern(Op("MatMul", X, Y, transpose_a=False, transpose_b=lambda flag: flag), Pair)
    assert found(columns, tf.matmul(a, a, transpose_b=True))
    assert not found(columns, tf.matmul(a, a)) and not found(columns, tf.matmul(a, a, True, True))
    vectors = Pattern(Op("Neg", Value("x", lambda x: len(x.dims or ()) == 1)), Single)
    assert found(vectors, -a[0]) and not found(vectors, -a)
    assert found(
        Pattern(Op("Neg", X, where=lambda node: node.name == "minus"), Single), tf.negative(a, "minus")
    )


def test_parts_that_may_be_missing_have_defaults() -> None:
    a = value("a")
    pattern = Pattern(Op("Exp", Either(Op("Mul", X, Number("factor")), X)), Scaled)
    assert [match.factor for match in found(pattern, tf.exp(a * 3.0))] == [3.0]
    (match,) = found(pattern, tf.exp(a))
    assert match.factor == 1.0 and names(match.x) == ["a"]


def test_views_are_passed_as_far_as_possible() -> None:
    a = value("a")
    pattern = Pattern(Op("Exp", Through("Identity|Reshape|ExpandDims", X)), Inside)
    (match,) = found(pattern, tf.exp(tf.expand_dims(tf.reshape(a, [4]), 0)))
    assert names(match.x) == ["a"] and [node.type for node in match.nodes] == ["ExpandDims", "Reshape", "Exp"]
    with tf.control_dependencies([tf.negative(a)]):
        waiting = tf.identity(a)
    (match,) = found(pattern, tf.exp(tf.expand_dims(waiting, 0)))
    assert match.x.op.type == "Identity"
    to_negative = Pattern(Op("Exp", Through("Reshape", Op("Neg", X))), Inside)
    assert found(to_negative, tf.exp(tf.reshape(-a, [4]))) and not found(
        to_negative, tf.exp(tf.reshape(a, [4]))
    )


class Terms(NamedTuple):
    """Of a sum."""

    x: PlanOutput
    y: PlanOutput
    rest: tuple[PlanOutput, ...]


def test_terms_of_a_sum_lie_anywhere() -> None:
    a, b, c = value("a"), value("b"), value("c")
    pattern = Pattern(Op("AddN", Op("Neg", X), Op("Exp", Y), others="rest"), Terms)
    (match,) = found(pattern, tf.add_n([c, tf.exp(b), c, -a]))
    assert names(match.x, match.y, *match.rest) == ["a", "b", "c", "c"]
    assert not found(pattern, tf.add_n([c, -b, -a])) and not found(pattern, tf.add_n([-a]))
    one = Pattern(Op("AddN", Op("Neg", X), Op("Neg", Y), others="rest"), Terms)
    assert not found(one, tf.add_n([-a, b]))


class Parts(NamedTuple):
    """Of a split."""

    split: PlanNode
    first: int
    second: int


def test_parts_of_one_node() -> None:
    a = value("a")
    part = lambda name: Op("Split", Number(), X, node="split", part=name)  # noqa: E731
    pattern = Pattern(Op("Sub", part("first"), part("second")), Parts)
    left, right = tf.split(a, 2, 1)
    (match,) = found(pattern, right - left)
    assert (match.split.type, match.first, match.second) == ("Split", 1, 0)
    assert not found(pattern, tf.split(a, 2, 1)[0] - left)


def test_alone_is_what_one_input_takes() -> None:
    a = value("a")
    pattern = Pattern(Op("Exp", Op("Neg", X, alone=True)), Single)
    y = -a
    assert found(pattern, tf.exp(y))
    assert not found(pattern, tf.exp(y), y) and not found(pattern, tf.exp(y), tf.square(y))


CLOSED = Op("Mul", Op("Exp", Op("Neg", X, name="y")), Value("y"))


def test_closed_patterns_have_no_other_consumers() -> None:
    a = value("a")
    pattern = Pattern(CLOSED, Inside, closed=True)
    y = -a
    inner = tf.exp(y)
    z = inner * y
    (match,) = found(pattern, z)
    assert [node.type for node in match.nodes] == ["Neg", "Exp", "Mul"] and match.root is match.nodes[-1]
    assert found(pattern, z, tf.square(z), z)
    for outside in (y, inner, tf.square(y), inner + 1.0):
        assert not found(pattern, z, outside)
        assert found(Pattern(CLOSED, Inside), z, outside)
    with tf.control_dependencies([inner]):
        waiting = tf.square(a)
    assert not found(pattern, z, waiting) and not found(pattern, z, targets=[inner.op])


def test_what_is_kept_may_have_other_consumers() -> None:
    a = value("a")
    kept = Op("Mul", Op("Exp", Op("Neg", X, name="y", kept=True)), Value("y"))
    y = -a
    (match,) = found(Pattern(kept, Inside, closed=True), tf.exp(y) * y, tf.square(y))
    assert [node.type for node in match.nodes] == ["Exp", "Mul"]


def test_what_waits_matches_only_where_it_may() -> None:
    a = value("a")
    with tf.control_dependencies([tf.negative(a)]):
        inner = tf.exp(a)
    outer = Op("Sqrt", Op("Exp", X))
    assert found(Pattern(outer, Single), tf.sqrt(inner))
    assert not found(Pattern(outer, Single, waits=False), tf.sqrt(inner))
    assert not found(Pattern(Op("Sqrt", Op("Exp", X, waits=False)), Single), tf.sqrt(inner))
    with tf.control_dependencies([tf.negative(a)]):
        last = tf.sqrt(tf.exp(a * a))
    assert found(Pattern(Op("Sqrt", Value("x")), Single, waits=False), last)


def test_a_match_is_found_from_an_operand_upwards() -> None:
    a, b = value("a"), value("b")
    pattern = Pattern(Op("Sub", Y, Op("Exp", Op("Neg", X))), Pair)
    subgraph = graph_of(b - tf.exp(-a), a - tf.exp(-b), tf.exp(-a))
    around = Surroundings.of(subgraph)
    reads = {node.name: node.outputs[0] for node in subgraph.nodes if node.type == "_Arg"}
    (match,) = pattern.find_above("x", around, x=reads["a"])
    assert names(match.x, match.y) == ["a", "b"]
    assert not list(pattern.find_above("x", around, x=reads["a"], y=reads["a"]))


def test_a_field_that_no_term_captures_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"Pair has fields that the pattern does not capture: \['y'\]"):
        Pattern(Op("Neg", X), Pair).compile()


def test_all_patterns_capture_what_their_records_have() -> None:
    patterns = [
        value
        for _, name, _ in pkgutil.walk_packages(lowering.__path__, "flowstone.lowering.")
        for value in vars(importlib.import_module(name)).values()
        if isinstance(value, Pattern)
    ]
    assert len(patterns) > 15
    for pattern in patterns:
        assert callable(pattern.compile())


def test_terms_are_data() -> None:
    assert Op("Add|AddV2", X, Y) == Op("AddV2|Add", Value("x"), Value("y"))
    assert Op("Neg", X).called("z") == Op("Neg", X, name="z") != Op("Neg", X)
    assert Either(X, Y).called("z").name == "z" and "Neg" in repr(Op("Neg", X))


def test_rules_go_by_the_type_of_the_root() -> None:
    a = value("a")
    subgraph = graph_of(tf.exp(-a), tf.sqrt(-a), tf.exp(a))
    rules = Rules(
        Surroundings.of(subgraph),
        (
            Pattern(Op("Exp|Sqrt", Op("Neg", X)), Single),
            lambda match: "twice" if match.x.op.type == "Neg" else None,
        ),
        (Pattern(Op("Exp", X), Single), lambda match: "any"),
        (Pattern(Op("Sqrt", Op("Neg", X)), Single), lambda match: "root"),
    )
    made = {node.name: rules(node) for node in subgraph.nodes if rules(node) is not None}
    assert made == {"Exp": "any", "Sqrt": "root", "Exp_1": "any"}
    assert np.all([rules(node) is None for node in subgraph.nodes if node.type == "Neg"])
