"""Places in sorted rows, sorted tensors, coordinates of flat places, rolled tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, X2, Call, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node, static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import format_dims, merge
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.constants import range as range_of
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.rearranging import place_of_axis, transpose
from flowstone.ops.arrays.shapes import rank, reshape, shape
from flowstone.ops.numbers.ranking import top_k

__all__ = ["argsort", "roll", "searchsorted", "sort", "unravel_index"]

_INDEX = (dtypes.int32, dtypes.int64)

# ---- sorted rows

_WIDER = {torch.uint16: torch.int32, torch.uint32: torch.int64}


def _bound(name: str, right: bool) -> OpDeclaration:
    declaration = op(
        name,
        "sorted_inputs: T, values: T -> output: out_type",
        "T: type ; out_type: type in [int32, int64] = int32",
        by_element=True,
    )
    declaration.no_gradient()

    @declaration.infer
    def _(node: Node) -> Shapes:
        for i in (0, 1):
            dims = node.dims(i)
            if dims is not None and len(dims) != 2:
                raise ValueError(f"Shape must be rank 2 but is rank {len(dims)}")
        return node.dims(1)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        is_short = node.attributes["out_type"] is dtypes.int32
        dtype = node.attributes["out_type"].torch

        def search(rows: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
            if rows.ndim != 2 or values.ndim != 2 or rows.shape[0] != values.shape[0]:
                raise invalid(
                    "sorted_input and values must be matrices with the same first dimension, got "
                    f"{format_dims(tuple(rows.shape))} and {format_dims(tuple(values.shape))}"
                )
            if not rows.shape[1]:
                return torch.zeros(values.shape, dtype=dtype, device=values.device)
            rows, values = _comparable(rows).contiguous(), _comparable(values).contiguous()
            return torch.searchsorted(rows, values, right=right, out_int32=is_short)

        return search

    return declaration


def _comparable(x: torch.Tensor) -> torch.Tensor:
    """Unsigned integers, which ATen does not search, as signed ones of the same order."""
    if x.dtype is torch.uint64:
        return x.view(torch.int64) ^ torch.iinfo(torch.int64).min
    wider = _WIDER.get(x.dtype)
    return x if wider is None else x.to(wider)


lower_bound_op = _bound("LowerBound", False)
upper_bound_op = _bound("UpperBound", True)


def searchsorted(
    sorted_sequence: Any,
    values: Any,
    side: str = "left",
    out_type: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Where each of `values` would be inserted to keep `sorted_sequence` sorted along its last axis.

    Both have the same shape but for the last dimension; the result has the shape of `values`. `side`: "left"
    is before equal elements, "right" after them, else ValueError.
    """
    if side not in ("left", "right"):
        raise ValueError(f"side must be either 'right' or 'left'.  Saw: {side}.")
    bound = F.LowerBound if side == "left" else F.UpperBound
    size, wanted = shape(sorted_sequence)[-1], shape(values)[-1]
    rows, flat_values = reshape(sorted_sequence, [-1, size]), reshape(values, [-1, wanted])
    return reshape(bound(rows, flat_values, out_type=out_type, name=name), shape(values))


# ---- sorting


def sort(values: Any, axis: Any = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """`values` sorted along `axis`. `direction`: "ASCENDING" or "DESCENDING", else ValueError."""
    with get_default_graph().name_scope(name or "sort"):
        return _sorted(values, axis, direction, wants_places=False)


def argsort(
    values: Any, axis: Any = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """The int32 indices that sort `values` along `axis`; equal elements keep their order if it descends."""
    with get_default_graph().name_scope(name or "argsort"):
        return _sorted(values, axis, direction, wants_places=True)


def _sorted(values: Any, axis: Any, direction: str, wants_places: bool) -> Tensor:
    """The sorted values, or their places. Of a known rank, the nodes are TensorFlow's: seeds count them."""
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(
            f"Argument `direction` should be one of 'ASCENDING' or 'DESCENDING'. Got {direction}"
        )
    known = static_value(convert_to_tensor(axis, name="axis"))
    if known is None or np.ndim(known) or not np.issubdtype(np.asarray(known).dtype, np.integer):
        raise ValueError(f"Argument `axis` must be a constant scalar. Received: axis={axis}.")
    number, x = int(known), convert_to_tensor(values, name="values")
    is_last = number == -1 if x.ndim is None else place_of_axis(number, x) is None
    # The largest of the negated numbers; the complement of an integer always exists.
    ordered = _negated(x) if direction == "ASCENDING" else x
    count, dimensions = shape(ordered)[number], rank(ordered)
    order, back = (None, None) if is_last else _orders(number, ordered, dimensions)
    found = top_k(ordered if order is None else transpose(ordered, order), count)
    result = found[1] if wants_places else found[0]
    if back is not None:
        result = transpose(result, back)
    return _negated(result) if direction == "ASCENDING" and not wants_places else result


def _orders(axis: int, x: Tensor, dimensions: Tensor) -> tuple[Tensor, Tensor]:
    """An order of the dimensions of `x` with this one as the last, and the one that takes it back."""
    if x.ndim is not None:
        numbers = np.arange(x.ndim, dtype=np.int32)
        numbers[[axis, -1]] = numbers[[-1, axis]]
        swap = constant(numbers, name="transposition")
        return swap, swap
    place: Any = axis + dimensions if axis < 0 else axis
    order = concat([range_of(place), range_of(place + 1, dimensions), [place]], 0)
    return order, F.InvertPermutation(order)


def _negated(x: Tensor) -> Tensor:
    """-x; of integers what orders them as -x does, which each has: -x - 1, and of unsigned ones max - x."""
    if not x.dtype.is_integer:
        return F.Neg(x)
    return F.Sub(convert_to_tensor(x.dtype.max, x.dtype), x) if x.dtype.min == 0 else F.Invert(x)


# ---- coordinates

unravel_index_op = op(
    "UnravelIndex",
    "indices: Tidx, dims: Tidx -> output: Tidx",
    "Tidx: type in [int32, int64] = int32",
    host=["dims"],
    capturable=False,
)
unravel_index_op.no_gradient()


@unravel_index_op.infer
def _(node: Node) -> Shapes:
    indices, dims = node.dims(0), node.dims(1)
    if dims is not None and len(dims) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(dims)}")
    if indices is None:
        return None
    rank = None if dims is None else dims[0]
    return (rank, *indices)


def _unraveled(indices: torch.Tensor, dims: torch.Tensor) -> torch.Tensor:
    if dims.ndim != 1 or indices.ndim > 1:
        raise invalid(
            f"The dims must be a vector and the indices at most that, not {dims.ndim} and {indices.ndim}"
        )
    sizes = dims.tolist()
    if any(n <= 0 for n in sizes):
        raise invalid(f"Input dims cannot be zero or negative, got {sizes}")
    count = math.prod(sizes)
    if count > torch.iinfo(dims.dtype).max:
        raise invalid(f"Input dims product is more than {dims.dtype} holds, got {sizes}")
    if indices.numel():
        lowest, highest = (int(x) for x in torch.aminmax(indices))
        if lowest < 0 or highest >= count:
            raise invalid(
                f"index is out of bound as with dims: {lowest if lowest < 0 else highest} of {sizes}"
            )
    columns, rest = [], indices
    for n in sizes[::-1]:
        columns.append(rest % n)
        rest = torch.div(rest, n, rounding_mode="floor")
    return torch.stack(columns[::-1]) if columns else indices.new_zeros((0, *indices.shape))


unravel_index_op.kernel(CPU, GPU)(lambda node, env: Call(_unraveled, X0, X1))


def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Tensor:
    """The coordinates [rank, count] of flat `indices` in a tensor of shape `dims`; of a scalar, [rank]."""
    return unravel_index_op(indices, dims, name=name)


# ---- rolling

roll_op = op(
    "Roll",
    "input: T, shift: Tshift, axis: Taxis -> output: T",
    T=None,
    Tshift=_INDEX,
    Taxis=_INDEX,
    host=["shift", "axis"],
    moves=True,
)


@roll_op.infer
def _(node: Node) -> Shapes:
    dims = node.dims(0)
    if dims == ():
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    shift, axis = node.dims(1), node.dims(2)
    for name, given in (("shift", shift), ("axis", axis)):
        if given is not None and len(given) > 1:
            raise ValueError(f"{name}: shape must be at most rank 1 but is rank {len(given)}")
    merge(shift, axis)
    return dims


def _rolled(x: Any, shift: torch.Tensor, axis: torch.Tensor) -> Any:
    if not x.ndim:
        raise invalid("input must be 1-D or higher")
    if shift.shape != axis.shape:
        raise invalid("shift and axis must have the same size")
    shifts, axes = shift.reshape(-1).tolist(), axis.reshape(-1).tolist()
    for each in axes:
        if not -x.ndim <= each < x.ndim:
            raise invalid(f"axis {each} is out of range")
    if isinstance(x, np.ndarray):
        return np.roll(x, shifts, axes) if axes else x
    return torch.roll(x, shifts, axes) if axes else x.clone()


roll_op.kernel(CPU, GPU)(lambda node, env: Call(_rolled, X0, X1, X2))


@roll_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return F.Roll(dy, F.Neg(op.inputs[1]), op.inputs[2]), None, None


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """The elements of `input` moved by `shift` along `axis`; what leaves at one end comes in at the other.

    `shift` and `axis`: integers, or vectors of the same length.
    """
    return roll_op(input, shift, axis, name=name)
