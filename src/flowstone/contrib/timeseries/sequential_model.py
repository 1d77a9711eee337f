"""`SequentialTimeSeriesModel`: a model that takes a series one time after another.

At every time the state is moved on to that time (imputation) and takes what is known of it (exogenous input).
It predicts the value, and in training and evaluation takes the value that was observed (filtering).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.framework import nest
from flowstone.contrib.timeseries.feature_keys import PredictionFeatures, State, TrainEvalFeatures
from flowstone.contrib.timeseries.model import ModelOutputs, TimeSeriesModel

__all__ = ["SequentialTimeSeriesModel"]

TIMES, VALUES, STATE_TUPLE = TrainEvalFeatures.TIMES, TrainEvalFeatures.VALUES, State.STATE_TUPLE


class SequentialTimeSeriesModel(TimeSeriesModel):
    """A model of steps: a subclass defines them, and `get_start_state`.

    Args:
        train_output_names: what `_filtering_step` gives beside "loss".
        predict_output_names: what `_prediction_step` gives.
        num_features: of the values.
        normalize_features: whether values are scaled by the statistics; `_scale_back_predictions` undoes it.
        dtype: of the model's numbers.
        exogenous_feature_columns: feature columns of what is known beside the values.
        exogenous_update_condition: a function of `times` [batch] and `features`, which says for which series
            [batch] the exogenous input changes the state; None for all.
        static_unrolling_window_size_threshold: windows up to this size become steps in the graph, not a loop.
    """

    def __init__(
        self,
        train_output_names: Sequence[str],
        predict_output_names: Sequence[str],
        num_features: int,
        normalize_features: bool = False,
        dtype: Any = tf.float32,
        exogenous_feature_columns: Sequence[Any] | None = None,
        exogenous_update_condition: Callable[..., Any] | None = None,
        static_unrolling_window_size_threshold: int | None = None,
    ) -> None:
        super().__init__(num_features, exogenous_feature_columns, dtype)
        self._exogenous_update_condition = exogenous_update_condition
        self._train_output_names = list(train_output_names)
        self._predict_output_names = list(predict_output_names)
        self._normalize_features = normalize_features
        self._static_unrolling_window_size_threshold = static_unrolling_window_size_threshold

    def _scale_back_predictions(self, predictions: dict[str, Any]) -> dict[str, Any]:
        """Predictions, on the scale of the values that were given."""
        raise NotImplementedError(
            f"{type(self).__name__} normalizes features, but does not define _scale_back_predictions"
        )

    @abstractmethod
    def _filtering_step(self, current_times: Any, current_values: Any, state: Any, predictions: Any) -> Any:
        """The state after the observed values [batch, features]; outputs by name, with "loss" [batch]."""

    @abstractmethod
    def _prediction_step(self, current_times: Any, state: Any) -> Any:
        """The state after the prediction, and the predictions by name."""

    @abstractmethod
    def _imputation_step(self, current_times: Any, state: Any) -> Any:
        """The state moved on to `current_times` [batch]."""

    @abstractmethod
    def _exogenous_input_step(self, current_times: Any, current_exogenous_regressors: Any, state: Any) -> Any:
        """The state after what is known [batch, size] of `current_times`."""

    def _loss_additions(self, times: Any, values: Any, mode: str) -> Any:
        """What the loss has beside the mean over all observations."""
        return 0.0

    def _window_initializer(self, times: Any, state: Any) -> None:
        """Called before the steps over a window."""

    def get_batch_loss(self, features: dict[str, Any], mode: str, state: Any) -> ModelOutputs:
        """The outputs for a batch that begins in `state`."""
        loss, states, outputs = self.per_step_batch_loss(features, mode, state)
        outputs["observed"] = features[VALUES]
        return ModelOutputs(
            loss, nest.map_structure(lambda each: each[:, -1], states), outputs, features[TIMES]
        )

    def per_step_batch_loss(
        self, features: dict[str, Any], mode: str, state: Any
    ) -> tuple[Any, Any, dict[str, Any]]:
        """The mean loss, the states after each time [batch, window, …] and the outputs [batch, window, …]."""
        self._check_graph_initialized()
        times = tf.cast(features[TIMES], tf.int64)
        values = tf.cast(features[VALUES], self.dtype)
        if self._normalize_features:
            values = self._scale_data(values)
        regressors = self._process_exogenous_features(times, _without(features, TIMES, VALUES))

        def step(step_number: Any, current_times: Any, state: Any) -> Any:
            observed = values[:, step_number, :]
            state = self._apply_exogenous_update(current_times, step_number, state, features, regressors)
            predicted, predictions = self._prediction_step(current_times=current_times, state=state)
            return self._filtering_step(
                current_times=current_times, current_values=observed, state=predicted, predictions=predictions
            )

        states, outputs = self._state_update_loop(times, state, step, ["loss", *self._train_output_names])
        losses = outputs.pop("loss")
        losses.set_shape(times.shape)
        loss = tf.reduce_sum(losses) / tf.cast(tf.reduce_prod(tf.shape(times)), self.dtype)
        loss += self._loss_additions(times, values, mode)
        if self._normalize_features:
            outputs = self._scale_back_predictions(outputs)
        return loss, states, outputs

    def predict(self, features: dict[str, Any]) -> dict[str, Any]:
        """Predictions [batch, window, …] by name, for the times and from the state of `features`."""
        times = tf.convert_to_tensor(features[PredictionFeatures.TIMES], tf.int64)
        regressors = self._process_exogenous_features(times, _without(features, TIMES, STATE_TUPLE))

        def step(step_number: Any, current_times: Any, state: Any) -> Any:
            state = self._apply_exogenous_update(current_times, step_number, state, features, regressors)
            return self._prediction_step(current_times=current_times, state=state)

        predictions = self._state_update_loop(times, features[STATE_TUPLE], step, self._predict_output_names)[
            1
        ]
        return self._scale_back_predictions(predictions) if self._normalize_features else predictions

    def _apply_exogenous_update(
        self,
        current_times: Any,
        step_number: Any,
        state: Any,
        raw_features: Mapping[str, Any],
        regressors: Any,
    ) -> Any:
        if regressors is None:
            return state
        updated = self._exogenous_input_step(
            current_times=current_times,
            current_exogenous_regressors=regressors[:, step_number, :],
            state=state,
        )
        condition = self._exogenous_update_condition
        if condition is None:
            return updated
        now = {
            name: value[:, step_number]
            for name, value in _without(raw_features, STATE_TUPLE, TIMES, VALUES).items()
        }
        changes = condition(times=current_times, features=now)
        return nest.map_structure(lambda new, old: tf.where(changes, new, old), updated, state)

    def _state_update_loop(
        self, times: Any, state: Any, state_update_fn: Callable[..., Any], outputs: Sequence[str]
    ) -> tuple[Any, dict[str, Any]]:
        """The states and outputs [batch, window, …] of `state_update_fn`, called time after time."""
        times = tf.convert_to_tensor(times, tf.int64)
        self._window_initializer(times, state)

        def step(number: Any, state: Any, reuse: bool = False) -> tuple[Any, list[Any]]:
            with tf.variable_scope("state_update_step", reuse=reuse):
                now = times[:, number]
                imputed = self._imputation_step(current_times=now, state=state)
                new, results = state_update_fn(step_number=number, current_times=now, state=imputed)
            if set(results) != set(outputs):
                raise AssertionError(f"a step gave the outputs {sorted(results)}, not {sorted(outputs)}")
            for value, old in zip(nest.flatten(new), nest.flatten(state), strict=True):
                value.set_shape(old.shape)
            packed = nest.pack_sequence_as(state, nest.flatten(new))
            return packed, [*nest.flatten(new), *(results[name] for name in outputs)]

        window = tf.dimension_value(times.shape[1])
        most = self._static_unrolling_window_size_threshold
        if most is not None and window is not None and window <= most:
            found = _unrolled(step, state, window)
        else:
            dtypes = [*(value.dtype for value in nest.flatten(state)), *(self.dtype for _ in outputs)]
            found = _looped(step, state, tf.shape(times)[1], dtypes)
        count = len(nest.flatten(state))
        states = nest.pack_sequence_as(state, found[:count])
        return states, dict(zip(outputs, found[count:], strict=True))


def _without(features: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in features.items() if name not in names}


def _unrolled(step: Callable[..., Any], state: Any, window: int) -> list[Any]:
    rows = []
    for number in range(window):
        state, row = step(tf.constant(number, tf.int32), state, reuse=number > 0)
        rows.append(row)
    return [tf.stack(column, axis=1) for column in zip(*rows, strict=True)]


def _looped(step: Callable[..., Any], state: Any, window: Any, dtypes: Sequence[Any]) -> list[Any]:
    def body(number: Any, state: Any, arrays: Sequence[Any]) -> Any:
        state, row = step(number, state)
        written = [array.write(number, value) for array, value in zip(arrays, row, strict=True)]
        return number + 1, state, written

    arrays = [tf.TensorArray(dtype, size=window) for dtype in dtypes]
    arguments = [tf.zeros([], tf.int32), state, arrays]
    found = tf.while_loop(lambda number, *_: number < window, body, arguments)[2]
    return [_batch_first(array.stack()) for array in found]


def _batch_first(stacked: Any) -> Any:
    return tf.transpose(stacked, tf.concat([[1, 0], tf.range(2, tf.rank(stacked))], 0))
