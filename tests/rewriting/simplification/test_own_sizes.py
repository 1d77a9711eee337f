"""Vectors that are packed of their own elements, and sparse tensors in their own shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text

NAME = "keep_own_sizes"


def sizes(x: Any, how: str) -> list[Any]:
    return {
        "gathered": [tf.gather(x, i) for i in range(2)],
        "sliced": [x[0], x[1]],
        "multiplied": [tf.reduce_prod(tf.slice(x, [0], [1])), tf.gather(x, 1)],
        "swapped": [x[1], x[0]],
        "repeated": [x[0], x[0]],
        "some": [x[0]],
        "multiplied by more": [tf.reduce_prod(tf.slice(x, [0], [2])), x[1]],
        "the rest": [x[0], -1],
        "the rest of int32": [tf.cast(x, tf.int32)[0], -1],
        "the rest first": [-1, tf.gather(x, 1)],
        "the rest of others": [x[1], -1],
        "others": [x[0], tf.gather(x + 1, 1)],
    }[how]


@pytest.mark.parametrize(
    ("how", "fires"),
    [("gathered", 2), ("sliced", 2), ("multiplied", 2), ("swapped", 0), ("repeated", 0), ("others", 0),
     ("multiplied by more", 0), ("some", 0), ("the rest", 1), ("the rest of int32", 1), ("the rest first", 1),
     ("the rest of others", 0)],
)  # fmt: skip
def test_reshapes(monkeypatch: pytest.MonkeyPatch, how: str, fires: int) -> None:
    x = tf.sparse_placeholder(tf.float32, [None, None])
    new = tf.sparse_reshape(
        x, tf.cast(tf.stack([*sizes(x.dense_shape, how), *[1] * (how == "some")]), tf.int64)
    )
    found = [new.indices, new.dense_shape]
    names = ops(
        text(found, [x.indices, x.values, x.dense_shape], "apply_identities", NAME, "remove_unneeded")
    )
    assert ("SparseReshape" in names, "Pack" in names) == ((False, False) if fires else (True, True))
    if fires or how in ("swapped", "the rest of others"):
        agree(monkeypatch, found, {x: ([[0, 1], [2, 1]], [1, 2], [3, 2])}, NAME, fires=fires, tolerance=0)


def test_whole_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.sparse_placeholder(tf.float32, [None, None, None])
    new = tf.sparse_reshape(x, x.dense_shape)
    feed = {x: ([[0, 1, 0], [2, 1, 1]], [1, 2], [3, 2, 2])}
    agree(monkeypatch, [new.indices, new.values, new.dense_shape], feed, NAME, fires=1, tolerance=0)


def test_what_is_fetched_is_not_what_is_fed() -> None:
    x = tf.sparse_placeholder(tf.float32, [None, None])
    new = tf.sparse_reshape(x, x.dense_shape)
    indices = np.array([[0, 1], [2, 1]])
    with tf.Session() as session:
        found = session.run(new, {x: (indices, [1, 2], [3, 2])})
        indices += 1
        assert found.indices.tolist() == [[0, 1], [2, 1]]
