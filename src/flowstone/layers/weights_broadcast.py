"""Weights of losses and metrics: of their values' shape, or with some dimensions of size 1, or a scalar.

Weights must have the rank of the values, and each dimension the values' size or 1; numbers of rank 0 weight
all values alike. That is narrower than what arithmetic broadcasts: weights ``[3]`` for values ``[4, 3]`` are
refused, since they are more often a mistake than meant. What is known is checked while the graph is built,
the rest by an Assert in the step.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.graphs.graph_functions import control_dependencies, name_scope
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.arrays.constants import ones_like
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.shapes import expand_dims, rank, shape, size
from flowstone.ops.control.conditionals import Assert, cond
from flowstone.ops.control.control_flow import no_op
from flowstone.ops.numbers.arithmetic import multiply
from flowstone.ops.numbers.comparisons import equal
from flowstone.ops.sparse.sets import set_difference

__all__ = ["assert_broadcastable", "broadcast_weights"]

_REFUSAL = "weights can not be broadcast to values."


def assert_broadcastable(weights: Any, values: Any) -> Operation:
    """An operation that fails with InvalidArgumentError unless `weights` can weight `values`; see the module.

    ValueError if what is known of their shapes is enough to say so.
    """
    with name_scope(None, "assert_broadcastable", (weights, values)) as scope:
        with name_scope(None, "weights", (weights,)) as weights_scope:
            weights = convert_to_tensor(weights, name=weights_scope)
            weights_shape = shape(weights, name="shape")
            weights_rank = rank(weights, name="rank")
        with name_scope(None, "values", (values,)) as values_scope:
            values = convert_to_tensor(values, name=values_scope)
            values_shape = shape(values, name="shape")
            values_rank = rank(values, name="rank")
        known = _static_check(weights, values)
        if known is not None:
            return no_op(name=f"static_{known}_check_success")
        is_scalar = equal(0, weights_rank, name="is_scalar")
        is_valid = cond(
            is_scalar,
            lambda: is_scalar,
            lambda: _has_valid_shape(weights_rank, weights_shape, values_rank, values_shape),
            name="is_valid_shape",
        )
        data = [
            *(_REFUSAL, "weights.shape=", weights.name, weights_shape),
            *("values.shape=", values.name, values_shape, "is_scalar=", is_scalar),
        ]
        return Assert(is_valid, data, name=scope)


def _static_check(weights: Tensor, values: Tensor) -> str | None:
    """Which check succeeds, ``scalar`` or ``dims``; None if the step has to check. ValueError where one fails
    on what is known."""
    if weights.dims is None or values.dims is None:
        return None
    if not weights.dims:
        return "scalar"
    shapes = f"values.shape={values.shape}. weights.shape={weights.shape}."
    if len(weights.dims) != len(values.dims):
        ranks = f"values.rank={len(values.dims)}. weights.rank={len(weights.dims)}."
        raise ValueError(f"{_REFUSAL} {ranks} {shapes}")
    for i, (own, wanted) in enumerate(zip(weights.dims, values.dims)):
        if own not in (None, 1) and wanted not in (None, own):
            raise ValueError(f"{_REFUSAL} Mismatch at dim {i}. {shapes}")
    return None if None in (*weights.dims, *values.dims) else "dims"


def _has_valid_shape(
    weights_rank: Tensor, weights_shape: Tensor, values_rank: Tensor, values_shape: Tensor
) -> Tensor:
    """Whether the ranks are equal and each of the weights' sizes is the values' or 1."""

    def has_valid_dims() -> Tensor:
        with name_scope(None, "has_invalid_dims", (weights_shape, values_shape)) as scope:
            sizes = expand_dims(values_shape, -1)
            valid = concat((sizes, ones_like(sizes)), axis=1)
            invalid = set_difference(expand_dims(weights_shape, -1), valid)
            every: Tensor = equal(0, size(invalid.values, name="num_invalid_dims"), name=scope)
            return every

    with name_scope(None, "has_valid_nonscalar_shape", (weights_shape, values_shape)) as scope:
        is_same_rank = equal(values_rank, weights_rank, name="is_same_rank")
        result: Tensor = cond(is_same_rank, has_valid_dims, lambda: is_same_rank, name=scope)
        return result


def broadcast_weights(weights: Any, values: Any) -> Tensor:
    """`weights`, repeated to the shape of `values`. Errors are those of `assert_broadcastable`."""
    with name_scope(None, "broadcast_weights", (weights, values)) as scope:
        values = convert_to_tensor(values, name="values")
        given: Tensor = convert_to_tensor(weights, values.dtype.base_dtype, name="weights")
        if values.dims is not None and None not in values.dims and given.dims == values.dims:
            return given
        with control_dependencies((assert_broadcastable(given, values),)):
            return multiply(given, ones_like(values), name=scope)
