"""Metrics of the k classes predicted first for an example, whose labels are a set of classes.

`labels` are class numbers ``[…, labels]``, dense or a SparseTensor, or ``[…]`` where an example has one;
`predictions` are scores ``[…, classes]``, or class numbers ``[…, k]`` for functions that say top_k. Labels
and predictions count as sets: what is repeated counts once. Variables and values are float64.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph_functions import (
    control_dependencies,
    convert_to_tensor_or_sparse_tensor,
    name_scope,
)
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.layers.metrics.state import Names, gathered, metric_variable, published
from flowstone.layers.weights_broadcast import assert_broadcastable
from flowstone.ops.arrays.constants import ones_like
from flowstone.ops.arrays.identities import identity
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.shapes import expand_dims, rank
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.control.checks import assert_equal
from flowstone.ops.control.conditionals import cond
from flowstone.ops.numbers.arithmetic import add, multiply
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.comparisons import equal, logical_and, logical_not, not_equal
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

_ABSENT = dtypes.int64.min  # in place of the labels that an example has less than others


def name_at_k(name: str, k: Any = None, class_id: int | None = None) -> str:
    """The scope of a metric: with k if it is a number that counts, and with the class."""
    name = f"{name}_at_{k}" if k else f"{name}_at_k"
    return name if class_id is None else f"{name}_class{class_id}"


def _of_same_examples(labels: Tensor, predictions: Tensor) -> Tensor:
    """`labels`, which have the sizes of `predictions` but for the last, or the step fails."""
    known = [x.shape[:-1] for x in (labels, predictions)]
    known[0].assert_is_compatible_with(known[1])
    if all(sizes.is_fully_defined() for sizes in known):
        return labels
    given, wanted = shape_of(labels)[:-1], shape_of(predictions)[:-1]
    check = assert_equal(given, wanted, message="Mismatched shapes of labels and predictions")
    with control_dependencies([check]):
        same: Tensor = identity(labels)
        return same


def as_labels(labels: Any) -> Any:
    """A SparseTensor, also of a SparseTensorValue; anything else as a tensor."""
    return convert_to_tensor_or_sparse_tensor(labels, name="labels")


def label_sets(labels: Any, predictions: Tensor) -> Tensor:
    """Labels as a dense tensor of int64 and of the predictions' rank.

    Where an example has one label, there is a last dimension of size 1; where a sparse example has less than
    others, the rest is a number that is no class. ValueError if the labels' known rank is neither the
    predictions' nor one less.
    """
    with name_scope(None, "expand_labels", (labels, predictions)) as scope:
        classes = _dense(as_labels(labels))
        if classes.ndim is None or predictions.ndim is None:
            result: Tensor = cond(
                equal(rank(predictions), rank(classes) + 1),
                lambda: expand_dims(classes, -1, name=scope),
                lambda: classes,
            )
            return _of_same_examples(result, predictions)
        if predictions.ndim == classes.ndim:
            return _of_same_examples(classes, predictions)
        if predictions.ndim == classes.ndim + 1:
            return _of_same_examples(expand_dims(classes, -1, name=scope), predictions)
        raise ValueError(
            f"Unexpected labels shape {classes.shape} for predictions shape {predictions.shape}."
        )


def _dense(labels: Any) -> Tensor:
    result: Tensor
    if isinstance(labels, SparseTensor):
        values = cast(labels.values, dtypes.int64)
        result = F.SparseToDense(labels.indices, labels.dense_shape, values, _ABSENT)
    else:
        result = cast(labels, dtypes.int64)
    return result


def distinct(classes: Tensor) -> tuple[Tensor, Tensor]:
    """The classes of each example in decreasing order, and which of them are there for the first time."""
    values = top_k(classes, shape_of(classes)[-1]).values
    differs = not_equal(values[..., 1:], values[..., :-1])
    is_first = concat([ones_like(values[..., :1], dtypes.bool), differs], -1)
    return values, logical_and(is_first, not_equal(values, _ABSENT))


def is_among(classes: Tensor, others: Tensor) -> Tensor:
    """Of each class, whether it is one of the others of its example."""
    return reduce_any(equal(expand_dims(classes, -1), expand_dims(others, -2)), axis=-1)


def _counted(count: str, labels: Tensor, predictions: Tensor) -> Tensor:
    """How many classes are in both sets, or in one of them alone, for each example."""
    if count == "false_positive":
        classes, others = predictions, labels
    else:
        classes, others = labels, predictions
    values, counts = distinct(classes)
    is_shared = is_among(values, others)
    counts = logical_and(counts, is_shared if count == "true_positive" else logical_not(is_shared))
    number: Tensor = reduce_sum(cast(counts, dtypes.float64), axis=-1)
    return number


def _counted_of_class(count: str, labels: Tensor, predictions: Tensor, class_id: int) -> Tensor:
    """1 for each example that counts, asked of one class alone, else 0."""
    is_label = reduce_any(equal(labels, class_id), axis=-1)
    is_predicted = reduce_any(equal(predictions, class_id), axis=-1)
    if count == "false_positive":
        is_label = logical_not(is_label)
    if count == "false_negative":
        is_predicted = logical_not(is_predicted)
    counts: Tensor = cast(logical_and(is_label, is_predicted), dtypes.float64)
    return counts


def _streaming_count(
    count: str, labels: Tensor, predictions: Tensor, k: Any, class_id: int | None, weights: Any
) -> tuple[Any, Any]:
    """The variable of a count, named as the scope, and its update."""
    with name_scope(None, name_at_k(count, k, class_id), (predictions, labels, weights)) as scope:
        with name_scope(None, f"{count}s", (predictions, labels, weights)):
            if class_id is None:
                counts = _counted(count, labels, predictions)
            else:
                counts = _counted_of_class(count, labels, predictions, class_id)
            if weights is not None:
                with control_dependencies((assert_broadcastable(weights, counts),)):
                    counts = multiply(counts, cast(weights, dtypes.float64))
        total = reduce_sum(counts)
        variable = metric_variable([], dtypes.float64, name=scope)
        return gathered(variable), assign_add(variable, total, name="update")


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
    labels = label_sets(labels, convert_to_tensor(predictions_idx))
    predictions = cast(predictions_idx, dtypes.int64)
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
