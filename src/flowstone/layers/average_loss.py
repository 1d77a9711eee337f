"""Losses of a global batch, in which replicas have their parts. Public names here belong to ``tf.nn``."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.layers.weighted_loss import Reduction, compute_weighted_loss
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.reductions import reduce_sum

__all__ = ["compute_average_loss", "scale_regularization_loss"]


def compute_average_loss(
    per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None
) -> Tensor:
    """The sum of the examples' losses, weighted, over the number of examples of all replicas.

    Args:
        per_example_loss: [batch, …].
        sample_weight: weights that broadcast with the losses; None weighs all alike.
        global_batch_size: an integer; None takes the batch of `per_example_loss`.

    Raises:
        ValueError: the loss is a scalar.
        TypeError: the size is no integer.
    """
    losses = convert_to_tensor(per_example_loss)
    if losses.shape.ndims == 0:
        raise ValueError(
            "Invalid value passed for `per_example_loss`. Expected a tensor with at least rank 1. "
            f"Received per_example_loss={losses} with rank 0"
        )
    kind = losses.dtype
    if sample_weight is not None:
        losses = compute_weighted_loss(losses, sample_weight, loss_collection=None, reduction=Reduction.NONE)
    if global_batch_size is None:
        size: Any = F.Shape(losses)[0]
    else:
        size = convert_to_tensor(global_batch_size, name="global_batch_size")
        if not size.dtype.is_integer:
            raise TypeError(f"global_batch_size must be an integer. Found: {size.dtype.name}")
    return F.DivNoNan(reduce_sum(cast(losses, kind)), cast(size, kind))


def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """The sum of the losses, which a single replica need not scale."""
    with get_default_graph().name_scope("scale_regularization_loss"):
        loss = convert_to_tensor(regularization_loss)
        return reduce_sum(loss if loss.dtype.is_floating else F.Cast(loss, DstT=dtypes.float32))
