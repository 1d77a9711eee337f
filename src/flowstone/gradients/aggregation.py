"""Adds up gradients that arrive at a tensor along several paths.

Dense gradients are added by one ``AddN`` (one for each device if they are computed on several), or by a chain
of them that frees early ones (`AggregationMethod.EXPERIMENTAL_TREE`, `EXPERIMENTAL_ACCUMULATE_N`).
`IndexedSlices` alone are concatenated, since equal indices add up; together with dense gradients they are
made dense."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import constant
from flowstone.ops.control.control_flow import with_equal_indices


class AggregationMethod:
    """How `gradients` adds gradients that arrive along several paths."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


def check_method(method: int | None) -> int:
    """The aggregation method, ADD_N for None. ValueError if there is no such method."""
    if method is None:
        return AggregationMethod.DEFAULT
    if method not in (0, 1, 2):
        raise ValueError(f"Invalid `aggregation_method` specified {method}. Accepted values are [0, 1, 2].")
    return method


def aggregate(grads: list[Any], method: int, target: str) -> Any:
    """The sum of two or more gradients with respect to the op named `target`: a Tensor if any is one, else
    IndexedSlices.
    """
    if not any(isinstance(grad, Tensor) for grad in grads):
        return _joined_slices(grads)
    graph = next(grad for grad in grads if isinstance(grad, Tensor)).graph
    if not all(isinstance(grad, Tensor) for grad in grads):
        return F.AddN(grads)
    if method == AggregationMethod.ADD_N:
        return _add_by_device(graph, grads)
    with graph.name_scope(f"{target}_gradient_sum"):
        total = grads[0]
        for grad in grads[1:]:
            total = F.AddN([total, grad])
    return total


def _add_by_device(graph: Any, grads: list[Tensor]) -> Tensor:
    by_device: dict[str, list[Tensor]] = {}
    for grad in grads:
        by_device.setdefault(grad.op.device, []).append(grad)
    sums = [_add_n(graph, group) if len(group) > 1 else group[0] for _, group in sorted(by_device.items())]
    return sums[0] if len(sums) == 1 else F.AddN(sums)


def _add_n(graph: Any, grads: list[Tensor]) -> Tensor:
    with graph.colocate_with(grads[0].op, ignore_existing=True):
        return F.AddN(grads)


def _joined_slices(grads: list[IndexedSlices]) -> IndexedSlices:
    indices = [grad.indices for grad in with_equal_indices(grads)]
    with grads[0].graph.name_scope("concat") as name:
        values = F.ConcatV2([grad.values for grad in grads], _axis(), name=name)
    with grads[0].graph.name_scope("concat") as name:
        places = F.ConcatV2(indices, _axis(), name=name)
    return IndexedSlices(values, places, grads[0].dense_shape)


def _axis() -> Tensor:
    return constant(0, dtypes.int32, name="axis")
