"""Buckets give batches of examples that belong together."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.training.input.bucketing import bucket, bucket_by_sequence_length

pytestmark = pytest.mark.usefixtures("graph")


def all_values(fetch: Any) -> list[Any]:
    """What a session fetches until the input ends."""
    values = []
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        with contextlib.suppress(tf.errors.OutOfRangeError):
            while True:
                values.append(session.run(fetch))
        coord.request_stop()
        coord.join(threads)
    return values


def numbers(limit: int) -> tf.Tensor:
    return tf.train.range_input_producer(limit, num_epochs=1, shuffle=False).dequeue()


def test_examples_of_one_bucket_come_together() -> None:
    item = numbers(12)
    which, batch = bucket({"x": item, "y": tf.stack([item, -item])}, item % 3, 2, 3)
    assert which.shape.as_list() == []
    assert batch["x"].shape.as_list() == [2]
    assert batch["y"].shape.as_list() == [2, 2]
    found = all_values([which, batch])
    assert Counter(int(number) for number, _ in found) == {0: 2, 1: 2, 2: 2}
    for number, values in found:
        assert (values["x"] % 3 == number).all()
        assert values["y"].tolist() == [[x, -x] for x in values["x"]]
    assert sorted(np.concatenate([values["x"] for _, values in found])) == list(range(12))


def test_sizes_and_capacities_of_each_bucket() -> None:
    item = numbers(14)
    which, batch = bucket(
        [item], item % 2, [2, 3], 2, bucket_capacities=[4, 6], allow_smaller_final_batch=True, capacity=2
    )
    assert batch.shape.as_list() == [None]
    found = [(int(number), values.tolist()) for number, values in all_values([which, batch])]
    assert [values for number, values in found if number == 0] == [[0, 2], [4, 6], [8, 10], [12]]
    assert [values for number, values in found if number == 1] == [[1, 3, 5], [7, 9, 11], [13]]


def test_examples_that_are_not_kept() -> None:
    item = numbers(8)
    _, batch = bucket([item], 0, 2, 1, keep_input=tf.equal(item % 2, 1))
    assert [values.tolist() for values in all_values(batch)] == [[1, 3], [5, 7]]


def test_sparse_tensors() -> None:
    item = numbers(4)
    index = tf.cast(item, tf.int64)
    tensor = tf.SparseTensor(tf.stack([[index]]), tf.stack([item]), [4])
    _, batch = bucket({"s": tensor}, item % 2, 2, 2)
    found = all_values(batch["s"])
    assert sorted(value.indices.tolist() for value in found) == [[[0, 0], [1, 2]], [[0, 1], [1, 3]]]
    assert all(value.dense_shape.tolist() == [2, 4] for value in found)


def test_sequences_of_like_length_are_padded_together() -> None:
    length = numbers(9)
    lengths, batch = bucket_by_sequence_length(
        length, [tf.range(length)], 2, [3, 6], dynamic_pad=True, allow_smaller_final_batch=True
    )
    assert batch[0].shape.as_list() == [None, None]
    found = all_values([lengths, batch])
    assert sorted(sizes.tolist() for sizes, _ in found) == [[0, 1], [2], [3, 4], [5], [6, 7], [8]]
    for sizes, (sequences,) in found:
        assert sequences.shape == (len(sizes), sizes.max())
        assert [(row > 0).sum() for row in sequences] == [max(size - 1, 0) for size in sizes]


def test_names_are_tensorflows() -> None:
    item = numbers(4)
    _, batch = bucket([item], item % 2, 2, 2)
    runners = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
    assert [runner.name for runner in runners][1:] == ["bucket/bucket_queue_0", "bucket/top_queue"]
    assert batch.name == "bucket/dequeue_top:1"  # a list of one example tensor gives a tensor


def test_summaries() -> None:
    item = numbers(4)
    bucket([item], item % 2, 2, 2, capacity=5)
    names = {summary.op.name for summary in tf.get_collection(tf.GraphKeys.SUMMARIES)}
    assert {
        "bucket/bucket_queue_0/size", "bucket/bucket_queue_1/size", "bucket/top_queue/fraction_of_5_full"
    } <= names  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": [2], "num_buckets": 2}, "If batch_size is a list it must have num_buckets (2)"),
        ({"batch_size": 2, "num_buckets": 2, "bucket_capacities": [1]}, "If bucket_capacities is a list"),
        ({"batch_size": 2, "num_buckets": 2, "tensors": []}, "Expected at least one tensor"),
    ],
)
def test_mistakes(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        bucket(**{"tensors": [tf.constant(1)], "which_bucket": 0, **arguments})


@pytest.mark.parametrize(
    ("boundaries", "error"),
    [(3, TypeError), ([], ValueError), ([1.5], TypeError), ([3, 3], ValueError), ([3, 1], ValueError)],
)
def test_wrong_boundaries(boundaries: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"bucket.boundaries|Buckets must"):
        bucket_by_sequence_length(1, [tf.constant(1)], 2, boundaries)
