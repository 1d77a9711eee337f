"""`ARModel`: the values of an output window, from those of the input window before it.

The state is what the last input window had: times, scaled values and exogenous features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.timeseries.feature_keys import State, TrainEvalFeatures
from flowstone.contrib.timeseries.math_utils import normal_log_prob
from flowstone.contrib.timeseries.model import ModelOutputs, TimeSeriesModel
from flowstone.contrib.timeseries.prediction_models import FlatPredictionModel

__all__ = ["ARModel"]

TIMES, VALUES, STATE_TUPLE = TrainEvalFeatures.TIMES, TrainEvalFeatures.VALUES, State.STATE_TUPLE


class ARModel(TimeSeriesModel):
    """An autoregressive model.

    Args:
        periodicities: one or more periods of time; where a time is within each is a feature.
        input_window_size: the values that a prediction sees; 0 for none.
        output_window_size: the values that are predicted at once.
        num_features: of the values.
        prediction_model_factory: called with `num_features`, `input_window_size` and `output_window_size`,
            it makes the prediction model: see `prediction_models`.
        num_time_buckets: the parts of a period that have a feature each.
        loss: NORMAL_LIKELIHOOD_LOSS or SQUARED_LOSS.
        exogenous_feature_columns: feature columns of what is known beside the values.

    Raises ValueError unless the windows, periods and buckets are positive, and one of input window and
    periods is there.
    """

    SQUARED_LOSS = "squared_loss"
    NORMAL_LIKELIHOOD_LOSS = "normal_likelihood_loss"

    def __init__(
        self,
        periodicities: Any,
        input_window_size: int,
        output_window_size: int,
        num_features: int,
        prediction_model_factory: Callable[..., Any] = FlatPredictionModel,
        num_time_buckets: int = 10,
        loss: str = NORMAL_LIKELIHOOD_LOSS,
        exogenous_feature_columns: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(num_features, exogenous_feature_columns)
        self._model_factory, self.loss = prediction_model_factory, loss
        self.input_window_size, self.output_window_size = input_window_size, output_window_size
        self.window_size = input_window_size + output_window_size
        self.exogenous_size = self._get_exogenous_embedding_shape()[-1]
        self._buckets = int(num_time_buckets)
        periods = periodicities if isinstance(periodicities, list | tuple) else [periodicities]
        self._periodicities = [int(period) for period in periods if period is not None]
        self._prediction_model: Any = None
        assert self._buckets > 0, f"num_time_buckets={num_time_buckets} is not positive"
        assert all(period > 0 for period in self._periodicities), (
            f"a period of {periodicities} is not positive"
        )
        assert output_window_size > 0, f"output_window_size={output_window_size} is not positive"
        assert self._periodicities or input_window_size, "an input window or a period is needed"

    def initialize_graph(self, input_statistics: Any = None) -> None:
        """Makes the prediction model."""
        super().initialize_graph(input_statistics=input_statistics)
        self._prediction_model = self._model_factory(
            num_features=self.num_features,
            input_window_size=self.input_window_size,
            output_window_size=self.output_window_size,
        )

    def get_start_state(self) -> tuple[Any, Any, Any]:
        """Zeros: the times [input window], values [input window, features] and exogenous features."""
        size = self.input_window_size
        return (
            tf.zeros([size], dtype=tf.int64),
            tf.zeros([size, self.num_features], dtype=self.dtype),
            tf.zeros([size, self.exogenous_size], dtype=self.dtype),
        )

    def random_model_parameters(self, seed: int | None = None) -> None:
        """Nothing: the model does not generate series."""

    def generate(
        self, number_of_series: int, series_length: int, model_parameters: Any = None, seed: int | None = None
    ) -> None:
        """Nothing: the model does not generate series."""

    def prediction_ops(self, times: Any, values: Any, exogenous_regressors: Any) -> dict[str, Any]:
        """The prediction model's outputs [batch, output window, features] by name.

        Args:
            times: [batch, input window + output window].
            values: scaled, [batch, input window, features]; not used without an input window.
            exogenous_regressors: [batch, input window + output window, size], or None.
        """
        times.shape.assert_is_compatible_with([None, self.window_size])
        batch, split = tf.shape(times)[0], (self.input_window_size, self.output_window_size)
        known, asked = [], []
        if self._periodicities:
            size = self._buckets * len(self._periodicities)
            features = tf.reshape(self._compute_time_features(times)[1], [batch, self.window_size, size])
            before, after = tf.split(features, split, axis=1)
            known, asked = [before], [after]
        if self.input_window_size:
            values.shape.assert_is_compatible_with([None, self.input_window_size, self.num_features])
            seen = values[:, : self.input_window_size]
            known.append(tf.reshape(seen, [batch, self.input_window_size, self.num_features]))
        if self.exogenous_size:
            exogenous_regressors.shape.assert_is_compatible_with(
                [None, self.window_size, self.exogenous_size]
            )
            before, after = tf.split(exogenous_regressors, split, axis=1)
            known.append(before)
            asked.append(after)
        first = tf.concat(known, axis=2)
        second = (
            tf.concat(asked, axis=2) if asked else tf.zeros([batch, self.output_window_size, 0], self.dtype)
        )
        by_time = self._buckets * len(self._periodicities) + self.exogenous_size
        count = tf.dimension_value(times.shape[0])
        of_values = self.num_features if self.input_window_size else 0
        first.set_shape([count, self.input_window_size, by_time + of_values])
        second.set_shape([count, self.output_window_size, by_time])
        with tf.variable_scope("model/", use_resource=True):
            predictions: dict[str, Any] = self._prediction_model(first, second)
        for prediction in predictions.values():
            prediction.set_shape([None, self.output_window_size, self.num_features])
        return predictions

    def loss_op(self, targets: Any, prediction_ops: dict[str, Any]) -> Any:
        """The mean loss of scaled values [batch, output window, features]."""
        mean = prediction_ops["mean"]
        if self.loss == self.NORMAL_LIKELIHOOD_LOSS:
            sigma = tf.sqrt(tf.maximum(prediction_ops["covariance"], 1e-5))
            total = -tf.reduce_sum(normal_log_prob(targets, sigma, mean))
        else:
            assert self.loss == self.SQUARED_LOSS, self.loss
            total = tf.reduce_sum(tf.squared_difference(mean, targets))
        return total / tf.cast(tf.reduce_prod(tf.shape(targets)), total.dtype)

    def _process_exogenous_features(self, times: Any, features: Any) -> Any:
        embedded = super()._process_exogenous_features(times=times, features=features)
        return tf.zeros(tf.concat([tf.shape(times), [0]], axis=0)) if embedded is None else embedded

    def _exogenous(self, times: Any, features: dict[str, Any]) -> Any:
        others = {name: value for name, value in features.items() if name not in (TIMES, VALUES, STATE_TUPLE)}
        return self._process_exogenous_features(times, others)

    def predict(self, features: dict[str, Any]) -> dict[str, Any]:
        """The mean and the variance [batch, times, features], one output window after another.

        What was predicted is in the input window of what comes next.
        """
        if not self._graph_initialized:
            self.initialize_graph()
        size, step = self.input_window_size, self.output_window_size
        times = tf.cast(tf.convert_to_tensor(features[TIMES]), tf.int32)
        exogenous = self._exogenous(times, features)
        same = tf.assert_equal(tf.shape(times)[1], tf.shape(exogenous)[1])
        with tf.control_dependencies([same]):
            exogenous = tf.identity(exogenous)
        count = tf.shape(times)[1]
        windows = (count + step - 1) // step
        padding = windows * step - count
        state_times, state_values, state_exogenous = features[STATE_TUPLE]
        values = tf.convert_to_tensor(state_values, dtype=self.dtype)
        state_times = tf.cast(tf.convert_to_tensor(state_times), tf.int32)
        long_enough = tf.assert_greater_equal(tf.shape(values)[1], size)
        as_many = tf.assert_equal(tf.shape(values)[1], tf.shape(state_times)[1])
        with tf.control_dependencies([long_enough, as_many]):
            values = _last(values, size)
        # All that is known beforehand, from the first time of the first input window on.
        all_times = tf.concat([_last(state_times, size), tf.pad(times, [[0, 0], [0, padding]])], 1)
        state_exogenous = _last(tf.convert_to_tensor(state_exogenous, dtype=self.dtype), size)
        all_exogenous = tf.concat(
            [state_exogenous, tf.pad(exogenous, [[0, 0], [0, padding], [0, 0]])], axis=1
        )
        values.set_shape([None, size, self.num_features])
        all_exogenous.set_shape([None, None, self.exogenous_size])

        def predict_window(number: Any, values: Any, arrays: list[Any]) -> tuple[Any, Any, list[Any]]:
            start = number * step
            window = all_times[:, start : start + self.window_size]
            window.set_shape([None, self.window_size])
            known = all_exogenous[:, start : start + self.window_size]
            known.set_shape([None, self.window_size, self.exogenous_size])
            found = self.prediction_ops(window, values, known)
            following = _last(tf.concat([values, found["mean"]], axis=1), size)
            following.set_shape(values.shape)
            outputs = [found[name] for name in names]
            written = [array.write(number, output) for array, output in zip(arrays, outputs, strict=True)]
            return number + 1, following, written

        names = ["mean"] if self.loss == self.SQUARED_LOSS else ["mean", "covariance"]
        arrays = [tf.TensorArray(self.dtype, size=windows) for _ in names]
        arguments = [0, values, arrays]
        arrays = tf.while_loop(lambda number, *_: number < windows, predict_window, arguments)[2]
        mean, *covariance = (self._joined(array, tf.shape(times)[0])[:, :count] for array in arrays)
        variance = covariance[0] if covariance else tf.ones_like(mean)
        return {"mean": self._scale_back_data(mean), "covariance": self._scale_back_variance(variance)}

    def _joined(self, array: Any, batch: Any) -> Any:
        """The outputs [batch, times, features] of consecutive windows."""
        return tf.reshape(tf.transpose(array.stack(), [1, 0, 2, 3]), tf.stack([batch, -1, self.num_features]))

    def _process_window(self, features: dict[str, Any], mode: str, exogenous_regressors: Any) -> ModelOutputs:
        """The outputs for one window of the model's size."""
        times = tf.cast(features[TIMES], tf.int64)
        observed = tf.cast(features[VALUES], self.dtype)
        exogenous = tf.cast(exogenous_regressors, self.dtype)
        if not times.shape.is_compatible_with([None, self.window_size]):
            raise ValueError(
                f"a model of input_window_size={self.input_window_size} and output_window_size="
                f"{self.output_window_size} takes the feature {TIMES!r} [batch, {self.window_size}], got"
                f" {times.shape}: give RandomWindowInputFn window_size={self.window_size}"
            )
        size = self.input_window_size
        values = self._scale_data(observed)
        found = self.prediction_ops(times, values[:, :size] if size else None, exogenous)
        targets = values[:, size:]
        targets.shape.assert_is_compatible_with(found["mean"].shape)
        mean = self._scale_back_data(found["mean"])
        if mode == tf.estimator.ModeKeys.EVAL and self.loss == self.SQUARED_LOSS:
            loss = self.loss_op(self._scale_back_data(targets), {"mean": mean})
        else:
            loss = self.loss_op(targets, found)
        predictions = {
            "mean": mean,
            "covariance": self._scale_back_variance(found["covariance"]),
            "observed": observed[:, -self.output_window_size :],
        }
        state = tuple(_last(each, size) for each in (times, values, exogenous))
        return ModelOutputs(loss, state, predictions, times[:, -self.output_window_size :])

    def get_batch_loss(self, features: dict[str, Any], mode: str, state: Any) -> ModelOutputs:
        """The outputs for a window of the model's size in training; in evaluation for as many as there are.

        Raises ValueError for a window of another size, in evaluation for one that is too short.
        """
        features = {name: tf.convert_to_tensor(value) for name, value in features.items()}
        exogenous = self._exogenous(features[TIMES], features)
        if mode == tf.estimator.ModeKeys.TRAIN:
            return self._process_window(features, mode, exogenous)
        if mode != tf.estimator.ModeKeys.EVAL:
            raise ValueError(f"the mode is train or eval, got {mode!r}")
        return self._process_windows(features, mode, exogenous, state)

    def _process_windows(
        self, features: dict[str, Any], mode: str, exogenous: Any, state: Any
    ) -> ModelOutputs:
        """The outputs for all output windows of a series, the last of which ends where the series does."""
        times = features[TIMES]
        times.shape.assert_has_rank(2)
        size, step = self.input_window_size, self.output_window_size
        length = tf.dimension_value(times.shape[1])
        if length is not None and length < self.window_size:
            raise ValueError(
                f"evaluation of a model of input_window_size={size} and output_window_size={step} takes at"
                f" least {self.window_size} times, got {TIMES!r} of the shape {times.shape}"
            )
        windows = (tf.shape(times)[1] - size) // step
        predicted = windows * step
        cropped = {name: value[:, -(predicted + size) :] for name, value in features.items()}

        def process(number: Any, arrays: list[Any]) -> tuple[Any, list[Any]]:
            start = number * step
            window = {name: value[:, start : start + self.window_size] for name, value in cropped.items()}
            # TensorFlow counts these from the start of the series, though the windows are cut to end with it.
            known = exogenous[:, start : start + self.window_size]
            found = self._process_window(window, mode, known)
            outputs = [found.loss, found.predictions["mean"], found.predictions["covariance"]]
            written = [array.write(number, output) for array, output in zip(arrays, outputs, strict=True)]
            return number + 1, written

        arrays = [tf.TensorArray(self.dtype, size=windows) for _ in range(3)]
        losses, means, variances = tf.while_loop(lambda number, _: number < windows, process, [0, arrays])[1]
        values = tf.cast(cropped[VALUES], self.dtype)
        if size:
            seen = [tf.cast(times, tf.int64), self._scale_data(values), exogenous]
            state = tuple(
                _last(tf.concat([old, new], axis=1), size) for old, new in zip(state, seen, strict=True)
            )
            for part, shape in zip(state, ([], [self.num_features], [self.exogenous_size]), strict=True):
                part.set_shape([None, size, *shape])
        batch = tf.shape(times)[0]
        predictions = {
            "mean": self._joined(means, batch),
            "covariance": self._joined(variances, batch),
            "observed": values[:, -predicted:],
        }
        return ModelOutputs(tf.reduce_mean(losses.stack(), axis=0), state, predictions, times[:, -predicted:])

    def _compute_time_features(self, time: Any) -> tuple[Any, Any]:
        """How many periods came before `time` [batch, window], and where it is within each.

        The latter is [batch, window, periods, buckets]: in a time's bucket, how far within it the time is.
        """
        periods = tf.constant(
            self._periodicities, shape=[1, 1, len(self._periodicities), 1], dtype=time.dtype
        )
        time = tf.reshape(time, [tf.shape(time)[0], -1, 1, 1])
        place = tf.cast(time % periods, self.dtype) * self._buckets / tf.cast(periods, self.dtype)
        buckets = tf.reshape(tf.range(self._buckets, dtype=self.dtype), [1, 1, 1, self._buckets])
        within = tf.nn.relu(place - buckets)
        return time / self._periodicities, tf.where_v2(within < 1.0, within, tf.zeros_like(within))


def _last(tensor: Any, count: int) -> Any:
    """The last `count` along the second dimension; all of it for none, as it is without an input window."""
    return tensor[:, -count:] if count else tensor[:, :0]
