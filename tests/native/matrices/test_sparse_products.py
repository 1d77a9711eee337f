"""Products of sparse matrices by machine code, beside dense products in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.machine import machine_code
from flowstone.native import offers
from flowstone.native.codegen import host
from flowstone.native.matrices import sparse_products

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
SHAPES = [  # height, inner, columns, elements
    (5, 4, 1, 7),
    (5, 4, 3, 0),
    (1, 1, 1, 3),
    (7, 300, 16, 900),
    (900, 40, 19, 6000),
    (3, 5000, 33, 20_000),
    (4000, 10, 1, 90_000),
    (6, 2, 0, 4),
]


def multiplied(indices: torch.Tensor, values: torch.Tensor, dense: torch.Tensor, *rest: Any) -> Any:
    function = sparse_products.sparse_product(values.dtype, indices.dtype)
    assert function is not None
    return function(indices, values, dense, *rest)


@pytest.mark.parametrize("is_ordered", [True, False])
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("kinds", [(torch.float32, torch.int64), (torch.float64, torch.int32)])
@pytest.mark.parametrize("shape", SHAPES)
def test_products(
    shape: tuple[int, int, int, int], kinds: tuple[torch.dtype, torch.dtype], adjoint: bool, is_ordered: bool
) -> None:
    """Elements in any order, some at the same place."""
    height, inner, columns, count = shape
    chance = torch.Generator().manual_seed(sum(shape))
    i = torch.randint(height, (count,), generator=chance)
    j = torch.randint(inner, (count,), generator=chance)
    if is_ordered:
        i = i.sort()[0]
    values = torch.randn(count, generator=chance, dtype=kinds[0])
    dense = torch.randn(columns, inner, generator=chance, dtype=kinds[0]).t()
    indices = torch.stack((j, i) if adjoint else (i, j), 1).to(kinds[1])
    expected = torch.zeros(height, inner, dtype=torch.float64)
    expected.index_put_((i, j), values.double(), accumulate=True)
    found = multiplied(indices, values, dense, height, adjoint)
    assert found.dtype is kinds[0]
    torch.testing.assert_close(
        found.double(),
        expected @ dense.double(),
        rtol=1e-4 if kinds[0] is torch.float32 else 1e-10,
        atol=1e-3,
    )


def test_rows_that_rise_in_each_thread_s_part_but_not_over_all() -> None:
    i = torch.arange(50_000).repeat(2)
    indices = torch.stack((i, torch.zeros_like(i)), 1)
    found = multiplied(indices, torch.ones(len(i)), torch.ones(1, 1), 50_000, False)
    assert set(found.reshape(-1).tolist()) == {2.0}


def test_infinities_and_nan_stay_in_their_rows() -> None:
    indices = torch.tensor([[0, 0], [1, 1], [2, 0]])
    values = torch.tensor([np.inf, np.nan, 1.0], dtype=torch.float32)
    found = multiplied(indices, values, torch.tensor([[1.0], [2.0]]), 4, False)
    rows = found.reshape(-1).tolist()
    assert rows[0] == np.inf
    assert np.isnan(rows[1])
    assert rows[2:] == [1.0, 0.0]


@pytest.mark.parametrize("wrong", [(4, 0), (-1, 0), (0, 3), (0, -1), (1 << 40, 0)])
@pytest.mark.parametrize("at", [0, 40_000, 79_999])
def test_an_element_out_of_bounds(wrong: tuple[int, int], at: int) -> None:
    indices = torch.zeros(80_000, 2, dtype=torch.int64)
    indices[at] = torch.tensor(wrong)
    assert multiplied(indices, torch.ones(80_000), torch.ones(3, 2), 4, False) is None


def test_other_types_have_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sparse_products.sparse_product(torch.float16, torch.int64) is None
    offers.offer_all()
    assert machine_code.sparse_product(torch.float32, torch.int64) is not None
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert machine_code.sparse_product(torch.float32, torch.int64) is None


@pytest.mark.parametrize("native", [0, 1])
def test_sessions_give_the_same_with_and_without(monkeypatch: pytest.MonkeyPatch, native: int) -> None:
    """Values, both gradients, and the error of an index out of bounds."""
    monkeypatch.setattr(flags, "NATIVE", native)
    chance = np.random.default_rng(0)
    rows = np.array([[0, 2], [1, 0], [1, 2], [3, 1]])
    with tf.Graph().as_default(), tf.Session() as session:
        indices, values = tf.placeholder(tf.int64, [None, 2]), tf.constant(chance.normal(size=4), tf.float32)
        dense = tf.constant(chance.normal(size=(3, 5)), tf.float32)
        product = tf.sparse_tensor_dense_matmul(tf.SparseTensor(indices, values, [4, 3]), dense)
        gradients = tf.gradients(tf.reduce_sum(product**2), [values, dense])
        found, (by_values, by_dense) = session.run([product, gradients], {indices: rows})
        whole = np.zeros((4, 3))
        whole[tuple(rows.T)] = session.run(values)
        b = session.run(dense)
        np.testing.assert_allclose(found, whole @ b, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(by_dense, 2 * whole.T @ found, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(by_values, (2 * found @ b.T)[tuple(rows.T)], rtol=1e-5, atol=1e-6)
        rows[2] = (4, 0)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"a_indices\[2\].*out of bounds"):
            session.run(product, {indices: rows})
