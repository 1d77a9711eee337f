"""Large arrays of results: their memory is found again, and results are what ATen's function gives."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.machine.large_arrays import into_large_array, large_array

_AGAIN = """
import torch
from flowstone.framework.machine.large_arrays import large_array
from flowstone.runtime.process.pages import keep_pages
if keep_pages():
    places = set()
    for _ in range(20):
        x = large_array((9_000_000,), torch.float32)
        places.add(x.data_ptr())
        small = [torch.empty(3) for _ in range(9)]
        del x
    assert len(places) == 1, places
"""


def test_memory_is_found_again() -> None:
    """Though small objects come between."""
    subprocess.run([sys.executable, "-c", _AGAIN], check=True)


@pytest.mark.parametrize("dims", [(), (0, 3), (5, 7)])
@pytest.mark.parametrize("dtype", [torch.bool, torch.float16, torch.complex128])
def test_arrays_are_aligned(dims: tuple[int, ...], dtype: torch.dtype) -> None:
    """Of any type and shape."""
    x = large_array(dims, dtype)
    assert (x.shape, x.dtype, x.is_contiguous()) == (dims, dtype, True)
    assert x.data_ptr() % 64 == 0 or not x.numel()


def test_layouts_and_gradients_stay_atens() -> None:
    """What is not contiguous keeps its layout; what wants a gradient gets one."""
    floor = into_large_array(torch.floor)
    x = torch.randn(4, 5)
    assert floor(x.t()).stride() == x.t().stride()
    assert torch.equal(floor(x), torch.floor(x))
    assert floor(x.requires_grad_()).requires_grad


@pytest.mark.parametrize("function", [tf.floor, tf.negative, tf.abs, tf.reciprocal, tf.is_nan])
def test_steps_take_them(set_profile: Any, function: Any) -> None:
    """A step's values are those that it has without."""
    values = (np.arange(12, dtype=np.float32) - 5.5).reshape(3, 4)
    found = []
    for least in (1 << 62, 0):
        set_profile(large_results=least)
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float32, [3, 4])
            found.append(session.run(function(x), {x: values}))
    np.testing.assert_array_equal(*found)
