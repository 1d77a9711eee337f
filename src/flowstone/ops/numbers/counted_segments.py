"""Reductions over sorted segments whose number is given: Segment*V2.

The numbers of segments rise and are below that number; a segment without rows holds the reduction of nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import OpDeclaration, Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import merge
from flowstone.ops.numbers.elementwise import ALL_NUMBERS, REAL
from flowstone.ops.numbers.segment_reductions import (
    check_sorted,
    function_for,
    in_int64,
    invalid,
    max_rows,
    min_rows,
    prod_rows,
    sum_rows,
)

_INDEX = "type in [int32, int64]"


def _declare(name: str, types: tuple[DType, ...], function: Callable[..., torch.Tensor]) -> OpDeclaration:
    declaration = op(
        name,
        "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T",
        f"Tindices: {_INDEX} ; Tnumsegments: {_INDEX} = int32",
        T=types,
        host=["num_segments"],
        capturable=False,
    )
    declaration.no_gradient()

    @declaration.infer
    def _(node: Node) -> Shapes:
        data, count = node.dims(0), node.constant(2)
        merge(node.dims(1), (None,))
        merge(node.dims(2), ())
        if count is not None and int(count) < 0:
            raise ValueError(f"num_segments must be non-negative but is {int(count)}")
        if data == ():
            raise ValueError("Shape must be at least rank 1 but is rank 0")
        return None if data is None else (None if count is None else int(count), *data[1:])

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        reduce_rows = function_for(node.dtype(0), function)

        def reduce(data: torch.Tensor, ids: torch.Tensor, num_segments: torch.Tensor) -> torch.Tensor:
            count = int(num_segments)
            if ids.ndim != 1 or not data.ndim or ids.shape[0] != data.shape[0]:
                raise invalid("segment_ids should be a vector of the size of dimension 0 of input.")
            if count < 0:
                raise invalid(f"num_segments must be non-negative, got {count}")
            used = check_sorted(ids)
            if used > count:
                raise invalid(f"segment ids must be < num_segments: {used - 1} is not in [0, {count})")
            return reduce_rows(data, ids, count)

        return in_int64(node.dtype(0), reduce)

    return declaration


segment_sum_v2_op = _declare("SegmentSumV2", ALL_NUMBERS, sum_rows)
segment_max_v2_op = _declare("SegmentMaxV2", REAL, max_rows)
segment_min_v2_op = _declare("SegmentMinV2", REAL, min_rows)
segment_prod_v2_op = _declare("SegmentProdV2", ALL_NUMBERS, prod_rows)
