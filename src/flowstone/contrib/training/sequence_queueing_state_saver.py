"""Batches of segments of long sequences, whose state goes on from segment to segment.

A sequence is cut into segments of `num_unroll` steps, which wait in a barrier under the keys
``00000_of_00003:key``, ``00001_of_00003:key`` and so on. A segment is complete, and can be in a batch, when
its state is there: the initial state for the first one, for the others what the training saved for the
segment before (`NextQueuedSequenceBatch.save_state`). The last segment's next key is ``STOP:key``.

This is truncated back-propagation through time over sequences of any length.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flowstone as tf
from flowstone.ops.queues.barriers import Barrier

__all__ = ["NextQueuedSequenceBatch", "SequenceQueueingStateSaver", "batch_sequences_with_states"]

# The barrier's first components; sequences, context and states follow, each in the order of their names.
_LENGTH, _TOTAL_LENGTH, _NEXT_KEY, _SEQUENCE, _SEQUENCE_COUNT = range(5)
_FIXED = (tf.int32, tf.int32, tf.string, tf.int32, tf.int32)

_ENDS = (tf.errors.OutOfRangeError, tf.errors.CancelledError)


class NextQueuedSequenceBatch:
    """A batch of segments, as `SequenceQueueingStateSaver.next_batch` gives it.

    It is a state saver, as `tf.nn.static_state_saving_rnn` takes one.
    """

    def __init__(self, state_saver: SequenceQueueingStateSaver) -> None:
        self._state_saver = state_saver

    @property
    def total_length(self) -> Any:
        """The lengths of the whole sequences, int32 [batch]."""
        return self._state_saver._received.values[_TOTAL_LENGTH]

    @property
    def length(self) -> Any:
        """The lengths of the segments, without what fills them up, int32 [batch]."""
        return self._state_saver._received.values[_LENGTH]

    @property
    def batch_size(self) -> Any:
        """How many segments there are, an int32 scalar."""
        return tf.size(self.key)

    @property
    def insertion_index(self) -> Any:
        """Numbers that grow with the time at which the sequences came, int64 [batch]."""
        return self._state_saver._received.indices

    @property
    def key(self) -> Any:
        """The segments' keys, string [batch]."""
        return self._state_saver._received.keys

    @property
    def next_key(self) -> Any:
        """The keys of the segments after these, string [batch]."""
        return self._state_saver._received.values[_NEXT_KEY]

    @property
    def sequence(self) -> Any:
        """The segments' numbers within their sequences, from 0, int32 [batch]."""
        return self._state_saver._received.values[_SEQUENCE]

    @property
    def sequence_count(self) -> Any:
        """How many segments the sequences have, int32 [batch]."""
        return self._state_saver._received.values[_SEQUENCE_COUNT]

    @property
    def sequences(self) -> dict[str, Any]:
        """The parts of the sequences, by name: [batch, num_unroll, ...]."""
        return self._state_saver._values_of("sequences")

    @property
    def context(self) -> dict[str, Any]:
        """What belongs to the whole sequences, by name: [batch, ...]."""
        return self._state_saver._values_of("context")

    def state(self, state_name: str) -> Any:
        """The state before the segments, [batch, ...]. KeyError for a name that was not declared."""
        states = self._state_saver._states
        if state_name not in states:
            raise KeyError(f"state was not declared: {state_name}")
        return states[state_name]

    def save_state(self, state_name: str, value: Any, name: str | None = None) -> Any:
        """An operation that keeps `value` [batch, ...] as the state before the segments that follow these.

        Each state must be saved in each step. KeyError for a name that was not declared.
        """
        if state_name not in self._state_saver._states:
            raise KeyError(f"state was not declared: {state_name}")
        with tf.name_scope(name, "InputQueueingStateSaver_SaveState", [value]):
            follows = tf.where(self.sequence < self.sequence_count - 1)[:, 0]
            return self._state_saver.barrier.insert_many(
                self._state_saver._component("states", state_name),
                tf.gather(self.next_key, follows),
                tf.gather(value, follows),
                name=f"BarrierInsertState_{state_name}",
            )


class SequenceQueueingStateSaver:
    """Cuts sequences into segments and batches these, with their states.

    Args:
        batch_size: how many segments a batch has.
        num_unroll: how many steps a segment has.
        input_length: the length of the next sequence, an int32 scalar.
        input_key: its key, a string scalar; no two sequences that are under way may have the same.
        input_sequences: its parts by name, [steps, ...], where the steps are a multiple of `num_unroll`.
        input_context: what belongs to the whole of it, by name.
        initial_states: the states before its first segment, by name.
        capacity: the most sequences that are under way; None for any number.
        allow_small_batch: whether the last batches may be smaller.

    A thread has to run `prefetch_op`, which takes one sequence. Raises ValueError for what is no dict, or
    shapes that are not known, TypeError for sparse tensors: `tf.sparse_tensor_to_dense` makes them dense.
    """

    def __init__(
        self,
        batch_size: int,
        num_unroll: int,
        input_length: Any,
        input_key: Any,
        input_sequences: Mapping[str, Any],
        input_context: Mapping[str, Any],
        initial_states: Mapping[str, Any],
        capacity: int | None = None,
        allow_small_batch: bool = False,
        name: str | None = None,
    ) -> None:
        self._batch_size, self._num_unroll = batch_size, num_unroll
        with tf.name_scope(name, "InputQueueingStateSaver") as scope:
            self._name = scope
            self._length = tf.convert_to_tensor(input_length, tf.int32, name="length")
            self._key = tf.convert_to_tensor(input_key, tf.string, name="key")
            self._inputs = {
                "sequences": _tensors(input_sequences, "input_sequences"),
                "context": _tensors(input_context, "input_context"),
                "states": _tensors(initial_states, "initial_states"),
            }
            if not self._inputs["sequences"]:
                raise ValueError("input_sequences must have at least one sequence")
            self._capacity_queue = tf.FIFOQueue(
                -1 if capacity is None else capacity, [tf.int32], [[]], name="fifo_queue"
            )
            self._barrier = self._create_barrier()
            self._prefetch_op = self._create_prefetch_op()
            self._received = self._barrier.take_many(
                batch_size, allow_small_batch=allow_small_batch, name="BarrierTakeMany"
            )
            self._states = self._read_states()

    @property
    def name(self) -> str:
        """The name of its operations."""
        return self._name

    @property
    def barrier(self) -> Any:
        """Where the segments wait."""
        return self._barrier

    @property
    def batch_size(self) -> int:
        """How many segments a batch has."""
        return self._batch_size

    @property
    def num_unroll(self) -> int:
        """How many steps a segment has."""
        return self._num_unroll

    @property
    def prefetch_op(self) -> Any:
        """The operation that takes the next sequence."""
        return self._prefetch_op

    @property
    def next_batch(self) -> NextQueuedSequenceBatch:
        """The next batch of segments; of one step, however often it is asked for."""
        return NextQueuedSequenceBatch(self)

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Any:
        """An operation after which no sequence is taken; with `cancel_pending_enqueues` none goes on."""
        with tf.name_scope(name, "SQSSClose"):
            return tf.group(
                self._barrier.close(cancel_pending_enqueues, name="BarrierClose"),
                self._capacity_queue.close(cancel_pending_enqueues, name="FIFOClose"),
            )

    # ---- the barrier

    def _names(self) -> list[tuple[str, str]]:
        """(kind, name) of the components after the fixed ones."""
        return [(kind, name) for kind, tensors in self._inputs.items() for name in sorted(tensors)]

    def _component(self, kind: str, name: str) -> int:
        return len(_FIXED) + self._names().index((kind, name))

    def _values_of(self, kind: str) -> dict[str, Any]:
        return {
            name: self._received.values[self._component(kind, name)] for name in sorted(self._inputs[kind])
        }

    def _create_barrier(self) -> Any:
        types, shapes = list(_FIXED), [tf.TensorShape([])] * len(_FIXED)
        for kind, name in self._names():
            tensor = self._inputs[kind][name]
            shape = tensor.get_shape()
            if kind == "sequences":
                shape = tf.TensorShape([self._num_unroll]).concatenate(shape[1:])
            if not shape.is_fully_defined():
                raise ValueError(f"The shape of {name} must be known: {tensor.get_shape()}")
            types.append(tensor.dtype.base_dtype)
            shapes.append(shape)
        return Barrier(types, shapes, name="barrier")

    def _create_prefetch_op(self) -> Any:
        """Inserts the segments, waits for room, then inserts the initial states, which lets them begin."""
        first = next(iter(self._inputs["sequences"].values()))
        with tf.control_dependencies([tf.assert_equal(tf.shape(first)[0] % self._num_unroll, 0)]):
            count = tf.shape(first)[0] // self._num_unroll
        numbers = tf.range(count)
        digits = tf.as_string(tf.range(count + 1), width=5, fill="0")
        ending = tf.string_join(["_of_", digits[count], ":", self._key])
        keys = tf.string_join([digits[:count], tf.fill([count], ending)])
        next_keys = tf.concat([keys[1:], [tf.string_join(["STOP:", self._key])]], 0)
        left = tf.maximum(0, self._length - numbers * self._num_unroll)
        fixed = {
            _LENGTH: tf.minimum(self._num_unroll, left),
            _TOTAL_LENGTH: tf.fill([count], self._length),
            _NEXT_KEY: next_keys,
            _SEQUENCE: numbers,
            _SEQUENCE_COUNT: tf.fill([count], count),
        }
        with tf.control_dependencies([self._capacity_queue.enqueue(0)]):
            inserts = [self._barrier.insert_many(index, keys, value) for index, value in fixed.items()]
        with tf.control_dependencies(inserts[:1]):
            inserts += [self._insert_input(kind, name, keys, count) for kind, name in self._names()]
        return tf.group(*inserts)

    def _insert_input(self, kind: str, name: str, keys: Any, count: Any) -> Any:
        value = self._inputs[kind][name]
        if kind == "states":
            keys, value = keys[:1], tf.expand_dims(value, 0)
        elif kind == "context":
            rank = value.get_shape().ndims
            value = tf.tile(tf.expand_dims(value, 0), tf.concat([[count], tf.ones([rank], tf.int32)], 0))
        else:
            value = tf.reshape(value, [-1, self._num_unroll, *value.get_shape().as_list()[1:]])
        return self._barrier.insert_many(self._component(kind, name), keys, value)

    def _read_states(self) -> dict[str, Any]:
        """The batch's states; reading them makes room for as many sequences as end with it."""
        ends = tf.equal(self._received.values[_SEQUENCE] + 1, self._received.values[_SEQUENCE_COUNT])
        with tf.control_dependencies(
            [self._capacity_queue.dequeue_many(tf.reduce_sum(tf.cast(ends, tf.int32)))]
        ):
            return {name: tf.identity(value) for name, value in self._values_of("states").items()}


def _tensors(values: Mapping[str, Any], what: str) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        raise ValueError(f"{what} must be a dict")
    for name, value in values.items():
        if isinstance(value, tf.SparseTensor):
            raise TypeError(f"{what}[{name!r}] is sparse: make it dense by tf.sparse_tensor_to_dense")
    return {name: tf.convert_to_tensor(value, name=name.replace(":", "_")) for name, value in values.items()}


def _padding(sequences: Mapping[str, Any], num_unroll: int) -> dict[str, Any]:
    """The sequences with zeros, or empty strings, at their end up to a multiple of `num_unroll` steps."""
    padded = {}
    for name, value in sequences.items():
        steps, rank = tf.shape(value)[0], value.get_shape().ndims
        paddings = tf.concat([[[0, -steps % num_unroll]], tf.zeros([rank - 1, 2], tf.int32)], 0)
        padded[name] = tf.pad(value, paddings)
        padded[name].set_shape(tf.TensorShape([None]).concatenate(value.get_shape()[1:]))
    return padded


def batch_sequences_with_states(
    input_key: Any,
    input_sequences: Mapping[str, Any],
    input_context: Mapping[str, Any],
    input_length: Any,
    initial_states: Mapping[str, Any],
    num_unroll: int,
    batch_size: int,
    num_threads: int = 3,
    capacity: int = 1000,
    allow_small_batch: bool = True,
    pad: bool = True,
    make_keys_unique: bool = False,
    make_keys_unique_seed: int | None = None,
    name: str | None = None,
) -> NextQueuedSequenceBatch:
    """Batches of segments of sequences, which threads of a queue runner take from the input.

    Args:
        num_threads: how many threads.
        pad: whether sequences are filled up to a multiple of `num_unroll` steps; else they must be such.
        make_keys_unique: whether a random number, with `make_keys_unique_seed`, is added to each key.

    The other arguments, and the errors, are those of `SequenceQueueingStateSaver`.
    """
    with tf.name_scope(name, "batch_sequences_with_states"):
        sequences: Mapping[str, Any] = _tensors(input_sequences, "input_sequences")
        if pad:
            sequences = _padding(sequences, num_unroll)
        if make_keys_unique:
            number = tf.random_uniform([], 0, tf.int64.max, tf.int64, seed=make_keys_unique_seed)
            input_key = tf.string_join([input_key, tf.as_string(number)], "_")
        saver = SequenceQueueingStateSaver(
            batch_size, num_unroll, input_length, input_key, sequences, input_context, initial_states,
            capacity, allow_small_batch,
        )  # fmt: skip
        _start(saver, num_threads)
        return saver.next_batch


def _start(saver: SequenceQueueingStateSaver, num_threads: int) -> None:
    """Has threads take the sequences, and a summary say how many batches are ready."""
    operations = [saver.prefetch_op] * num_threads
    tf.train.add_queue_runner(tf.train.QueueRunner(saver, operations, queue_closed_exception_types=_ENDS))
    ready = tf.cast(saver.barrier.ready_size(), tf.float32) / saver.batch_size
    tf.summary.scalar("ready_segment_batches", ready)
