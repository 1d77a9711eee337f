"""Segments of sequences with their states; the values are those that TensorFlow 1.15.5 gives."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf
from flowstone.contrib import training

LENGTHS = {"a": 7, "b": 4}


def batch_of(**options: Any) -> Any:
    """Segments of 3 steps of two sequences that count from 0, with a state that counts segments."""
    keys, lengths = list(LENGTHS), list(options.pop("lengths", LENGTHS.values()))
    key, length = tf.train.slice_input_producer(
        [tf.constant(keys), tf.constant(lengths)], num_epochs=1, shuffle=False
    )
    arguments = {"num_unroll": 3, "batch_size": 2, "num_threads": 1, "capacity": 10, **options}
    return training.batch_sequences_with_states(
        key, {"x": tf.range(length)}, {"c": length * 10}, length, {"s": tf.zeros([2])}, **arguments
    )


def steps(batch: Any) -> list[dict[str, Any]]:
    """What every step gives until the input ends."""
    fetches = {
        "key": batch.key, "next": batch.next_key, "length": batch.length, "total": batch.total_length,
        "x": batch.sequences["x"], "c": batch.context["c"], "sequence": batch.sequence,
        "count": batch.sequence_count, "size": batch.batch_size, "s": batch.state("s"),
    }  # fmt: skip
    save = batch.save_state("s", batch.state("s") + 1.0)
    found: list[dict[str, Any]] = []
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        try:
            while True:
                values, _ = session.run([fetches, save])
                found.append({name: value.tolist() for name, value in values.items()})
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads)
    return found


def test_the_state_goes_on() -> None:
    batch = batch_of(allow_small_batch=False)
    assert batch.sequences["x"].shape.as_list() == [2, 3]
    first, second = steps(batch)
    assert first == {
        "key": [b"00000_of_00003:a", b"00000_of_00002:b"],
        "next": [b"00001_of_00003:a", b"00001_of_00002:b"],
        "length": [3, 3], "total": [7, 4], "x": [[0, 1, 2], [0, 1, 2]], "c": [70, 40],
        "sequence": [0, 0], "count": [3, 2], "size": 2, "s": [[0, 0], [0, 0]],
    }  # fmt: skip
    assert second == {
        "key": [b"00001_of_00003:a", b"00001_of_00002:b"], "next": [b"00002_of_00003:a", b"STOP:b"],
        "length": [3, 1], "total": [7, 4], "x": [[3, 4, 5], [3, 0, 0]], "c": [70, 40],
        "sequence": [1, 1], "count": [3, 2], "size": 2, "s": [[1, 1], [1, 1]],
    }  # fmt: skip


@pytest.mark.parametrize("capacity", [1, 10])
def test_every_segment_comes_once(capacity: int) -> None:
    found = steps(batch_of(batch_size=1, capacity=capacity))
    by_key = {step["key"][0]: step["s"][0][0] for step in found}
    assert by_key == {
        b"00000_of_00003:a": 0, b"00001_of_00003:a": 1, b"00002_of_00003:a": 2,
        b"00000_of_00002:b": 0, b"00001_of_00002:b": 1,
    }  # fmt: skip
    assert len(found) == 5


def test_a_last_batch_may_be_smaller() -> None:
    assert [step["size"] for step in steps(batch_of())] == [2, 2, 1]


def test_lengths_without_padding() -> None:
    assert len(steps(batch_of(pad=False, lengths=[6, 3]))) == 2


def test_a_length_that_does_not_fit() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        steps(batch_of(pad=False, lengths=[7, 3]))


def test_keys_with_a_number() -> None:
    (first, *_) = steps(batch_of(make_keys_unique=True, make_keys_unique_seed=3))
    assert [key.rpartition(b"_")[0] for key in first["key"]] == [b"00000_of_00003:a", b"00000_of_00002:b"]


def test_a_recurrent_network_keeps_its_state() -> None:
    batch = batch_of(allow_small_batch=False)
    cell = tf.nn.rnn_cell.BasicRNNCell(2)
    inputs = [tf.cast(step, tf.float32)[:, None] for step in tf.unstack(batch.sequences["x"], axis=1)]
    outputs, state = tf.nn.static_state_saving_rnn(cell, inputs, batch, "s")
    assert (len(outputs), state.shape.as_list()) == (3, [2, 2])


def test_its_properties() -> None:
    saver = training.SequenceQueueingStateSaver(
        2, 3, 3, "k", {"x": tf.zeros([3, 4])}, {}, {"s": tf.zeros([])}, name="saver"
    )
    assert (saver.name, saver.batch_size, saver.num_unroll) == ("saver/", 2, 3)
    assert saver.barrier.name == "saver/barrier"
    batch = saver.next_batch
    assert isinstance(batch, training.NextQueuedSequenceBatch)
    assert batch.insertion_index.dtype is tf.int64
    with pytest.raises(KeyError, match="state was not declared: other"):
        batch.state("other")
    with pytest.raises(KeyError, match="state was not declared: other"):
        batch.save_state("other", 1.0)
    with tf.Session() as session:
        session.run(saver.prefetch_op)
        assert session.run(saver.barrier.ready_size()) == 1
        session.run(saver.close(cancel_pending_enqueues=True))
        with pytest.raises((tf.errors.OutOfRangeError, tf.errors.CancelledError)):
            session.run(batch.key)


@pytest.mark.parametrize(
    ("sequences", "error", "message"),
    [
        ([], ValueError, "must be a dict"),
        ({}, ValueError, "at least one"),
        ({"x": tf.SparseTensorValue([[0]], [1.0], [3])}, TypeError, "sparse"),
    ],
)
def test_what_is_no_sequence(sequences: Any, error: Any, message: str) -> None:
    if sequences:
        sequences = {"x": tf.SparseTensor([[0]], [1.0], [3])}
    with pytest.raises(error, match=message):
        training.SequenceQueueingStateSaver(2, 3, 3, "k", sequences, {}, {})


def test_shapes_must_be_known() -> None:
    with pytest.raises(ValueError, match="must be known"):
        training.SequenceQueueingStateSaver(
            2, 3, 3, "k", {"x": tf.zeros([3])}, {}, {"s": tf.placeholder(tf.float32, [None])}
        )
