"""What stacks and arrays hand out is what was put in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.rewriting.analyses.stored_values import (
    StoredValues,
    is_pop,
    is_put,
    is_step_storage,
    is_taken,
    lives_in_a_step,
    storage_of,
)
from flowstone.rewriting.simplification.partial_execution import prune


def popped(*pushed: Any) -> tuple[StoredValues, Any]:
    stack = F.StackV2(-1, elem_type=tf.float32)
    pushes = [F.StackPushV2(stack, x) for x in pushed]
    with tf.control_dependencies(pushes):
        top = F.StackPopV2(stack, elem_type=tf.float32)
    subgraph = prune([top], [], [x for x in pushed if x.op.type == "Placeholder"])
    return StoredValues(subgraph), subgraph.fetches[0].op


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([[2, 3]], (2, 3)),
        ([[2, 3], [2, 4]], (2, None)),
        ([[2, 3], [3]], None),
        ([[2, 3], None], None),
        ([[2, None], [2, None]], (2, None)),
    ],
)
def test_a_pop_has_what_all_pushed_shapes_have_in_common(shapes: Any, expected: Any) -> None:
    stored, pop = popped(*[tf.placeholder(tf.float32, shape) for shape in shapes])
    assert stored.dims_for(pop) == expected and len(stored.written_for(pop)) == len(shapes)


def test_a_constant_that_is_always_pushed() -> None:
    one, two = np.float32([1.0, 2.0]), np.float32([3.0, 4.0])
    for pushed, expected in (([one, one], one), ([one, two], None), ([np.zeros(1025, "f")], None)):
        stored, pop = popped(*[tf.constant(x) for x in pushed])
        np.testing.assert_array_equal(stored.constant_for(pop), expected)
    stored, pop = popped(tf.placeholder(tf.float32, [2]))
    assert stored.constant_for(pop) is None


def test_arrays_hand_out_elements_and_gathers_of_them() -> None:
    x = tf.placeholder(tf.float32, [4, 3])
    array = tf.TensorArray(tf.float32, 4, infer_shape=False).unstack(x)
    subgraph = prune([array.read(1), array.stack()], [], [x])
    stored = StoredValues(subgraph)
    read, gather = (y.op for y in subgraph.fetches)
    assert stored.dims_for(read) == (3,) and stored.dims_for(gather) == (None, 3)


def test_nothing_is_said_where_a_handle_cannot_be_followed() -> None:
    handle = tf.placeholder(tf.resource, [])
    x = tf.placeholder(tf.float32, [2])
    stack = F.StackV2(-1, elem_type=tf.float32)
    with tf.control_dependencies([F.StackPushV2(stack, x), F.StackPushV2(handle, x)]):
        top = F.StackPopV2(stack, elem_type=tf.float32)
    subgraph = prune([top], [], [x, handle])
    stored = StoredValues(subgraph)
    assert stored.writes == {} and stored.dims_for(subgraph.fetches[0].op) is None


def test_nodes_are_told_by_what_they_do() -> None:
    _, pop = popped(tf.constant(1.0))
    (push,), stack = pop.control_inputs, storage_of(pop)[0]
    assert stack is not None and storage_of(push) == (stack, False)
    kinds = [[f(n) for n in (stack, push, pop)] for f in (is_step_storage, is_put, is_taken, is_pop)]
    assert kinds == [[True, False, False], [False, True, False], *[[False, False, True]] * 2]
    assert lives_in_a_step(push) and not lives_in_a_step(push.inputs[1].op)
