"""Input functions: windows of a series for training, the whole of it for evaluation, times for prediction."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.framework import nest
from flowstone.contrib.timeseries.feature_keys import FilteringResults, PredictionFeatures, TrainEvalFeatures
from flowstone.contrib.timeseries.model_utils import canonicalize_times_or_steps_from_output
from flowstone.contrib.timeseries.readers import TimeSeriesReader

__all__ = ["RandomWindowInputFn", "TimeSeriesInputFn", "WholeDatasetInputFn", "predict_continuation_input_fn"]


def predict_continuation_input_fn(
    evaluation: Mapping[str, Any],
    steps: int | None = None,
    times: Any = None,
    exogenous_features: Mapping[str, Any] | None = None,
) -> Callable[[], tuple[dict[str, Any], None]]:
    """The input function of a prediction that goes on where an evaluation ended.

    Args:
        evaluation: what `Estimator.evaluate` gave.
        steps: how many times follow the last one of the evaluation.
        times: the times themselves, [times] or [batch, times].
        exogenous_features: arrays [batch, times, …] by name.

    Raises ValueError unless one of `steps` and `times` is given, or for times that are not later.
    """
    features = {
        PredictionFeatures.STATE_TUPLE: evaluation[FilteringResults.STATE_TUPLE],
        PredictionFeatures.TIMES: canonicalize_times_or_steps_from_output(times, steps, evaluation),
        **(exogenous_features or {}),
    }

    def input_fn() -> tuple[dict[str, Any], None]:
        once = {
            name: nest.map_structure(lambda value: tf.train.limit_epochs(value, num_epochs=1), values)
            for name, values in features.items()
        }
        return once, None

    return input_fn


class TimeSeriesInputFn:
    """An input function: calling it makes the tensors of a batch."""

    @abstractmethod
    def create_batch(self) -> tuple[dict[str, Any], None]:
        """Features [batch, window, …] by name, and None for labels."""

    def __call__(self) -> tuple[dict[str, Any], None]:
        return self.create_batch()


class WholeDatasetInputFn(TimeSeriesInputFn):
    """A batch of one window, which is the whole series."""

    def __init__(self, time_series_reader: TimeSeriesReader) -> None:
        self._reader = time_series_reader

    def create_batch(self) -> tuple[dict[str, Any], None]:
        """Features [1, series length, …] by name, and None."""
        return {name: value[tf.newaxis, ...] for name, value in self._reader.read_full().items()}, None


class RandomWindowInputFn(TimeSeriesInputFn):
    """Batches of windows that begin anywhere in the series.

    Consecutive records are cut into windows, one after another; with jitter, a record is sometimes skipped
    before the cut, so that windows begin at other places in later rounds. The windows are shuffled.

    Args:
        time_series_reader: the series.
        window_size: records in a window.
        batch_size: windows in a batch.
        queue_capacity_multiplier: the batches that the queues hold.
        shuffle_min_after_dequeue_multiplier: the batches that are left for the next choice.
        discard_out_of_order: whether a window in which time goes back, at the seam of two rounds, is left
            out; its records are sorted by time otherwise.
        discard_consecutive_batches_limit: after so many batches left out in a row the input ends with
            OutOfRangeError.
        jitter: whether records are skipped.
        num_threads: of the queues; None for one a window of a batch.
        shuffle_seed: of the shuffle.

    Raises ValueError if the series is shorter than a window.
    """

    def __init__(
        self,
        time_series_reader: TimeSeriesReader,
        window_size: int,
        batch_size: int,
        queue_capacity_multiplier: int = 1000,
        shuffle_min_after_dequeue_multiplier: int = 2,
        discard_out_of_order: bool = True,
        discard_consecutive_batches_limit: int = 1000,
        jitter: bool = True,
        num_threads: int | None = 2,
        shuffle_seed: int | None = None,
    ) -> None:
        time_series_reader.check_dataset_size(minimum_dataset_size=window_size)
        self._reader = time_series_reader
        self._window_size, self._batch_size = window_size, batch_size
        self._queue_capacity_multiplier = queue_capacity_multiplier
        self._shuffle_min_after_dequeue_multiplier = shuffle_min_after_dequeue_multiplier
        self._discard_out_of_order = discard_out_of_order
        self._discard_limit = discard_consecutive_batches_limit
        self._jitter = jitter
        self._num_threads = batch_size if num_threads is None else num_threads
        self._shuffle_seed = shuffle_seed

    def create_batch(self) -> tuple[dict[str, Any], None]:
        """Features [batch size, window size, …] by name, and None."""
        windows = self._cut(self._reader.read())
        keep: Any = True
        if self._discard_out_of_order:
            keep = self._in_order(windows[TrainEvalFeatures.TIMES])
        else:
            windows = self._sorted(windows)
        batch = tf.train.maybe_shuffle_batch(
            windows,
            batch_size=self._batch_size,
            capacity=self._queue_capacity_multiplier * self._batch_size,
            min_after_dequeue=self._shuffle_min_after_dequeue_multiplier * self._batch_size,
            keep_input=keep,
            num_threads=self._num_threads,
            seed=self._shuffle_seed,
            enqueue_many=True,
        )
        return batch, None

    def _cut(self, records: dict[str, Any]) -> dict[str, Any]:
        """Windows [batch size, window size, …] of records that follow one another."""
        skipped = tf.random_uniform(shape=[], maxval=2, dtype=tf.int32) if self._jitter else 0
        rows = tf.train.batch(
            records,
            batch_size=self._window_size * self._batch_size + skipped,
            num_threads=self._num_threads,
            capacity=self._queue_capacity_multiplier * self._batch_size * self._window_size,
            enqueue_many=True,
        )
        windows = {}
        size = [self._batch_size, self._window_size]
        for name, value in rows.items():
            kept = value[skipped:] if self._jitter else value
            windows[name] = tf.reshape(kept, tf.concat([size, tf.shape(kept)[1:]], axis=0))
            windows[name].set_shape(tf.TensorShape(size).concatenate(value.shape[1:]))
        return windows

    def _in_order(self, times: Any) -> Any:
        """Which windows are in order [batch size]; ends the input after too many batches without one."""
        in_order = tf.reduce_all(times[:, 1:] >= times[:, :-1], axis=1)
        without = tf.Variable(
            tf.constant(0, tf.int64),
            name="discarded_windows_limiter",
            trainable=False,
            collections=[tf.GraphKeys.LOCAL_VARIABLES],
        )

        def count() -> Any:
            return tf.cond(
                tf.reduce_any(in_order),
                lambda: tf.assign(without, 0),
                lambda: without.count_up_to(self._discard_limit),
            )

        counted = tf.cond(tf.is_variable_initialized(without), count, lambda: tf.constant(0, tf.int64))
        with tf.control_dependencies([counted]):
            return tf.identity(in_order)

    def _sorted(self, windows: dict[str, Any]) -> dict[str, Any]:
        """The windows with each one's records in the order of time."""
        times = windows[TrainEvalFeatures.TIMES]
        latest_first = tf.nn.top_k(times, k=tf.shape(times)[-1], sorted=True)[1]
        order = tf.reverse(latest_first, axis=[1])
        rows = tf.tile(tf.range(self._batch_size)[:, tf.newaxis], [1, self._window_size])
        where = tf.stack([rows, order], axis=-1)
        return {name: tf.gather_nd(value, where) for name, value in windows.items()}
