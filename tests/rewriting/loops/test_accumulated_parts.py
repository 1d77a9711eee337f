"""Sums of joined parts in loops: their parts are added up apart, with equal results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree

RNG = np.random.default_rng(5)


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def summed(body: Callable[[Any], Any], zero: Any, steps: Any = 3) -> Any:
    """The sum of what `body` makes of the iterations' numbers."""
    return tf.while_loop(
        lambda i, _: i < steps, lambda i, total: (i + 1, total + body(tf.cast(i, tf.float32))), [0, zero]
    )[1]


def test_parts_of_a_concatenation_and_of_a_pack_within_it(monkeypatch) -> None:
    x, y = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.float32, [3])

    def body(i: Any) -> Any:
        return tf.concat([x * i, tf.stack([tf.sin(y * i), y])], 0)

    total = summed(body, tf.zeros([4, 3]))
    fetches = [total, *tf.gradients(total, [x, y])]
    assert "adds up 2 parts" in agree(
        monkeypatch, fetches, {x: values(2, 3), y: values(3)}, "accumulate_parts", fires=2
    )


@pytest.mark.parametrize("steps_fed", [0, 1, 4])
def test_any_number_of_iterations(monkeypatch, steps_fed: int) -> None:
    x, steps = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.int32, [])
    total = summed(lambda i: tf.concat([x, x * i], 1), tf.zeros([2, 6]), steps)
    agree(monkeypatch, [total], {x: values(2, 3), steps: steps_fed}, "accumulate_parts", fires=1)


def test_a_variable_that_the_body_splits(monkeypatch) -> None:
    x, w = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.float32, [3, 6])

    def body(i: Any, h: Any) -> Any:
        first, second = tf.split(w, 2, axis=1)
        return i + 1, tf.tanh(tf.matmul(h, first)) * tf.sigmoid(tf.matmul(h, second))

    y = tf.while_loop(lambda i, _: i < 3, body, [0, x])[1]
    agree(
        monkeypatch, tf.gradients(y, [x, w]), {x: values(2, 3), w: values(3, 6)}, "accumulate_parts", fires=1
    )


def test_what_begins_otherwise_or_is_looked_at_stays(monkeypatch) -> None:
    x, first = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.float32, [4, 3])
    begun = summed(lambda i: tf.concat([x, x * i], 0), first)

    def looks(i: Any, total: Any, last: Any) -> Any:
        joined = tf.concat([x, x * tf.cast(i, tf.float32)], 0)
        return i + 1, total + joined, joined

    looked = tf.while_loop(lambda i, *_: i < 3, looks, [0, tf.zeros([4, 3]), tf.zeros([4, 3])])[1:]
    feed = {x: values(2, 3), first: values(4, 3)}
    agree(monkeypatch, [begun, *looked], feed, "accumulate_parts", fires=0)
