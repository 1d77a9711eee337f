"""Slices at the offsets of a concatenation's parts: one split, and the same values without the pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework.declarations.operation import F

NAME = "split_at_offsets"
RNG = np.random.default_rng(38)


def fed(*shape: int | None) -> tuple[Any, Any]:
    return tf.placeholder(tf.float32, list(shape)), RNG.standard_normal([n or 2 for n in shape]).astype("f")


@pytest.mark.parametrize("axis", [1, -1, 0])
def test_gradients_of_a_concatenation(monkeypatch: pytest.MonkeyPatch, axis: int) -> None:
    (x, a), (y, b) = fed(2, 3), fed(2, 3)
    gradients = tf.gradients(tf.square(tf.concat([x, tf.sin(y), y], axis)), [x, y])
    names = ops(text(gradients, [x, y], NAME, "remove_unneeded"))
    assert names.count("SplitV") == 1 and not {"Slice", "ConcatOffset"} & set(names)
    agree(monkeypatch, gradients, {x: a, y: b}, NAME, fires=3, tolerance=0)


def test_other_sizes_may_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    (x, a), (y, b) = fed(None, 3), fed(None, 4)
    gradients = tf.gradients(tf.square(tf.concat([x, y], 1)), [x, y])
    lines = text(gradients, [x, y], NAME, "remove_unneeded")
    split = next(line for line in lines if "SplitV" in line)
    assert "float32[?,3], float32[?,4]" in split
    agree(monkeypatch, gradients, {x: a, y: b}, NAME, fires=2, tolerance=0)


def test_a_part_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    (x, a), (y, b) = fed(2, 3), fed(2, 4)
    gradient = tf.gradients(tf.square(tf.concat([x, y], 1)), y)
    agree(monkeypatch, gradient, {x: a, y: b}, NAME, fires=1, tolerance=0)


def test_gradients_of_many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    x, a = fed(None, 3)
    gradient = tf.gradients(tf.square(tf.concat([x * i for i in range(17)], 1)), x)
    names = ops(text(gradient, [x], NAME, "remove_unneeded"))
    assert "Squeeze" not in names and names.count("SplitV") == 1
    agree(monkeypatch, gradient, {x: a}, NAME, fires=1, tolerance=0)


def test_within_loops_and_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    (x, a), (y, b) = fed(2, 3), fed(2, 2)

    def body(i: Any, h: Any) -> Any:
        rows = tf.cond(i > 1, lambda: tf.concat([h, y], 1), lambda: tf.concat([y, h * 2.0], 1))
        return i + 1, tf.sin(rows[:, 1:4])

    found = tf.while_loop(lambda i, _: i < 4, body, [0, x])[1]
    agree(monkeypatch, tf.gradients(found, [x, y]), {x: a, y: b}, NAME, fires=4)


def test_unknown_sizes_along_the_axis_stay() -> None:
    (x, _), (y, _) = fed(None, 3), fed(2, 3)
    names = ops(text(tf.gradients(tf.concat([x, y], 0), [x, y]), [x, y], NAME))
    assert names.count("Slice") == 2 and "SplitV" not in names


def test_an_unknown_axis_stays() -> None:
    (x, _), (y, _), axis = fed(2, 3), fed(2, 3), tf.placeholder(tf.int32, [])
    names = ops(text(tf.gradients(tf.concat([x, y], axis), [x, y]), [x, y, axis], NAME))
    assert names.count("Slice") == 2 and "SplitV" not in names


@pytest.mark.parametrize("how", ["larger", "another size", "another offset", "sizes of others"])
def test_other_slices_stay(how: str) -> None:
    dy, _ = fed(2, 8 if how == "larger" else 7)
    shapes = [tf.constant([2, 3]), tf.constant([2, 4])]
    begin = F.ConcatOffset(1, shapes)
    size = {"another size": tf.constant([2, 2]), "sizes of others": shapes[1]}.get(how, shapes[0])
    part = tf.slice(dy, shapes[0] * 0 if how == "another offset" else begin[0], size)
    assert "SplitV" not in ops(text([part], [dy], NAME))


def test_sizes_cut_from_another_row_stay() -> None:
    dy, _ = fed(3, 6)
    packed = tf.stack([tf.constant([3, 2]), tf.constant([3, 4])], 1)
    rows = [tf.squeeze(tf.slice(packed, [i, 0], [1, -1])) for i in range(2)]
    halves, parts = ([*tf.split(dy, row, 1, num=2)] for row in rows)
    assert "Squeeze" in ops(text(halves, [dy], NAME, "remove_unneeded"))
    assert "Squeeze" not in ops(text(parts, [dy], NAME, "remove_unneeded"))


def test_what_waits_stays() -> None:
    dy, _ = fed(2, 7)
    shapes = [tf.constant([2, 3]), tf.constant([2, 4])]
    begin = F.ConcatOffset(1, shapes)
    with tf.control_dependencies([tf.get_variable("v", [2]).initializer]):
        part = tf.slice(dy, begin[0], shapes[0])
    assert "SplitV" not in ops(text([part], [dy], NAME))
