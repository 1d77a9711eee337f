"""Small matrices in programs against torch; a program gives up where a pivot is zero."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from flowstone.native.programs.programs import Builder
from small_programs import FAILED, run

LIMITS = {torch.float32: 1e-4, torch.float64: 1e-12}


def made(outer: tuple[int, ...], size: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(*outer, size, size, dtype=dtype) / 4 + 2 * torch.eye(size, dtype=dtype)


def given_back(how: str, *inputs: torch.Tensor, adjoint: bool = False, turned: bool = False) -> Any:
    matrix, dtype = inputs[0], str(inputs[0].dtype).removeprefix("torch.")
    size = matrix.shape[-1]
    columns = {"solve": inputs[-1].shape[-1], "substitute": inputs[-1].shape[-1], "invert": size}.get(how, 0)
    result = {"determine": matrix.shape[:-2], "solve": inputs[-1].shape, "substitute": inputs[-1].shape}
    sizes = {"size": size, "columns": columns, "count": matrix.numel() // size**2}

    def write(builder: Builder, *values: int) -> list[int]:
        kind = dtype, tuple(result.get(how, matrix.shape))
        return [builder.add("Matrix", values, kind, how=how, adjoint=adjoint, turned=turned, **sizes)]

    found = run(inputs, write)
    return found if found == FAILED else found[0]


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize(("outer", "size"), [((), 1), ((), 2), ((), 5), ((3,), 4), ((2, 2), 17)])
@pytest.mark.parametrize("adjoint", [False, True])
def test_small_matrices(dtype: torch.dtype, outer: tuple[int, ...], size: int, adjoint: bool) -> None:
    torch.manual_seed(size)
    x, rhs = made(outer, size, dtype), torch.randn(*outer, size, 3, dtype=dtype)
    side, limit = x.mT if adjoint else x, LIMITS[dtype]
    close = {"rtol": limit, "atol": limit}
    torch.testing.assert_close(given_back("invert", x, adjoint=adjoint), torch.linalg.inv(side), **close)
    torch.testing.assert_close(
        given_back("solve", x, rhs, adjoint=adjoint), torch.linalg.solve(side, rhs), **close
    )
    for lower in (False, True):
        triangle = x.tril() if lower else x.triu()
        wanted = torch.linalg.solve_triangular(
            triangle.mT if adjoint else triangle, rhs, upper=lower == adjoint
        )
        found = given_back("substitute", x, rhs, adjoint=adjoint, turned=lower != adjoint)
        torch.testing.assert_close(found, wanted, **close)
    torch.testing.assert_close(given_back("determine", x), torch.linalg.det(x), **close)
    square = x @ x.mT
    torch.testing.assert_close(given_back("factor", square), torch.linalg.cholesky(square), **close)


def test_bad_matrices() -> None:
    x = torch.stack([torch.eye(3), torch.diag(torch.tensor([1.0, 0.0, 2.0]))])
    rhs = torch.ones(2, 3, 1)
    assert given_back("invert", x) == FAILED
    assert given_back("solve", x, rhs) == FAILED
    assert given_back("substitute", x, rhs) == FAILED
    assert given_back("factor", x - 0.5 * torch.eye(3)) == FAILED
    assert given_back("determine", x) == FAILED
