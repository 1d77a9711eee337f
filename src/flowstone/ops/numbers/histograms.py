"""Histograms: how many values lie in each of several bins of one width.

A value below the range counts in the first bin, one above it in the last. Which bin a value lies in is
computed as float64, as TensorFlow does, so that values at the edges are in the same bins.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.graphs.graph_functions import name_scope
from flowstone.framework.machine import machine_code
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.arrays.shapes import reshape, shape
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.clipping import clip_by_value
from flowstone.ops.numbers.division import truediv
from flowstone.ops.numbers.functions import floor

__all__ = ["histogram_fixed_width", "histogram_fixed_width_bins"]

histogram_op = op(
    "HistogramFixedWidth",
    "values: T, value_range: T, nbins: int32 -> out: dtype",
    "dtype: type in [int32, int64] = int32",
    T=(dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64),
    host=["value_range", "nbins"],
    capturable=False,
    by_element=True,
    cost=4,
).no_gradient()


@histogram_op.infer
def _(node: Node) -> Shapes:
    for i, wanted in ((1, 1), (2, 0)):
        dims = node.dims(i)
        if dims is not None and len(dims) != wanted:
            raise ValueError(f"Shape must be rank {wanted} but is rank {len(dims)}")
    ends = node.dims(1)
    if ends is not None and ends[0] not in (None, 2):
        raise ValueError(f"Dimension must be 2 but is {ends[0]}")
    number = node.constant(2)
    if number is not None and int(number) <= 0:
        raise ValueError(f"Requires nbins > 0: {int(number)}")
    return (None if number is None else int(number),)


@histogram_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    kind = node.attributes["dtype"].torch
    in_bins = machine_code.bin_counts(node.dtype(0).torch) if env.device.type == "cpu" else None

    def count(values: torch.Tensor, value_range: torch.Tensor, nbins: torch.Tensor) -> torch.Tensor:
        low, high = _ends(value_range)
        if nbins.dim() != 0:
            raise invalid(f"nbins should be a scalar, got shape {list(nbins.shape)}")
        number = int(nbins)
        if number <= 0:
            raise invalid(f"nbins should be a positive number, but got '{number}'")
        step = (high - low) / number
        found = in_bins(values, low, step, number) if in_bins is not None else None
        if found is not None:
            return found.to(kind)
        values = values.reshape(-1)
        if values.dtype is torch.int32:
            values = values.long()  # in which no difference overflows
        offsets = values.clamp(min=low).sub_(low).to(torch.float64)
        bins = offsets.div_(step).clamp_(0, number - 1)
        if values.is_floating_point() and math.isnan(float(bins.sum())):
            raise invalid("values contains NaN, which is in no bin")
        return torch.bincount(bins.to(torch.int64), minlength=number).to(kind)

    return count


def _ends(value_range: torch.Tensor) -> tuple[Any, Any]:
    if value_range.shape != (2,):
        raise invalid(f"value_range should be a vector of 2 elements, got shape {list(value_range.shape)}")
    low, high = value_range.tolist()
    if not low < high:
        raise invalid(
            f"value_range should satisfy value_range[0] < value_range[1], but got '[{low}, {high}]'"
        )
    return low, high


def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """How many of `values` lie in each of `nbins` bins of one width between the two of `value_range`.

    The first and the last bin also count what lies outside. Returns a vector of `dtype`, int32 or int64.
    InvalidArgumentError in the step for an empty range, no bins, or NaN.
    """
    with name_scope(name, "histogram_fixed_width", [values, value_range, nbins]) as scope:
        values = convert_to_tensor(values, name="values")
        return histogram_op(values, value_range, nbins, dtype=dtypes.as_dtype(dtype), name=scope)


def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """The number of the bin of `histogram_fixed_width` that each value lies in: int32, of the values' shape.
    `dtype` makes no difference, as in TensorFlow.

    TypeError unless the values are floating numbers.
    """
    with name_scope(name, "histogram_fixed_width_bins", [values, value_range, nbins]):
        values = convert_to_tensor(values, name="values")
        dims = shape(values)
        flat = reshape(values, [-1])
        value_range = convert_to_tensor(value_range, values.dtype, name="value_range")
        nbins = convert_to_tensor(nbins, dtypes.int32, name="nbins")
        number = cast(nbins, values.dtype)
        fractions = truediv(flat - value_range[0], value_range[1] - value_range[0], name="scaled_values")
        indices = floor(number * fractions, name="indices")
        return reshape(cast(clip_by_value(indices, 0, number - 1), dtypes.int32), dims)
