"""Moments, start and length of a series, estimated from its mini-batches while a model trains."""

from __future__ import annotations

from typing import Any, NamedTuple

import flowstone as tf
from flowstone.contrib.timeseries.feature_keys import TrainEvalFeatures

__all__ = ["InputStatistics", "InputStatisticsFromMiniBatch", "Moments"]


class Moments(NamedTuple):
    """A mean and a variance [features]."""

    mean: Any
    variance: Any


class InputStatistics(NamedTuple):
    """What is known of a series.

    `series_start_moments`: of the values at its start. `overall_feature_moments`: of all values.
    `start_time`: its first time. `total_observation_count`: about how many observations it has.
    """

    series_start_moments: Moments
    overall_feature_moments: Moments
    start_time: Any
    total_observation_count: Any


class _Sums(NamedTuple):
    """What is summed over the batches so far."""

    max_time_seen: Any
    chunk_count: Any
    inter_observation_duration_sum: Any
    example_count: Any
    overall_feature_sum: Any
    overall_feature_sum_of_squares: Any


def _variable(name: str, shape: Any = (), dtype: Any = tf.int64, initializer: Any = None) -> Any:
    if isinstance(initializer, int):
        return tf.get_variable(name, dtype=dtype, initializer=initializer, trainable=False)
    return tf.get_variable(name, shape, dtype, initializer or tf.zeros_initializer(), trainable=False)


class InputStatisticsFromMiniBatch:
    """Statistics in variables, which every training batch brings up to date.

    Args:
        num_features: of the values.
        dtype: of the statistics.
        starting_variance_window_size: how many values of the earliest window the moments of the start are of.
    """

    def __init__(self, num_features: int, dtype: Any, starting_variance_window_size: int = 16) -> None:
        self._num_features, self._dtype = num_features, dtype
        self._starting_variance_window_size = starting_variance_window_size

    def initialize_graph(self, features: dict[str, Any], update_statistics: bool = True) -> InputStatistics:
        """The statistics: after an update by `features`, if they have times and values and it is wanted."""
        with tf.variable_scope("input_statistics", use_resource=True):
            statistics = self._statistics()
        with tf.variable_scope("input_statistics_auxiliary", use_resource=True):
            sums = self._sums()
        times, values = features.get(TrainEvalFeatures.TIMES), features.get(TrainEvalFeatures.VALUES)
        if not update_statistics or times is None or values is None:
            return statistics
        with tf.control_dependencies([self._update(statistics, sums, times, tf.cast(values, self._dtype))]):
            start, overall, start_time, count = statistics
            return InputStatistics(
                Moments(*map(tf.identity, start)),
                Moments(*map(tf.identity, overall)),
                tf.minimum(tf.identity(start_time), tf.reduce_min(times)),
                tf.identity(count),
            )

    def _statistics(self) -> InputStatistics:
        shape, dtype, ones = [self._num_features], self._dtype, tf.ones_initializer()
        return InputStatistics(
            Moments(
                _variable("series_start_mean", shape, dtype),
                _variable("series_start_variance", shape, dtype, ones),
            ),
            Moments(
                _variable("overall_feature_mean", shape, dtype),
                _variable("overall_feature_var", shape, dtype, ones),
            ),
            _variable("start_time", initializer=tf.int64.max),
            _variable("total_observation_count", initializer=ones),
        )

    def _sums(self) -> _Sums:
        shape, dtype = [self._num_features], self._dtype
        return _Sums(
            _variable("max_time_seen", initializer=tf.int64.min),
            _variable("chunk_count"),
            _variable("inter_observation_duration_sum", (), dtype),
            _variable("example_count"),
            _variable("overall_feature_sum", shape, dtype),
            _variable("overall_feature_sum_of_squares", shape, dtype),
        )

    def _update(self, statistics: InputStatistics, sums: _Sums, times: Any, values: Any) -> Any:
        dtype = self._dtype
        span = tf.cast(tf.reduce_max(times, axis=1) - tf.reduce_min(times, axis=1), dtype)
        latest = tf.assign(sums.max_time_seen, tf.maximum(sums.max_time_seen, tf.reduce_max(times)))
        added = tf.group(
            latest,
            tf.assign_add(sums.chunk_count, tf.shape(times, out_type=tf.int64)[0]),
            tf.assign_add(
                sums.inter_observation_duration_sum,
                tf.reduce_sum(span / tf.cast(tf.shape(times)[1] - 1, dtype)),
            ),
            tf.assign_add(sums.example_count, tf.size(times, out_type=tf.int64)),
            tf.assign_add(sums.overall_feature_sum, tf.reduce_sum(values, axis=[0, 1])),
            tf.assign_add(sums.overall_feature_sum_of_squares, tf.reduce_sum(values**2, axis=[0, 1])),
        )
        with tf.control_dependencies([added]):
            count = tf.cast(sums.example_count, dtype)
            mean = sums.overall_feature_sum / count
            variance = count / (count - 1.0) * (sums.overall_feature_sum_of_squares / count - mean**2)
            started = self._update_start(statistics, times, values)
            with tf.control_dependencies([started]):
                start_time = tf.assign(
                    statistics.start_time, tf.minimum(statistics.start_time, tf.reduce_min(times))
                )
            gap = sums.inter_observation_duration_sum / tf.cast(sums.chunk_count, dtype)
            observations = tf.cast(tf.round(tf.cast(latest - start_time + 1, dtype) / gap), tf.int64)
            return tf.group(
                tf.assign(statistics.overall_feature_moments.mean, mean),
                tf.assign(statistics.overall_feature_moments.variance, variance),
                started,
                start_time,
                tf.assign(statistics.total_observation_count, observations),
            )

    def _update_start(self, statistics: InputStatistics, times: Any, values: Any) -> Any:
        """The moments of the earliest window's first values, if none was as early before."""
        earliest = tf.cast(tf.argmin(times[:, 0]), tf.int32)

        def update() -> Any:
            moments = tf.nn.moments(values[earliest, : self._starting_variance_window_size], axes=[0])
            start = statistics.series_start_moments
            return tf.group(tf.assign(start.mean, moments[0]), tf.assign(start.variance, moments[1]))

        return tf.cond(tf.less_equal(times[earliest, 0], statistics.start_time), update, tf.no_op)
