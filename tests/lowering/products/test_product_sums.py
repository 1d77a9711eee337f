"""Sums of products whose operands are stacked until they are larger than their product."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.machine import machine
from flowstone.lowering.products.product_sums import ProductSum, stack_by_columns, stack_op


def test_a_stack_by_columns_is_the_same_in_another_order() -> None:
    parts = [torch.randn(2, 3), torch.randn(4, 3)]
    stack = stack_by_columns(parts)
    assert torch.equal(stack, torch.cat(parts)) and stack.t().is_contiguous()
    known = stack_op([tf.zeros([2, 3]), tf.zeros([4, 3])], name="stack")
    assert known.shape.as_list() == [6, 3]
    unknown = stack_op([tf.zeros([2, 3]), tf.placeholder(tf.float32, [None, 3])], name="stack")
    assert unknown.shape.as_list() == [None, None]


@pytest.mark.parametrize("steps", [0, 1, 3, 20])
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_sums_are_those_of_the_products(steps: int, transposed: tuple[bool, bool]) -> None:
    initial = torch.randn(4, 5, dtype=torch.float64)
    total, expected = ProductSum(initial, *transposed, machine.current()), initial.clone()
    for _ in range(steps):
        a, b = torch.randn(4, 2, dtype=torch.float64), torch.randn(2, 5, dtype=torch.float64)
        expected = expected + a @ b
        assert total.add(*[x.t().contiguous() if t else x for x, t in zip((a, b), transposed)]) is total
    kept = initial.clone()
    np.testing.assert_allclose(total.total(from_zero=False), expected, atol=1e-12)
    assert torch.equal(initial, kept), "the initial value is the caller's"


def test_from_zero_the_initial_value_is_not_added() -> None:
    initial = torch.zeros(2, 2)
    total = ProductSum(initial, False, False, machine.current())
    assert torch.equal(total.total(from_zero=True), initial) and total.total(True) is not initial
    total.add(torch.eye(2), torch.eye(2))
    assert torch.equal(total.total(from_zero=True), torch.eye(2))


def test_what_is_kept_is_bounded() -> None:
    initial = torch.zeros(4, 4)
    total = ProductSum(initial, False, False, machine.current())
    for _ in range(50):
        total.add(torch.ones(4, 1), torch.ones(1, 4))
        assert total._kept <= 2 * initial.numel()
    assert torch.equal(total.total(True), torch.full((4, 4), 50.0))
