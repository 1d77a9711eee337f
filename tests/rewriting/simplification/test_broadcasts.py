"""Operands that were only repeated: where the operation repeats them itself."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.rewriting.simplification.broadcasts import kept_axes, with_axes

NAME = "narrow_broadcasts"


def narrowed(y, *feeds):
    return ops(text([y], list(feeds), "fold_constants", NAME, "remove_unneeded"))


@pytest.mark.parametrize("first", [True, False])
def test_the_other_operand_has_the_shape(monkeypatch, first) -> None:
    x, y = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [2, 3])
    wide = tf.broadcast_to(x, [2, 3])
    z = wide - y if first else y - wide
    assert narrowed(z, x, y) == ["_Arg", "_Arg", "Sub"]
    agree(monkeypatch, [z], {x: [1, 2, 3], y: np.eye(2, 3)}, NAME, fires=1, tolerance=0)


def test_a_scalar_is_applied_before(monkeypatch) -> None:
    x, c = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [])
    z = tf.broadcast_to(x, [2, 3]) * c
    kinds = narrowed(z, x, c)
    assert kinds.index("Mul") < kinds.index("BroadcastTo")
    agree(monkeypatch, [z], {x: [1, 2, 3], c: 3}, NAME, fires=1, tolerance=0)


def test_a_mean_of_many_has_one_number_as_gradient(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [300, 300])
    (dx,) = tf.gradients(tf.reduce_mean(x * x), x)
    kinds = narrowed(dx, x)
    assert not {"RealDiv", "Tile", "BroadcastTo"} & set(kinds)
    agree(monkeypatch, [dx], {x: np.ones([300, 300])}, NAME, fires=4, tolerance=1e-6)


def test_both_operands_narrow_stay() -> None:
    x, y = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [2, 1])
    assert "BroadcastTo" in narrowed(tf.broadcast_to(x, [2, 3]) - y, x, y)
    unknown = tf.placeholder(tf.float32, [None, 3])
    wide = tf.broadcast_to(x, tf.shape(unknown))
    assert "BroadcastTo" in narrowed(wide - unknown, x, unknown)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((2, 3), (2, 1, 3), [0, None, 1]),
        ((2, 1, 3), (2, 3), [0, 2]),
        ((1, 1), (), []),
        ((2, 3), (3, 2), None),
        ((2, 3), (6,), None),
        ((2, None), (2, 1), None),
        (None, (2,), None),
        ((2, 3), (2,), None),
    ],
)
def test_axes_that_a_reshape_keeps(before, after, expected) -> None:
    assert kept_axes(before, after) == expected


def test_the_operand_is_reshaped_as_its_broadcast() -> None:
    assert with_axes((3,), 2, [0, None, 1]) == (1, 1, 3)
    assert with_axes((2, 1), 2, [0, None, 1]) == (2, 1, 1)


def test_a_number_that_fills_the_shape(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [512, 256])
    y = 2.0 * x - tf.ones_like(x)
    assert narrowed(y, x) == ["_Arg", "Const", "Mul", "Const", "Sub"]
    agree(monkeypatch, [y], {x: np.ones([512, 256])}, NAME, fires=1, tolerance=0)
    small = tf.placeholder(tf.float32, [])
    wide = tf.ones([512, 256]) * small
    assert "Fill" in narrowed(wide, small)


def test_axes_of_size_1_are_broadcast_not_copied(monkeypatch) -> None:
    x, y = tf.placeholder(tf.float32, [3, 1, 2]), tf.placeholder(tf.float32, [3, 4, 2])
    assert narrowed(tf.tile(x, [1, 4, 1]) * y, x, y) == ["_Arg", "_Arg", "Mul"]
    agree(monkeypatch, [tf.tile(x, [1, 4, 1])], {x: np.ones([3, 1, 2])}, NAME, fires=1, tolerance=0)
    assert "Tile" in narrowed(tf.tile(x, [1, 4, 2]), x)
    words = tf.placeholder(tf.string, [1])
    assert "Tile" in narrowed(tf.tile(words, [3]), words)
    empty = tf.placeholder(tf.float32, [1, 2])
    agree(monkeypatch, [tf.tile(empty, [0, 1])], {empty: np.ones([1, 2])}, NAME, fires=1, tolerance=0)
