"""`TimeSeriesModel`: what a model of a series computes; scaling and exogenous features of all models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import flowstone as tf
from flowstone.contrib.timeseries.feature_keys import TrainEvalFeatures
from flowstone.contrib.timeseries.input_statistics import InputStatistics
from flowstone.contrib.timeseries.math_utils import replicate_state

__all__ = ["ModelOutputs", "TimeSeriesModel"]


class ModelOutputs(NamedTuple):
    """What a model computes of a batch.

    `loss`: a number. `end_state`: the state after the batch. `predictions`: tensors [batch, window, …] by
    name. `prediction_times`: their times [batch, window].
    """

    loss: Any
    end_state: Any
    predictions: Any
    prediction_times: Any


class TimeSeriesModel(ABC):
    """A model of a time series: a subclass defines `get_start_state`, `get_batch_loss` and `predict`.

    Args:
        num_features: of the values.
        exogenous_feature_columns: feature columns of what is known at every time beside the values.
        dtype: of the model's numbers.
    """

    def __init__(
        self,
        num_features: int,
        exogenous_feature_columns: Sequence[Any] | None = None,
        dtype: Any = tf.float32,
    ) -> None:
        self._exogenous_feature_columns = exogenous_feature_columns or []
        self.num_features, self.dtype = num_features, dtype
        self._input_statistics: InputStatistics | None = None
        self._graph_initialized = False
        self._stats_means: Any = None
        self._stats_sigmas: Any = None

    @property
    def exogenous_feature_columns(self) -> Sequence[Any]:
        """The feature columns of what is known beside the values."""
        return self._exogenous_feature_columns

    def generate(
        self, number_of_series: int, series_length: int, model_parameters: Any = None, seed: int | None = None
    ) -> Any:
        """Series drawn from the model, if it can; raises NotImplementedError."""
        raise NotImplementedError(f"{type(self).__name__} does not generate series")

    def initialize_graph(self, input_statistics: InputStatistics | None = None) -> None:
        """Makes what the default graph needs of the model; comes before everything else."""
        self._graph_initialized = True
        self._input_statistics = input_statistics
        if input_statistics:
            self._stats_means = input_statistics.overall_feature_moments.mean
            self._stats_sigmas = tf.sqrt(input_statistics.overall_feature_moments.variance)

    def _scale_data(self, data: Any) -> Any:
        return data if self._input_statistics is None else (data - self._stats_means) / self._stats_sigmas

    def _scale_variance(self, variance: Any) -> Any:
        statistics = self._input_statistics
        return variance if statistics is None else variance / statistics.overall_feature_moments.variance

    def _scale_back_data(self, data: Any) -> Any:
        return data if self._input_statistics is None else data * self._stats_sigmas + self._stats_means

    def _scale_back_variance(self, variance: Any) -> Any:
        statistics = self._input_statistics
        return variance if statistics is None else variance * statistics.overall_feature_moments.variance

    def _check_graph_initialized(self) -> None:
        if not self._graph_initialized:
            raise ValueError(
                f"initialize_graph() of {type(self).__name__} must be called before its graph is made"
            )

    def define_loss(self, features: dict[str, Any], mode: str) -> ModelOutputs:
        """The outputs for `features`, which every series begins in the start state."""
        self._check_graph_initialized()
        batch_size = tf.shape(features[TrainEvalFeatures.TIMES])[0]
        return self.get_batch_loss(features, mode, replicate_state(self.get_start_state(), batch_size))

    @abstractmethod
    def get_start_state(self) -> Any:
        """The state of one series before its first time: a structure of tensors without a batch dimension."""

    @abstractmethod
    def get_batch_loss(self, features: dict[str, Any], mode: str, state: Any) -> ModelOutputs:
        """The outputs for a batch that begins in `state`; `mode` is one of `tf.estimator.ModeKeys`."""

    @abstractmethod
    def predict(self, features: dict[str, Any]) -> dict[str, Any]:
        """Predictions by name for the times and from the state of `features`."""

    def _get_exogenous_embedding_shape(self) -> Sequence[int]:
        """The shape of what the exogenous columns make of one time."""
        columns = self._exogenous_feature_columns
        if not columns:
            return (0,)
        with tf.Graph().as_default():
            spec = tf.feature_column.make_parse_example_spec(columns)
            parsed = tf.parse_example(tf.placeholder(tf.string, [None]), spec)
            shape: list[int] = tf.feature_column.input_layer(parsed, columns).shape.as_list()
        return shape[1:]

    def _process_exogenous_features(self, times: Any, features: Mapping[str, Any]) -> Any:
        """[batch, window, size] of `features` [batch, window, …] by the columns; None without columns."""
        if not self._exogenous_feature_columns:
            return None
        rows = {}
        for name, tensor in features.items():
            if tensor.shape.ndims is None:
                raise ValueError(f"the rank of the feature {name!r} is not known")
            shape = tf.shape(tensor)
            row = tf.reshape(tensor, tf.concat([[shape[0] * shape[1]], shape[2:]], axis=0))
            rows[name] = row[:, tf.newaxis] if row.shape.ndims == 1 and row.dtype != tf.string else row
        embedded = tf.feature_column.input_layer(rows, self._exogenous_feature_columns, trainable=True)
        regressors = tf.reshape(embedded, tf.concat([tf.shape(times), tf.shape(embedded)[1:]], axis=0))
        regressors.set_shape(times.shape.concatenate(embedded.shape[1:]))
        return tf.cast(regressors, self.dtype)
