"""`tf.data.experimental.cardinality`; the numbers are TensorFlow 1.15.5's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

D, E = tf.data.Dataset, tf.data.experimental
INFINITE, UNKNOWN = -1, -2


def _half(x: Any) -> Any:
    return tf.equal(x % 2, 0)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: D.range(5), 5),
        (lambda: D.range(7, 1, -2), 3),
        (lambda: D.range(5, 2), 0),
        (lambda: D.from_tensors(3), 1),
        (lambda: D.from_tensor_slices({"a": np.zeros([4, 2])}), 4),
        (lambda: D.range(5).batch(2), 3),
        (lambda: D.range(5).batch(2, drop_remainder=True), 2),
        (lambda: D.range(5).padded_batch(2, []), 3),
        (lambda: D.range(5).padded_batch(2, [], drop_remainder=True), 2),
        (lambda: D.range(5).map(_half).padded_batch(2, [], padding_values=True), 3),
        (lambda: D.range(5).apply(E.map_and_batch(lambda x: x, 2)), 3),
        (lambda: D.range(5).window(2), 3),
        (lambda: D.range(5).repeat(), INFINITE),
        (lambda: D.range(0).repeat(), 0),
        (lambda: D.range(5).repeat(3), 15),
        (lambda: D.range(5).repeat().take(7), 7),
        (lambda: D.range(5).take(-1), INFINITE),
        (lambda: D.range(5).skip(2), 3),
        (lambda: D.range(5).shard(2, 0), 3),
        (lambda: D.range(5).map(lambda x: x + 1).shuffle(3).prefetch(1).cache(), 5),
        (lambda: D.range(5).apply(E.shuffle_and_repeat(3)), INFINITE),
        (lambda: D.range(5).apply(E.scan(np.int64(0), lambda s, x: (s + x, x))), 5),
        (lambda: D.zip((D.range(5), D.range(3).repeat())), 5),
        (lambda: D.zip((D.range(5), D.range(3).filter(_half))), UNKNOWN),
        (lambda: D.range(5).concatenate(D.range(3)), 8),
        (lambda: D.range(5).concatenate(D.range(3).repeat()), INFINITE),
        (lambda: D.range(5).filter(_half), UNKNOWN),
        (lambda: D.range(5).flat_map(D.range), UNKNOWN),
        (lambda: D.range(5).filter(_half).repeat(2).batch(2).take(3), UNKNOWN),
        (lambda: D.range(5).batch(2).apply(E.unbatch()), UNKNOWN),
        (lambda: D.from_generator(lambda: [1], tf.int32), UNKNOWN),
        (lambda: tf.data.TextLineDataset("none"), UNKNOWN),
        (lambda: E.RandomDataset(1), INFINITE),
    ],
)
def test_numbers_of_elements(make: Any, expected: int) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(E.cardinality(make())) == expected


def test_sizes_may_be_tensors() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        size = tf.placeholder(tf.int64, [])
        number = E.cardinality(D.range(10).batch(size).repeat(2))
        assert [session.run(number, {size: n}) for n in (3, 5)] == [8, 4]
