"""Norms of integers, whose squares and sums wrap around as those of their type do; extremes along axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.ops.numbers.reduction_calls import folded_extremes, folded_steps


@pytest.mark.parametrize("axes", [[0], [1], [0, 1]])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "uint16", "uint32"])
def test_norms_of_integers_wrap_around(dtype: str, axes: list[int]) -> None:
    info = np.iinfo(dtype)
    x = np.random.RandomState(0).randint(info.min, info.max, (37, 29), np.int64).astype(dtype)
    x[:, :5] %= 3  # sums that stay small
    with np.errstate(all="ignore"), tf.Session() as session:
        squares = np.sum(x.astype(np.uint64) ** 2, tuple(axes), np.uint64).astype(dtype)
        expected = np.sqrt(squares.astype(float))
        found = session.run(F.EuclideanNorm(tf.constant(x), np.array(axes, np.int32)))
    is_known = ~np.isnan(expected)  # no root of a sum that has become negative
    assert found.dtype == dtype
    np.testing.assert_array_equal(found[is_known], expected[is_known].astype(dtype))


@pytest.mark.parametrize(
    "dims", [[64, 38, 48], [64, 37, 48], [9, 101, 3, 8], [3000, 10], [64, 38, 64], [70, 9, 40]]
)
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_extremes_of_axes_before_others(dims: list[int], keep: bool, dtype: str) -> None:
    values = np.random.RandomState(0).randint(0, 250, dims).astype(dtype)
    if dtype.startswith("float"):
        values[1, -1], values[2, 0] = np.nan, -np.inf
    axis = len(dims) - 2 if len(dims) < 4 else 1
    x = tf.placeholder(dtype, dims)
    with tf.Session() as session:
        found = session.run([f(x, axis, keep) for f in (tf.reduce_max, tf.reduce_min)], {x: values})
    np.testing.assert_array_equal(found[0], values.max(axis, keepdims=keep))
    np.testing.assert_array_equal(found[1], values.min(axis, keepdims=keep))


@pytest.mark.by_aten
def test_steps_are_folded_where_they_fill_no_blocks() -> None:
    assert folded_steps((64, 37, 48), 1, 4) == 2 and folded_steps((3000, 10), 0, 8) == 8
    for shape in ((64, 37, 64), (4, 37, 48), (64, 7, 48), (64, 3000, 1), (64, 3000)):
        assert folded_steps(shape, 1, 4) == 1
    passes: list[tuple[int, ...]] = []

    def largest(x: torch.Tensor, *args: Any) -> torch.Tensor:
        passes.append(tuple(x.shape))
        return torch.amax(x, *args)

    x = torch.randn(64, 37, 48)
    assert torch.equal(folded_extremes(largest, x, 1, False, 2), x.amax(1))
    assert passes == [(64, 18, 96), (64, 3, 48)]
    fed = tf.placeholder(tf.float32, [64, 37, 48])
    with tf.Session() as session:
        assert "folded_extremes" in str(session.explain(tf.reduce_max(fed, 1), [fed]))
