"""Norms of integers, whose squares and sums wrap around as those of their type do."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F


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
