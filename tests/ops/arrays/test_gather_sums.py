"""Gradients of gathers along dimensions: the sums of NumPy, of sizes that are known and of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

CASES: dict[str, tuple[Any, ...]] = {
    "columns": ([3, 4], [1, 3, 1], 1, 0),
    "last": ([2, 3, 4], [[1, 3], [0, 1]], -1, 0),
    "middle": ([2, 3, 4], [2, 2], 1, 0),
    "one": ([3, 4], 2, 1, 0),
    "batch": ([2, 3, 4], [[2, 2, 0], [1, 0, 1]], 1, 1),
    "batch before others": ([2, 3, 4], [[3, 3], [0, 1]], 2, 1),
    "batches": ([2, 2, 5], [[[4], [4]], [[0], [1]]], 2, 2),
}


def expected(dims: list[int], indices: Any, axis: int, batch: int, flow: Any) -> Any:
    total, axis, indices = np.zeros(dims), axis % len(dims), np.asarray(indices)
    for place in np.ndindex(*flow.shape):
        picked = place[axis : axis + indices.ndim - batch]
        index = indices[place[:batch] + picked]
        total[place[:axis] + (index,) + place[axis + indices.ndim - batch :]] += flow[place]
    return total


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_sums(name: str, is_known: bool, dtype: str) -> None:
    dims, indices, axis, batch = CASES[name]
    x = tf.placeholder(tf.float32, dims if is_known else [None] * len(dims))
    places = tf.placeholder(dtype, np.shape(indices))
    y = tf.gather(x, places, axis=axis, batch_dims=batch)
    flow = np.random.default_rng(0).normal(size=y.shape if is_known else ()).astype("f")
    scale = tf.placeholder(tf.float32, None)
    (dx,) = tf.gradients(y * scale, x)
    feed = {x: np.zeros(dims), places: indices, scale: flow}
    with tf.Session() as session:
        found, sizes = session.run([dx, tf.shape(y)], feed)
    flow = np.broadcast_to(flow, sizes)
    np.testing.assert_allclose(found, expected(dims, indices, axis, batch, flow), rtol=1e-5)
