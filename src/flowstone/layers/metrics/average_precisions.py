"""The mean over examples of the average precision of the k classes predicted first.

The average precision of an example is the sum of the precisions among its first 1, 2, … k classes, of those
that end in a label, over the number of its labels or k, whichever is less.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.graphs.graph_functions import name_scope
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.layers.metrics.rankings import as_labels, distinct, is_among, label_sets, name_at_k
from flowstone.layers.metrics.state import Names, gathered, metric_variable, published
from flowstone.layers.weights_broadcast import broadcast_weights
from flowstone.ops.arrays.choice import where_v2
from flowstone.ops.arrays.constants import ones_like
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.arrays.shapes import size
from flowstone.ops.control.conditionals import cond
from flowstone.ops.numbers.accumulations import cumsum
from flowstone.ops.numbers.arithmetic import minimum, multiply
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.comparisons import greater_equal
from flowstone.ops.numbers.division import div, div_no_nan
from flowstone.ops.numbers.ranking import top_k
from flowstone.ops.numbers.reductions import reduce_max, reduce_sum
from flowstone.ops.variables.assignments import assign_add

__all__ = ["average_precision_at_k", "average_precision_at_top_k", "sparse_average_precision_at_k"]


def average_precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The mean average precision of the `k` classes of the highest scores: scalars of float64.

    `labels` are ``[…, labels]``, dense or sparse, or ``[…]``;
    `predictions` are scores ``[…, classes]``; `weights` are scalar or a weight an example. ValueError unless
    `k` is positive. Labels that are no class count as one class more, which is never predicted; of dense
    labels they do not count at all.
    """
    if k < 1:
        raise ValueError(f"Invalid k={k}.")
    with name_scope(name, name_at_k("average_precision", k), (predictions, labels, weights)) as scope:
        indices = top_k(predictions, k).indices
        labels = _without_unknown(as_labels(labels), convert_to_tensor(predictions))
        given = (labels, indices, weights, metrics_collections, updates_collections)
        return _streaming_mean(*given, scope)


def average_precision_at_top_k(
    predictions_idx: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """As `average_precision_at_k`, of classes ``[…, k]`` in order. ValueError for a scalar, or if k is
    not known.
    """
    indices = convert_to_tensor(predictions_idx)
    if indices.ndim == 0:
        raise ValueError("The rank of predictions_idx must be at least 1.")
    if indices.dims is not None and indices.dims[-1] is None:
        raise ValueError("The last dimension of predictions_idx must be known.")
    with name_scope(name, "average_precision_at_top_k", (indices, labels, weights)) as scope:
        given = (as_labels(labels), indices, weights, metrics_collections, updates_collections)
        return _streaming_mean(*given, scope)


def _without_unknown(labels: Any, predictions: Tensor) -> Any:
    """The labels, with -1 in place of those that are not among the classes."""
    values = labels.values if isinstance(labels, SparseTensor) else labels
    classes = cast(shape_of(predictions)[-1], values.dtype)

    def known() -> Any:
        kept = where_v2(greater_equal(values, classes), -1 * ones_like(values), values)
        if isinstance(labels, SparseTensor):
            return SparseTensor(labels.indices, kept, labels.dense_shape)
        return kept

    return cond(greater_equal(reduce_max(values), classes), known, lambda: labels)


def _streaming_mean(
    labels: Any,
    predictions_idx: Tensor,
    weights: Any,
    metrics_collections: Names,
    updates_collections: Names,
    scope: str,
) -> tuple[Tensor, Tensor]:
    precisions = _average_precisions(labels, predictions_idx)
    if weights is not None:
        weights = broadcast_weights(cast(weights, dtypes.float64), precisions)
        precisions = multiply(precisions, weights)
    with name_scope(None, "max", (precisions,)) as count_scope:
        count = metric_variable([], dtypes.float64, name=count_scope)
        if weights is None:
            number = cast(size(precisions, name="batch_max"), dtypes.float64)
        else:
            number = reduce_sum(weights, name="batch_max")
        new_count = assign_add(count, number, name="update")
    with name_scope(None, "total", (precisions,)) as total_scope:
        total = metric_variable([], dtypes.float64, name=total_scope)
        new_total = assign_add(total, reduce_sum(precisions, name="batch_total"), name="update")
    value = div_no_nan(gathered(total), gathered(count), name="mean")
    update_op = div_no_nan(new_total, new_count, name=scope)
    return published(value, update_op, metrics_collections, updates_collections)


def _average_precisions(labels: Any, predictions_idx: Tensor) -> Tensor:
    """``[…]`` of float64: the average precision of each example; not a number without labels."""
    with name_scope(None, "average_precision", (predictions_idx, labels)) as scope:
        predictions = cast(predictions_idx, dtypes.int64, name="predictions_idx")
        is_sparse = isinstance(labels, SparseTensor)
        labels = label_sets(labels, predictions)
        relevant = cast(is_among(predictions, labels), dtypes.float64)
        found = cumsum(relevant, axis=-1, name="tp_per_k")
        seen = cumsum(ones_like(relevant), axis=-1, name="retrieved_per_k")
        precisions = multiply(div(found, seen, name="precision_per_k"), relevant)
        total = reduce_sum(precisions, axis=(-1,), name="precision_sum")
        counts = distinct(labels)[1] if is_sparse else greater_equal(labels, 0)
        number = reduce_sum(cast(counts, dtypes.int32), axis=-1)
        most = shape_of(predictions)[-1]
        return div(total, cast(minimum(number, most, name="num_relevant"), dtypes.float64), name=scope)


def sparse_average_precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """An old name of `average_precision_at_k`."""
    given = (labels, predictions, k, weights, metrics_collections, updates_collections, name)
    return average_precision_at_k(*given)
