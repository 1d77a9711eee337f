"""Reductions, extremes, copies and quotients of programs against torch, in sizes around vectors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from flowstone.native.programs.sums_code import REDUCTIONS
from small_programs import FAILED, run

SIZES = (1, 2, 7, 16, 17, 33, 70)


def random(*dims: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = np.random.RandomState(sum(dims) + 7 * len(dims))
    values = generator.randn(*dims) * (1 if dtype.is_floating_point else 9)
    return torch.tensor(values > 0 if dtype is torch.bool else values, dtype=dtype)


# ---- reductions

OF_TORCH: dict[str, Any] = {
    "Sum": torch.sum, "Mean": torch.mean, "Prod": torch.prod, "Max": torch.amax, "Min": torch.amin,
    "All": torch.all, "Any": torch.any,
}  # fmt: skip
TYPES = {
    **dict.fromkeys(("Sum", "Prod", "Max", "Min"), (torch.float32, torch.float64, torch.int32, torch.int64)),
    "Mean": (torch.float32, torch.float64),
    **dict.fromkeys(("All", "Any"), (torch.bool,)),
}


def reduced(kind: str, x: torch.Tensor) -> torch.Tensor:
    outer, size, inner = x.shape
    name = str(x.dtype).removeprefix("torch.")
    (found,) = run(
        [x],
        lambda e, y: [
            e.add("Reduce", [y], (name, (outer, inner)), kind=kind, outer=outer, size=size, inner=inner)
        ],
    )
    assert isinstance(found, torch.Tensor)
    return found


def test_all_kinds_are_tried() -> None:
    assert set(OF_TORCH) == set(REDUCTIONS) == set(TYPES)


@pytest.mark.parametrize("kind", REDUCTIONS)
def test_reductions(kind: str) -> None:
    for dtype in TYPES[kind]:
        for dims in [
            *((o, s, i) for o in (1, 3) for s in SIZES for i in (1, 5, 16)),
            (1, 700, 1),
            (2, 3, 70),
        ]:
            x = random(*dims, dtype=dtype)
            found = reduced(kind, x)
            if dtype.is_floating_point and kind in ("Sum", "Mean", "Prod"):
                wanted = OF_TORCH[kind](x.double(), 1)
                near = OF_TORCH[kind](x.double().abs(), 1).clamp(min=1e-30)
                error = ((found.double() - wanted).abs() / near).max().item()
                assert error <= 40 * torch.finfo(dtype).eps, (dims, error)
            else:
                assert torch.equal(found, OF_TORCH[kind](x, 1).to(dtype)), dims


@pytest.mark.parametrize("kind", ["Sum", "Max", "Min", "Mean", "Prod"])
def test_reductions_of_what_is_no_number(kind: str) -> None:
    for place in (0, 20, 33):
        for value in (float("nan"), float("inf"), float("-inf")):
            x = random(2, 34, 1)
            x[1, place] = value
            found, wanted = reduced(kind, x), OF_TORCH[kind](x, 1)
            assert torch.equal(found.isnan(), wanted.isnan())
            assert torch.equal(found.isinf(), wanted.isinf())


def extreme_place(kind: str, outer: int, size: int, inner: int) -> Any:
    return lambda e, y: [e.add(kind, [y], ("int64", (outer, inner)), outer=outer, size=size, inner=inner)]


@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.int64], ids=str)
def test_places_of_extremes(kind: str, dtype: torch.dtype) -> None:
    for outer, size, inner in ((1, 1, 1), (3, 17, 1), (2, 40, 3)):
        x = random(outer, size, inner, dtype=dtype)
        x[0, size // 2] = x[0].amax() if kind == "ArgMax" else x[0].amin()  # two of them: the first counts
        if dtype.is_floating_point and size > 1:
            x[-1, size - 1] = float("nan")
        (found,) = run([x], extreme_place(kind, outer, size, inner))
        find = np.nanargmax if kind == "ArgMax" else np.nanargmin
        numbers = x.numpy()
        assert np.array_equal(found.numpy(), find(numbers, 1))


# ---- copies

WALKS = {
    "transposed": lambda x: x.T,
    "a column": lambda x: x[:, 2],
    "backwards": lambda x: x[::-1],
    "every third": lambda x: x[1:, ::3],
    "repeated": lambda x: np.broadcast_to(x[0], (4, *x[0].shape)),
    "one number": lambda x: np.broadcast_to(x[1, 1], (3, 21)),
}


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.uint8], ids=str)
def test_copies(walk: str, dtype: torch.dtype) -> None:
    x = random(5, 19, dtype=dtype)
    places = WALKS[walk](np.arange(x.numel()).reshape(5, 19))
    wanted = x.numpy().ravel()[places]
    steps = [int(places.take(1, i).flat[0] - places.flat[0]) for i in range(places.ndim)]
    own = [int(np.prod(places.shape[i + 1 :])) for i in range(places.ndim)]
    attributes = {
        "sizes": places.shape,
        "from_strides": tuple(steps),
        "to_strides": tuple(own),
        "to_place": 0,
    }
    name, first = str(dtype).removeprefix("torch."), int(places.flat[0])
    (found,) = run(
        [x], lambda e, y: [e.add("Copy", [y], (name, places.shape), from_place=first, **attributes)]
    )
    assert np.array_equal(found.numpy(), wanted)


@pytest.mark.parametrize("wraps", [False, True])
def test_a_row_by_its_index(wraps: bool) -> None:
    x = random(5, 19)
    walk = {"sizes": (19,), "from_strides": (1,), "to_strides": (1,), "from_place": 0, "to_place": 0}

    def row(i: int, dtype: torch.dtype) -> Any:
        attributes = {**walk, "scale": 19, "limit": 5, "wraps": wraps}
        return run(
            [x, torch.tensor(i, dtype=dtype)],
            lambda e, y, j: [e.add("Copy", [y, j], ("float32", (19,)), **attributes)],
        )

    for dtype in (torch.int32, torch.int64):
        assert all(torch.equal(row(i, dtype)[0], x[i]) for i in range(5))
        assert row(5, dtype) == FAILED
        assert row(-6, dtype) == FAILED
    if wraps:
        assert torch.equal(row(-2, torch.int32)[0], x[3])
    else:
        assert row(-1, torch.int32) == FAILED


# ---- quotients


@pytest.mark.parametrize("name", ["FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod"])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
def test_quotients(name: str, dtype: torch.dtype) -> None:
    kind = str(dtype).removeprefix("torch.")
    for x, y in itertools.product((-7, -1, 0, 3, 8), (-3, 2, 5, 0)):
        found = run(
            [torch.tensor(x, dtype=dtype), torch.tensor(y, dtype=dtype)],
            lambda e, a, b: [e.add(f"Integer{name}", [a, b], (kind, ()))],
        )
        if not y:
            assert found == FAILED
            continue
        quotient = x // y if name.startswith("Floor") else int(x / y)
        wanted = quotient if name.endswith("Div") else x - quotient * y
        assert found[0].item() == wanted and found[0].dtype is dtype
