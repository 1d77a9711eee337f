"""Shifts and counts of bits in machine code: by more bits than there are, and by less than none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.declarations.operation import registry
from flowstone.native.codegen import host
from flowstone.native.numerics.bits import BITS

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
MANY = 700  # times the numbers, so that the operation alone is a cluster
X, Y = [1, -3, 100, -100, 7, 127, -128, 5], [0, 1, -1, -5, 8, 31, 33, 100]
# What TensorFlow answers.
LEFT = {"int8": [1, -6, 100, -100, -128, -128, 0, -128], "uint8": [1, 250, 0, 0, 128, 128, 0, 128]}
RIGHT = {"int8": [1, -2, 100, -100, 0, 0, -1, 0], "uint8": [1, 126, 0, 1, 0, 0, 1, 0]}


def computed(name: str, dtype: str, *operands: list[int], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(flags, "NATIVE", 2)
    with tf.Graph().as_default(), tf.Session() as session:
        feed = {tf.placeholder(dtype, [8 * MANY]): np.tile(np.array(x).astype(dtype), MANY) for x in operands}
        y = registry[name](*feed)
        assert f"operations='{name}'" in session.explain(y, feed)
        return session.run(y, feed)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_shifts(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, wanted in (("LeftShift", LEFT), ("RightShift", RIGHT)):
        found = computed(name, dtype, X, Y, monkeypatch=monkeypatch)
        np.testing.assert_array_equal(found, np.tile(np.array(wanted[dtype], dtype), MANY))


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64"])
def test_wide_shifts(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    most = np.iinfo(dtype).bits - 1
    by = np.clip(Y, 0, most)
    left = computed("LeftShift", dtype, X, Y, monkeypatch=monkeypatch)
    np.testing.assert_array_equal(left[:8], np.left_shift(np.array(X, dtype), by.astype(dtype)))
    right = computed("RightShift", dtype, X, Y, monkeypatch=monkeypatch)
    np.testing.assert_array_equal(right[:8], np.right_shift(np.array(X, dtype), by.astype(dtype)))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_counts(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = computed("PopulationCount", dtype, X, monkeypatch=monkeypatch)
    mask = (1 << np.iinfo(dtype).bits) - 1
    assert found[:8].tolist() == [(x & mask).bit_count() for x in X]
    assert found.dtype == np.uint8


def test_operands() -> None:
    assert {name: count for name, (_, count, _) in BITS.items() if count == 1} == {
        "Invert": 1,
        "PopulationCount": 1,
    }
