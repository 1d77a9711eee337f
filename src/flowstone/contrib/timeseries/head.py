"""Heads: a model's training, evaluation, prediction and serving as EstimatorSpecs.

`TimeSeriesRegressionHead` predicts from a state, which evaluation or filtering gave. `OneShotPredictionHead`
serves both in one request: it filters the values that it is given, and predicts the times after them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.framework import nest
from flowstone.contrib.timeseries.feature_keys import (
    FilteringResults,
    PredictionResults,
    SavedModelLabels,
    State,
    TrainEvalFeatures,
)
from flowstone.contrib.timeseries.model import ModelOutputs

__all__ = ["OneShotPredictionHead", "TimeSeriesRegressionHead", "state_to_dictionary"]

TIMES, VALUES = TrainEvalFeatures.TIMES, TrainEvalFeatures.VALUES
STATE_TUPLE, STATE_PREFIX = State.STATE_TUPLE, State.STATE_PREFIX


class _StatelessOutput(tf.estimator.export.PredictOutput):  # type: ignore[misc]
    """The signature of outputs that no given state changes."""

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """The signature, without the state among its inputs."""
        return super().as_signature_def(_without_state(receiver_tensors))


class TimeSeriesRegressionHead:
    """Predicts from a state.

    Args:
        model: a `TimeSeriesModel`.
        state_manager: where a window's first state comes from.
        optimizer: of the training.
        input_statistics_generator: what makes the statistics that the model scales values by; None for none.
        name: of the name scope.
    """

    def __init__(
        self,
        model: Any,
        state_manager: Any,
        optimizer: Any,
        input_statistics_generator: Any = None,
        name: str | None = None,
    ) -> None:
        self.model, self.state_manager, self.optimizer = model, state_manager, optimizer
        self.input_statistics_generator = input_statistics_generator
        self._name = name

    @property
    def name(self) -> str | None:
        """The name of the head."""
        return self._name

    @property
    def logits_dimension(self) -> int:
        """One: a time series model has no logits."""
        return 1

    def create_loss(
        self, features: dict[str, Any], mode: str, logits: Any = None, labels: Any = None
    ) -> ModelOutputs:
        """The model's outputs for `features`, with a summary of the loss."""
        outputs: ModelOutputs = self.state_manager.define_loss(self.model, features, mode)
        tf.summary.scalar(f"loss/{self._name}" if self._name else "loss", outputs.loss)
        return outputs

    def create_estimator_spec(self, features: Mapping[str, Any], mode: str, labels: Any = None) -> Any:
        """The model function of an Estimator.

        Raises ValueError for labels, features that are missing or whose shapes do not fit, or another mode.
        """
        modes = tf.estimator.ModeKeys
        with tf.name_scope(self._name, "head"):
            if labels is not None and labels != {}:
                raise ValueError(f"a time series has no labels: give {TIMES!r} and {VALUES!r} as features")
            known = {name: self._tensor(name, value) for name, value in features.items()}
            statistics = None
            if self.input_statistics_generator is not None:
                statistics = self.input_statistics_generator.initialize_graph(
                    known, update_statistics=mode == modes.TRAIN
                )
            self.model.initialize_graph(input_statistics=statistics)
            known, serves = self._gather_state(known)
            if mode in (modes.TRAIN, modes.EVAL):
                _check_train_eval_features(known, self.model)
            elif mode == modes.PREDICT:
                self._check_predict_features(known)
            else:
                raise ValueError(f"the mode is one of train, eval and infer, got {mode!r}")
            self.state_manager.initialize_graph(model=self.model, input_statistics=statistics)
            if mode == modes.TRAIN:
                return self._train_ops(known)
            if mode == modes.EVAL:
                return self._evaluate_ops(known)
            return self._serving_ops(known) if serves else self._predict_ops(known)

    def _train_ops(self, features: dict[str, Any]) -> Any:
        mode = tf.estimator.ModeKeys.TRAIN
        with tf.variable_scope("model", use_resource=True):
            loss = self.create_loss(features, mode).loss
        train = self.optimizer.minimize(loss, global_step=tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    def _evaluate_ops(self, features: dict[str, Any]) -> Any:
        mode = tf.estimator.ModeKeys.EVAL
        with tf.variable_scope("model", use_resource=True):
            outputs = self.create_loss(features, mode)
        metrics = {name: _last_value(name, value) for name, value in outputs.predictions.items()}
        metrics[FilteringResults.TIMES] = _last_value(FilteringResults.TIMES, outputs.prediction_times)
        metrics[STATE_TUPLE] = _last_structure(STATE_TUPLE, outputs.end_state)
        metrics["average_loss"] = tf.metrics.mean(outputs.loss, name="average_loss")
        return tf.estimator.EstimatorSpec(
            mode, loss=outputs.loss, eval_metric_ops=metrics, predictions=outputs.predictions
        )

    def _predict_ops(self, features: dict[str, Any]) -> Any:
        with tf.variable_scope("model", use_resource=True):
            predictions = self.model.predict(features=features)
        predictions[PredictionResults.TIMES] = features[TIMES]
        return tf.estimator.EstimatorSpec(tf.estimator.ModeKeys.PREDICT, predictions=predictions)

    def _serving_ops(self, features: dict[str, Any]) -> Any:
        modes = tf.estimator.ModeKeys
        with tf.variable_scope("model", use_resource=True):
            predictions = self.model.predict(features=features)
        stateless = _without_state(features)
        with tf.variable_scope("model", reuse=True):
            filtered = self.create_loss({**features}, modes.EVAL)
        with tf.variable_scope("model", reuse=True):
            stateless.pop(STATE_TUPLE, None)
            started = self.model.define_loss(features=stateless, mode=modes.EVAL)
        outputs = tf.estimator.export.PredictOutput
        return tf.estimator.EstimatorSpec(
            modes.PREDICT,
            predictions={},
            export_outputs={
                SavedModelLabels.PREDICT: outputs(predictions),
                SavedModelLabels.FILTER: outputs(state_to_dictionary(filtered.end_state)),
                SavedModelLabels.COLD_START_FILTER: _StatelessOutput(state_to_dictionary(started.end_state)),
            },
        )

    def _tensor(self, name: str, value: Any) -> Any:
        if name == TIMES:
            return tf.cast(value, tf.int64)
        if name == VALUES:
            return tf.cast(value, self.model.dtype)
        return value if name == STATE_TUPLE else tf.convert_to_tensor_or_sparse_tensor(value)

    def _gather_state(self, features: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """The features with the state as one structure, and whether it came as entries ``model_state_NN``."""
        numbers = {name: re.fullmatch(rf"{STATE_PREFIX}_(\d+)", name) for name in features}
        parts = sorted((int(found.group(1)), features[name]) for name, found in numbers.items() if found)
        if not parts:
            return features, False
        rest = {name: value for name, value in features.items() if not numbers[name]}
        state = [tensor for _, tensor in parts]
        rest[STATE_TUPLE] = nest.pack_sequence_as(self.model.get_start_state(), state)
        return rest, True

    def _check_predict_features(self, features: Mapping[str, Any]) -> None:
        _check_features(features, (TIMES, STATE_TUPLE), "prediction", {STATE_TUPLE})


class OneShotPredictionHead(TimeSeriesRegressionHead):
    """Predicts from values: a request has those of the first times, and the answer is for the times after."""

    def _check_predict_features(self, features: Mapping[str, Any]) -> None:
        _check_features(features, (TIMES, VALUES, STATE_TUPLE), "prediction", {STATE_TUPLE, VALUES})

    def _evaluate_ops(self, features: dict[str, Any]) -> Any:
        spec = super()._evaluate_ops(features)
        del spec.eval_metric_ops[STATE_TUPLE]
        return spec

    def _serving_ops(self, features: dict[str, Any]) -> Any:
        modes = tf.estimator.ModeKeys
        with tf.variable_scope("model", use_resource=True):
            count = tf.shape(features[VALUES])[1]
            rest = {name: value for name, value in features.items() if name not in (STATE_TUPLE, VALUES)}
            seen = {name: value[:, :count] for name, value in rest.items()}
            later = {name: value[:, count:] for name, value in rest.items()}
            filtered = self.model.define_loss(features={**seen, VALUES: features[VALUES]}, mode=modes.EVAL)
        with tf.variable_scope("model", reuse=True):
            predictions = self.model.predict(features={**later, STATE_TUPLE: filtered.end_state})
        return tf.estimator.EstimatorSpec(
            modes.PREDICT,
            predictions={},
            export_outputs={SavedModelLabels.PREDICT: _StatelessOutput(predictions)},
        )


def _without_state(tensors: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tensor for name, tensor in tensors.items() if not name.startswith(STATE_PREFIX)}


def _check_features(
    features: Mapping[str, Any], needed: Collection[str], purpose: str, free: Collection[str]
) -> None:
    """Raises ValueError unless the `needed` are there, and all but the `free` begin as the times do."""
    for name in needed:
        if name not in features:
            raise ValueError(f"{purpose} needs the feature {name!r}, got {sorted(features)}")
    times = features[TIMES].shape
    if not times.is_compatible_with([None, None]):
        raise ValueError(f"the feature {TIMES!r} has the shape [batch, window], got {times}")
    for name, value in features.items():
        if name in free or value.shape.ndims is None:
            continue
        if value.shape.ndims < 2:
            raise ValueError(f"the feature {name!r} has a shape [batch, window, …], got {value.shape}")
        if not value.shape[:2].is_compatible_with(times):
            raise ValueError(
                f"the shape {value.shape} of the feature {name!r} does not begin as {times} of {TIMES!r}"
            )


def _check_train_eval_features(features: Mapping[str, Any], model: Any) -> None:
    _check_features(features, (TIMES, VALUES), "training and evaluation", {STATE_TUPLE})
    shape = features[VALUES].shape
    if not shape.is_compatible_with([None, None, model.num_features]):
        raise ValueError(
            f"the feature {VALUES!r} has the shape [batch, window, {model.num_features}], for the model has"
            f" num_features={model.num_features}; got {shape}"
        )


def _last_value(name: str, tensor: Any) -> tuple[Any, Any]:
    """A metric that is the tensor of the last batch."""
    variable = tf.Variable(
        tf.zeros([], dtype=tensor.dtype),
        name=f"{name}_identity_metric",
        collections=[tf.GraphKeys.LOCAL_VARIABLES],
        validate_shape=False,
    )
    update = tf.assign(variable, tensor, validate_shape=False)
    variable.set_shape(tensor.shape)
    return variable.value(), update


def _last_structure(name: str, tensors: Any) -> tuple[Any, Any]:
    found = [_last_value(f"{name}_{number}", tensor) for number, tensor in enumerate(nest.flatten(tensors))]
    values = nest.pack_sequence_as(tensors, [value for value, _ in found])
    return values, tf.group(*(update for _, update in found))


def state_to_dictionary(state_tuple: Any) -> dict[str, Any]:
    """The parts of a state by the names that signatures have for them: ``model_state_00``."""
    return {f"{STATE_PREFIX}_{number:02d}": value for number, value in enumerate(nest.flatten(state_tuple))}
