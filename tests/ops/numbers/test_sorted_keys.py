"""The order by keys is that of a stable sort, whatever the type, the shape and the bits."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.ops.numbers.sorted_keys import descending_order, has_keys

NEGATIVE_NAN = torch.tensor([-1 << 22], dtype=torch.int32).view(torch.float32)
TYPES = [torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int16, torch.int8, torch.uint8]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", [(5000,), (3, 2000), (60, 2, 40), (10, 3000)], ids=str)
def test_the_order_is_that_of_a_stable_sort(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(4)
    if dtype.is_floating_point:
        x = torch.randn(shape, generator=generator).mul_(50).round_().div_(7).to(dtype)
        flat = x.view(-1)
        for i, value in enumerate((math.inf, -math.inf, math.nan, -0.0, 0.0, -0.0, 1e-40, -1e-40)):
            flat[i * 13 :: 397] = value
        flat[5::301] = NEGATIVE_NAN.to(dtype)
    else:
        limits = torch.iinfo(dtype)
        x = torch.randint(limits.min, limits.max + 1, shape, generator=generator).to(dtype)
        x.view(-1)[7::200] = limits.min
        x.view(-1)[9::200] = limits.max
    assert has_keys(x)
    expected = torch.sort(x, dim=-1, descending=True, stable=True).indices
    assert torch.equal(descending_order(x), expected)
    moved = x.transpose(0, -1)
    assert torch.equal(
        descending_order(moved), torch.sort(moved, dim=-1, descending=True, stable=True).indices
    )


def test_whole_rows_of_top_k() -> None:
    x = np.random.default_rng(1).integers(0, 90, [20, 300]).astype(np.float32)
    with tf.Graph().as_default(), tf.device("/cpu:0"), tf.Session() as session:
        given = tf.placeholder(tf.float32, x.shape)
        top, order, rising = session.run([*tf.nn.top_k(given, 250), tf.sort(given)], {given: x})
    expected = np.argsort(-x, 1, kind="stable")[:, :250]
    np.testing.assert_array_equal(order, expected)
    np.testing.assert_array_equal(top, np.take_along_axis(x, expected, 1))
    np.testing.assert_array_equal(rising, np.sort(x, 1))
