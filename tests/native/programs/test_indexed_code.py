"""Rows that are picked and sums of segments in programs against torch."""

from __future__ import annotations

import pytest
import torch

from flowstone.native.programs.programs import Builder
from small_programs import FAILED, run

INNER = (1, 3, 16, 40)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("inner", INNER)
def test_rows(inner: int, dtype: torch.dtype) -> None:
    x, places = torch.randn(9, inner), torch.randint(0, 9, (30,)).to(dtype)

    def write(builder: Builder, a: int, b: int) -> list[int]:
        return [builder.add("Rows", [a, b], ("float32", (30, inner)), rows=9, inner=inner)]

    assert torch.equal(run([x, places], write)[0], x[places.long()])
    for wrong in (-1, 9):
        places[17] = wrong
        assert run([x, places], write) == FAILED


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32])
def test_segments(inner: int, dtype: torch.dtype) -> None:
    x, ids = torch.randint(1, 4, (30, inner)).to(dtype), torch.randint(-1, 5, (30,))
    kind = str(dtype).removeprefix("torch.")

    def write(builder: Builder, a: int, b: int) -> list[int]:
        sizes = {"segments": 6, "inner": inner}
        found = (kind, (6, inner))
        return [builder.add("Segments", [a, b], found, kind=each, **sizes) for each in ("Sum", "Prod")]

    total, product = torch.zeros(6, inner, dtype=dtype), torch.ones(6, inner, dtype=dtype)
    for row, segment in zip(x, ids.tolist()):
        if segment >= 0:
            total[segment] += row
            product[segment] *= row
    found = run([x, ids], write)
    assert torch.equal(found[0], total) and torch.equal(found[1], product)
    ids[3] = 6
    assert run([x, ids], write) == FAILED


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("sizes", [(2, 3, 2), (1, 4, 1), (5, 4, 2)])
def test_windows(sizes: tuple[int, int, int], dtype: torch.dtype) -> None:
    x, limits = torch.randn(5, 4, 2), tuple(n - size for n, size in zip((5, 4, 2), sizes))
    begins = torch.tensor(limits, dtype=dtype)

    def write(builder: Builder, a: int, b: int) -> list[int]:
        found = ("float32", sizes)
        return [builder.add("Window", [a, b], found, sizes=sizes, strides=(8, 2, 1), limits=limits)]

    i, j, k = limits
    wanted = x[i : i + sizes[0], j : j + sizes[1], k : k + sizes[2]]
    assert torch.equal(run([x, begins], write)[0], wanted)
    for axis in range(3):
        for wrong in (-1, limits[axis] + 1):
            places = begins.clone()
            places[axis] = wrong
            assert run([x, places], write) == FAILED


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize(
    ("sizes", "batch", "sequence"), [((4, 5, 3), 0, 1), ((5, 4, 1), 1, 0), ((2, 4, 5), 1, 2)]
)
def test_reverse_parts(sizes: tuple[int, int, int], batch: int, sequence: int, dtype: torch.dtype) -> None:
    x, lengths = torch.randn(*sizes), torch.tensor([0, 5, 2, 1], dtype=dtype)
    outer = max(batch, sequence) + 1
    walk = {"sizes": sizes[:outer], "strides": x.stride()[:outer], "batch": batch, "sequence": sequence}

    def write(builder: Builder, a: int, b: int) -> list[int]:
        return [builder.add("ReverseParts", [a, b], ("float32", sizes), **walk)]

    wanted = x.clone()
    for i, length in enumerate(lengths.tolist()):
        own, turned = (t.movedim((batch, sequence), (0, 1)) for t in (x, wanted))
        turned[i, :length] = own[i, :length].flip(0)
    assert torch.equal(run([x, lengths], write)[0], wanted)
    for wrong in (-1, 6):
        lengths[1] = wrong
        assert run([x, lengths], write) == FAILED
