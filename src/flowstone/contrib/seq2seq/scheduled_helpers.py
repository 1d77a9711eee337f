"""Helpers for training that now and then feed what the model emitted (Bengio et al. 2015, arXiv
1506.03099)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.contrib.seq2seq.decoder import _transpose_batch_time
from flowstone.contrib.seq2seq.helper import TrainingHelper, _embedding_function, _unstack_ta
from flowstone.contrib.seq2seq.samplers import bernoulli_sample, categorical_sample
from flowstone.framework.tensors import nest

__all__ = ["ScheduledEmbeddingTrainingHelper", "ScheduledOutputTrainingHelper"]


def _probability(value: Any) -> Any:
    probability = tf.convert_to_tensor(value, name="sampling_probability")
    if probability.get_shape().ndims not in (0, 1):
        raise ValueError(
            f"sampling_probability must be either a scalar or a vector. saw shape: {probability.get_shape()}"
        )
    return probability


def _where_known(is_sampled: Any, is_given: Any, sampled: Callable[[Any], Any], base: Any) -> Any:
    """`sampled` of the places where `is_sampled`, scattered over `base` where `is_given`."""
    chosen = tf.cast(tf.where(is_sampled), tf.int32)
    others = tf.cast(tf.where(is_given), tf.int32)
    size = tf.shape(base)
    return tf.scatter_nd(chosen, sampled(chosen), size) + tf.scatter_nd(
        others, tf.gather_nd(base, others), size
    )


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """The given inputs, or with a probability the embedding of an id drawn from the outputs.

    Args:
        inputs, sequence_length, time_major: see `TrainingHelper`.
        embedding: a function of ids, or the parameters of `tf.nn.embedding_lookup`.
        sampling_probability: a scalar or [batch] float32.
        seed: of the ids. scheduling_seed: of the choices whether to sample.

    Samples are ids, or -1 where nothing was drawn. ValueError for a probability of another rank.
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        embedding: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        scheduling_seed: int | None = None,
        name: str | None = None,
    ) -> None:
        with tf.name_scope(name, "ScheduledEmbeddingSamplingWrapper", [embedding, sampling_probability]):
            self._embedding_fn = _embedding_function(embedding)
            self._sampling_probability = _probability(sampling_probability)
            self._seed, self._scheduling_seed = seed, scheduling_seed
            super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None, **_: Any) -> Any:
        """[batch] int32: ids drawn from the outputs as logits, or -1."""
        with tf.name_scope(name, "ScheduledEmbeddingTrainingHelperSample", [time, outputs, state]):
            probability, seed = self._sampling_probability, self._scheduling_seed
            chosen = bernoulli_sample(probability, tf.bool, self.batch_size, seed)
            drawn = categorical_sample(outputs, self._seed)
            return tf.where(chosen, drawn, tf.fill([self.batch_size], -1))

    def next_inputs(
        self,
        time: Any,
        outputs: Any,
        state: Any,
        sample_ids: Any = None,
        name: str | None = None,
        **_: Any,
    ) -> tuple[Any, Any, Any]:
        """The given inputs, with embeddings where something was drawn."""
        with tf.name_scope(name, "ScheduledEmbeddingTrainingHelperNextInputs", [time, outputs, state]):
            finished, base, state = super().next_inputs(time, outputs, state, sample_ids)

            def embedded(places: Any) -> Any:
                return self._embedding_fn(tf.gather_nd(sample_ids, places))

            inputs = tf.cond(
                tf.reduce_all(finished),
                lambda: base,
                lambda: _where_known(sample_ids > -1, sample_ids <= -1, embedded, base),
            )
            return finished, inputs, state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """The given inputs, or with a probability the outputs of the step before.

    Args:
        inputs, sequence_length, time_major: see `TrainingHelper`.
        sampling_probability: a scalar or [batch] float32.
        seed: of the choices.
        next_inputs_fn: function of the outputs that returns inputs; default: the outputs themselves.
        auxiliary_inputs: concatenated to all inputs, sampled or not.
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        next_inputs_fn: Any = None,
        auxiliary_inputs: Any = None,
        name: str | None = None,
    ) -> None:
        with tf.name_scope(
            name, "ScheduledOutputTrainingHelper", [inputs, auxiliary_inputs, sampling_probability]
        ):
            self._sampling_probability = _probability(sampling_probability)
            self._auxiliary_arrays: Any = None
            joined = inputs
            if auxiliary_inputs is not None:
                auxiliary = tf.convert_to_tensor(auxiliary_inputs)
                joined = tf.concat([tf.convert_to_tensor(inputs), auxiliary], -1)
                auxiliary = auxiliary if time_major else _transpose_batch_time(auxiliary)
                self._auxiliary_arrays = _unstack_ta(auxiliary)
            self._seed, self._next_inputs_fn = seed, next_inputs_fn
            super().__init__(joined, sequence_length, time_major, name)

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """See `TrainingHelper`."""
        return super().initialize(name=name)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None, **_: Any) -> Any:
        """[batch] int32: 1 where the outputs are the next inputs, else 0."""
        with tf.name_scope(name, "ScheduledOutputTrainingHelperSample", [time, outputs, state]):
            return bernoulli_sample(self._sampling_probability, tf.int32, self.batch_size, self._seed)

    def next_inputs(
        self,
        time: Any,
        outputs: Any,
        state: Any,
        sample_ids: Any = None,
        name: str | None = None,
        **_: Any,
    ) -> tuple[Any, Any, Any]:
        """The given inputs, with outputs where chosen."""
        with tf.name_scope(name, "ScheduledOutputTrainingHelperNextInputs", [time, outputs, state]):
            finished, base, state = super().next_inputs(time, outputs, state, sample_ids)
            is_sampled = tf.cast(sample_ids, tf.bool)

            def of_outputs(places: Any) -> Any:
                chosen = tf.gather_nd(outputs, places)
                if self._next_inputs_fn is not None:
                    chosen = self._next_inputs_fn(chosen)
                return self._with_auxiliary(chosen, time + 1, places)

            def chosen_inputs() -> Any:
                if self._next_inputs_fn is None and self._auxiliary_arrays is None:
                    return tf.where(is_sampled, outputs, base)
                return _where_known(is_sampled, tf.logical_not(is_sampled), of_outputs, base)

            skips = tf.logical_or(tf.reduce_all(finished), tf.logical_not(tf.reduce_any(is_sampled)))
            inputs = tf.cond(skips, lambda: base, chosen_inputs)
            return finished, inputs, state

    def _with_auxiliary(self, chosen: Any, time: Any, places: Any) -> Any:
        if self._auxiliary_arrays is None:
            return chosen
        auxiliary = nest.map_structure(lambda array: array.read(time), self._auxiliary_arrays)
        return tf.concat([chosen, tf.gather_nd(auxiliary, places)], -1)
