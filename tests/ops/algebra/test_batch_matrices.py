"""Products of many matrices by one column each: values beside NumPy's, in every form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import registry


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("adj_x", "adj_y"), [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("name", ["BatchMatMul", "BatchMatMulV2"])
@pytest.mark.parametrize(("terms", "results"), [(30, 20), (20, 30), (3, 4), (1, 500)])
@pytest.mark.parametrize("outer", [(6,), (2, 3)])
def test_by_columns(
    outer: Any, terms: int, results: int, name: str, adj_x: bool, adj_y: bool, dtype: str, known: bool
) -> None:
    chance = np.random.default_rng(0)
    matrices = chance.normal(size=(*outer, results, terms)).astype(dtype)
    columns = chance.normal(size=(*outer, terms, 1)).astype(dtype)
    fed = matrices.swapaxes(-1, -2) if adj_x else matrices, columns.swapaxes(-1, -2) if adj_y else columns
    x, y = (tf.placeholder(dtype, a.shape if known else [*[None] * len(outer), *a.shape[-2:]]) for a in fed)
    product = registry[name](x, y, adj_x=adj_x, adj_y=adj_y)
    with tf.Session() as session:
        found = session.run([product, product * 2], {x: fed[0], y: fed[1]})
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(found[0], matrices @ columns, rtol=tolerance, atol=tolerance * terms)
    np.testing.assert_array_equal(found[1], found[0] * 2)


def test_columns_that_are_broadcast() -> None:
    x, y = tf.placeholder(tf.float64, [5, 30, 20]), tf.placeholder(tf.float64, [1, 30, 1])
    a, b = np.random.default_rng(0).normal(size=(5, 30, 20)), np.arange(30.0).reshape(1, 30, 1)
    with tf.Session() as session:
        found = session.run(tf.matmul(x, y, transpose_a=True), {x: a, y: b})
    np.testing.assert_allclose(found, a.swapaxes(1, 2) @ b, rtol=1e-12)


def test_columns_of_another_length() -> None:
    x, y = tf.placeholder(tf.float32, [None, 30, 20]), tf.placeholder(tf.float32, [None, None, 1])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(tf.matmul(x, y, transpose_a=True), {x: np.ones((2, 30, 20)), y: np.ones((2, 1, 1))})
