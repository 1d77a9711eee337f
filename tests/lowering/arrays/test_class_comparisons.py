"""One-hot rows as comparisons: graph text, and the same values without the pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework import flags

NAME = "compare_classes"


@pytest.fixture(autouse=True)
def machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 1)


def test_becomes_a_comparison() -> None:
    ids = tf.placeholder(tf.int32, [3])
    found = ops(text([tf.one_hot(ids, 4)], [ids], NAME))
    assert "OneHot" not in found and {"ExpandDims", "Equal", "SelectV2"} <= set(found)


@pytest.mark.parametrize("indices", ["int32", "int64"])
@pytest.mark.parametrize("dims", [(5,), (), (2, 3)])
def test_values(monkeypatch: pytest.MonkeyPatch, dims: tuple[int, ...], indices: str) -> None:
    ids, x = tf.placeholder(indices, dims), tf.placeholder(tf.float32, (*dims, 4))
    hot = tf.one_hot(ids, 4)
    fetches = [hot, tf.reduce_sum(hot * x, -1), tf.one_hot(ids, 6, 2.5, -1.0)]
    feed = {ids: np.resize([3, -1, 0, 7, 1, 2], dims), x: np.random.rand(*dims, 4)}
    agree(monkeypatch, fetches, feed, NAME, fires=2, tolerance=0)


def test_what_stays() -> None:
    ids, small = tf.placeholder(tf.int32, [3]), tf.placeholder(tf.uint8, [3])
    open_ids = tf.placeholder(tf.int32, [None])
    stays: list[Any] = [
        tf.one_hot(ids, 4, axis=0),
        tf.one_hot(ids, 4, dtype=tf.int32),
        tf.one_hot(small, 4),
        tf.one_hot(open_ids, 4),
        tf.one_hot(ids, 1 << 16),
    ]
    for each in stays:
        assert "OneHot" in ops(text([each], [ids, small, open_ids], NAME))
