"""Metrics of `tf.metrics` on small batches, run alike by flowstone and, for goldens, by TensorFlow 1.15.

A program is a function of the module ``tf`` and a placeholder for every array of a batch; it returns the pair
(value, update_op). `values` runs it on its batches.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from tests.layers import loss_programs

BATCHES, ROWS, CLASSES = 3, 6, 5
_RANDOM = np.random.RandomState(11)


def _batches(make: Callable[[], Any]) -> list[Any]:
    return [make() for _ in range(BATCHES)]


# name: an array a batch
DATA = {
    "real": _batches(lambda: _RANDOM.randn(ROWS).astype("float32")),
    "other": _batches(lambda: _RANDOM.randn(ROWS).astype("float32")),
    "matrix": _batches(lambda: _RANDOM.randn(ROWS, 2).astype("float32")),
    "other_matrix": _batches(lambda: _RANDOM.randn(ROWS, 2).astype("float32")),
    "shares": _batches(lambda: _RANDOM.randint(0, 11, ROWS).astype("float32") / 10),
    "bits": _batches(lambda: _RANDOM.rand(ROWS) > 0.5),
    "guesses": _batches(lambda: _RANDOM.rand(ROWS) > 0.4),
    "classes": _batches(lambda: _RANDOM.randint(0, CLASSES, ROWS).astype("int64")),
    "answers": _batches(lambda: _RANDOM.randint(0, CLASSES, ROWS).astype("int32")),
    "pairs": _batches(lambda: _RANDOM.randint(0, 3, (ROWS, 2)).astype("int32")),
    "other_pairs": _batches(lambda: _RANDOM.randint(0, 3, (ROWS, 2)).astype("int32")),
    "scores": _batches(lambda: _RANDOM.randn(ROWS, CLASSES).astype("float32")),
    "first": _batches(lambda: _RANDOM.randint(0, CLASSES, (ROWS, 2)).astype("int32")),
    "sets": _batches(lambda: _RANDOM.randint(-1, CLASSES + 1, (ROWS, 3)).astype("int64")),
    "weights": _batches(lambda: _RANDOM.randint(0, 4, ROWS).astype("float32") / 2),
    "columns": _batches(lambda: _RANDOM.randint(0, 4, (ROWS, 1)).astype("float32") / 2),
}
# program: the names of its arrays
PROGRAMS: dict[str, tuple[Callable[..., Any], list[str]]] = {}


def program(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds a program to the table."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = (function, list(names))
        return function

    return add


def placeholders(tf: Any, name: str, known: bool) -> list[Any]:
    """The arrays' placeholders; their first dimension is known or not."""
    arrays = [DATA[each][0] for each in PROGRAMS[name][1]]
    return [tf.placeholder(a.dtype, [ROWS if known else None, *a.shape[1:]]) for a in arrays]


def values(tf: Any, name: str, known: bool = True) -> np.ndarray:
    """The metric at first, then for each batch what its update returns and its value, in one vector."""
    function, names = PROGRAMS[name]
    with tf.Graph().as_default(), tf.Session() as session:
        inputs = placeholders(tf, name, known)
        value, update = function(tf, *inputs)
        session.run(tf.local_variables_initializer())
        found = [session.run(value)]
        for i in range(BATCHES):
            feeds = {tensor: DATA[each][i] for tensor, each in zip(inputs, names)}
            found += [session.run(update, feeds), session.run(value)]
    return np.concatenate([np.ravel(each).astype("float64") for each in found])


# Besides what losses have: how sets are counted, and what computes average precisions and confusion matrices.
_OWN = re.compile(
    loss_programs._OWN.pattern
    + r"|_at_\w+/(true|false)_\w+s/|/average_precision/|/batch_max$|/confusion_matrix/|/ones/Less|/Tile"
    + r"|mean_accuracy/ones|/expand_labels|broadcast_weights|/Assert(Guard)?/|/max_1/Cast"
    + r"|PlaceholderWithDefault"
)


def node_lines(tf: Any, name: str) -> list[str]:
    """As `loss_programs.node_lines`."""
    function, _ = PROGRAMS[name]

    def build(tf: Any) -> None:
        function(tf, *placeholders(tf, name, True))

    return loss_programs.node_lines(tf, build, _OWN)


# ---- means


@program("matrix")
def mean(tf: Any, x: Any) -> Any:
    return tf.metrics.mean(x)


@program("matrix", "columns")
def mean_weighted(tf: Any, x: Any, weights: Any) -> Any:
    return tf.metrics.mean(x, weights, ["of values"], "of updates", name="weighted")


@program("matrix", "weights")
def mean_weighted_by_vector(tf: Any, x: Any, weights: Any) -> Any:
    return tf.metrics.mean(x[:, 0], tf.cast(weights * 2, tf.int32))


@program("matrix")
def mean_without_weight(tf: Any, x: Any) -> Any:
    return tf.metrics.mean(x, weights=0.0)


@program("matrix", "columns")
def mean_tensor(tf: Any, x: Any, weights: Any) -> Any:
    return tf.metrics.mean_tensor(tf.reshape(x, [ROWS, 2]), tf.reshape(weights, [ROWS, 1]))


@program("matrix")
def mean_tensor_unweighted(tf: Any, x: Any) -> Any:
    return tf.metrics.mean_tensor(tf.reshape(x, [ROWS, 2]))


@program("classes", "answers")
def accuracy(tf: Any, labels: Any, predictions: Any) -> Any:
    return tf.metrics.accuracy(labels, predictions)


@program("classes", "answers", "columns")
def accuracy_weighted(tf: Any, labels: Any, predictions: Any, weights: Any) -> Any:
    return tf.metrics.accuracy(tf.expand_dims(labels, 1), predictions, weights, name="right")


@program("real", "weights")
def percentage_below(tf: Any, x: Any, weights: Any) -> Any:
    return tf.metrics.percentage_below(x, 0.25, weights)


@program("real", "other", "weights")
def mean_absolute_error(tf: Any, labels: Any, predictions: Any, weights: Any) -> Any:
    return tf.metrics.mean_absolute_error(labels, predictions, weights)


@program("real", "other", "shares")
def mean_relative_error(tf: Any, labels: Any, predictions: Any, normalizer: Any) -> Any:
    return tf.metrics.mean_relative_error(labels, predictions, normalizer)


@program("real", "other")
def mean_squared_error(tf: Any, labels: Any, predictions: Any) -> Any:
    return tf.metrics.mean_squared_error(labels, predictions)


@program("real", "other", "weights")
def root_mean_squared_error(tf: Any, labels: Any, predictions: Any, weights: Any) -> Any:
    return tf.metrics.root_mean_squared_error(labels, predictions, weights, ["v"], ["u"])


@program("matrix", "other_matrix", "columns")
def mean_cosine_distance(tf: Any, labels: Any, predictions: Any, weights: Any) -> Any:
    return tf.metrics.mean_cosine_distance(labels, predictions, 1, weights)


# ---- counts


@program("bits", "guesses")
def true_positives(tf: Any, labels: Any, predictions: Any) -> Any:
    return tf.metrics.true_positives(labels, predictions)


@program("bits", "guesses", "weights")
def true_negatives(tf: Any, labels: Any, predictions: Any, weights: Any) -> Any:
    return tf.metrics.true_negatives(labels, predictions, weights)


@program("bits", "guesses", "columns")
def false_positives(tf: Any, labels: Any, predictions: Any, weights: Any) -> Any:
    return tf.metrics.false_positives(labels, predictions, weights)


@program("bits", "guesses")
def false_negatives(tf: Any, labels: Any, predictions: Any) -> Any:
    return tf.metrics.false_negatives(labels, predictions, 2.0)


@program("bits", "guesses", "weights")
def precision(tf: Any, labels: Any, predictions: Any, weights: Any) -> Any:
    return tf.metrics.precision(labels, tf.cast(predictions, tf.int64), weights)


@program("bits", "guesses")
def recall(tf: Any, labels: Any, predictions: Any) -> Any:
    return tf.metrics.recall(tf.cast(labels, tf.float32), predictions, None, ["v"], ["u"], "found")


THRESHOLDS = [0.0, 0.25, 0.5, 0.75]


@program("bits", "shares", "weights")
def true_positives_at_thresholds(tf: Any, labels: Any, predictions: Any, weights: Any) -> Any:
    return tf.metrics.true_positives_at_thresholds(labels, predictions, THRESHOLDS, weights)


@program("bits", "shares")
def true_negatives_at_thresholds(tf: Any, labels: Any, predictions: Any) -> Any:
    return tf.metrics.true_negatives_at_thresholds(labels, predictions, THRESHOLDS)


@program("bits", "shares", "columns")
def false_positives_at_thresholds(tf: Any, labels: Any, predictions: Any, weights: Any) -> Any:
    return tf.metrics.false_positives_at_thresholds(labels, predictions, THRESHOLDS, weights)


@program("bits", "shares")
def false_negatives_at_thresholds(tf: Any, labels: Any, predictions: Any) -> Any:
    return tf.metrics.false_negatives_at_thresholds(tf.cast(labels, tf.int32), predictions, THRESHOLDS)


@program("bits", "shares", "weights")
def precision_at_thresholds(tf: Any, labels: Any, predictions: Any, weights: Any) -> Any:
    return tf.metrics.precision_at_thresholds(labels, predictions, THRESHOLDS, weights)


@program("bits", "shares")
def recall_at_thresholds(tf: Any, labels: Any, predictions: Any) -> Any:
    return tf.metrics.recall_at_thresholds(labels, predictions, THRESHOLDS)


# ---- curves


@program("bits", "shares")
def auc(tf: Any, labels: Any, predictions: Any) -> Any:
    return tf.metrics.auc(labels, predictions)


@program("bits", "shares", "weights")
def auc_weighted(tf: Any, labels: Any, predictions: Any, weights: Any) -> Any:
    return tf.metrics.auc(labels, predictions, weights, 11, ["v"], ["u"], "ROC", "area", "majoring")


@program("bits", "shares")
def auc_of_precision(tf: Any, labels: Any, predictions: Any) -> Any:
    return tf.metrics.auc(labels, predictions, num_thresholds=11, curve="PR")


@program("bits", "shares")
def auc_interpolated(tf: Any, labels: Any, predictions: Any) -> Any:
    return tf.metrics.auc(labels, predictions, curve="PR", summation_method="careful_interpolation")


@program("bits", "shares")
def auc_from_below(tf: Any, labels: Any, predictions: Any) -> Any:
    return tf.metrics.auc(labels, predictions, num_thresholds=7, curve="PR", summation_method="minoring")


@program("bits", "shares", "weights")
def sensitivity_at_specificity(tf: Any, labels: Any, predictions: Any, weights: Any) -> Any:
    return tf.metrics.sensitivity_at_specificity(labels, predictions, 0.6, weights, 12)


@program("bits", "shares")
def specificity_at_sensitivity(tf: Any, labels: Any, predictions: Any) -> Any:
    return tf.metrics.specificity_at_sensitivity(labels, predictions, 0.7, num_thresholds=9)


# ---- classes


@program("classes", "answers")
def mean_iou(tf: Any, labels: Any, predictions: Any) -> Any:
    return tf.metrics.mean_iou(labels, predictions, CLASSES)


@program("pairs", "other_pairs", "columns")
def mean_iou_weighted(tf: Any, labels: Any, predictions: Any, weights: Any) -> Any:
    return tf.metrics.mean_iou(labels, predictions, 3, tf.concat([weights, weights], 1), name="iou")


@program("classes", "classes")
def mean_iou_of_some_classes(tf: Any, labels: Any, predictions: Any) -> Any:
    return tf.metrics.mean_iou(labels, tf.minimum(predictions, 2), CLASSES + 2)


@program("classes", "answers", "weights")
def mean_per_class_accuracy(tf: Any, labels: Any, predictions: Any, weights: Any) -> Any:
    return tf.metrics.mean_per_class_accuracy(labels, tf.cast(predictions, tf.int64), CLASSES + 1, weights)


@program("pairs", "other_pairs")
def mean_per_class_accuracy_of_matrices(tf: Any, labels: Any, predictions: Any) -> Any:
    return tf.metrics.mean_per_class_accuracy(labels, tf.cast(predictions, tf.int64), 3)


# ---- rankings


@program("classes", "scores")
def recall_at_k(tf: Any, labels: Any, scores: Any) -> Any:
    return tf.metrics.recall_at_k(labels, scores, 2)


@program("sets", "scores", "weights")
def recall_at_k_weighted(tf: Any, labels: Any, scores: Any, weights: Any) -> Any:
    return tf.metrics.recall_at_k(labels, scores, 3, weights=weights, name="recalled")


@program("sets", "scores", "weights")
def recall_at_k_of_class(tf: Any, labels: Any, scores: Any, weights: Any) -> Any:
    return tf.metrics.recall_at_k(labels, scores, 2, 3, weights, ["v"], ["u"])


@program("sets", "first")
def recall_at_top_k(tf: Any, labels: Any, first: Any) -> Any:
    return tf.metrics.recall_at_top_k(labels, first)


@program("sets", "first")
def precision_at_top_k(tf: Any, labels: Any, first: Any) -> Any:
    return tf.metrics.precision_at_top_k(labels, first, 2)


@program("sets", "scores", "weights")
def precision_at_k(tf: Any, labels: Any, scores: Any, weights: Any) -> Any:
    return tf.metrics.precision_at_k(labels, scores, 2, weights=weights)


@program("sets", "scores")
def precision_at_k_of_class(tf: Any, labels: Any, scores: Any) -> Any:
    return tf.metrics.precision_at_k(labels, scores, 2, class_id=1)


def sparse(tf: Any, labels: Any) -> Any:
    """The labels that are not negative as a SparseTensor."""
    where = tf.where(tf.greater_equal(labels, 0))
    return tf.SparseTensor(where, tf.gather_nd(labels, where), tf.shape(labels, out_type=tf.int64))


@program("sets", "scores")
def sparse_precision_at_k(tf: Any, labels: Any, scores: Any) -> Any:
    return tf.metrics.sparse_precision_at_k(sparse(tf, labels), scores, 2)


@program("sets", "scores")
def recall_at_k_of_sparse_class(tf: Any, labels: Any, scores: Any) -> Any:
    return tf.metrics.recall_at_k(sparse(tf, labels), scores, 2, class_id=0)


@program("sets", "scores")
def average_precision_at_k(tf: Any, labels: Any, scores: Any) -> Any:
    return tf.metrics.average_precision_at_k(tf.maximum(labels, 0), scores, 3)


@program("classes", "scores", "weights")
def average_precision_at_k_weighted(tf: Any, labels: Any, scores: Any, weights: Any) -> Any:
    return tf.metrics.average_precision_at_k(labels, scores, 2, weights, ["v"], ["u"], "map")


@program("sets", "scores")
def sparse_average_precision_at_k(tf: Any, labels: Any, scores: Any) -> Any:
    labels = sparse(tf, tf.concat([labels, tf.zeros_like(labels[:, :1])], 1))
    return tf.metrics.sparse_average_precision_at_k(labels, scores, 3)
