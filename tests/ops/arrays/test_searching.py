"""Sorting and searching against NumPy: directions, axes, types whose negatives would overflow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

RNG = np.random.default_rng(9)


def run(*tensors: Any) -> Any:
    with tf.Session() as session:
        return session.run(list(tensors))


@pytest.mark.parametrize("kind", ["float32", "float64", "int8", "int32", "int64", "uint8"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sorted_in_both_directions(kind: str, axis: int) -> None:
    value = RNG.integers(0, 120, (4, 5)).astype(kind)
    if kind == "int8":
        value.flat[0] = -128  # has no negative
    ascending, descending = run(tf.sort(value, axis), tf.sort(value, axis, "DESCENDING"))
    np.testing.assert_array_equal(ascending, np.sort(value, axis))
    np.testing.assert_array_equal(descending, np.flip(np.sort(value, axis), axis))
    up, down = run(tf.argsort(value, axis), tf.argsort(value, axis, direction="DESCENDING"))
    assert up.dtype == down.dtype == np.int32
    np.testing.assert_array_equal(np.take_along_axis(value, up, axis), ascending)
    np.testing.assert_array_equal(np.take_along_axis(value, down, axis), descending)


def test_gradients_of_a_sorted_vector_go_to_their_elements() -> None:
    x = tf.constant([3.0, 1.0, 2.0])
    (dx,) = tf.gradients(tf.sort(x) * [10.0, 20.0, 30.0], x)
    assert run(dx)[0].tolist() == [30, 10, 20]


def test_directions_and_axes_that_are_none() -> None:
    with pytest.raises(ValueError, match="should be one of 'ASCENDING' or 'DESCENDING'"):
        tf.sort([1.0], direction="UP")
    with pytest.raises(ValueError, match="must be a constant scalar"):
        tf.argsort([1.0], axis=[0])


@pytest.mark.parametrize("side", ["left", "right"])
def test_places_in_sorted_rows(side: str) -> None:
    rows = np.sort(RNG.integers(0, 9, (2, 3, 6)), -1)
    values = RNG.integers(-1, 10, (2, 3, 4))
    (places,) = run(tf.searchsorted(rows, values, side, out_type=tf.int64))
    expected = [np.searchsorted(a, b, side) for a, b in zip(rows.reshape(6, 6), values.reshape(6, 4))]
    np.testing.assert_array_equal(places.reshape(6, 4), expected)
    with pytest.raises(ValueError, match="side must be either 'right' or 'left'"):
        tf.searchsorted(rows, values, "middle")


def test_scattered_and_rolled_under_all_their_names() -> None:
    x = tf.zeros([3])
    updated = [f(x, [[1]], [2.0]) for f in (tf.tensor_scatter_update, tf.tensor_scatter_nd_update)]
    added = [f(x, [[1], [1]], [2.0, 3.0]) for f in (tf.tensor_scatter_add, tf.tensor_scatter_nd_add)]
    for found in run(*updated):
        assert found.tolist() == [0, 2, 0]
    for found in run(*added):
        assert found.tolist() == [0, 5, 0]
    one, other = run(tf.roll([1, 2, 3], 1, 0), tf.manip.roll([1, 2, 3], 1, 0))
    assert one.tolist() == other.tolist() == [3, 1, 2]
    assert run(tf.unravel_index([5], [2, 3]))[0].tolist() == [[1], [2]]


def test_special_functions_by_their_names() -> None:
    values = run(
        tf.math.erfcinv(0.5),
        tf.math.bessel_i0(1.0),
        tf.math.bessel_i1(1.0),
        tf.math.cumulative_logsumexp([0.0, 0.0]),
    )
    np.testing.assert_allclose(values[0], 0.476936, rtol=1e-5)
    np.testing.assert_allclose(values[1], 1.266066, rtol=1e-5)
    np.testing.assert_allclose(values[2], 0.565159, rtol=1e-5)
    np.testing.assert_allclose(values[3], [0, np.log(2)], rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, -2, -1, 2])
@pytest.mark.parametrize("direction", ["ASCENDING", "DESCENDING"])
def test_sorting_what_has_no_known_rank(axis: int, direction: str) -> None:
    values = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
    x = tf.placeholder(tf.float32)
    expected = np.sort(values, axis)
    with tf.Session() as session:
        found, places = session.run(
            [tf.sort(x, axis, direction), tf.argsort(x, axis, direction)], {x: values}
        )
    np.testing.assert_array_equal(found, expected if direction == "ASCENDING" else np.flip(expected, axis))
    np.testing.assert_array_equal(np.take_along_axis(values, places, axis), found)


@pytest.mark.parametrize("axis", [3, -4])
def test_sorting_along_no_dimension(axis: int) -> None:
    with pytest.raises(ValueError, match="must be in the range"):
        tf.sort(tf.zeros([2, 3, 4]), axis)


@pytest.mark.parametrize(
    ("shape", "axis", "sorted_at", "placed_at"),
    [([None, 3], -1, 11, 10), ([2, 3, 4], -2, 14, 13), ([2, 3, 4], 2, 11, 10), (None, -1, 11, 10)],
)
def test_as_many_nodes_as_in_tensorflow(shape: Any, axis: int, sorted_at: int, placed_at: int) -> None:
    for sorting, ascending, descending in (
        (tf.sort, sorted_at, sorted_at - 2),
        (tf.argsort, placed_at, sorted_at - 2),
    ):
        for direction, expected in (("ASCENDING", ascending), ("DESCENDING", descending)):
            with tf.Graph().as_default() as graph:
                sorting(tf.placeholder(tf.float32, shape), axis, direction)
                assert len(graph.get_operations()) == expected, (sorting, direction)


def test_constants_are_axes() -> None:
    assert run(tf.sort([[2, 1], [1, 2]], tf.constant(0)))[0].tolist() == [[1, 1], [2, 2]]
    with pytest.raises(ValueError, match="must be a constant scalar"):
        tf.sort([2, 1], tf.placeholder(tf.int32, []))
    with pytest.raises(ValueError, match="must be a constant scalar"):
        tf.sort([2, 1], 0.5)
