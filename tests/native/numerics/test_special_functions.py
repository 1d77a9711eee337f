"""Special functions as machine code against the kernels in float64, which are held against TensorFlow's."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.process.denormals import flushing
from flowstone.native.clusters import kernels
from flowstone.native.clusters.clusters import Array, Cluster, Step
from flowstone.native.numerics.special_functions import FUNCTIONS

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
def kernel(name: str, count: int) -> Any:
    array = Array("float32", (count,))
    cluster = Cluster(array.dims, (array,), (Step(name, (0,), "float32"),), (1,))
    return kernels.kernel_of(cluster, lambda x: pytest.fail("it is not what the code is for"))


@flushing
def computed(name: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """As in a step."""
    with torch.inference_mode():
        return kernel(name, len(x))(torch.from_numpy(x))[0].numpy()  # type: ignore[no-any-return]


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
