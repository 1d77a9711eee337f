"""`tf.confusion_matrix`: how often each class was predicted for each label."""

from __future__ import annotations

from typing import Any

from flowstone.framework.graphs.graph_functions import name_scope
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.layers.label_shapes import remove_squeezable_dimensions
from flowstone.ops.arrays.constants import ones_like, zeros
from flowstone.ops.arrays.packing import stack
from flowstone.ops.control.checks import assert_less, assert_non_negative
from flowstone.ops.control.control_flow import with_dependencies
from flowstone.ops.numbers.arithmetic import maximum
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.reductions import reduce_max
from flowstone.ops.sparse.sparse_arithmetic import sparse_add

__all__ = ["confusion_matrix"]


def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
    weights: Any = None,
) -> Tensor:
    """``[classes, classes]`` of type `dtype`: at [i, j] the sum of the weights with label i, prediction j.

    `labels` and `predictions` are class numbers, vectors of one length; `num_classes` is by default one more
    than the largest of both; `weights` is a vector or None, which counts. InvalidArgumentError in the step
    for a class that is negative or not below `num_classes`.
    """
    with name_scope(name, "confusion_matrix", (predictions, labels, num_classes, weights)):
        labels, predictions = remove_squeezable_dimensions(
            convert_to_tensor(labels, name="labels"), convert_to_tensor(predictions, name="predictions")
        )
        predictions, labels = cast(predictions, dtypes.int64), cast(labels, dtypes.int64)
        labels = _not_negative(labels, "`labels` contains negative values")
        predictions = _not_negative(predictions, "`predictions` contains negative values")
        if num_classes is None:
            num_classes = maximum(reduce_max(predictions), reduce_max(labels)) + 1
        else:
            limit = cast(num_classes, dtypes.int64)
            labels = _below(labels, limit, "`labels` out of bound")
            predictions = _below(predictions, limit, "`predictions` out of bound")
        if weights is not None:
            weights = convert_to_tensor(weights, name="weights")
            predictions.shape.assert_is_compatible_with(weights.shape)
            weights = cast(weights, dtype)
        shape = stack([num_classes, num_classes])
        indices = stack([labels, predictions], axis=1)
        values = ones_like(predictions, dtype) if weights is None else weights
        counts = SparseTensor(indices, values, cast(shape, dtypes.int64))
        matrix: Tensor = sparse_add(counts, zeros(cast(shape, dtypes.int32), dtype))
        return matrix


def _not_negative(classes: Tensor, message: str) -> Tensor:
    checked: Tensor = with_dependencies([assert_non_negative(classes, message=message)], classes)
    return checked


def _below(classes: Tensor, number: Tensor, message: str) -> Tensor:
    checked: Tensor = with_dependencies([assert_less(classes, number, message=message)], classes)
    return checked
