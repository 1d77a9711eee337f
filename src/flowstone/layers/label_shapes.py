"""Labels and predictions of one rank: a last dimension of size 1 that only one of them has is dropped.

Labels often come as ``[batch, 1]`` where predictions are ``[batch]``, or the other way round. Losses and
metrics of both accept either. Where ranks are known, this is decided while the graph is built, else by a
conditional in the step.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.graphs.graph_functions import name_scope
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.arrays.shapes import rank, squeeze
from flowstone.ops.control.conditionals import cond
from flowstone.ops.numbers.comparisons import equal

__all__ = ["remove_squeezable_dimensions"]


def remove_squeezable_dimensions(
    labels: Any, predictions: Any, expected_rank_diff: int = 0, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """`labels` and `predictions`, without a last dimension of size 1 that one has too many.

    `expected_rank_diff`: how many dimensions more the predictions shall have. A tensor of the expected rank,
    or one that differs by more than one dimension, is returned as it is. ValueError if the dimension to drop
    is known not to be 1.
    """
    with name_scope(name, "remove_squeezable_dimensions", [labels, predictions]):
        predictions, labels = convert_to_tensor(predictions), convert_to_tensor(labels)
        if predictions.ndim is not None and labels.ndim is not None:
            surplus = predictions.ndim - labels.ndim - expected_rank_diff
            if surplus == 1:
                predictions = squeeze(predictions, [-1])
            elif surplus == -1:
                labels = squeeze(labels, [-1])
            return labels, predictions
        difference = rank(predictions) - rank(labels)
        if _may_end_in_one(predictions):
            predictions = _squeezed_if(equal(expected_rank_diff + 1, difference), predictions)
        if _may_end_in_one(labels):
            labels = _squeezed_if(equal(expected_rank_diff - 1, difference), labels)
        return labels, predictions


def _may_end_in_one(x: Tensor) -> bool:
    return x.dims is None or (len(x.dims) > 0 and x.dims[-1] in (None, 1))


def _squeezed_if(condition: Tensor, x: Tensor) -> Tensor:
    """`x` without its last dimension where the condition holds in the step."""
    result: Tensor = cond(condition, lambda: squeeze(x, [-1]), lambda: x)
    return result
