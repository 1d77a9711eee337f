"""What all metrics share: variables, the collections of their results, and the ranks of their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.graphs.graph_functions import add_to_collections
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.layers.label_shapes import remove_squeezable_dimensions
from flowstone.ops.arrays.constants import zeros
from flowstone.ops.arrays.shapes import expand_dims, rank, squeeze
from flowstone.ops.control.conditionals import cond
from flowstone.ops.numbers.arithmetic import maximum
from flowstone.ops.numbers.comparisons import equal
from flowstone.ops.numbers.division import div_no_nan
from flowstone.ops.variables.replicas import current_replica, is_first_replica
from flowstone.ops.variables.variable_creation import VariableAggregation, VariableSynchronization
from flowstone.ops.variables.variables import Variable

Names = Any  # of collections: a list, a name, or None


def metric_variable(
    shape: Any, dtype: Any = dtypes.float32, validate_shape: bool = True, name: str | None = None
) -> Any:
    """A variable of zeros, in the collections LOCAL_VARIABLES and METRIC_VARIABLES."""
    return Variable(
        initial_value=lambda: zeros(shape, dtype),
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
        validate_shape=validate_shape,
        name=name,
        synchronization=VariableSynchronization.ON_READ,
        aggregation=VariableAggregation.SUM,
    )


def gathered(variable: Any) -> Any:
    """What a metric's value is made of: the variable, or among several replicas the sum of all theirs."""
    replica = current_replica()
    if replica is None:
        return variable
    return replica.merge_call(lambda strategy, variable: variable.value(), (variable,))


def published(
    value: Tensor, update_op: Any, metrics_collections: Names, updates_collections: Names
) -> tuple[Tensor, Any]:
    """The pair, after each was added to its collections. Several replicas have one value, the first one's."""
    replica = current_replica()
    if replica is not None:
        value = replica.merge_call(lambda strategy, value: strategy.unwrap(value)[0], (value,))
    if metrics_collections and is_first_replica():
        add_to_collections(metrics_collections, value)
    if updates_collections:
        add_to_collections(updates_collections, update_op)
    return value, update_op


def safe_ratio(numerator: Any, denominator: Any, name: str) -> Tensor:
    """numerator / denominator, and 0 where the denominator is not positive."""
    return div_no_nan(numerator, maximum(denominator, 0), name=name)


def with_fitting_weights(predictions: Any, weights: Any) -> tuple[Tensor, Any]:
    """`predictions` as a tensor, and `weights`, with or without a last dimension of size 1, as they fit."""
    predictions = convert_to_tensor(predictions)
    if weights is None:
        return predictions, None
    weights = convert_to_tensor(weights)
    if weights.ndim == 0:
        return predictions, weights
    if weights.ndim is not None and predictions.ndim is not None:
        surplus = weights.ndim - predictions.ndim
        if surplus == 1:
            weights = squeeze(weights, [-1])
        elif surplus == -1:
            weights = expand_dims(weights, [-1])
        return predictions, weights
    return predictions, _fitted_in_the_step(predictions, weights)


def _fitted_in_the_step(predictions: Tensor, weights: Tensor) -> Tensor:
    weights_rank = rank(weights)
    surplus = weights_rank - rank(predictions)
    may_end_in_one = weights.dims is None or weights.dims[-1] in (None, 1)

    def expanded() -> Any:
        return cond(equal(surplus, -1), lambda: expand_dims(weights, [-1]), lambda: weights)

    def fitted() -> Any:
        squeezed: Callable[[], Tensor] = lambda: squeeze(weights, [-1]) if may_end_in_one else weights  # noqa: E731
        return cond(equal(surplus, 1), squeezed, expanded)

    result: Tensor = cond(equal(weights_rank, 0), lambda: weights, fitted)
    return result


def aligned(predictions: Any, labels: Any, weights: Any) -> tuple[Tensor, Tensor, Any]:
    """Predictions and labels of one rank, and fitting weights.

    ValueError if the known shapes of predictions and labels differ.
    """
    predictions = convert_to_tensor(predictions)
    labels, predictions = remove_squeezable_dimensions(labels, predictions)
    predictions.shape.assert_is_compatible_with(labels.shape)
    predictions, weights = with_fitting_weights(predictions, weights)
    return predictions, labels, weights
