"""Sine, cosine and tangent as machine code against float64, in units in the last place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from tests.native.numerics.test_transcendental import computed

FUNCTIONS: dict[str, Any] = {"Sin": (np.sin, 1.0), "Cos": (np.cos, 1.0), "Tan": (np.tan, 1.6)}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("reach", [1, 10, 200, 1599, 1e7])
def test_errors_are_as_stated(name: str, reach: float) -> None:
    function, most = FUNCTIONS[name]
    random = np.random.RandomState(0)
    x = random.uniform(-reach, reach, 100_003).astype(np.float32)
    right_angles = np.arange(1, 20_001) % (reach // (math.pi / 2) + 1) * (math.pi / 2)
    x[:20_000] = right_angles.astype(np.float32)  # where results are nearly 0, or beyond all bounds
    x[20_000:30_000] = np.exp(random.uniform(-80, 0, 10_000))
    wanted = function(x.astype(np.float64))
    unit = np.spacing(np.abs(wanted.astype(np.float32))).astype(np.float64)
    error = np.abs(computed(name, torch.from_numpy(x)).astype(np.float64) - wanted) / unit
    assert error.max() <= most, (error.max(), x[error.argmax()])


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [(13,), (13, 1)])
def test_ends_and_what_is_no_number(name: str, shape: tuple[int, ...]) -> None:
    numbers = [0.0, -0.0, 1e-45, -1e-39, 1.0, -1.5, 1e5, -1e6, 3e38, math.inf, -math.inf, math.nan, 2.0]
    x = torch.tensor(numbers).reshape(shape)
    found = computed(name, x)
    with np.errstate(invalid="ignore"):
        wanted = FUNCTIONS[name][0](x.numpy().astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(found, wanted, rtol=3e-7)
    np.testing.assert_array_equal(np.signbit(found)[~np.isnan(wanted)], np.signbit(wanted)[~np.isnan(wanted)])


def test_a_far_neighbour_changes_nothing() -> None:
    x = torch.linspace(-3, 3, 16)
    alone = computed("Sin", x)
    x[5] = 1e8
    np.testing.assert_array_equal(np.delete(computed("Sin", x), 5), np.delete(alone, 5))
