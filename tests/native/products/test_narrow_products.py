"""Products of few columns beside float64: all tails of rows, terms and columns, layouts, misfits."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from flowstone.framework.declarations.containers import Variable
from flowstone.native.products.narrow_products import Sizes, descent, layer

SIZES = [
    (100, 784, 10),
    (1, 4, 2),
    (5, 17, 3),
    (33, 100, 1),
    (7, 90, 33),
    (3, 16, 20),
    (2, 15, 14),
    (9, 130, 29),
]


def refused(*arguments: Any) -> None:
    raise AssertionError("the code is for these arguments")


def by_columns(rows: int, columns: int) -> torch.Tensor:
    return torch.randn(columns, rows).t()


def variable(value: torch.Tensor) -> Variable:
    result = Variable("w")
    result.tensor = value
    return result


@pytest.mark.parametrize("rectifies", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_a_layer_is_the_product_with_a_bias(sizes: Any, rectifies: bool) -> None:
    rows, terms, columns = sizes
    x, w, b = torch.randn(rows, terms), by_columns(terms, columns), torch.randn(columns)
    result = layer(Sizes(*sizes), rectifies, refused)(x, w, b)
    expected = x.double() @ w.double() + b
    expected = expected.relu() if rectifies else expected
    assert result.is_contiguous() and result.dtype is torch.float32
    torch.testing.assert_close(result.double(), expected, rtol=0, atol=1e-6 * terms**0.5 * 4)


@pytest.mark.parametrize("layout", ["by rows", "by columns", "a piece"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_descent_subtracts_the_gradient(sizes: Any, transposed: bool, layout: str) -> None:
    """Of a gradient in any layout: a loss gives it by rows, whatever the product's operand is."""
    rows, terms, columns = sizes
    x, g, w = torch.randn(rows, terms), torch.randn(rows, columns), variable(by_columns(terms, columns))
    before = w.tensor.double()
    if layout == "by columns":
        g = g.t().contiguous().t()
    elif layout == "a piece":
        g = torch.cat([g, g], 1)[:, columns:]
    given = g.t() if transposed else g
    assert descent(Sizes(*sizes), transposed, refused)(w, 0.5, x, given) is w
    expected = before - 0.5 * x.double().t() @ g.double()
    torch.testing.assert_close(w.tensor.double(), expected, rtol=0, atol=1e-6 * rows**0.5 * 4)


def test_not_a_number_and_infinities_come_through() -> None:
    x, w, b = torch.ones(2, 20), by_columns(20, 3), torch.zeros(3)
    x[0, 19], x[1, 0] = float("nan"), float("inf")
    result = layer(Sizes(2, 20, 3), True, refused)(x, w, b)
    torch.testing.assert_close(result, torch.relu(x @ w + b), equal_nan=True)
    held = variable(by_columns(20, 3))
    descent(Sizes(2, 20, 3), False, refused)(held, 0.1, x, torch.ones(2, 3))
    assert held.tensor[19].isnan().all() and held.tensor[0].isinf().all() and held.tensor[1].isfinite().all()


@pytest.mark.parametrize("what", ["row by row", "type", "size", "layout", "unset"])
def test_what_does_not_fit_goes_to_the_other_function(what: str) -> None:
    sizes = Sizes(4, 20, 3)
    x, w, g, b = torch.ones(4, 20), by_columns(20, 3), torch.ones(4, 3), torch.ones(3)
    if what == "row by row":
        w = w.contiguous()
    elif what == "type":
        x = x.double()
    elif what == "size":
        x = torch.ones(5, 20)
    elif what == "layout":
        x = torch.ones(20, 4).t()
    held = variable(w)
    if what == "unset":
        del held.tensor
    else:
        assert layer(sizes, False, lambda *arguments: "other")(x, w, b) == "other"
    assert descent(sizes, False, lambda *arguments: "other")(held, 0.5, x, g) == "other"
