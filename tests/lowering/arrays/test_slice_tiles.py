"""Slices that make a tensor: graph text, and the same values without the pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text

RNG = np.random.default_rng(17)
NAMES = ("fold_constants", "split_slices", "remove_unneeded")


def slices(x: Any, axis: int, starts: list[int], sizes: list[int]) -> list[Any]:
    return [
        tf.slice(x, [start, 0] if axis == 0 else [0, start], [size, -1] if axis == 0 else [-1, size])
        for start, size in zip(starts, sizes)
    ]


@pytest.mark.parametrize("axis", [0, 1])
def test_slices_in_any_order_become_a_split(monkeypatch, axis) -> None:
    x = tf.placeholder(tf.float32, [6, 6])
    parts = slices(x, axis, [4, 0, 1], [2, 1, 3])
    fetches = [*parts, tf.reduce_sum(parts[0]), tf.exp(parts[2])]
    names = ops(text(parts, [x], *NAMES))
    assert names.count("SplitV") == 1 and "Slice" not in names
    log = agree(monkeypatch, fetches, {x: RNG.standard_normal([6, 6])}, "split_slices", fires=3, tolerance=0)
    assert log.count("split_slices:") == 3


@pytest.mark.parametrize(
    ("starts", "sizes"),
    [([0, 3], [3, 2]), ([1, 3], [2, 3]), ([0, 2], [3, 4]), ([0, 0, 3], [3, 3, 3]), ([0], [3])],
)
def test_slices_with_gaps_or_overlaps_stay(starts, sizes) -> None:
    x = tf.placeholder(tf.float32, [6, 6])
    assert "SplitV" not in ops(text(slices(x, 0, starts, sizes), [x], *NAMES))


def test_slices_of_two_axes_or_of_unknown_shapes_stay() -> None:
    x, y = tf.placeholder(tf.float32, [6, 6]), tf.placeholder(tf.float32, [None, 6])
    parts = slices(x, 0, [0], [3]) + slices(x, 1, [3], [3]) + slices(y, 0, [0, 3], [3, 3])
    assert "SplitV" not in ops(text(parts, [x, y], *NAMES))


def test_slices_of_a_variable_that_changes(monkeypatch) -> None:
    v = tf.get_variable("v", initializer=RNG.standard_normal([6, 2]).astype("f"))
    first, second = slices(v + 0.0, 0, [0, 2], [2, 4])
    with tf.control_dependencies([first]):
        changed = v.assign_add(tf.ones([6, 2]))
    with tf.control_dependencies([changed]):
        later = second * 2.0
    setup = tf.global_variables_initializer()
    agree(monkeypatch, [first, later, changed], {}, "split_slices", fires=0, setup=setup, tolerance=0)
