"""Error functions and arcs as machine code against float64, in units in the last place."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tests.native.numerics.test_transcendental import computed

from flowstone.native.numerics.error_functions import POLYNOMIALS

RANGES = {"Acos": (-1, 1), "Asin": (-1, 1), "Atan": (-30, 30), "Erf": (-5, 5), "Erfc": (-9, 9)}
UNITS = {"Erfc": 3.0}
FUNCTIONS = {"Acos": torch.acos, "Asin": torch.asin, "Atan": torch.atan, "Erf": torch.erf, "Erfc": torch.erfc}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_errors_are_few_units_at_most(name: str) -> None:
    random = np.random.RandomState(0)
    low, high = RANGES[name]
    x = random.uniform(low, high, 100_003).astype(np.float32)
    x[:20_000] = random.uniform(-1, 1, 20_000)
    x[20_000:30_000] = np.exp(random.uniform(-40, 0, 10_000))
    wanted = FUNCTIONS[name](torch.from_numpy(x).double()).numpy()
    unit = np.spacing(np.abs(wanted.astype(np.float32))).astype(np.float64)
    error = np.abs(computed(name, torch.from_numpy(x)).astype(np.float64) - wanted) / unit
    assert error.max() <= UNITS.get(name, 2.5), (error.max(), x[error.argmax()])


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_ends_and_what_is_no_number(name: str) -> None:
    x = torch.tensor([0.0, -0.0, 0.5, 1.0, -1.0, 1.5, 3.0, 1e-40, 1e30, -1e30, math.inf, -math.inf, math.nan])
    found = computed(name, x)
    np.testing.assert_allclose(found, FUNCTIONS[name](x).numpy(), rtol=3e-7)
    assert np.signbit(found[1]) == (name in ("Asin", "Atan", "Erf"))


def test_the_complements_tail() -> None:
    """Up to where float32 has no number but 0."""
    x = torch.linspace(8, 11, 100_003)
    found = computed("Erfc", x).astype(np.float64)
    wanted = torch.erfc(x.double()).numpy()
    error = np.abs(found - wanted) / np.spacing(wanted.astype(np.float32)).astype(np.float64)
    normal = wanted > np.finfo(np.float32).tiny
    assert error[normal].max() <= 3.0 and np.abs(found - wanted)[~normal].max() <= np.finfo(np.float32).tiny
