"""The terms of patterns: plain data, and what they say of themselves."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.graphs.subgraph import PlanOutput
from flowstone.rewriting.match_terms import Either, Number, Op, Through, Value, constant_value
from flowstone.rewriting.simplification.partial_execution import prune


def test_terms_are_compared_by_value() -> None:
    assert Op("Add|Mul", Value("x"), alone=True) == Op("Mul|Add", Value("x"), alone=True)
    assert Op("Add", Value("x")) != Op("Add", Value("y"))
    assert Op("Sum", Value(), keep_dims=True) != Op("Sum", Value(), keep_dims=False)
    assert Either(Value("x"), Value("y")) != Either(Value("y"), Value("x"))
    assert Through("Cast", Value("x")) == Through("Cast", Value("x"))


@pytest.mark.parametrize("term", [Value(), Number(), Op("Add"), Either(Value()), Through("Cast", Value())])
def test_a_name_makes_another_term_and_leaves_the_first(term) -> None:
    named = term.called("x")
    assert (named.name, term.name) == ("x", "")
    assert type(named) is type(term)
    assert named.called("") == term
    with pytest.raises(dataclasses.FrozenInstanceError):
        named.name = "y"


@pytest.mark.parametrize(
    "types, inputs, commutes",
    [
        ("Mul", 2, True),
        ("Mul|Maximum", 2, True),
        ("Add|AddV2|BiasAdd", 2, True),  # those of patterns add numbers
        ("Sub", 2, False),
        ("Mul|Sub", 2, False),
        ("Mul", 1, False),  # the other input is no term's
    ],
)
def test_two_terms_are_tried_in_either_order_if_all_types_commute(types, inputs, commutes) -> None:
    assert Op(types, *[Value()] * inputs).commutes is commutes


def planned(x: tf.Tensor) -> PlanOutput:
    return prune(
        [x], [], [op.outputs[0] for op in x.graph.get_operations() if op.type == "Placeholder"]
    ).fetches[0]


def test_a_constants_value_is_known_and_a_feeds_is_not() -> None:
    np.testing.assert_array_equal(constant_value(planned(tf.constant([1.0, 2.0]))), [1, 2])
    assert constant_value(planned(tf.placeholder(tf.float32, [2]))) is None
    assert constant_value(planned(tf.placeholder(tf.float32, [2]) + 1.0)) is None


def test_a_shape_that_is_known_in_part_is_no_constant() -> None:
    shape = tf.shape(tf.placeholder(tf.float32, [None, 2]))
    assert constant_value(planned(shape)) is None
