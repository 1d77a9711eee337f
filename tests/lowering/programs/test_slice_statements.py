"""Slices and paddings in a loop: machine code gives what the kernels do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.lowering.programs.slice_statements import SLICES
from three_ways import assert_equal_three_ways, repeated

DIMS = (4, 3, 2)


def windowed(x: Any) -> Any:
    """A slice that begins where a number says."""
    begin = tf.cast(x[0, 0, 0] > 0.0, tf.float32) + [1.0, 0.0, 0.0]
    return tf.slice(x, F.ConcatV2([F.ArgMax(begin, 0, output_type=tf.int32)[None], [1, 0]], 0), [2, 2, 2])


def mirrored(x: Any) -> list[Any]:
    """Paddings that repeat edges, or do not."""
    return [
        tf.pad(x, paddings, mode)
        for mode in ("REFLECT", "SYMMETRIC")
        for paddings in ([[2, 1], [0, 0], [1, 1]], [[3, 3], [2, 0], [0, 1]])
    ]


CASES: dict[str, Callable[[Any], list[Any]]] = {
    "MirrorPad": mirrored,
    "MirrorPadGrad": lambda x: [tf.gradients(y * y, x)[0] for y in mirrored(x)],
    "Pad": lambda x: [tf.pad(x, [[1, 2], [0, 0], [3, 1]])],
    "PadV2": lambda x: [tf.pad(x, [[0, 1], [2, 0], [0, 0]], constant_values=7.0)],
    "Slice": lambda x: [tf.slice(x, [1, 0, 1], [2, 3, 1]), tf.slice(x, [0, 1, 0], [4, -1, 2]), windowed(x)],
    "StridedSlice": lambda x: [x[1:3], x[::-1, 1], x[..., tf.newaxis, 0], x[-1], x[:, ::2], x[1, 1, 1]],
    "StridedSliceGrad": lambda x: [
        F.StridedSliceGrad([5, 3, 4], [1, 0, 3], [5, 3, 0], [1, 1, -2], x),
        *[tf.gradients(y, x, x[: int(y.shape[0]), 0, 0])[0] for y in (x[1:3, 2, 1], x[::-1, 1, 0])],
        *tf.gradients(x[2, 1, 1], x),
        *tf.gradients(x[..., tf.newaxis, 0], x),
    ],
}


def test_every_operation_has_a_case() -> None:
    assert set(CASES) == set(SLICES)


@pytest.mark.parametrize("name", CASES)
def test_slices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, DIMS)
    results = repeated(CASES[name], x)
    assert_equal_three_ways(monkeypatch, results, {x: np.random.RandomState(0).rand(*DIMS)})


def known(x: Any, *dims: int) -> Any:
    x.set_shape(dims)
    return x


COMPUTED: dict[str, Callable[[Any, Any], Any]] = {
    "two places": lambda x, i: x[i, 1, -i],
    "a place and a rest": lambda x, i: x[i, 1:],
    "a place and new dimensions": lambda x, i: x[tf.newaxis, i, :, tf.newaxis, 1:],
    "a place at the end": lambda x, i: x[..., -i],
    "a place behind all": lambda x, i: x[..., i, :2],
    "some of a dimension": lambda x, i: known(x[i : i + 2], 2, 3, 2),
    "some, counted from the end": lambda x, i: known(x[-i - 2 : -i, i], 2, 2),
    "more than there are": lambda x, i: known(x[i + 1 : 9, :1], 2, 1, 2),
    "slice": lambda x, i: tf.slice(x, tf.stack([i, 0, 1]), [2, 3, 1]),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_places_that_a_step_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, i = tf.placeholder(tf.float32, DIMS), tf.placeholder(tf.int32, [])

    def body(n: Any, total: Any) -> Any:
        return n + 1, total + tf.reduce_sum(tf.sin(COMPUTED[name](x, i)) * total)

    y = tf.while_loop(lambda n, _: n < 3, body, [0, 1.0])[1]
    value = np.random.RandomState(0).rand(*DIMS)
    assert_equal_three_ways(monkeypatch, [y, *tf.gradients(y, x)], {x: value, i: 1})


def test_paddings_that_a_step_says(monkeypatch: pytest.MonkeyPatch) -> None:
    x, pairs = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.int32, [2, 2])
    results = repeated(
        lambda x: [known(F.PadV2(x, pairs, 5.0), 4, 4), known(tf.pad(x, pairs), 4, 4) * 2.0], x
    )
    feed = {x: np.random.RandomState(0).rand(2, 3), pairs: [[2, 0], [0, 1]]}
    assert_equal_three_ways(monkeypatch, results, feed)


def test_a_slice_of_another_size_than_is_said() -> None:
    x, i = tf.placeholder(tf.float32, DIMS), tf.placeholder(tf.int32, [])
    results = repeated(lambda x: [known(x[i : i + 2], 2, 3, 2) * 2.0], x)
    value = np.ones(DIMS)
    with tf.Session() as session:
        assert "_Program(" in session.explain(results, {x: value, i: 1})
        assert session.run(results, {x: value, i: 2})[0].tolist() == (2 * value[:2]).tolist()
        assert session.run(results, {x: value, i: 3})[0].shape == (1, 3, 2)


def test_a_slice_from_where_a_step_says(monkeypatch: pytest.MonkeyPatch) -> None:
    x, i = tf.placeholder(tf.float32, DIMS), tf.placeholder(tf.int32, [3])
    results = repeated(lambda y: [tf.slice(y, i, [2, 1, 2])], x)
    value = np.random.default_rng(0).normal(size=DIMS)
    assert_equal_three_ways(monkeypatch, results, {x: value, i: [2, 1, 0]})
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="Expected begin"):
        session.run(results, {x: value, i: [3, 1, 0]})
