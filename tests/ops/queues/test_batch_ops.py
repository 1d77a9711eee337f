"""Calls of concurrent steps in one batch. The reference is what TensorFlow gives for the same calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import registry
from flowstone.framework.functions.function import Defun

LONG = 20_000_000  # microseconds: a full batch does not wait for it
ROWS = [np.full((1, 2), i, np.float32) for i in (1.0, 2.0, 3.0)]


def batch(x: tf.Tensor, limit: int = 3, timeout: int = LONG, **attributes: Any) -> Any:
    """(batched, batch_index, id)."""
    batched, index, number = registry["Batch"].several(
        [x],
        num_batch_threads=1,
        max_batch_size=limit,
        batch_timeout_micros=timeout,
        grad_timeout_micros=LONG,
        **attributes,
    )
    return batched[0], index, number


def results(make: Callable[[tf.Tensor], Any], values: list) -> list:
    """What concurrent steps, begun one after the other, give for these values; errors as they are."""
    found: list = [None] * len(values)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32)
        fetches = make(x)

        def run(i: int) -> None:
            try:
                found[i] = session.run(fetches, {x: values[i]})
            except tf.errors.OpError as error:
                found[i] = error

        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(values))]
        for thread in threads:
            thread.start()
            time.sleep(0.15)
        for thread in threads:
            thread.join(30)
    return found


def test_the_last_step_gets_the_batch() -> None:
    *others, last = results(batch, ROWS)
    for batched, index, _ in others:
        assert batched.shape == (0, 2) and index.shape == (0, 3)
    np.testing.assert_array_equal(last[0], np.concatenate(ROWS))
    numbers = [number for _, _, number in [*others, last]]
    assert last[1].tolist() == [[number, i, i + 1] for i, number in enumerate(numbers)]
    assert len(set(numbers)) == 3


def test_a_batch_is_closed_after_a_while() -> None:
    found = results(lambda x: batch(x, 4, 400_000, allowed_batch_sizes=[2, 4]), ROWS)
    np.testing.assert_array_equal(found[2][0], np.concatenate([*ROWS, ROWS[0]]))
    assert found[2][1][:, 1:].tolist() == [[0, 1], [1, 2], [2, 3]]


def test_what_does_not_fit_begins_another() -> None:
    two, three = np.ones((2, 2), np.float32), np.ones((3, 2), np.float32)
    first, second = results(lambda x: batch(x, 4, 300_000), [two, three])
    assert (first[0].shape, second[0].shape) == ((2, 2), (3, 2))


@pytest.mark.parametrize(
    "value, attributes, words",
    [
        (np.ones((4, 2)), {}, "Task size 4"),
        (1.0, {}, "at least one dimension"),
        (ROWS[0], {"allowed_batch_sizes": [3, 2]}, "monotonically increasing"),
        (ROWS[0], {"allowed_batch_sizes": [1, 2]}, "must equal max_batch_size"),
    ],
)
def test_errors(value: object, attributes: dict, words: str) -> None:
    (error,) = results(lambda x: batch(x, **attributes), [value])
    assert isinstance(error, tf.errors.InvalidArgumentError) and words in error.message


def test_rows_of_other_shapes() -> None:
    found = results(lambda x: batch(x, 2), [np.ones((1, 2)), np.ones((1, 3))])
    assert all(isinstance(error, tf.errors.InvalidArgumentError) for error in found)


def test_parts_and_their_gradients() -> None:
    def make(x: tf.Tensor) -> list:
        batched, index, number = batch(x)
        doubled = batched * 2.0
        part = registry["Unbatch"](doubled, index, number, timeout_micros=LONG)
        return [part, registry["UnbatchGrad"](doubled, index, part * 5.0, number)]

    found = results(make, ROWS)
    for (part, _), row in zip(found, ROWS):
        np.testing.assert_array_equal(part, row * 2)
    assert found[0][1].shape == found[1][1].shape == (0, 2)
    np.testing.assert_array_equal(found[2][1], np.concatenate(ROWS) * 10)


def test_a_part_that_does_not_come() -> None:
    def make(x: tf.Tensor) -> tf.Tensor:
        return registry["Unbatch"](x, np.zeros((0, 3), np.int64), np.int64(1), timeout_micros=100_000)

    (error,) = results(make, ROWS[:1])
    assert isinstance(error, tf.errors.DeadlineExceededError)


def function_of_batch(x: tf.Tensor, **attributes: Any) -> list[tf.Tensor]:
    @Defun(tf.float32, tf.float32)
    def scaled(rows: tf.Tensor, factor: tf.Tensor) -> Any:
        return rows * factor + tf.cast(tf.shape(rows)[0], tf.float32), tf.reduce_sum(rows, -1)

    scaled.add_to_graph(tf.get_default_graph())
    return registry["BatchFunction"].several(
        [x],
        [tf.constant(10.0)],
        f=scaled.name,
        num_batch_threads=1,
        Tout=[tf.float32, tf.float32],
        **({"max_batch_size": 3, "batch_timeout_micros": LONG} | attributes),
    )


@pytest.mark.parametrize("padded", [False, True])
def test_a_function_of_the_batch(padded: bool) -> None:
    more: dict[str, Any] = {}
    if padded:
        more = {"max_batch_size": 4, "batch_timeout_micros": 500_000, "allowed_batch_sizes": [2, 4]}
    found = results(lambda x: function_of_batch(x, **more), ROWS)
    for (scaled, sums), row in zip(found, ROWS):
        np.testing.assert_array_equal(scaled, row * 10 + (4 if padded else 3))
        np.testing.assert_array_equal(sums, row.sum(-1))


def test_a_step_that_ends_early_leaves_the_batch() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32)
        node = batch(x, 2)[0]
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(node, {x: ROWS[0]}, tf.RunOptions(timeout_in_ms=100))
        waiting = threading.Thread(target=session.run, args=(node, {x: ROWS[1]}))
        waiting.start()
        time.sleep(0.2)
        np.testing.assert_array_equal(session.run(node, {x: ROWS[2]}), np.concatenate(ROWS[1:]))
        waiting.join(30)
