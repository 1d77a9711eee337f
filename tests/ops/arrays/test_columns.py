"""Elements at the same places in every row: NumPy's, bit by bit, of every type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.ops.arrays.columns import picked_columns

TYPES = [
    "bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64",
    "complex128",
]  # fmt: skip
PLACES = np.array([5, 0, 3, 3, 6, 1])


def array(kind: str, *dims: int) -> Any:
    """Any bits, among them those of signalling NaN and denormal numbers."""
    chance = np.random.default_rng(2)
    if kind == "bool":
        return chance.random(dims) < 0.5
    size = np.dtype(kind).itemsize
    made = chance.integers(0, 256, (*dims, size), dtype=np.uint8)
    if size >= 4:
        made[..., 0, :4] = np.frombuffer(np.uint32(0x7F800001).tobytes(), np.uint8)
        made[..., 1, :4] = np.frombuffer(np.uint32(3).tobytes(), np.uint8)
    return made.view(kind)[..., 0]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("dims", [(7,), (3, 7), (2, 0, 7), (4, 5, 7)])
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_bits_are_moved(kind: str, dims: tuple[int, ...], index: torch.dtype) -> None:
    x = array(kind, *dims)
    found = picked_columns(torch.from_numpy(x.copy()), torch.from_numpy(PLACES).to(index))
    assert found.numpy().tobytes() == x[..., PLACES].tobytes() and found.shape == (*dims[:-1], 6)
    none = picked_columns(torch.from_numpy(x.copy()), torch.zeros(0, dtype=index))
    assert none.shape == (*dims[:-1], 0)


def test_other_orders_and_conjugates() -> None:
    places = torch.from_numpy(PLACES)
    for x in (torch.randn(7, 4, dtype=torch.float64).t(), torch.randn(3, 7, dtype=torch.complex64).conj()):
        np.testing.assert_array_equal(picked_columns(x, places).resolve_conj(), x.resolve_conj()[..., PLACES])


@pytest.mark.parametrize("place", [-1, 7])
@pytest.mark.parametrize("kind", ["int32", "float64"])
@pytest.mark.parametrize("has_rank", [True, False])
def test_a_place_out_of_bounds_is_an_error(place: int, kind: str, has_rank: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(kind, [3, 7] if has_rank else None)
        at = tf.placeholder(tf.int32, [2] if has_rank else None)
        y = tf.gather(x, at, axis=1)
        feed = {x: array(kind, 3, 7)}
        np.testing.assert_array_equal(session.run(y, {**feed, at: [6, 0]}), feed[x][:, [6, 0]])
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(y, {**feed, at: [place, 0]})
