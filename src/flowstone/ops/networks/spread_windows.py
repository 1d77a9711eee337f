"""Windows whose elements are apart, by moving space to the batch: an operation over neighbours does the rest.

Public names here belong to ``tf.nn``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.arrays.space_moves import required_space_to_batch_paddings

__all__ = ["with_space_to_batch"]


def with_space_to_batch(
    input: Any,
    dilation_rate: Any,
    padding: str,
    op: Callable[[Tensor, int, str], Tensor],
    filter_shape: Any = None,
    spatial_dims: Any = None,
    data_format: str | None = None,
) -> Tensor:
    """`op`, which works on windows of neighbours, on windows whose elements are `dilation_rate` apart.

    Args:
        input: a tensor of rank n + 2 or more.
        dilation_rate: n positive integers.
        padding: "SAME" or "VALID".
        op: a function of (input, n, padding), whose padding is "VALID" where a rate is not 1.
        filter_shape: n sizes of windows, needed for "SAME".
        spatial_dims: the n dimensions of the windows, increasing and positive; from 1, or from 2 where
            `data_format` begins with "NC".

    Raises:
        ValueError: arguments do not fit.
    """
    input = convert_to_tensor(input, name="input")
    rates = np.asarray(static_value(convert_to_tensor(dilation_rate, name="dilation_rate")))
    if rates.ndim != 1:
        raise ValueError("rate must be rank 1")
    if (rates < 1).any():
        raise ValueError("dilation_rate must be positive")
    n = len(rates)
    first = 2 if (data_format or "").startswith("NC") else 1
    dims = list(range(first, first + n)) if spatial_dims is None else sorted(spatial_dims)
    if dims != list(spatial_dims or dims) or dims[0] < 1 or len(set(dims)) != len(dims) or len(dims) != n:
        raise ValueError("spatial_dims must be a montonically increasing sequence of positive integers")
    if (rates == 1).all():
        return op(input, n, padding)
    base = _base_paddings(padding, filter_shape, rates)
    sizes = _spatial_sizes(input, dims)
    paddings, crops = required_space_to_batch_paddings(sizes, rates.astype(np.int32), base)
    before = dims[-1]
    blocks = np.ones(before, np.int32)
    blocks[np.array(dims) - 1] = rates
    paddings, crops = (_placed(each, dims, before) for each in (paddings, crops))
    result = op(F.SpaceToBatchND(input, blocks, paddings), n, "VALID")
    return F.BatchToSpaceND(result, blocks, crops)


def _base_paddings(padding: str, filter_shape: Any, rates: Any) -> Any:
    if padding not in ("SAME", "VALID"):
        raise ValueError(f"Invalid padding method {padding!r}")
    if padding == "VALID":
        return np.zeros((len(rates), 2), np.int32)
    if filter_shape is None:
        raise ValueError("filter_shape must be specified for SAME padding")
    sizes = static_value(convert_to_tensor(filter_shape, name="filter_shape"))
    total = (np.asarray(sizes) - 1) * rates
    return np.stack([total // 2, total - total // 2], 1).astype(np.int32)


def _spatial_sizes(input: Tensor, dims: list[int]) -> Any:
    """The lengths of these dimensions: numbers if all are known, else the step's."""
    known = None if input.dims is None else [input.dims[axis] for axis in dims]
    if known is not None and None not in known:
        return np.array(known, np.int32)
    return F.GatherV2(F.Shape(input), np.array(dims, np.int32), 0)


def _placed(pairs: Any, dims: list[int], count: int) -> Any:
    """Pairs for dimensions 1 to `count`, those of other dimensions (0, 0)."""
    if dims == list(range(1, count + 1)):
        return pairs
    rows = F.Unpack(pairs, num=len(dims), axis=0)
    nothing = np.zeros(2, np.int32)
    return F.Pack([rows[dims.index(axis)] if axis in dims else nothing for axis in range(1, count + 1)])
