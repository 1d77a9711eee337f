"""Polynomials against float64, in units in the last place, and at the ends of float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from flowstone.framework.process.denormals import flushing
from flowstone.native.clusters import kernels
from flowstone.native.clusters.clusters import Array, Cluster, Step

FUNCTIONS: dict[str, Any] = {
    "Exp": (np.exp, -87.3, 88.7, 1.3),
    "Expm1": (np.expm1, -25, 88.7, 1.5),
    "Log": (np.log, 1.2e-38, 1e38, 1.0),  # smaller ones are zero where denormal numbers are
    "Tanh": (np.tanh, -9, 9, 4.5),
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -80, 88, 2.8),
}


def computed(name: str, x: torch.Tensor) -> np.ndarray[Any, Any]:
    array = Array("float32", tuple(x.shape))
    cluster = Cluster(array.dims, (array,), (Step(name, (0,), "float32"),), (1,))
    kernel = kernels.kernel_of(cluster, lambda x: pytest.fail("it is not what the code is for"))
    with torch.inference_mode():
        return kernel(x)[0].numpy()  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_as_stated(name: str) -> None:
    function, low, high, most = FUNCTIONS[name]
    random = np.random.RandomState(0)
    if name == "Log":
        x = np.exp(random.uniform(np.log(low), np.log(high), 100_003)).astype(np.float32)
        x[:30_000] = random.uniform(0.4, 2.5, 30_000)
    else:
        x = random.uniform(low, high, 100_003).astype(np.float32)
        x[:30_000] = random.uniform(-1, 1, 30_000)
    wanted = function(x.astype(np.float64))
    ulp = np.spacing(np.abs(wanted.astype(np.float32))).astype(np.float64)
    error = np.abs(computed(name, torch.from_numpy(x)).astype(np.float64) - wanted) / ulp
    assert error.max() <= most, (error.max(), x[error.argmax()])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_ends_and_what_is_no_number(name: str) -> None:
    function = FUNCTIONS[name][0]
    x = np.array(
        [
            np.inf,
            -np.inf,
            np.nan,
            0.0,
            -0.0,
            1.0,
            -1.0,
            1e-45,
            1e-39,
            -1e-39,
            89,
            -90,
            104,
            -104,
            3e38,
            -3e38,
        ],
        np.float32,
    )
    with np.errstate(all="ignore"):
        wanted = function(x.astype(np.float64)).astype(np.float32)
    found = computed(name, torch.from_numpy(x))
    tiny = np.abs(wanted) < 1.2e-38  # below the least normal number, results may be 0
    np.testing.assert_allclose(found[~tiny], wanted[~tiny], rtol=6e-7)
    assert (np.abs(found[tiny]) < 1.2e-38).all()


@pytest.mark.parametrize(("name", "least"), [("Expm1", 2.4e-38), ("Tanh", 1.2e-38)])
def test_small_normal_numbers_stay_where_denormal_numbers_are_zeros(name: str, least: float) -> None:
    x = np.geomspace(least, 1e-5, 4001).astype(np.float32)
    x = np.concatenate([x, -x])
    found = flushing(computed)(name, torch.from_numpy(x))
    np.testing.assert_allclose(found, FUNCTIONS[name][0](x.astype(np.float64)), rtol=5e-7)
