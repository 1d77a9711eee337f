"""Sums of gradients back to the shapes of operands: values against NumPy's for all that may be known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.ops.numbers.broadcast_gradients import broadcast_sums, have_one_shape, shape_sums

_DIMS = [
    ((3, 4), (3, 4)),
    ((3, 4), (4,)),
    ((2, 3, 1), (3, 4)),
    ((3, 1), (1, 4)),
    ((3, 4), ()),
    ((1, 1), (1, 4)),
]


def _summed(dz: Any, dims: tuple[int, ...]) -> Any:
    dz = dz.sum(tuple(range(dz.ndim - len(dims))))
    return dz.sum(tuple(i for i, n in enumerate(dims) if n == 1), keepdims=True)


def _placeholder(dims: tuple[int, ...], known: str) -> Any:
    shape = {"all": list(dims), "last": [None, *dims[1:]][: len(dims)], "nothing": None}[known]
    return tf.placeholder(tf.float64, shape)


@pytest.mark.parametrize("make", [broadcast_sums, lambda x, y, dz: shape_sums(x, y)])
@pytest.mark.parametrize("known", ["all", "last", "nothing"])
@pytest.mark.parametrize("dims", _DIMS)
def test_sums_have_the_shapes_of_operands(make, known, dims) -> None:
    rng = np.random.default_rng(3)
    whole = rng.standard_normal(np.broadcast_shapes(*dims))
    x, y = (_placeholder(each, known) for each in dims)
    dz = tf.placeholder(tf.float64, whole.shape if known == "all" else None)
    back = make(x, y, dz)
    feeds = {x: np.ones(dims[0]), y: np.ones(dims[1]), dz: whole}
    with tf.Session() as session:
        for i, found in enumerate(session.run([back(dz, 0), back(dz, 1)], feeds)):
            assert found.shape == dims[i]
            np.testing.assert_allclose(found, _summed(whole, dims[i]), 1e-12)


def test_known_shapes_are_asked_once_a_graph() -> None:
    with tf.Graph().as_default() as graph:
        x, y = tf.placeholder(tf.float32, [3, 4]), tf.placeholder(tf.float32, [4])
        for _ in range(3):
            tf.gradients(x * y, [x, y])
    types = [op.type for op in graph.get_operations()]
    assert types.count("BroadcastGradientArgs") == 1 and types.count("Sum") == 3


def test_one_shape() -> None:
    x, y = tf.zeros([3, 4]), tf.placeholder(tf.float32, [None, 4])
    assert have_one_shape(x, x) and not have_one_shape(x, y) and not have_one_shape(y, y)
    assert not have_one_shape(x, tf.IndexedSlices(x, tf.zeros([3], tf.int32)))
