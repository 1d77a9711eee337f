"""Rows that are taken, added and put by indices, in a loop: machine code gives what the kernels do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.declarations.operation import F
from flowstone.lowering.programs.row_statements import ROWS
from three_ways import assert_equal_three_ways, repeated

DIMS = (4, 3, 2)


def stitched(x: Any, op: Any) -> list[Any]:
    return [op([[2, 0], [[1, 3]]], [x[:2], x[None, 2:]]), op([[0, 2], 1, [2, 0]], [x[:2], x[0], x[2:]])]


def put(x: Any, op: Any) -> list[Any]:
    indices = [tf.argmax(x[:, :, 0], 1)[:, None], tf.constant([[1, 2], [0, 0], [1, 2]])]
    return [op(x, indices[0], -x * 2.0), op(x, indices[1], x[:3, 0] + 1.0)]


CASES: dict[str, Callable[[Any], list[Any]]] = {
    "DynamicStitch": lambda x: stitched(x, tf.dynamic_stitch),
    "Gather": lambda x: [F.Gather(x, 2), F.Gather(x, [2, 0])],
    "GatherV2": lambda x: [
        tf.gather(x, 3),
        tf.gather(x, [[3, 0], [1, 1]]),
        tf.gather(x[:, 0, 0], [2, 3]),
        tf.gather(x, [[2, 0], [1, 1]], axis=1),
        tf.gather(x, [1], axis=-1),
        tf.gather(x, 1, axis=1),
        tf.gather(x, tf.argmax(x, 1), axis=1, batch_dims=1),
        tf.gather(x, tf.argmax(x, 2)[:, :, None], axis=2, batch_dims=2),
        tf.gather(x, tf.argmax(x[:, :, 0], 1)[:, None], axis=2, batch_dims=1),
        *tf.gradients(tf.gather(x, [2, 0, 2], axis=1), x, x),
        *tf.gradients(tf.gather(x, [[2, 0]] * 4, axis=1, batch_dims=1), x, x[:, :2]),
    ],
    "GatherNd": lambda x: [
        tf.gather_nd(x, [[3, 0], [1, 2]]),
        tf.gather_nd(x, [[[1, 2, 1]], [[0, 0, 0]]]),
        tf.gather_nd(x, [[2]]),
    ],
    "ScatterNd": lambda x: [
        tf.scatter_nd([[5], [0], [5], [2]], x, [6, 3, 2]),
        tf.scatter_nd([[[1, 2], [0, 0], [1, 2]]], x[:1], [2, 3, 2]),
        *tf.gradients(tf.gather_nd(x, [[3, 0], [1, 2], [3, 0]]), x, x[:3, 0]),
        *tf.gradients(tf.gather_nd(x, [[2, 1, 1]]), x, x[0, 0, :1]),
    ],
    "UnsortedSegmentProd": lambda x: [tf.unsorted_segment_prod(x, [2, -1, 2, 0], 4)],
    "UnsortedSegmentSum": lambda x: [
        tf.unsorted_segment_sum(x, [1, 1, -3, 0], 3),
        tf.unsorted_segment_sum(x, [[0, 5, 0], [1, 1, 1], [5, -1, 2], [2, 2, 0]], 6),
        tf.unsorted_segment_sum(x[:, 0, 0], [1, 0, 1, 1], 2),
    ],
    "ParallelDynamicStitch": lambda x: stitched(x, F.ParallelDynamicStitch),
    "TensorScatterAdd": lambda x: put(x, tf.tensor_scatter_add),
    "TensorScatterMax": lambda x: put(x, F.TensorScatterMax),
    "TensorScatterMin": lambda x: put(x, F.TensorScatterMin),
    "TensorScatterSub": lambda x: put(x, tf.tensor_scatter_sub),
    "TensorScatterUpdate": lambda x: put(x, tf.tensor_scatter_update)[:1],
    "UnsortedSegmentMax": lambda x: [tf.unsorted_segment_max(x, [2, -1, 2, 0], 4)],
    "UnsortedSegmentMin": lambda x: [tf.unsorted_segment_min(tf.cast(x * 9.0, tf.int32), [2, -1, 2, 0], 4)],
}


def test_every_operation_has_a_case() -> None:
    assert set(CASES) == set(ROWS)


@pytest.mark.parametrize("name", CASES)
def test_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, DIMS)
    results = repeated(CASES[name], x)
    assert_equal_three_ways(monkeypatch, results, {x: np.random.RandomState(0).rand(*DIMS)})


def test_rows_of_integers_that_are_put(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.int64, [5])
    results = repeated(lambda x: [tf.tensor_scatter_sub(x, [[1], [1], [4]], x[:3])], x)
    assert_equal_three_ways(monkeypatch, results, {x: [7, 1, 1, 2, 3]})


@pytest.mark.parametrize("axis", [1, 2])
def test_indices_along_a_dimension_out_of_range(axis: int) -> None:
    x, i = tf.placeholder(tf.float32, DIMS), tf.placeholder(tf.int32, [2])
    results = repeated(lambda x: [tf.gather(x, i, axis=axis)], x)
    values = np.random.RandomState(0).rand(*DIMS)
    with tf.Session() as session:
        assert "_Program(" in session.explain(results, {x: values, i: [0, 1]})
        (found,) = session.run(results, {x: values, i: [1, 0]})
        np.testing.assert_array_equal(found, values.astype("f").take([1, 0], axis))
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(results, {x: values, i: [0, 3]})


def test_scattering_outside_of_the_shape() -> None:
    x, i = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.int32, [])
    _, y = tf.while_loop(
        lambda n, _: n < 2, lambda n, a: (n + 1, tf.scatter_nd([[i, 0], [1, n]], a, [2, 2, 3])[1]), [0, x]
    )
    with tf.Session() as session:
        feed = {x: np.ones([2, 3], "f"), i: 1}
        assert "_Program(" in session.explain(y, feed)
        assert session.run(y, feed).tolist() == [[2.0] * 3, [0.0] * 3]
        for wrong in (-1, 2):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(y, {**feed, i: wrong})


@pytest.mark.parametrize("name", ["gather", "segments"])
def test_indices_out_of_range_are_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    x, places = tf.placeholder(tf.float32, [4, 2]), tf.placeholder(tf.int32, [4])

    def step(x: Any) -> list[Any]:
        if name == "gather":
            return [tf.gather(x, places, name="guilty")]
        return [tf.unsorted_segment_sum(x, places, 4, name="guilty")]

    results = repeated(step, x)
    values = np.arange(8.0).reshape(4, 2)
    with tf.Session() as session:
        assert "_Program(" in session.explain(results, {x: values, places: [3, 2, 1, 0]})
        (found,) = session.run(results, {x: values, places: [3, 2, 1, 0]})
        assert found.tolist() == values[::-1].tolist()
        with pytest.raises(tf.errors.InvalidArgumentError, match="guilty"):
            session.run(results, {x: values, places: [3, 2, 4, 0]})
