"""The k largest or smallest elements along an axis, by functions that may miss some: none is missed here."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import convert_to_tensor

__all__ = ["approx_max_k", "approx_min_k", "approx_top_k"]

ApproxTopK = namedtuple("ApproxTopK", ["values", "indices"])


def approx_top_k(
    input: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    is_max_k: bool = True,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> Any:
    """(values, indices, int32) of the `k` largest elements, or smallest, along a dimension, in order.

    All are found, whatever `recall_target` allows; the other arguments tune devices that miss some.
    ValueError for a dimension that does not exist, or a target that is not in (0, 1].
    """
    if not 0 < recall_target <= 1:
        raise ValueError(f"recall_target must be in (0, 1], but is {recall_target}")
    with get_default_graph().name_scope(name or "ApproxTopK"):
        x = convert_to_tensor(input, name="input")
        rank = x.shape.ndims
        if rank is None or not -rank <= reduction_dimension < rank:
            raise ValueError(f"there is no dimension {reduction_dimension} in shape {x.shape}")
        order = list(range(rank))
        order[reduction_dimension], order[-1] = order[-1], order[reduction_dimension]
        is_last = order == sorted(order)
        x = x if is_last else F.Transpose(x, order)
        values, indices = F.TopKV2.several(x if is_max_k else F.Neg(x), k)
        values = values if is_max_k else F.Neg(values)
        if not is_last:
            values, indices = F.Transpose(values, order), F.Transpose(indices, order)
        return ApproxTopK(values, indices)


def approx_max_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> Any:
    """`approx_top_k` of the largest elements."""
    return approx_top_k(operand, k, reduction_dimension, recall_target, name=name)


def approx_min_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> Any:
    """`approx_top_k` of the smallest elements."""
    return approx_top_k(operand, k, reduction_dimension, recall_target, False, name=name)
