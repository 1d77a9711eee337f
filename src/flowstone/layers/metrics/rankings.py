"""Metrics of the k classes predicted first for an example, whose labels are a set of classes.

`labels` are class numbers ``[…, labels]``, dense or a SparseTensor, or ``[…]`` where an example has one;
`predictions` are scores ``[…, classes]``, or class numbers ``[…, k]`` for functions that say top_k. Labels
and predictions count as sets: what is repeated counts once. Variables and values are float64.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework import dtypes
from flowstone.framework.composite import SparseTensor
from flowstone.framework.graph_functions import control_dependencies, name_scope
from flowstone.framework.operation import F
from flowstone.framework.tensor import Tensor, convert_to_tensor
from flowstone.layers.metrics.state import Names, metric_variable, published
from flowstone.layers.weights_broadcast import assert_broadcastable
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.shapes import expand_dims, rank, size
from flowstone.ops.control.conditionals import cond
from flowstone.ops.numbers.arithmetic import add, multiply
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.comparisons import equal, logical_and, logical_not
from flowstone.ops.numbers.division import div
from flowstone.ops.numbers.ranking import top_k
from flowstone.ops.numbers.reductions import reduce_any, reduce_sum
from flowstone.ops.variables.assignments import assign_add

__all__ = [
    "precision_at_k",
    "precision_at_top_k",
    "recall_at_k",
    "recall_at_top_k",
    "sparse_precision_at_k",
]

# Counts by the scopes of their variables: the operation on the sets of predictions and labels.
_SETS = {"true_positive": "intersection", "false_positive": "a-b", "false_negative": "b-a"}
_ABSENT = dtypes.int64.min  # in place of the labels that an example has less than others


def name_at_k(name: str, k: Any = None, class_id: int | None = None) -> str:
    """The scope of a metric: with k if it is a number that counts, and with the class."""
    name = f"{name}_at_{k}" if k else f"{name}_at_k"
    return name if class_id is None else f"{name}_class{class_id}"


def as_labels(labels: Any) -> Any:
    """A SparseTensor as it is, anything else as a tensor."""
    return labels if isinstance(labels, SparseTensor) else convert_to_tensor(labels, name="labels")


def with_label_dimension(labels: Any, predictions: Tensor) -> Any:
    """Labels of the predictions' rank: where an example has one label, with a last dimension of size 1.

    ValueError if the labels' known rank is neither that nor one less.
    """
    with name_scope(None, "expand_labels", (labels, predictions)) as scope:
        labels = as_labels(labels)
        if isinstance(labels, SparseTensor):
            return cond(
                equal(rank(predictions), size(labels.dense_shape) + 1),
                lambda: _with_last_dimension(labels, scope),
                lambda: labels,
            )
        if labels.ndim is None or predictions.ndim is None:
            return cond(
                equal(rank(predictions), rank(labels) + 1),
                lambda: expand_dims(labels, -1, name=scope),
                lambda: labels,
            )
        if predictions.ndim == labels.ndim:
            return labels
        if predictions.ndim == labels.ndim + 1:
            return expand_dims(labels, -1, name=scope)
        raise ValueError(f"Unexpected labels shape {labels.shape} for predictions shape {predictions.shape}.")


def _with_last_dimension(labels: SparseTensor, name: str) -> SparseTensor:
    shape = concat((labels.dense_shape, [1]), 0)
    indices, shape = F.SparseReshape.several(labels.indices, labels.dense_shape, shape, name=name)
    return SparseTensor(indices, labels.values, shape)


def dense_labels(labels: Any) -> Tensor:
    """The labels as a dense tensor; where an example has less than others, a number that is no class."""
    result: Tensor
    if isinstance(labels, SparseTensor):
        values = cast(labels.values, dtypes.int64)
        result = F.SparseToDense(labels.indices, labels.dense_shape, values, _ABSENT)
    else:
        result = cast(labels, dtypes.int64)
    return result


def _counted_in_sets(count: str, labels: Any, predictions: Tensor) -> Tensor:
    """How many classes are in both sets, or in one of them alone, for each example."""
    options = {"set_operation": _SETS[count], "validate_indices": True}
    if isinstance(labels, SparseTensor):
        parts = (labels.indices, labels.values, labels.dense_shape)
        found = F.DenseToSparseSetOperation.several(predictions, *parts, **options)
    else:
        found = F.DenseToDenseSetOperation.several(predictions, labels, **options)
    number: Tensor = cast(F.SetSize(*found, validate_indices=True), dtypes.float64)
    return number


def _counted_of_class(count: str, labels: Any, predictions: Tensor, class_id: int) -> Tensor:
    """1 for each example that counts, asked of one class alone, else 0."""
    is_label = reduce_any(equal(dense_labels(labels), class_id), axis=-1)
    is_predicted = reduce_any(equal(predictions, class_id), axis=-1)
    if count == "false_positive":
        is_label = logical_not(is_label)
    if count == "false_negative":
        is_predicted = logical_not(is_predicted)
    counts: Tensor = cast(logical_and(is_label, is_predicted), dtypes.float64)
    return counts


def _streaming_count(
    count: str, labels: Any, predictions: Tensor, k: Any, class_id: int | None, weights: Any
) -> tuple[Any, Any]:
    """The variable of a count, named as the scope, and its update."""
    with name_scope(None, name_at_k(count, k, class_id), (predictions, labels, weights)) as scope:
        with name_scope(None, f"{count}s", (predictions, labels, weights)):
            if class_id is None:
                counts = _counted_in_sets(count, labels, predictions)
            else:
                counts = _counted_of_class(count, labels, predictions, class_id)
            if weights is not None:
                with control_dependencies((assert_broadcastable(weights, counts),)):
                    counts = multiply(counts, cast(weights, dtypes.float64))
        total = reduce_sum(counts)
        variable = metric_variable([], dtypes.float64, name=scope)
        return variable, assign_add(variable, total, name="update")


def _share_at_top_k(
    rest: str,
    labels: Any,
    predictions_idx: Any,
    k: Any,
    class_id: int | None,
    weights: Any,
    metrics_collections: Names,
    updates_collections: Names,
    scope: str,
) -> tuple[Tensor, Tensor]:
    """tp / (tp + rest), where `rest` is another count; not a number while both are 0."""
    labels = with_label_dimension(labels, convert_to_tensor(predictions_idx))
    predictions = cast(predictions_idx, dtypes.int64)
    if not isinstance(labels, SparseTensor):
        labels = cast(labels, dtypes.int64)
    right, right_now = _streaming_count("true_positive", labels, predictions, k, class_id, weights)
    wrong, wrong_now = _streaming_count(rest, labels, predictions, k, class_id, weights)
    value = div(right, add(right, wrong), name=scope)
    update_op = div(right_now, add(right_now, wrong_now), name="update")
    return published(value, update_op, metrics_collections, updates_collections)


def precision_at_top_k(
    labels: Any,
    predictions_idx: Any,
    k: int | None = None,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """How many of the classes `predictions_idx`, ``[…, k]``, are labels: scalars. `k` is for the name only.

    With `class_id`, of the examples for which that class is predicted.
    """
    with name_scope(name, name_at_k("precision", k, class_id), (predictions_idx, labels, weights)) as scope:
        given = (labels, predictions_idx, k, class_id, weights, metrics_collections, updates_collections)
        return _share_at_top_k("false_positive", *given, scope)


def precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """How many of the `k` classes of the highest scores are labels: scalars.

    With `class_id`, of the examples for which that class is among them.
    """
    with name_scope(name, name_at_k("precision", k, class_id), (predictions, labels, weights)) as scope:
        indices = top_k(predictions, k).indices
        given = (labels, indices, k, class_id, weights, metrics_collections, updates_collections)
        return precision_at_top_k(*given, name=scope)


def sparse_precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """An old name of `precision_at_k`."""
    given = (labels, predictions, k, class_id, weights, metrics_collections, updates_collections, name)
    return precision_at_k(*given)


def recall_at_top_k(
    labels: Any,
    predictions_idx: Any,
    k: int | None = None,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """How many of the labels are among the classes `predictions_idx`, ``[…, k]``: scalars.

    `k` is for the name only. With `class_id`, of the examples that have that label.
    """
    with name_scope(name, name_at_k("recall", k, class_id), (predictions_idx, labels, weights)) as scope:
        given = (labels, predictions_idx, k, class_id, weights, metrics_collections, updates_collections)
        return _share_at_top_k("false_negative", *given, scope)


def recall_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """How many of the labels are among the `k` classes of the highest scores: scalars.

    With `class_id`, of the examples that have that label.
    """
    with name_scope(name, name_at_k("recall", k, class_id), (predictions, labels, weights)) as scope:
        indices = top_k(predictions, k).indices
        given = (labels, indices, k, class_id, weights, metrics_collections, updates_collections)
        return recall_at_top_k(*given, name=scope)
