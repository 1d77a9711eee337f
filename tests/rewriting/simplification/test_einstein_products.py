"""Einstein sums as products of matrices: graph text, results, shapes that are not known, sums that stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework.declarations.operation import F

RNG = np.random.default_rng(9)
NAME = "multiply_einsums"
PASSES = ("fold_constants", NAME, "cancel_transposes", "remove_unneeded")


def values(dims: tuple[int, ...], dtype: Any) -> Any:
    if np.issubdtype(dtype, np.integer):
        return RNG.integers(-9, 9, dims).astype(dtype)
    return RNG.standard_normal(dims).astype(dtype)


def einsum(equation: str, *dims: Any, dtype: Any = np.float32) -> Any:
    operands = [tf.placeholder(dtype, each) for each in dims]
    return F.Einsum(operands, equation=equation), operands


@pytest.mark.parametrize("dtype", [np.float64, np.complex64, np.int32])
@pytest.mark.parametrize(
    ("equation", "x", "y"),
    [
        ("ij,jk->ki", (3, 4), (4, 5)),
        ("btij,btkj->btik", (2, 3, 4, 5), (2, 3, 6, 5)),
        ("bthd,bshd->bhts", (2, 3, 4, 5), (2, 7, 4, 5)),
        ("bhts,bshd->bthd", (2, 4, 3, 7), (2, 7, 4, 5)),
        ("...d,dhk->...hk", (2, 3, 4), (4, 5, 6)),
        ("dhk,...d->h...k", (4, 5, 6), (2, 3, 4)),
        ("aecd,abcd->acbe", (2, 3, 4, 5), (2, 7, 4, 5)),
        ("abcd,dce->abe", (2, 3, 4, 5), (5, 4, 6)),
        ("bij,bj->bi", (2, 3, 4), (2, 4)),
        ("bij,bij->b", (2, 3, 4), (2, 3, 4)),
        ("j,ij->i", (4,), (3, 4)),
        ("...ij,...jk->...ki", (5, 2, 3), (5, 3, 4)),
        ("abc,cd->abd", (0, 2, 3), (3, 2)),
        ("abc,cd->abd", (2, 2, 0), (0, 2)),
    ],
)
def test_products(monkeypatch, dtype, equation, x, y) -> None:
    z, operands = einsum(equation, x, y, dtype=dtype)
    feed = {each: values(dims, dtype) for each, dims in zip(operands, (x, y))}
    agree(monkeypatch, [z], feed, NAME, fires=1, tolerance=1e-5)
    with tf.Session() as session:
        found = session.run(z, feed)
    expected = np.einsum(equation, *feed.values())
    assert found.shape == expected.shape and found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_the_product_reads_transposed_operands() -> None:
    z, operands = einsum("ij,jk->ki", [3, 4], [4, 5])
    lines = text([z], operands, *PASSES)
    assert ops(lines) == ["_Arg", "_Arg", "MatMul"]
    assert "MatMul(%1, %0) transpose_a=True transpose_b=True" in lines[2]


def test_axes_that_are_neighbours_are_reshaped_alone() -> None:
    z, operands = einsum("btd,dhk->bthk", [2, 3, 4], [4, 5, 6])
    assert "Transpose" not in ops(text([z], operands, *PASSES))


@pytest.mark.parametrize(
    ("equation", "x", "y", "op"),
    [
        ("bij,bjk->bik", [None, None, None], [None, None, None], "BatchMatMul"),
        ("bij,bjk->bik", [2, None, None], [2, None, None], "BatchMatMulV2"),
        ("ij,jk->ik", [None, None], [None, None], "MatMul"),
        ("btd,dk->btk", [None, 3, 4], [4, 5], "MatMul"),
    ],
)
def test_shapes_may_be_known_in_part(equation, x, y, op) -> None:
    z, operands = einsum(equation, x, y)
    assert op in ops(text([z], operands, *PASSES))


@pytest.mark.parametrize(
    ("equation", "x", "y"),
    [
        ("btd,dk->btk", [None, None, 4], [4, 5]),
        ("ijk,jkl->il", [2, None, 4], [3, 4, 5]),
        ("...ij,...jk->...ik", [None, 2, 3], [None, 3, 4]),
        ("...ij,...jk->...ik", [5, 2, 3], [1, 3, 4]),
        ("ij,jk->ik", None, [4, 5]),
        ("btd,dk->btk", [None, 0, 4], [4, 5]),
        ("i,i->", [4], [4]),
        ("ij,kl->ijkl", [3, 4], [4, 5]),
        ("ij,jk->k", [3, 4], [4, 5]),
        ("ii,ij->j", [3, 3], [3, 4]),
    ],
)
def test_other_sums_stay(equation, x, y) -> None:
    z, operands = einsum(equation, x, y)
    assert "Einsum" in ops(text([z], operands, *PASSES))


@pytest.mark.parametrize(
    ("equation", "x", "y"),
    [("bij,bjk->bik", (2, 3, 4), (1, 4, 5)), ("ij,jk->ik", (3, 4), (3, 4))],
)
def test_sizes_that_differ_are_refused(equation, x, y) -> None:
    z, operands = einsum(equation, [None] * len(x), [None] * len(y))
    with tf.Session() as session, pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
        session.run(z, {each: values(dims, np.float32) for each, dims in zip(operands, (x, y))})


def test_gradients_are_products(monkeypatch) -> None:
    z, (x, y) = einsum("bthd,bshd->bhts", [2, 3, 4, 5], [2, 7, 4, 5], dtype=np.float64)
    feed = {x: values((2, 3, 4, 5), np.float64), y: values((2, 7, 4, 5), np.float64)}
    agree(monkeypatch, tf.gradients(tf.sin(z), [x, y]), feed, NAME, fires=3, tolerance=1e-12)


def test_what_a_variable_holds_when_the_sum_is_taken(monkeypatch) -> None:
    v = tf.Variable(values((3, 4), np.float32))
    z = F.Einsum([v._ref(), v._ref()], equation="ij,kj->ik")
    with tf.control_dependencies([z]):
        changed = tf.assign_add(v, tf.ones([3, 4]))
    setup = tf.global_variables_initializer()
    agree(monkeypatch, [z, changed], {}, NAME, fires=1, setup=setup)
