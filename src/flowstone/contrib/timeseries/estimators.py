"""The Estimators of time series: of any model, and of autoregressive ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import flowstone as tf
from flowstone.contrib.timeseries.ar_anomalies import AnomalyMixtureARModel
from flowstone.contrib.timeseries.ar_model import ARModel
from flowstone.contrib.timeseries.head import OneShotPredictionHead, TimeSeriesRegressionHead
from flowstone.contrib.timeseries.input_statistics import InputStatisticsFromMiniBatch
from flowstone.contrib.timeseries.prediction_models import FlatPredictionModel, LSTMPredictionModel
from flowstone.contrib.timeseries.serving_inputs import one_shot_receiver_fn, raw_receiver_fn
from flowstone.contrib.timeseries.state_management import FilteringOnlyStateManager, PassthroughStateManager
from flowstone.estimator.canned.optimizers import get_optimizer_instance

__all__ = ["ARRegressor", "LSTMAutoRegressor", "TimeSeriesRegressor"]


class TimeSeriesRegressor(tf.estimator.Estimator):  # type: ignore[misc]
    """An Estimator of a time series model.

    Args:
        model: a `TimeSeriesModel`.
        state_manager: where a window's first state comes from; default: the model's start state, and for an
            autoregressive model the features' own if they have one.
        optimizer: default: Adam of the rate 0.02.
        model_dir: the folder of checkpoints and logs.
        config: a RunConfig.
        head_type: `TimeSeriesRegressionHead` or `OneShotPredictionHead`.
    """

    def __init__(
        self,
        model: Any,
        state_manager: Any = None,
        optimizer: Any = None,
        model_dir: Any = None,
        config: Any = None,
        head_type: Callable[..., Any] = TimeSeriesRegressionHead,
    ) -> None:
        if state_manager is None:
            filters = isinstance(model, ARModel)
            state_manager = FilteringOnlyStateManager() if filters else PassthroughStateManager()
        self._model = model
        head = head_type(
            model=model,
            state_manager=state_manager,
            optimizer=optimizer or tf.train.AdamOptimizer(0.02),
            input_statistics_generator=InputStatisticsFromMiniBatch(
                dtype=model.dtype, num_features=model.num_features
            ),
        )
        super().__init__(model_fn=head.create_estimator_spec, model_dir=model_dir, config=config)

    def build_raw_serving_input_receiver_fn(
        self, default_batch_size: int | None = None, default_series_length: int | None = None
    ) -> Callable[[], Any]:
        """The input of an export that is asked with arrays: see `saved_model_utils`."""
        return raw_receiver_fn(self._model, default_batch_size, default_series_length)

    def build_one_shot_parsing_serving_input_receiver_fn(
        self,
        filtering_length: int,
        prediction_length: int,
        default_batch_size: int | None = None,
        values_input_dtype: Any = None,
        truncate_values: bool = False,
    ) -> Callable[[], Any]:
        """The input of an export of a `OneShotPredictionHead` that is asked with serialized examples.

        Args:
            filtering_length: how many values an example has.
            prediction_length: how many times come after them.
            default_batch_size: the number of examples; None for any.
            values_input_dtype: of the values in the examples; float32 if None.
            truncate_values: whether examples have as many values as times, and the last ones are not used.
        """
        return one_shot_receiver_fn(
            self._model,
            filtering_length,
            prediction_length,
            default_batch_size,
            values_input_dtype,
            truncate_values,
        )


class ARRegressor(TimeSeriesRegressor):
    """An Estimator of an `ARModel`.

    Args:
        periodicities, input_window_size, output_window_size, num_features, exogenous_feature_columns,
            num_time_buckets, loss: those of `ARModel`.
        hidden_layer_sizes: the units of hidden layers; None for none.
        anomaly_prior_probability: the probability of an anomaly; None for a model without them.
        anomaly_distribution: "gaussian", which is the default, or "cauchy".
        optimizer: default: Adagrad of the rate 0.1.
        model_dir: the folder of checkpoints and logs.
        config: a RunConfig.

    Raises ValueError for a distribution of anomalies without their probability, or with the squared loss.
    """

    def __init__(
        self,
        periodicities: Any,
        input_window_size: int,
        output_window_size: int,
        num_features: int,
        exogenous_feature_columns: Sequence[Any] | None = None,
        num_time_buckets: int = 10,
        loss: str = ARModel.NORMAL_LIKELIHOOD_LOSS,
        hidden_layer_sizes: Sequence[int] | None = None,
        anomaly_prior_probability: float | None = None,
        anomaly_distribution: str | None = None,
        optimizer: Any = None,
        model_dir: Any = None,
        config: Any = None,
    ) -> None:
        arguments = {
            "periodicities": periodicities,
            "input_window_size": input_window_size,
            "output_window_size": output_window_size,
            "num_features": num_features,
            "exogenous_feature_columns": exogenous_feature_columns,
            "num_time_buckets": num_time_buckets,
            "prediction_model_factory": partial(FlatPredictionModel, hidden_layer_sizes=hidden_layer_sizes),
        }
        if anomaly_prior_probability is None:
            if anomaly_distribution is not None:
                raise ValueError("anomaly_distribution is given, but not anomaly_prior_probability")
            model = ARModel(loss=loss, **arguments)
        elif loss != ARModel.NORMAL_LIKELIHOOD_LOSS:
            raise ValueError(
                f"a model with anomalies has the loss {ARModel.NORMAL_LIKELIHOOD_LOSS!r}, got {loss!r}"
            )
        else:
            model = AnomalyMixtureARModel(
                anomaly_prior_probability=anomaly_prior_probability,
                anomaly_distribution=anomaly_distribution or AnomalyMixtureARModel.GAUSSIAN_ANOMALY,
                **arguments,
            )
        optimizer = optimizer or tf.train.AdagradOptimizer(0.1)
        super().__init__(model, FilteringOnlyStateManager(), optimizer, model_dir, config)


class LSTMAutoRegressor(TimeSeriesRegressor):
    """An Estimator of an `ARModel` that predicts with two LSTMs, for one-shot predictions.

    Args:
        periodicities, input_window_size, output_window_size, num_features, loss: those of `ARModel`.
        model_dir: the folder of checkpoints and logs.
        extra_feature_columns: feature columns of what is known beside the values.
        num_timesteps: the parts of a period that have a feature each.
        num_units: of either LSTM.
        optimizer: one of `tf.train`, or "Adagrad", "Adam", "Ftrl", "RMSProp" or "SGD" of the rate 0.01.
        config: a RunConfig.
    """

    def __init__(
        self,
        periodicities: Any,
        input_window_size: int,
        output_window_size: int,
        model_dir: Any = None,
        num_features: int = 1,
        extra_feature_columns: Sequence[Any] | None = None,
        num_timesteps: int = 10,
        loss: str = ARModel.NORMAL_LIKELIHOOD_LOSS,
        num_units: int = 128,
        optimizer: Any = "Adam",
        config: Any = None,
    ) -> None:
        model = ARModel(
            periodicities=periodicities,
            input_window_size=input_window_size,
            output_window_size=output_window_size,
            num_features=num_features,
            exogenous_feature_columns=extra_feature_columns,
            num_time_buckets=num_timesteps,
            loss=loss,
            prediction_model_factory=partial(LSTMPredictionModel, num_units=num_units),
        )
        optimizer = get_optimizer_instance(optimizer, learning_rate=0.01)
        manager = FilteringOnlyStateManager()
        super().__init__(model, manager, optimizer, model_dir, config, OneShotPredictionHead)
