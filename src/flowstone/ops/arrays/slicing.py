"""Slices: `Slice`, `StridedSlice`, its gradient, and the assignment to a slice of a variable.

`slice_geometry` says what the five masks of a strided slice mean.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, X0, Call, Environment, Kernel
from flowstone.framework.declarations.operation import Equal, F, Gradients, Known, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node, static_value
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import boxed, computed, elements, invalid, is_handle, is_text, unboxing
from flowstone.ops.arrays.constants import ones_like
from flowstone.ops.arrays.packing import stack
from flowstone.ops.arrays.shapes import rank, shape
from flowstone.ops.arrays.slice_geometry import Masks, PythonSlice, dense_entries, forward, sliced_dims

__all__ = ["slice", "strided_slice"]

_MASKS = " ; ".join(
    f"{name}_mask: int = 0" for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
)
_INDEX_TYPES = (dtypes.int16, dtypes.int32, dtypes.int64)


def masks_of(node: Node) -> Masks:
    """The masks among a node's attributes."""
    a = node.attributes
    return Masks(
        a["begin_mask"], a["end_mask"], a["ellipsis_mask"], a["new_axis_mask"], a["shrink_axis_mask"]
    )


def _entries(rank: int, begin: Any, end: Any, strides: Any, masks: Masks) -> list[Any]:
    try:
        return dense_entries(rank, begin, end, strides, masks)
    except ValueError as error:
        raise invalid(str(error)) from None


def _cut(x: Any, entries: list[Any]) -> Any:
    """The slice of a tensor, a view of it unless a step is negative."""
    index, flips = forward(x.shape, entries)
    _check_indices(x.shape, entries)
    result = x[index]
    return torch.flip(result, flips) if flips else result


def _check_indices(sizes: Any, entries: list[Any]) -> None:
    axis = 0
    for entry in entries:
        if entry is None:
            continue
        if type(entry) is not PythonSlice and not -sizes[axis] <= entry < sizes[axis]:
            raise invalid(f"slice index {entry} of dimension {axis} out of bounds.")
        axis += 1


def _known_entries(node: Node, rank: int, first: int) -> list[Any]:
    """The entries of a node whose begin, end and strides start at input `first`; UNKNOWN if not known."""
    vectors = [_known_vector(node, first + i) for i in range(3)]
    length = max((len(v) for v in vectors if v is not None), default=0)
    begin, end, strides = [v if v is not None else (None,) * length for v in vectors]
    return dense_entries(rank, begin, end, strides, masks_of(node))


def _known_vector(node: Node, i: int) -> tuple[int | None, ...] | None:
    found = elements(static_value(node.inputs[i]))
    if found is not None:
        return found
    dims = node.dims(i)
    if dims is not None and len(dims) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(dims)}")
    return (None,) * dims[0] if dims and dims[0] is not None else None


# ---- StridedSlice

strided_slice_op = op(
    "StridedSlice",
    "input: T, begin: Index, end: Index, strides: Index -> output: T",
    _MASKS,
    T=None,
    Index=_INDEX_TYPES,
    aliases=[0],
    snapshot=True,
    moves=True,
    host=["begin", "end", "strides"],
    by_element=True,
)


def _slice_dims(node: Node, dims: Any, first: int) -> Dims:
    vectors = [_known_vector(node, first + i) for i in range(3)]
    if all(v is None for v in vectors) or dims is None:
        return None
    if vectors[2] is None or None in vectors[2]:
        return None
    return sliced_dims(dims, _known_entries(node, len(dims), first))


@strided_slice_op.infer
def _(node: Node) -> Shapes:
    dims = node.dims(0)
    if dims == () and not node.attributes["new_axis_mask"] and not node.attributes["ellipsis_mask"]:
        vector = _known_vector(node, 1)
        if vector:
            raise ValueError("Attempting to slice scalar input.")
    return _slice_dims(node, dims, 1)


@strided_slice_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    masks, dims = masks_of(node), node.dims(0)
    known = [node.constant(i) for i in (1, 2, 3)]
    if is_text(node):
        return lambda x, b, e, s: boxed(x[_text_index(x.shape, b, e, s, masks)])
    if is_handle(node):
        return unboxing(lambda x, b, e, s: boxed(x[_text_index(x.shape, b, e, s, masks)]))
    found = [value.tolist() for value in known if value is not None]
    if dims is None or len(found) < 3:
        return lambda x, b, e, s: _cut(x, _entries(x.ndim, b.tolist(), e.tolist(), s.tolist(), masks))
    begin, end, strides = found
    entries = dense_entries(len(dims), begin, end, strides, masks)
    cuts = [(axis, entry) for axis, entry in enumerate(entries) if entry != PythonSlice(None, None, 1)]
    if len(cuts) == 1 and type(cuts[0][1]) is int:
        return Call(torch.select, X0, *cuts[0])
    if any(type(entry) is PythonSlice and entry.step < 0 for entry in entries):
        return lambda x, b, e, s: _cut(x, entries)
    return Call(operator.getitem, X0, tuple(entries))


def _text_index(sizes: Any, begin: Any, end: Any, strides: Any, masks: Masks) -> tuple[Any, ...]:
    entries = _entries(len(sizes), begin.tolist(), end.tolist(), strides.tolist(), masks)
    _check_indices(sizes, entries)
    return tuple(entries)


@strided_slice_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x, begin, end, strides = op.inputs
    sizes = shape(x, out_type=begin.dtype.base_dtype)
    dx = F.StridedSliceGrad(sizes, begin, end, strides, dy, **_as_attributes(masks_of(op)))
    return dx, None, None, None


def _as_attributes(masks: Masks) -> dict[str, Any]:
    return {
        "begin_mask": masks.begin,
        "end_mask": masks.end,
        "ellipsis_mask": masks.ellipsis,
        "new_axis_mask": masks.new_axis,
        "shrink_axis_mask": masks.shrink,
    }


@strided_slice_op.fold
def _(node: Node) -> Equal:
    dims = node.static_shape(0)
    if dims is None or dims != node.outputs[0].dims or any(node.constant(i) is None for i in (1, 2, 3)):
        return None
    whole = all(
        type(entry) is PythonSlice and entry.step > 0 and len(range(*entry.indices(n))) == n
        for entry, n in zip(_known_entries(node, len(dims), 1), dims)
    )
    return node.inputs[0] if whole else None


@strided_slice_op.value(0, 1, 2, 3)
def _(node: Node) -> Known | list[Known]:
    known = elements(node.inputs[0]._static_value)
    spec = [node.inputs[i]._static_value for i in (1, 2, 3)]
    if known is None or not all(isinstance(value, np.ndarray) for value in spec):
        return computed(node)
    begin, end, strides = (value.tolist() for value in spec)
    entries = dense_entries(1, begin, end, strides, masks_of(node))
    if len(entries) != 1:
        return computed(node)
    entry, dtype = entries[0], node.dtype(0).as_numpy_dtype
    if type(entry) is PythonSlice:
        found = known[entry]
        return found if None in found else np.array(found, dtype)
    if not -len(known) <= entry < len(known) or known[entry] is None:
        return None
    return np.array(known[entry], dtype)


# ---- its gradient, and assignment

strided_slice_grad_op = op(
    "StridedSliceGrad",
    "shape: Index, begin: Index, end: Index, strides: Index, dy: T -> output: T",
    _MASKS,
    T=None,
    Index=_INDEX_TYPES,
    host=["shape", "begin", "end", "strides"],
)
strided_slice_grad_op.infer(lambda node: node.constant_dims(0))


@strided_slice_grad_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    masks = masks_of(node)
    known = [node.constant(i) for i in (0, 1, 2, 3)]
    found = [value.tolist() for value in known if value is not None]
    if len(found) == 4:
        sizes, begin, end, strides = found
        index, flips = forward(sizes, dense_entries(len(sizes), begin, end, strides, masks))
        return lambda shape, b, e, s, dy: _spread(dy, sizes, index, flips)

    def spread(shape: Any, begin: Any, end: Any, strides: Any, dy: Any) -> Any:
        sizes = shape.tolist()
        entries = _entries(len(sizes), begin.tolist(), end.tolist(), strides.tolist(), masks)
        return _spread(dy, sizes, *forward(sizes, entries))

    return spread


def _spread(dy: Any, sizes: Any, index: Any, flips: list[int]) -> Any:
    whole = torch.zeros(sizes, dtype=dy.dtype, device=dy.device)
    _place(whole, index, torch.flip(dy, flips) if flips else dy)
    return whole


def _place(whole: Any, index: Any, value: Any) -> None:
    view = whole[index]
    if view.shape != value.shape:
        raise invalid(
            f"Cannot place a value of shape {list(value.shape)} in a slice of shape {list(view.shape)}"
        )
    if isinstance(whole, np.ndarray):  # strings
        whole[index] = value
    else:
        view.copy_(value)


@strided_slice_grad_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    _, begin, end, strides, _ = op.inputs
    return None, None, None, None, F.StridedSlice(dy, begin, end, strides, **_as_attributes(masks_of(op)))


def _assign_slice(node: Node, env: Environment) -> Kernel:
    masks = masks_of(node)

    def assign(variable: Any, begin: Any, end: Any, strides: Any, value: Any) -> Any:
        whole = variable.tensor
        entries = _entries(whole.ndim, begin.tolist(), end.tolist(), strides.tolist(), masks)
        _check_indices(whole.shape, entries)
        index, flips = forward(whole.shape, entries)
        if flips:
            value = (
                np.flip(value, tuple(flips)) if isinstance(value, np.ndarray) else torch.flip(value, flips)
            )
        _place(whole, index, value)
        return variable

    return assign


strided_slice_assign_op = op(
    "StridedSliceAssign",
    "ref: Ref(T), begin: Index, end: Index, strides: Index, value: T -> output_ref: Ref(T)",
    _MASKS,
    T=None,
    Index=_INDEX_TYPES,
    mutates=[0],
    aliases=[0],
    host=["begin", "end", "strides"],
)
strided_slice_assign_op.infer(lambda node: node.dims(0))
strided_slice_assign_op.kernel(CPU, GPU)(_assign_slice)
strided_slice_assign_op.no_gradient()

resource_strided_slice_assign_op = op(
    "ResourceStridedSliceAssign",
    "ref: resource, begin: Index, end: Index, strides: Index, value: T ->",
    _MASKS,
    T=None,
    Index=_INDEX_TYPES,
    mutates=[0],
    role="element_access",
    stateful=True,
    host=["begin", "end", "strides"],
)
resource_strided_slice_assign_op.infer(lambda node: None)
resource_strided_slice_assign_op.kernel(CPU, GPU)(_assign_slice)
resource_strided_slice_assign_op.no_gradient()

# ---- Slice

slice_op = op(
    "Slice",
    "input: T, begin: Index, size: Index -> output: T",
    T=None,
    Index=(dtypes.int32, dtypes.int64),
    aliases=[0],
    snapshot=True,
    moves=True,
    host=["begin", "size"],
    by_element=True,
)


@slice_op.infer
def _(node: Node) -> Shapes:
    dims, begin, sizes = node.dims(0), _known_vector(node, 1), _known_vector(node, 2)
    length = next((len(v) for v in (dims, begin, sizes) if v is not None), None)
    if length is None:
        return None
    for v in (begin, sizes):
        if v is not None and len(v) != length:
            raise ValueError(f"Shape must be rank {length} but is rank {len(v)}")
    unknown = (None,) * length
    return tuple(
        [
            _slice_size(axis, *entry)
            for axis, entry in enumerate(zip(dims or unknown, begin or unknown, sizes or unknown))
        ]
    )


def _slice_size(axis: int, n: int | None, first: int | None, size: int | None) -> int | None:
    if size is None or size >= 0:
        return size
    if size < -1:
        raise ValueError(f"Expected size[{axis}] >= -1, got {size}")
    return None if n is None or first is None or not 0 <= first <= n else n - first


@slice_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dims, begin, sizes = node.static_shape(0), node.constant(1), node.constant(2)
    if is_text(node) or dims is None or begin is None or sizes is None:
        return _slice
    ends = [n if size < 0 else first + size for n, first, size in zip(dims, begin.tolist(), sizes.tolist())]
    if not all(0 <= first <= last <= n for first, last, n in zip(begin.tolist(), ends, dims)):
        return _slice
    spans = [(i, a, b) for i, (a, b, n) in enumerate(zip(begin.tolist(), ends, dims)) if (a, b) != (0, n)]
    if len(spans) == 1:
        axis, first, last = spans[0]
        return Call(torch.narrow, X0, axis, first, last - first)
    return Call(operator.getitem, X0, tuple([PythonSlice(a, b) for a, b in zip(begin.tolist(), ends)]))


def _slice(x: Any, begin: Any, size: Any) -> Any:
    if not begin.shape == size.shape == (x.ndim,):
        raise invalid(
            f"Expected begin and size arguments to be 1-D tensors of size {x.ndim}, but got shapes "
            f"{list(begin.shape)} and {list(size.shape)} instead."
        )
    index = []
    for axis, (n, first, count) in enumerate(zip(x.shape, begin.tolist(), size.tolist())):
        last = n if count == -1 else first + count
        if not 0 <= first <= last <= n:
            raise invalid(f"Expected begin[{axis}] and size[{axis}] within [0, {n}], got {first} and {count}")
        index.append(PythonSlice(first, last))
    return boxed(x[tuple(index)]) if isinstance(x, np.ndarray) else x[tuple(index)]


@slice_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x, begin, _ = op.inputs
    count, kind = rank(x), begin.dtype.base_dtype
    sizes = shape(op.outputs[0], out_type=kind)
    column = stack([count, 1])
    before = F.Reshape(begin, column)
    after = F.Sub(F.Sub(shape(x, out_type=kind), sizes, name="sub"), begin, name="sub")
    paddings = F.ConcatV2([before, F.Reshape(after, column)], np.int32(1), name="concat")
    return F.Pad(dy, paddings), None, None


# ---- public functions


def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """The part of `input_` that starts at `begin` and has shape `size` (-1: up to the end), both [rank]."""
    return slice_op(input_, begin, size, name=name)


def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Tensor:
    """``input_[begin:end:strides]`` with vectors of one entry a dimension, the first dimensions first.

    Bit i of a mask changes entry i: see the module. `var`: the variable of which `input_` is the value; the
    result's ``assign(value)`` then changes that part. ValueError for what static shapes forbid.
    """
    masks = Masks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    if strides is None:
        strides = ones_like(begin)
    result = strided_slice_op(input_, begin, end, strides, name=name, **_as_attributes(masks))
    if var is not None:
        result._extra = var  # so that `indexing.py` can assign to the part
    return result
