"""What the recurrent Estimators share: cells, the last or the valid outputs of sequences, predictions,
metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.learn.constants import PredictionKey, ProblemType

__all__ = [
    "PredictionType",
    "RNNKeys",
    "apply_dropout",
    "construct_rnn_cell",
    "get_eval_metric_ops",
    "mask_activations_and_labels",
    "select_last_activations",
]

_CELL_TYPES = {
    "basic_rnn": tf.nn.rnn_cell.BasicRNNCell,
    "lstm": tf.nn.rnn_cell.LSTMCell,
    "gru": tf.nn.rnn_cell.GRUCell,
}


class PredictionType:
    """Whether a sequence has one prediction or one a step."""

    SINGLE_VALUE = 1
    MULTIPLE_VALUE = 2


class RNNKeys:
    """The names of features and predictions of recurrent Estimators."""

    FINAL_STATE_KEY = "final_state"
    LABELS_KEY = "__labels__"
    SEQUENCE_LENGTH_KEY = "sequence_length"
    STATE_PREFIX = "rnn_cell_state"


def _get_single_cell(cell_type: Any, num_units: int) -> Any:
    """A cell by its name or class; TypeError for anything else."""
    kind = _CELL_TYPES.get(cell_type, cell_type) if isinstance(cell_type, str) else cell_type
    if not (isinstance(kind, type) and issubclass(kind, tf.nn.rnn_cell.RNNCell)):
        raise TypeError(
            f"cell_type must be one of {sorted(_CELL_TYPES)} or a class of cells; got {cell_type}"
        )
    return kind(num_units=num_units)


def construct_rnn_cell(
    num_units: int | Sequence[int],
    cell_type: Any = "basic_rnn",
    dropout_keep_probabilities: Sequence[float] | None = None,
) -> Any:
    """A cell of `num_units`, or several above each other.

    `cell_type`: "basic_rnn", "lstm", "gru" or a class; `dropout_keep_probabilities`: see `apply_dropout`.
    """
    sizes = list(num_units) if isinstance(num_units, Sequence) else [num_units]
    cells = [_get_single_cell(cell_type, size) for size in sizes]
    if dropout_keep_probabilities:
        cells = apply_dropout(cells, dropout_keep_probabilities)
    return cells[0] if len(cells) == 1 else tf.nn.rnn_cell.MultiRNNCell(cells)


def apply_dropout(
    cells: Sequence[Any], dropout_keep_probabilities: Sequence[float], random_seed: int | None = None
) -> list[Any]:
    """The cells with dropout before each of them and after the last.

    `dropout_keep_probabilities`: one number more than there are cells, else ValueError.
    """
    rates = list(dropout_keep_probabilities)
    if len(rates) != len(cells) + 1:
        raise ValueError(
            "The number of dropout probabilities must be one greater than the number of cells. Got "
            f"{len(cells)} cells and {len(rates)} dropout probabilities."
        )
    wrap = tf.nn.rnn_cell.DropoutWrapper
    found = [
        wrap(cell, input_keep_prob=rate, seed=random_seed)
        for cell, rate in zip(cells[:-1], rates[:-2], strict=True)
    ]
    return [*found, wrap(cells[-1], input_keep_prob=rates[-2], output_keep_prob=rates[-1], seed=random_seed)]


def select_last_activations(activations: Any, sequence_lengths: Any) -> Any:
    """The outputs [batch, units] of the last steps, of [batch, steps, units]."""
    with tf.name_scope("select_last_activations", values=[activations, sequence_lengths]):
        batch = tf.range(tf.shape(activations)[0])
        last = tf.maximum(tf.to_int32(sequence_lengths) - 1, 0)
        return tf.gather_nd(activations, tf.stack([batch, last], axis=1))


def mask_activations_and_labels(activations: Any, labels: Any, sequence_lengths: Any) -> tuple[Any, Any]:
    """The outputs and labels of the steps within the sequences, one after the other.

    Of [batch, steps, units] and [batch, steps]; `sequence_lengths`: [batch], None: all steps.
    """
    with tf.name_scope("mask_activations_and_labels", values=[activations, labels]):
        shape = tf.shape(labels)
        if sequence_lengths is None:
            lengths = tf.fill([shape[0]], shape[1])
        else:
            lengths = sequence_lengths
        within = tf.sequence_mask(tf.to_int32(lengths), shape[1])
        return tf.boolean_mask(activations, within), tf.boolean_mask(labels, within)


def probabilities_of(activations: Any, name: str | None = None) -> Any:
    """The probabilities of classes along the last axis; one output alone is the logit of the second of
    two."""
    if activations.shape[-1].value == 1:
        activations = tf.concat([tf.zeros_like(activations), activations], -1)
    return tf.nn.softmax(activations, name=name)


def get_eval_metric_ops(
    problem_type: int,
    prediction_type: int,
    sequence_length: Any,
    prediction_dict: dict[str, Any],
    labels: Any,
) -> dict[str, Any]:
    """The accuracy of classes, over the steps within the sequences if each has a prediction; else no
    metric."""
    if problem_type != ProblemType.CLASSIFICATION:
        return {}
    predictions = prediction_dict[PredictionKey.CLASSES]
    if prediction_type == PredictionType.MULTIPLE_VALUE:
        predictions, labels = mask_activations_and_labels(predictions, labels, sequence_length)
    else:
        labels = tf.reshape(labels, [-1])
    return {"accuracy": tf.metrics.accuracy(labels, predictions, name="accuracy")}
