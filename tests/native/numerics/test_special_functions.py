"""Special functions as machine code against the kernels in float64, which are held against TensorFlow's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.process.denormals import flushing
from flowstone.native.clusters import kernels
from flowstone.native.clusters.clusters import Array, Cluster, Step
from flowstone.native.numerics.special_functions import FUNCTIONS, WHOLE_FUNCTIONS

ENDS = [0.0, -0.0, 1.0, -1.0, 2.0, 4.0, 6.0, 8.0, -3.0, 0.5, 1e-30, 1e-40, 30.0, 1e4, np.inf, -np.inf, np.nan]
# The segments, and how far from float64 in units in the last place of the result, or of `_SCALES`.
RANGES: dict[str, tuple[float, float]] = {"Ndtri": (0, 1), "BesselI0": (-80, 80), "BesselI1": (-80, 80)}
RANGES |= {"Expint": (0, 80), "Spence": (0, 40)}
MOST_UNITS = 6
# Near a root terms cancel: what is lost is measured in their size.
_SCALES: dict[str, Any] = {
    "BesselJ0": lambda x: np.minimum(1, np.abs(x + 1e-9) ** -0.5),
    "Digamma": lambda x: np.maximum(1, np.abs(np.pi / np.tan(np.pi * np.minimum(x, 0.1)))),
    "Expint": lambda x: np.where(x < 1, 1.0, 0),
    "Spence": lambda x: np.where(x > 2, np.log(x + 1e-9) ** 2, 0.02),
}
_SCALES |= dict.fromkeys(("BesselJ1", "BesselY0", "BesselY1"), _SCALES["BesselJ0"])


@functools.cache
def kernel(name: str, count: int, dtype: str = "float32") -> Any:
    array = Array(dtype, (count,))
    cluster = Cluster(array.dims, (array,), (Step(name, (0,), dtype),), (1,))
    return kernels.kernel_of(cluster, lambda x: pytest.fail("it is not what the code is for"))


@flushing
def computed(name: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """As in a step."""
    with torch.inference_mode():
        return kernel(name, len(x), x.dtype.name)(torch.from_numpy(x))[0].numpy()  # type: ignore[no-any-return]


def wanted(name: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(getattr(tf.raw_ops, name)(x=x.astype(np.float64)))  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_few_units_in_the_last_place(name: str) -> None:
    low, high = RANGES.get(name, (-40, 40))
    random = np.random.RandomState(0)
    x = random.uniform(low, high, 20_003).astype(np.float32)
    x[:8000] = random.uniform(max(low, -3), min(high, 3), 8000)
    x[8000:9000] = np.exp(random.uniform(-20, 0, 1000))
    expected = wanted(name, x)
    found = computed(name, x)
    known = np.isfinite(expected) & (np.abs(expected) < 3e38)
    assert known.mean() > 0.4
    np.testing.assert_array_equal(found[~known], expected[~known].astype(np.float32))
    scale = np.abs(expected)
    if name in _SCALES:
        with np.errstate(all="ignore"):
            scale = np.maximum(scale, _SCALES[name](x.astype(np.float64)))
    unit = np.spacing(scale[known].astype(np.float32)).astype(np.float64)
    error = np.abs(found[known] - expected[known]) / np.maximum(unit, 1e-40)
    assert error.max() <= MOST_UNITS, (error.max(), x[known][error.argmax()])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_ends_are_those_of_the_kernel(name: str) -> None:
    x = np.array(ENDS, np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        expected = session.run(getattr(tf.raw_ops, name)(x=x))
    np.testing.assert_allclose(computed(name, x), expected, rtol=2e-6, atol=1e-37)


_EXACT: dict[str, Callable[[Any], Any]] = {
    "BesselJ0": lambda x: mpmath.besselj(0, x),
    "BesselJ1": lambda x: mpmath.besselj(1, x),
    "BesselY0": lambda x: mpmath.bessely(0, x),
    "BesselY1": lambda x: mpmath.bessely(1, x),
    "Dawsn": lambda x: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x),
    "Expint": mpmath.ei,
    "FresnelCos": mpmath.fresnelc,
    "FresnelSin": mpmath.fresnels,
    "Spence": lambda x: mpmath.re(mpmath.polylog(2, 1 - x)),
}


@pytest.mark.parametrize("name", WHOLE_FUNCTIONS)
def test_those_of_float64_have_its_digits(name: str) -> None:
    random = np.random.RandomState(1)
    x = np.concatenate([random.uniform(1e-3, 3, 120), random.uniform(3, 20, 80), [2.0, 4.0, 6.0, 16.0]])
    with mpmath.workdps(30):
        expected = np.array([float(_EXACT[name](mpmath.mpf(each))) for each in x.tolist()])
    scale = np.abs(expected)
    if name in _SCALES:
        scale = np.maximum(scale, _SCALES[name](x))
    error = np.abs(computed(name, x) - expected) / np.spacing(scale)
    most = 40 if "Fresnel" in name else 12  # their power series alternate, and cancel near 2
    assert error.max() <= most, (error.max(), x[error.argmax()])


@pytest.mark.parametrize("name", WHOLE_FUNCTIONS)
def test_ends_of_float64_are_those_of_float32(name: str) -> None:
    x = np.array([each for each in ENDS if abs(each) != 1e-40])
    np.testing.assert_allclose(computed(name, x), computed(name, x.astype(np.float32)), rtol=2e-6, atol=1e-37)
