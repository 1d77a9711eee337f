"""Where the state comes from in which a window begins: the model's start, the caller or a table."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import flowstone as tf
from flowstone.contrib.framework import nest
from flowstone.contrib.timeseries.feature_keys import State, TrainEvalFeatures
from flowstone.contrib.timeseries.math_utils import replicate_state
from flowstone.contrib.timeseries.model import ModelOutputs
from flowstone.contrib.timeseries.state_tables import TupleOfTensorsLookup

__all__ = ["ChainingStateManager", "FilteringOnlyStateManager", "PassthroughStateManager"]


class PassthroughStateManager:
    """Every window begins in the model's start state."""

    def __init__(self) -> None:
        self._input_statistics: Any = None
        self._graph_initialized = False

    def initialize_graph(self, model: Any, input_statistics: Any = None) -> None:
        """Makes what the default graph needs of the manager."""
        self._graph_initialized = True
        self._input_statistics = input_statistics

    def define_loss(self, model: Any, features: dict[str, Any], mode: str) -> ModelOutputs:
        """The model's outputs for `features`; raises ValueError if they have a state."""
        if State.STATE_TUPLE in features:
            raise ValueError(f"this model cannot begin in a state that is given ({State.STATE_TUPLE!r})")
        outputs: ModelOutputs = model.define_loss(features, mode)
        return outputs


class _OverridableStateManager(PassthroughStateManager):
    """A window begins in the state that its features have, if any."""

    @abstractmethod
    def _define_loss_with_saved_state(self, model: Any, features: dict[str, Any], mode: str) -> ModelOutputs:
        """The outputs for features without a state."""

    def define_loss(self, model: Any, features: dict[str, Any], mode: str) -> ModelOutputs:
        """The model's outputs for `features`; raises ValueError if they have a state in training."""
        if State.STATE_TUPLE not in features:
            return self._define_loss_with_saved_state(model, features, mode)
        if mode == tf.estimator.ModeKeys.TRAIN:
            raise ValueError(f"training cannot begin in a state that is given ({State.STATE_TUPLE!r})")
        outputs: ModelOutputs = model.get_batch_loss(
            features=features, mode=mode, state=features.pop(State.STATE_TUPLE)
        )
        return outputs


class FilteringOnlyStateManager(_OverridableStateManager):
    """A window begins in the model's start state; when the features have a state, in that."""

    def _define_loss_with_saved_state(self, model: Any, features: dict[str, Any], mode: str) -> ModelOutputs:
        outputs: ModelOutputs = model.define_loss(features, mode)
        return outputs


class ChainingStateManager(_OverridableStateManager):
    """A window begins in the state in which an earlier window left the model.

    Time is cut into chunks; a table has the last state before every chunk, and a window looks up that of
    the chunk its first time is in.

    Args:
        state_saving_interval: the times of a chunk.
        checkpoint_state: whether checkpoints have the table.
    """

    def __init__(self, state_saving_interval: int = 20, checkpoint_state: bool = False) -> None:
        super().__init__()
        self._state_saving_interval = state_saving_interval
        self._checkpoint_state = checkpoint_state
        self._start_state: Any = None
        self._cached_states: Any = None

    def initialize_graph(self, model: Any, input_statistics: Any = None) -> None:
        """Makes the table."""
        super().initialize_graph(model, input_statistics)
        self._start_state = model.get_start_state()
        self._cached_states = TupleOfTensorsLookup(
            key_dtype=tf.int64,
            default_values=self._start_state,
            empty_key=-1,
            deleted_key=-2,
            name="cached_states",
            checkpoint=self._checkpoint_state,
        )

    def _define_loss_with_saved_state(self, model: Any, features: dict[str, Any], mode: str) -> ModelOutputs:
        if not self._graph_initialized:
            raise ValueError(
                "initialize_graph() of ChainingStateManager must be called before its graph is made"
            )
        times = features[TrainEvalFeatures.TIMES]
        loss, states, predictions = model.per_step_batch_loss(
            features=features, mode=mode, state=self._states_before(times[:, 0])
        )
        following = tf.concat([times[:, 1:], times[:, -1:] + 1], axis=1)
        chunks = tf.maximum(self._chunk(following), self._chunk(times) + 1)
        with tf.control_dependencies([self._cached_states.insert(keys=chunks, values=states)]):
            loss = tf.identity(loss)
        predictions["observed"] = features[TrainEvalFeatures.VALUES]
        last = nest.map_structure(lambda each: each[:, -1][-1][tf.newaxis], states)
        return ModelOutputs(loss, last, predictions, times)

    def _chunk(self, time: Any) -> Any:
        return time // self._state_saving_interval

    def _states_before(self, times: Any) -> Any:
        """The states in which windows of these first times [batch] begin."""
        chunks = self._chunk(times)
        known = self._cached_states.lookup(tf.cast(chunks, tf.int64))
        first = 0 if self._input_statistics is None else self._input_statistics.start_time
        is_first = tf.equal(chunks, self._chunk(first))
        start = replicate_state(self._start_state, tf.shape(times)[0])
        return nest.map_structure(lambda at_start, later: tf.where(is_first, at_start, later), start, known)
