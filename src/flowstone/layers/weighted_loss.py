"""What all losses of `tf.losses` share: weights, the reduction to one number, and the collection LOSSES.

A loss is computed by element, multiplied by weights, reduced as `Reduction` says, and added to a collection
of the graph, from which `get_total_loss` makes what an optimiser minimises.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.graphs.graph_functions import (
    add_to_collection,
    control_dependencies,
    get_collection,
    name_scope,
)
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.layers.label_shapes import remove_squeezable_dimensions
from flowstone.layers.weights_broadcast import assert_broadcastable, broadcast_weights
from flowstone.ops.arrays.choice import where
from flowstone.ops.arrays.constants import constant, ones_like, zeros_like
from flowstone.ops.arrays.constants import range as sequence
from flowstone.ops.arrays.shapes import rank, size, squeeze
from flowstone.ops.control.conditionals import cond
from flowstone.ops.numbers.arithmetic import multiply
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.comparisons import equal
from flowstone.ops.numbers.division import div_no_nan
from flowstone.ops.numbers.reductions import reduce_sum
from flowstone.ops.numbers.sums import add_n

__all__ = [
    "Reduction",
    "add_loss",
    "compute_weighted_loss",
    "get_losses",
    "get_regularization_loss",
    "get_regularization_losses",
    "get_total_loss",
]


class Reduction:
    """How weighted losses become one number.

    NONE keeps them by element. SUM adds them up. MEAN divides the sum by the sum of the weights,
    SUM_OVER_BATCH_SIZE by the number of losses, SUM_BY_NONZERO_WEIGHTS (the default of all losses) by the
    number of losses whose weight is not zero; SUM_OVER_NONZERO_WEIGHTS is another name of the last. Where
    that divisor is 0, the loss is 0.
    """

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """The names of all reductions."""
        return (
            cls.NONE,
            cls.SUM,
            cls.MEAN,
            cls.SUM_OVER_BATCH_SIZE,
            cls.SUM_OVER_NONZERO_WEIGHTS,
            cls.SUM_BY_NONZERO_WEIGHTS,
        )

    @classmethod
    def validate(cls, key: str) -> None:
        """ValueError unless `key` names a reduction."""
        if key not in cls.all():
            raise ValueError(f"Invalid ReductionKey {key}.")


DEFAULT = Reduction.SUM_BY_NONZERO_WEIGHTS


def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = DEFAULT,
) -> Tensor:
    """`losses` times `weights`, reduced: a scalar, or of the losses' shape under ``Reduction.NONE``.

    `weights`: a number, or a tensor of the losses' rank, each of whose dimensions is theirs or 1. The result
    has the losses' type, but is computed as float32; it is added to the collection `loss_collection` (None:
    to none). ValueError for another reduction, and for weights that do not fit; what only the step knows of
    their shape is InvalidArgumentError there.
    """
    Reduction.validate(reduction)
    get_default_graph().last_loss_reduction = reduction
    with (
        name_scope(scope, "weighted_loss", (losses, weights)),
        control_dependencies((assert_broadcastable(weights, losses),)),
    ):
        losses = convert_to_tensor(losses)
        given = losses.dtype.base_dtype
        losses, weights = cast(losses, dtypes.float32), cast(weights, dtypes.float32)
        loss = multiply(losses, weights)
        if reduction != Reduction.NONE:
            loss = reduce_sum(loss)
        if reduction == Reduction.MEAN:
            loss = safe_mean(loss, reduce_sum(ones_like(losses) * weights))
        elif reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
            loss = safe_mean(loss, num_present(losses, weights))
        elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
            loss = safe_mean(loss, _num_elements(losses))
        result: Tensor = cast(loss, given)
        add_loss(result, loss_collection)
        return result


def safe_mean(losses: Tensor, count: Tensor) -> Tensor:
    """The sum of the losses over `count`, and 0 where that is 0."""
    return div_no_nan(reduce_sum(losses), count, name="value")


def num_present(losses: Tensor, weights: Tensor, per_batch: bool = False) -> Tensor:
    """How many losses have a weight that is not zero; `per_batch`: of each example, as ``[batch, 1, …]``."""
    with name_scope(None, "num_present", (losses, weights)) as scope:
        present = where(equal(weights, 0.0), zeros_like(weights), ones_like(weights))
        present = broadcast_weights(present, losses)
        if per_batch:
            return reduce_sum(present, axis=sequence(1, rank(present)), keepdims=True, name=scope)
        return reduce_sum(present, name=scope)


def _num_elements(losses: Tensor) -> Tensor:
    with name_scope(None, "num_elements", (losses,)) as scope:
        count: Tensor = cast(size(losses, name=scope), losses.dtype)
        return count


def aligned_with_weights(
    labels: Any, predictions: Any, weights: Any, expected_rank_diff: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """`remove_squeezable_dimensions` of labels and predictions, and weights of the losses' rank, or scalar.

    Weights that have a dimension more than the labels lose the last one. That it is 1 is checked as the op
    Squeeze does.
    """
    labels, predictions = remove_squeezable_dimensions(labels, predictions, expected_rank_diff)
    weights = convert_to_tensor(weights)
    if weights.ndim is not None and labels.ndim is not None:
        if weights.ndim - labels.ndim == 1:
            weights = squeeze(weights, [-1])
        return labels, predictions, weights
    surplus = rank(weights) - rank(labels)
    if weights.dims is None or (weights.dims and weights.dims[-1] in (None, 1)):
        full = weights
        weights = cond(equal(1, surplus), lambda: squeeze(full, [-1]), lambda: full)
    return labels, predictions, weights


# ---- the collection


def add_loss(loss: Tensor, loss_collection: Any = GraphKeys.LOSSES) -> None:
    """Adds a loss that was computed otherwise to the collection (None: to none)."""
    if loss_collection:
        add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: Any = GraphKeys.LOSSES) -> list[Tensor]:
    """The losses of the collection; with `scope`, a regular expression, those whose name begins with it."""
    return get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Tensor]:
    """The losses that variables' regularisers gave; with `scope`, those whose name begins with it."""
    return get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(scope: str | None = None, name: str = "total_regularization_loss") -> Tensor:
    """The sum of `get_regularization_losses`, a scalar; 0.0 where there are none."""
    losses = get_regularization_losses(scope)
    return add_n(losses, name=name) if losses else constant(0.0)


def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Tensor:
    """The sum of the collection LOSSES and, unless told otherwise, of the regularisers' losses: a scalar.

    With `scope`, a regular expression, of those whose name begins with it. ValueError if there are none.
    """
    losses = get_losses(scope=scope)
    if add_regularization_losses:
        losses += get_regularization_losses(scope=scope)
    return add_n(losses, name=name)
