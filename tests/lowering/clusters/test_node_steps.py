"""What each node stands for in a cluster: its kind, its axes, numbers that are in the code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.graphs.subgraph import PlanNode
from flowstone.lowering.clusters.node_steps import Steps, axes_of, baked, element_of, kind_of
from flowstone.native.clusters.clusters import Step
from flowstone.rewriting.simplification.partial_execution import prune


def planned(x: Any, *feeds: Any) -> PlanNode:
    """The node of a tensor in a plan."""
    return prune([x], [], list(feeds)).fetches[0].op


def test_kinds() -> None:
    x, y = tf.placeholder(tf.float32, [3, 4]), tf.placeholder(tf.float32, None)
    column, row = tf.placeholder(tf.float32, [4, 1]), tf.placeholder(tf.float32, [1, 5])
    kinds = {
        "element": [x + 1.0, tf.exp(x), tf.cast(x, tf.float64), tf.broadcast_to(x, [2, 3, 4]), column @ row],
        "view": [tf.reshape(x, [12]), tf.expand_dims(x, 0)],
        "reduction": [tf.reduce_sum(x), tf.reduce_max(x, 1), tf.nn.l2_loss(x), tf.reduce_any(x > 0.0, 0)],
        "row": [tf.nn.softmax(x), tf.argmax(x, 1), tf.argmin(x, -1)],
        "dot": [tf.matmul(x, column), tf.matmul(x, tf.transpose(column), transpose_b=True)],
        "": [tf.matmul(x, x, transpose_b=True), tf.exp(y), tf.argmax(x, 0), tf.transpose(x)],
    }
    for kind, tensors in kinds.items():
        assert [kind_of(planned(each, x, y, column, row)) for each in tensors] == [kind] * len(tensors)


def test_counters_of_loops_are_no_members() -> None:
    i = tf.placeholder(tf.int32, [])
    assert kind_of(planned(i + 1, i)) == "" and kind_of(planned(i < 3, i)) == ""


@pytest.mark.parametrize(("axes", "expected"), [([0], [0]), ([-1, 0], [0, 2]), ([], []), ([1, 1], None)])
def test_axes(axes: list[int], expected: list[int] | None) -> None:
    x = tf.placeholder(tf.float32, [2, 3, 4])
    y = tf.raw_ops.Sum(input=x, axis=tf.constant(axes, tf.int32), keep_dims=False)
    assert axes_of(planned(y, x)) == expected


def test_axes_that_are_fed_are_not_known() -> None:
    x, axis = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.int32, [])
    assert axes_of(planned(tf.reduce_sum(x, axis), x, axis)) is None


def test_numbers_that_are_everywhere_the_same_are_in_the_code() -> None:
    def found(value: Any) -> Step | None:
        return baked(prune([tf.constant(value)], [], []).fetches[0])

    half = found(np.full([3, 2], 0.5, np.float32))
    assert half == Step("Const", (), "float32", (("value", (0.5).hex()),))
    assert found(np.array([1.0, 2.0])) is None and found(np.zeros([0])) is None
    assert found(np.array([0.0, -0.0])) is None
    truth = found(np.bool_(True))
    assert truth is not None and dict(truth.attributes) == {"value": "True"}


def test_powers_with_known_exponents_are_other_elements() -> None:
    x = tf.placeholder(tf.float64, [3])
    assert element_of(planned(tf.pow(x, tf.constant(2.0, tf.float64)), x)) == ("Square", {}, 1)
    assert element_of(planned(tf.pow(x, tf.constant(2.5, tf.float64)), x))[0] == "Pow"


def test_steps_are_numbered_after_the_inputs() -> None:
    steps = Steps(2)
    assert steps.add("AddV2", "float32", 0, 1) == 2
    assert steps.number("float32", 0.5) == 3
    assert steps.steps[1] == Step("Const", (), "float32", (("value", (0.5).hex()),))


def test_only_axes_and_shapes_have_no_elements() -> None:
    none, one = tf.placeholder(tf.float32, [0]), tf.placeholder(tf.float32, [1])
    assert kind_of(planned(tf.reduce_mean(none), none)) == ""
    assert kind_of(planned(tf.reshape(one, []), one)) == "view"


def test_an_exponent_and_a_shape_that_are_computed_are_not_in_the_code() -> None:
    x, two = tf.placeholder(tf.float32, [2, 3]), tf.constant(3.0) - 1.0
    assert element_of(planned(x**two, x)) == ("Pow", {}, 2)
    assert element_of(planned(x**2.0, x))[0] == "Square"
    rows = tf.constant(1) + 1
    assert kind_of(planned(tf.broadcast_to(x, tf.stack([rows, 2, 3])), x)) == ""


def test_a_plan_without_folded_constants() -> None:
    x = tf.placeholder(tf.float64, [2, 3])
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.opt_level = -1
    power = tf.abs(x) ** (tf.constant(3.0, tf.float64) - 1.0) + tf.exp(x)
    with tf.Session(config=config) as session:
        value = np.arange(6.0).reshape(2, 3) - 2.0
        np.testing.assert_allclose(session.run(power, {x: value}), value**2 + np.exp(value))
