"""Helpers of `BasicDecoder`: what is sampled from a step's outputs, and what the next step's inputs are."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.contrib.seq2seq.decoder import _transpose_batch_time
from flowstone.contrib.seq2seq.samplers import categorical_sample
from flowstone.framework.tensors import nest

__all__ = [
    "CustomHelper",
    "GreedyEmbeddingHelper",
    "Helper",
    "InferenceHelper",
    "SampleEmbeddingHelper",
    "TrainingHelper",
]


class Helper(abc.ABC):
    """The base of helpers."""

    @property
    def batch_size(self) -> Any:
        """The number of sequences, a scalar int32."""
        raise NotImplementedError("batch_size has not been implemented")

    @property
    def sample_ids_shape(self) -> Any:
        """The shape of a sample, without the batch."""
        raise NotImplementedError("sample_ids_shape has not been implemented")

    @property
    def sample_ids_dtype(self) -> Any:
        """The type of samples."""
        raise NotImplementedError("sample_ids_dtype has not been implemented")

    @abc.abstractmethod
    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Which sequences [batch] have finished before the first step, and its inputs."""

    @abc.abstractmethod
    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Samples from a step's outputs."""

    @abc.abstractmethod
    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """Which sequences have finished, the next inputs, and the next state."""


class _IdHelper(Helper):
    """A helper whose samples are int32 scalars."""

    _batch_size: Any

    @property
    def batch_size(self) -> Any:
        """The number of sequences, a scalar int32."""
        return self._batch_size

    @property
    def sample_ids_shape(self) -> Any:
        """The shape of a sample: a scalar."""
        return tf.TensorShape([])

    @property
    def sample_ids_dtype(self) -> Any:
        """int32."""
        return tf.int32


class CustomHelper(Helper):
    """A helper of three functions.

    Args:
        initialize_fn: function without arguments that returns (finished, first inputs).
        sample_fn: function of (time, outputs, state) that returns the samples.
        next_inputs_fn: function of (time, outputs, state, sample_ids) that returns (finished, next inputs,
            next state).
        sample_ids_shape, sample_ids_dtype: of samples; default: int32 scalars.
    """

    def __init__(
        self,
        initialize_fn: Callable[..., Any],
        sample_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., Any],
        sample_ids_shape: Any = None,
        sample_ids_dtype: Any = None,
    ) -> None:
        self._initialize_fn, self._sample_fn, self._next_inputs_fn = initialize_fn, sample_fn, next_inputs_fn
        self._batch_size: Any = None
        self._sample_ids_shape = tf.TensorShape(sample_ids_shape or [])
        self._sample_ids_dtype = sample_ids_dtype or tf.int32

    @property
    def batch_size(self) -> Any:
        """That of the first finished flags. ValueError before `initialize`."""
        if self._batch_size is None:
            raise ValueError("batch_size accessed before initialize was called")
        return self._batch_size

    @property
    def sample_ids_shape(self) -> Any:
        """The shape of a sample."""
        return self._sample_ids_shape

    @property
    def sample_ids_dtype(self) -> Any:
        """The type of samples."""
        return self._sample_ids_dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """What `initialize_fn` says."""
        with tf.name_scope(name, "CustomHelperInitialize"):
            finished, inputs = self._initialize_fn()
            if self._batch_size is None:
                self._batch_size = tf.size(finished)
        return finished, inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """What `sample_fn` says."""
        with tf.name_scope(name, "CustomHelperSample", (time, outputs, state)):
            return self._sample_fn(time=time, outputs=outputs, state=state)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """What `next_inputs_fn` says."""
        with tf.name_scope(name, "CustomHelperNextInputs", (time, outputs, state)):
            found: tuple[Any, Any, Any] = self._next_inputs_fn(
                time=time, outputs=outputs, state=state, sample_ids=sample_ids
            )
            return found


def _unstack_ta(inputs: Any) -> Any:
    """A TensorArray with the parts of `inputs` along its first dimension."""
    array = tf.TensorArray(dtype=inputs.dtype, size=tf.shape(inputs)[0], element_shape=inputs.get_shape()[1:])
    return array.unstack(inputs)


class TrainingHelper(_IdHelper):
    """The inputs are given; samples are the arguments of the outputs' greatest values.

    Args:
        inputs: [batch, time, …] ([time, batch, …] if `time_major`), or a structure of them.
        sequence_length: [batch] int32.
        time_major: see inputs.

    ValueError if `sequence_length` is no vector.
    """

    def __init__(
        self, inputs: Any, sequence_length: Any, time_major: bool = False, name: str | None = None
    ) -> None:
        with tf.name_scope(name, "TrainingHelper", [inputs, sequence_length]):
            inputs = tf.convert_to_tensor(inputs, name="inputs") if not nest.is_nested(inputs) else inputs
            self._inputs = inputs
            if not time_major:
                inputs = nest.map_structure(_transpose_batch_time, inputs)
            self._input_tas = nest.map_structure(_unstack_ta, inputs)
            self._sequence_length = tf.convert_to_tensor(sequence_length, name="sequence_length")
            if self._sequence_length.get_shape().ndims != 1:
                raise ValueError(
                    "Expected sequence_length to be a vector, but received shape: "
                    f"{self._sequence_length.get_shape()}"
                )
            self._zero_inputs = nest.map_structure(lambda each: tf.zeros_like(each[0, :]), inputs)
            self._batch_size = tf.size(sequence_length)

    @property
    def inputs(self) -> Any:
        """The inputs as given."""
        return self._inputs

    @property
    def sequence_length(self) -> Any:
        """The lengths, [batch]."""
        return self._sequence_length

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Sequences of length 0 have finished; inputs are the first step's."""
        with tf.name_scope(name, "TrainingHelperInitialize"):
            finished = tf.equal(0, self._sequence_length)
            return finished, self._inputs_at(0, finished)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None, **_: Any) -> Any:
        """The arguments of the greatest outputs, [batch] int32."""
        with tf.name_scope(name, "TrainingHelperSample", [time, outputs]):
            return tf.cast(tf.argmax(outputs, axis=-1), tf.int32)

    def next_inputs(
        self,
        time: Any,
        outputs: Any,
        state: Any,
        sample_ids: Any = None,
        name: str | None = None,
        **_: Any,
    ) -> tuple[Any, Any, Any]:
        """The inputs of the next time, or zeros after the last."""
        with tf.name_scope(name, "TrainingHelperNextInputs", [time, outputs, state]):
            following = time + 1
            finished = following >= self._sequence_length
            return finished, self._inputs_at(following, finished), state

    def _inputs_at(self, time: Any, finished: Any) -> Any:
        return tf.cond(
            tf.reduce_all(finished),
            lambda: self._zero_inputs,
            lambda: nest.map_structure(lambda array: array.read(time), self._input_tas),
        )


def _embedding_function(embedding: Any) -> Callable[[Any], Any]:
    return embedding if callable(embedding) else lambda ids: tf.nn.embedding_lookup(embedding, ids)


class GreedyEmbeddingHelper(_IdHelper):
    """The next inputs are the embeddings of the most probable ids.

    Args:
        embedding: a function of ids, or the parameters of `tf.nn.embedding_lookup`.
        start_tokens: [batch] int32, the ids to begin with.
        end_token: an int32 scalar, the id that ends a sequence.

    ValueError for tokens of other ranks.
    """

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        self._embedding_fn = _embedding_function(embedding)
        self._start_tokens = tf.convert_to_tensor(start_tokens, dtype=tf.int32, name="start_tokens")
        self._end_token = tf.convert_to_tensor(end_token, dtype=tf.int32, name="end_token")
        if self._start_tokens.get_shape().ndims != 1:
            raise ValueError("start_tokens must be a vector")
        self._batch_size = tf.size(start_tokens)
        if self._end_token.get_shape().ndims != 0:
            raise ValueError("end_token must be a scalar")
        self._start_inputs = self._embedding_fn(self._start_tokens)

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """No sequence has finished; inputs are the embeddings of the start tokens."""
        return tf.tile([False], [self._batch_size]), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """The arguments of the greatest outputs, [batch] int32. TypeError if `outputs` is no tensor."""
        _check_is_tensor(outputs)
        return tf.argmax(outputs, axis=-1, output_type=tf.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """The embeddings of `sample_ids`; those that are the end token finish their sequences."""
        finished = tf.equal(sample_ids, self._end_token)
        inputs = tf.cond(
            tf.reduce_all(finished), lambda: self._start_inputs, lambda: self._embedding_fn(sample_ids)
        )
        return finished, inputs, state


def _check_is_tensor(outputs: Any) -> None:
    if not isinstance(outputs, tf.Tensor):
        raise TypeError(f"Expected outputs to be a single Tensor, got: {type(outputs)}")


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """The next inputs are the embeddings of ids drawn by the probabilities softmax(outputs / temperature).

    Args:
        embedding, start_tokens, end_token: see `GreedyEmbeddingHelper`.
        softmax_temperature: a positive scalar; default: 1.
        seed: of the choices.
    """

    def __init__(
        self,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        softmax_temperature: Any = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._softmax_temperature, self._seed = softmax_temperature, seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Ids drawn by their probabilities, [batch] int32."""
        _check_is_tensor(outputs)
        logits = outputs if self._softmax_temperature is None else outputs / self._softmax_temperature
        return categorical_sample(logits, self._seed)


class InferenceHelper(Helper):
    """A helper for inference with functions of the samples.

    Args:
        sample_fn: function of the outputs that returns samples.
        sample_shape: of a sample, without the batch, or a list of integers. sample_dtype: its type.
        start_inputs: the first inputs, [batch, …].
        end_fn: function of samples that says which sequences have finished, [batch].
        next_inputs_fn: function of samples that returns the next inputs; default: the samples themselves.
    """

    def __init__(
        self,
        sample_fn: Callable[..., Any],
        sample_shape: Any,
        sample_dtype: Any,
        start_inputs: Any,
        end_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., Any] | None = None,
    ) -> None:
        self._sample_fn, self._end_fn, self._next_inputs_fn = sample_fn, end_fn, next_inputs_fn
        self._sample_shape, self._sample_dtype = tf.TensorShape(sample_shape), sample_dtype
        self._start_inputs = tf.convert_to_tensor(start_inputs, name="start_inputs")
        self._batch_size = tf.shape(start_inputs)[0]

    @property
    def batch_size(self) -> Any:
        """That of the first inputs."""
        return self._batch_size

    @property
    def sample_ids_shape(self) -> Any:
        """The shape of a sample."""
        return self._sample_shape

    @property
    def sample_ids_dtype(self) -> Any:
        """The type of samples."""
        return self._sample_dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """No sequence has finished; inputs are the start inputs."""
        return tf.tile([False], [self._batch_size]), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """What `sample_fn` says."""
        return self._sample_fn(outputs)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """What `next_inputs_fn` says, or the samples."""
        inputs = sample_ids if self._next_inputs_fn is None else self._next_inputs_fn(sample_ids)
        return self._end_fn(sample_ids), inputs, state
