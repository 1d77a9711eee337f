"""`DynamicRnnEstimator`: a recurrent network over sequences, with one prediction each, or one a step.

Variables are ``rnn/CELL/kernel`` and ``bias`` (or those of the cell's kind) and ``fully_connected/weights``
and ``biases``; names of operations begin with ``SingleValueDynamicRNNClassifier`` and the like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.learn.constants import ModeKeys, PredictionKey, ProblemType
from flowstone.contrib.learn.estimators.estimator import Estimator
from flowstone.contrib.learn.estimators.model_fn import ModelFnOps
from flowstone.contrib.learn.estimators.rnn_common import (
    PredictionType,
    RNNKeys,
    construct_rnn_cell,
    get_eval_metric_ops,
    mask_activations_and_labels,
    probabilities_of,
    select_last_activations,
)
from flowstone.framework.tensors import nest

__all__ = [
    "DynamicRnnEstimator",
    "PredictionType",
    "build_sequence_input",
    "construct_rnn",
    "dict_to_state_tuple",
    "state_tuple_to_dict",
]

_OUTPUT = "dynamic_rnn_output"


def _get_state_name(i: int) -> str:
    return f"{RNNKeys.STATE_PREFIX}_{i}"


def state_tuple_to_dict(state: Any) -> dict[str, Any]:
    """The parts of a state by name: `rnn_cell_state_0` and so on."""
    with tf.name_scope("state_tuple_to_dict"):
        parts = nest.flatten(state)
        return {
            _get_state_name(i): tf.identity(part, name=_get_state_name(i)) for i, part in enumerate(parts)
        }


def dict_to_state_tuple(input_dict: Mapping[str, Any], cell: Any) -> Any:
    """The state of a cell from its parts by name; ValueError if some are missing."""
    flat = nest.flatten(cell.state_size)
    names = [_get_state_name(i) for i in range(len(flat))]
    missing = [name for name in names if name not in input_dict]
    if missing:
        raise ValueError(f"the state lacks {missing}")
    return nest.pack_sequence_as(cell.state_size, [input_dict[name] for name in names])


def build_sequence_input(
    features: Mapping[str, Any],
    sequence_feature_columns: Iterable[Any],
    context_feature_columns: Iterable[Any] | None,
    weight_collections: Any = None,
    scope: Any = None,
) -> Any:
    """The input [batch, steps, units] of the network: that of sequences, and that of the whole at every
    step."""
    tensors = dict(features)
    sequence = tf.contrib.layers.sequence_input_from_feature_columns(
        tensors, list(sequence_feature_columns), weight_collections=weight_collections, scope=scope
    )
    if not context_feature_columns:
        return sequence
    context = tf.contrib.layers.input_from_feature_columns(
        tensors, list(context_feature_columns), weight_collections=weight_collections, scope=scope
    )
    repeated = tf.tile(tf.expand_dims(context, 1), [1, tf.shape(sequence)[1], 1])
    return tf.concat([sequence, repeated], 2)


def construct_rnn(
    initial_state: Any,
    sequence_input: Any,
    cell: Any,
    num_label_columns: int,
    dtype: Any = tf.float32,
    parallel_iterations: int = 32,
    swap_memory: bool = True,
) -> tuple[Any, Any]:
    """The outputs [batch, steps, num_label_columns] of the network and a last layer, and the final state."""
    outputs, state = tf.nn.dynamic_rnn(
        cell,
        sequence_input,
        initial_state=initial_state,
        dtype=dtype,
        parallel_iterations=parallel_iterations,
        swap_memory=swap_memory,
    )
    activations = tf.contrib.layers.fully_connected(outputs, num_label_columns, activation_fn=None)
    return activations, state


class _Task:
    """What is predicted: classes or numbers, for a sequence or for each of its steps."""

    def __init__(self, problem_type: int, prediction_type: int, num_classes: int | None) -> None:
        if problem_type not in (ProblemType.LINEAR_REGRESSION, ProblemType.CLASSIFICATION):
            raise ValueError(
                "problem_type must be either ProblemType.LINEAR_REGRESSION or ProblemType.CLASSIFICATION; "
                "got "
                f"{problem_type}"
            )
        if prediction_type not in (PredictionType.SINGLE_VALUE, PredictionType.MULTIPLE_VALUE):
            raise ValueError(
                "prediction_type must be one of PredictionType.MULTIPLE_VALUE or "
                "PredictionType.SINGLE_VALUE; "
                f"got {prediction_type}"
            )
        self.is_classification = problem_type == ProblemType.CLASSIFICATION
        if self.is_classification and not num_classes:
            raise ValueError("For CLASSIFICATION problem_type, num_classes must be specified.")
        self.problem_type, self.prediction_type = problem_type, prediction_type
        self.is_single = prediction_type == PredictionType.SINGLE_VALUE
        self.outputs = num_classes if self.is_classification and num_classes and num_classes > 2 else 1
        kind = "Classifier" if self.is_classification else "Regressor"
        self.value = "SingleValue" if self.is_single else "MultiValue"
        self.name = f"{self.value}DynamicRNN{kind}"

    def loss(self, activations: Any, labels: Any, lengths: Any) -> Any:
        """The mean loss of the sequences, or of the steps within them."""
        with tf.name_scope(f"{self.value}Loss"):
            if self.is_single:
                activations, labels = select_last_activations(activations, lengths), tf.reshape(labels, [-1])
            else:
                activations, labels = mask_activations_and_labels(activations, labels, lengths)
            if not self.is_classification:
                values = tf.square(tf.squeeze(activations, [1]) - tf.to_float(labels))
            elif self.outputs > 1:
                values = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=activations)
            else:
                values = tf.nn.sigmoid_cross_entropy_with_logits(
                    labels=tf.to_float(labels), logits=tf.squeeze(activations, [1])
                )
            return tf.reduce_mean(values, name="loss")

    def predictions(self, activations: Any, lengths: Any, with_probabilities: bool) -> dict[str, Any]:
        """The classes, with their probabilities if asked for, or the scores."""
        with tf.name_scope(f"{self.value}Prediction"):
            if self.is_single:
                activations = select_last_activations(activations, lengths)
            names = dict.fromkeys(("scores", "probabilities", "classes"))
            if not self.is_single:  # TensorFlow names these operations, but not those of single predictions
                names = {name: name for name in names}
            if not self.is_classification:
                return {PredictionKey.SCORES: tf.squeeze(activations, [-1], name=names["scores"])}
            probabilities = probabilities_of(activations, names["probabilities"])
            found = {PredictionKey.CLASSES: tf.argmax(probabilities, -1, name=names["classes"])}
            if with_probabilities:
                found[PredictionKey.PROBABILITIES] = probabilities
            return found


class DynamicRnnEstimator(Estimator):
    """A recurrent network over sequences of any length.

    Args:
        problem_type: `ProblemType.CLASSIFICATION` or `LINEAR_REGRESSION`.
        prediction_type: `PredictionType.SINGLE_VALUE`, labels [batch], or `MULTIPLE_VALUE`, labels [batch,
            steps].
        sequence_feature_columns: the columns of features with steps; context_feature_columns: of those
            without.
        num_classes: how many classes.
        num_units: the size of the cell, or the sizes of several; `cell_type`: "basic_rnn", "lstm", "gru" or
            a class.
        optimizer: the name of an optimiser, or one; learning_rate, momentum, gradient_clipping_norm: its
            settings.
        predict_probabilities: whether probabilities are predicted beside the classes.
        dropout_keep_probabilities: one number more than there are cells.
        model_dir, feature_engineering_fn, config: see `Estimator`.

    The feature `sequence_length` [batch] has the lengths; features `rnn_cell_state_0` and so on, if there
    are any, the state to begin with. Predictions have the final state under these names. Raises ValueError
    for unknown problems and predictions, and without a number of classes.
    """

    def __init__(
        self,
        problem_type: int,
        prediction_type: int,
        sequence_feature_columns: Iterable[Any],
        context_feature_columns: Iterable[Any] | None = None,
        num_classes: int | None = None,
        num_units: int | Sequence[int] | None = None,
        cell_type: Any = "basic_rnn",
        optimizer: Any = "SGD",
        learning_rate: float = 0.1,
        predict_probabilities: bool = False,
        momentum: float | None = None,
        gradient_clipping_norm: float | None = 5.0,
        dropout_keep_probabilities: Sequence[float] | None = None,
        model_dir: Any = None,
        feature_engineering_fn: Callable[[Any, Any], Any] | None = None,
        config: Any = None,
    ) -> None:
        task = _Task(problem_type, prediction_type, num_classes)
        if optimizer == "Momentum":
            optimizer = tf.train.MomentumOptimizer(learning_rate, momentum)
        sequence, context = list(sequence_feature_columns), list(context_feature_columns or ())

        def model_fn(features: Any, labels: Any, mode: str) -> ModelFnOps:
            with tf.name_scope(task.name):
                rates = dropout_keep_probabilities if mode == ModeKeys.TRAIN else None
                cell = construct_rnn_cell(num_units or 1, cell_type, rates)
                has_state = _get_state_name(0) in features
                activations, state = construct_rnn(
                    dict_to_state_tuple(features, cell) if has_state else None,
                    build_sequence_input(features, sequence, context),
                    cell,
                    task.outputs,
                )
                lengths = features.get(RNNKeys.SEQUENCE_LENGTH_KEY)
                ops = _ops(task, mode, activations, labels, lengths, predict_probabilities, state)
            if mode != ModeKeys.TRAIN:
                return ModelFnOps(mode, **ops)
            train_op = tf.contrib.layers.optimize_loss(
                loss=ops["loss"],
                global_step=tf.train.get_global_step(),
                learning_rate=learning_rate,
                optimizer=optimizer,
                clip_gradients=gradient_clipping_norm,
                summaries=tf.contrib.layers.OPTIMIZER_SUMMARIES,
            )
            return ModelFnOps(mode, train_op=train_op, **ops)

        super().__init__(model_fn, model_dir, config, None, feature_engineering_fn)


def _ops(
    task: _Task, mode: str, activations: Any, labels: Any, lengths: Any, with_probabilities: bool, state: Any
) -> dict[str, Any]:
    """The fields of the ModelFnOps, but for the training operation."""
    if lengths is None and task.is_single:
        shape = tf.shape(activations)
        lengths = tf.fill([shape[0]], shape[1])
    found: dict[str, Any] = {}
    predictions = task.predictions(activations, lengths, with_probabilities)
    if mode != ModeKeys.INFER:
        found["loss"] = task.loss(activations, labels, lengths)
    if mode == ModeKeys.EVAL:
        found["eval_metric_ops"] = get_eval_metric_ops(
            task.problem_type, task.prediction_type, lengths, predictions, labels
        )
    if task.is_single:
        found["output_alternatives"] = {_OUTPUT: (task.problem_type, dict(predictions))}
    return {**found, "predictions": {**predictions, **state_tuple_to_dict(state)}}
