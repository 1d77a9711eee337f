"""Operations on variants that hold lists of tensors: what later TensorFlow's functional loops keep arrays in.

==================================================  ===================================================
op                                                  meaning
==================================================  ===================================================
EmptyTensorList, TensorListReserve                  a list of no element; of `num_elements` unset ones
TensorListFromTensor, Scatter(V2), Split            a list of a tensor's rows; at places; of many rows
TensorListPushBack, PopBack, GetItem, SetItem       one element
TensorListStack, Gather, Concat(V2)                 a tensor of the elements
TensorListLength, ElementShape, Resize              the list as a whole
TensorListPushBackBatch                             lists from lists
==================================================  ===================================================

A variant's value is a `TensorList`. `element_shape` is a vector with -1 for unknown dimensions, or the scalar
-1 if even the rank is unknown. The gradient of a list is a list of the elements' gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework import dtypes
from flowstone.framework.kernel import CPU, GPU, X0, X1, X2, Call
from flowstone.framework.operation import F, OpDeclaration, op
from flowstone.framework.shape import Dims, format_dims, is_compatible
from flowstone.ops.arrays import boxed, invalid
from flowstone.ops.tensor_list import TensorList, as_list

__all__: list[str] = []

_TYPE = "element_dtype: type"
_INDICES = "type in [int32, int64]"
_SHAPED = f"{_TYPE} ; shape_type: {_INDICES}"


# ---- the arguments of kernels


def _parsed(shape: Any) -> Dims:
    """The dims that an `element_shape` stands for."""
    sizes = shape.tolist()
    if isinstance(sizes, int):
        if sizes != -1:
            raise invalid(
                f"The only valid scalar shape tensor is the fully unknown shape specified as -1: {sizes}"
            )
        return None
    if any(size < -1 for size in sizes):
        raise invalid(f"Invalid value in tensor used for shape: {min(sizes)}")
    return tuple(None if size == -1 else size for size in sizes)


def _known_dims(node: Any, i: int) -> Dims:
    """The dims that input `i`, an `element_shape`, stands for, as far as the graph tells."""
    known = node.constant(i)
    if known is not None:
        return _parsed(known) if known.ndim <= 1 else None
    return node.constant_dims(i) if node.dims(i) != () else None  # type: ignore[no-any-return]


def _dims(node: Any, i: int, stand_in: Any) -> Any:
    """That as an argument of a call."""
    known = node.constant(i)
    return _parsed(known) if known is not None else Call(_parsed, stand_in)


def _numbers(node: Any, i: int, stand_in: Any) -> Any:
    """The vector of numbers that is input `i` as an argument of a call, a list."""
    known = node.constant(i)
    return known.tolist() if known is not None else Call(torch.Tensor.tolist, stand_in)


def _self() -> Call:
    return Call(as_list, X0)


def _dtype(node: Any) -> Any:
    return node.attributes["element_dtype"]


def _rows(value: Any) -> list[Any]:
    if not value.ndim:
        raise invalid("Tensor must be at least a vector, but saw shape: []")
    return list(value.unbind() if isinstance(value, torch.Tensor) else (boxed(row) for row in value))


# ---- declarations


def _makes_list(name: str, signature: str, attributes: str = "", **traits: Any) -> OpDeclaration:
    """An op whose only output is a list."""
    declaration = op(
        name, f"{signature} -> {traits.pop('output', 'output_handle')}: variant", attributes, **traits
    )
    declaration.infer(lambda node: ())
    declaration.value()(lambda node: None)
    return declaration


def _rows_dims(node: Any, count: int | None, shape: int) -> Dims:
    dims = _known_dims(node, shape)
    return None if dims is None else (count, *dims)


def _shape_of(handle: Any) -> Any:
    return F.TensorListElementShape(handle, shape_type=dtypes.int32)


empty_list = _makes_list(
    "EmptyTensorList", "element_shape: shape_type, max_num_elements: int32", _SHAPED, output="handle",
    host=["element_shape", "max_num_elements"],
)  # fmt: skip
empty_list.no_gradient()


@empty_list.kernel(CPU, GPU)
def _(node, env):
    dtype, device = _dtype(node), env.device
    return lambda shape, limit: TensorList(dtype, _parsed(shape), [], int(limit), device)


reserve = _makes_list(
    "TensorListReserve", "element_shape: shape_type, num_elements: int32", _SHAPED, output="handle",
    host=["element_shape", "num_elements"],
)  # fmt: skip
reserve.no_gradient()


@reserve.kernel(CPU, GPU)
def _(node, env):
    dtype, device = _dtype(node), env.device

    def reserved(shape: Any, count: Any) -> TensorList:
        if count.ndim or count < 0:
            raise invalid(
                f"The num_elements to reserve must be a non negative number, but got {count.tolist()}"
            )
        return TensorList(dtype, _parsed(shape), [None] * int(count), device=device)

    return reserved


# ---- one element

push_back = _makes_list(
    "TensorListPushBack", "input_handle: variant, tensor: element_dtype", _TYPE, keeps=[1]
)


@push_back.kernel(CPU, GPU)
def _(node, env):
    return Call(TensorList.push, _self(), X1, _dtype(node))


@push_back.gradient
def _(op, dy):
    shape = F.Shape(op.inputs[1])
    return F.TensorListPopBack(dy, shape, element_dtype=_dtype(op))


pop_back = op(
    "TensorListPopBack",
    "input_handle: variant, element_shape: int32 -> output_handle: variant, tensor: element_dtype",
    _TYPE,
    overlapping=True,  # other lists may hold the same tensor: not to be overwritten
    host=["element_shape"],
)
pop_back.infer(lambda node: [(), _known_dims(node, 1)])


@pop_back.kernel(CPU, GPU)
def _(node, env):
    return Call(TensorList.pop, _self(), _dims(node, 1, X1), _dtype(node))


@pop_back.gradient
def _(op, dlist, dy):
    if dlist is None:
        dlist = F.EmptyTensorList(_shape_of(op.inputs[0]), -1, element_dtype=_dtype(op))
    if dy is None:
        dy = F.ZerosLike(op.outputs[1])
    return F.TensorListPushBack(dlist, dy), None


get_item = op(
    "TensorListGetItem",
    "input_handle: variant, index: int32, element_shape: Tshape -> item: element_dtype",
    f"{_TYPE} ; Tshape: {_INDICES} = int32",
    overlapping=True,
    host=["index", "element_shape"],
    numbers=["index"],
)
get_item.infer(lambda node: _known_dims(node, 2))


@get_item.kernel(CPU, GPU)
def _(node, env):
    return Call(TensorList.get, _self(), X1, _dims(node, 2, X2), _dtype(node))


@get_item.gradient
def _(op, dy):
    source = op.inputs[0]
    unset = F.TensorListReserve(_shape_of(source), F.TensorListLength(source), element_dtype=_dtype(op))
    return F.TensorListSetItem(unset, op.inputs[1], dy), None, None


set_item = _makes_list(
    "TensorListSetItem",
    "input_handle: variant, index: int32, item: element_dtype",
    f"{_TYPE} ; resize_if_index_out_of_bounds: bool = false",
    keeps=[2],
    host=["index"],
    numbers=["index"],
)


@set_item.kernel(CPU, GPU)
def _(node, env):
    grows = node.attributes["resize_if_index_out_of_bounds"]
    return Call(TensorList.put, _self(), X1, X2, _dtype(node), grows)


@set_item.gradient
def _(op, dy):
    _, index, item = op.inputs
    others = F.TensorListSetItem(dy, index, F.ZerosLike(item))
    ditem = F.TensorListGetItem(dy, index, F.Shape(item), element_dtype=_dtype(op))
    return F.TensorListResize(others, F.TensorListLength(op.inputs[0])), None, ditem


# ---- all elements

from_tensor = _makes_list(
    "TensorListFromTensor", "tensor: element_dtype, element_shape: shape_type", _SHAPED,
    keeps=[0], host=["element_shape"],
)  # fmt: skip


@from_tensor.infer
def _(node):
    _check_rows(node, node.dims(0), 1, 1)
    return ()


def _check_rows(node: Any, dims: Dims, shape: int, skipped: int) -> None:
    """Raises ValueError if the rows of a tensor of these dims cannot have the `element_shape`."""
    if dims is None:
        return
    if len(dims) < 1:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    expected = _known_dims(node, shape)
    if expected is not None and not is_compatible(expected[1 - skipped :], dims[1:]):
        raise ValueError(f"Shapes are {format_dims(dims[1:])} and {format_dims(expected[1 - skipped :])}.")


@from_tensor.kernel(CPU, GPU)
def _(node, env):
    dtype, device = _dtype(node), env.device

    def listed(tensor: Any, dims: Dims) -> TensorList:
        rows = _rows(tensor)
        if not is_compatible(dims, tuple(tensor.shape[1:])):
            raise invalid(
                f"Specified a list with shape {format_dims(dims)} from a tensor with shape "  # type: ignore[arg-type]
                f"{format_dims(tuple(tensor.shape[1:]))}"
            )
        return TensorList(dtype, dims, rows, device=device)

    return Call(listed, X0, _dims(node, 1, X1))


@from_tensor.gradient
def _(op, dy):
    tensor = op.inputs[0]
    dims = tensor._dims
    count = -1 if dims is None or dims[0] is None else dims[0]
    dtensor = F.TensorListStack(
        dy, F.Slice(F.Shape(tensor), [1], [-1]), element_dtype=_dtype(op), num_elements=count
    )
    return dtensor, None


stack = op(
    "TensorListStack",
    "input_handle: variant, element_shape: int32 -> tensor: element_dtype",
    f"{_TYPE} ; num_elements: int = -1",
    host=["element_shape"],
)


@stack.infer
def _(node):
    count = node.attributes["num_elements"]
    return _rows_dims(node, None if count < 0 else count, 1)


@stack.kernel(CPU, GPU)
def _(node, env):
    return Call(TensorList.stack, _self(), _dims(node, 1, X1), _dtype(node), node.attributes["num_elements"])


@stack.gradient
def _(op, dy):
    return F.TensorListFromTensor(dy, _shape_of(op.inputs[0])), None


gather = op(
    "TensorListGather",
    "input_handle: variant, indices: int32, element_shape: int32 -> values: element_dtype",
    _TYPE,
    host=["indices", "element_shape"],
)
gather.infer(lambda node: _rows_dims(node, (node.dims(1) or (None,))[0], 2))


@gather.kernel(CPU, GPU)
def _(node, env):
    return Call(TensorList.gather, _self(), _numbers(node, 1, X1), _dims(node, 2, X2), _dtype(node))


@gather.gradient
def _(op, dy):
    handle, indices = op.inputs[:2]
    count = F.TensorListLength(handle)
    return F.TensorListScatterV2(dy, indices, _shape_of(handle), count), None, None


def _scattered(node: Any, env: Any) -> Any:
    dtype, device = _dtype(node), env.device

    def scattered(tensor: Any, places: list[int], dims: Dims, count: int = -1) -> TensorList:
        if 0 <= count <= max(places, default=-1):
            raise invalid(
                f"TensorListScatter: Trying to scatter at index {max(places)} in list with size {count}"
            )
        unset = TensorList(dtype, dims, [None] * max(count, 0), device=device)
        return unset.scattered(places, _rows(tensor))

    return scattered


scatter = _makes_list(
    "TensorListScatter", "tensor: element_dtype, indices: int32, element_shape: shape_type", _SHAPED,
    keeps=[0], host=["indices", "element_shape"],
)  # fmt: skip
scatter_v2 = _makes_list(
    "TensorListScatterV2",
    "tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32",
    _SHAPED,
    keeps=[0],
    host=["indices", "element_shape", "num_elements"],
)


@scatter.kernel(CPU, GPU)
def _(node, env):
    return Call(_scattered(node, env), X0, _numbers(node, 1, X1), _dims(node, 2, X2))


@scatter_v2.kernel(CPU, GPU)
def _(node, env):
    scattered = _scattered(node, env)
    return lambda tensor, indices, shape, count: scattered(
        tensor, indices.tolist(), _parsed(shape), int(count)
    )


@scatter.gradient
@scatter_v2.gradient
def _(op, dy):
    shape = F.Slice(F.Shape(op.inputs[0]), [1], [-1])
    dtensor = F.TensorListGather(dy, op.inputs[1], shape, element_dtype=_dtype(op))
    return [dtensor] + [None] * (len(op.inputs) - 1)


# ---- elements of several rows

concat_v2 = op(
    "TensorListConcatV2",
    "input_handle: variant, element_shape: shape_type, leading_dims: int64 "
    "-> tensor: element_dtype, lengths: int64",
    _SHAPED,
    host=["element_shape", "leading_dims", "lengths"],
)
concat = op(
    "TensorListConcat",
    "input_handle: variant -> tensor: element_dtype, lengths: int64",
    f"{_TYPE} ; element_shape: shape = ?",
    host=["lengths"],
)


def _concat_shapes(dims: Dims) -> list[Any]:
    return [None if dims is None else (None, *dims[1:]), (None,)]


concat_v2.infer(lambda node: _concat_shapes(_known_dims(node, 1)))
concat.infer(lambda node: _concat_shapes(node.attributes["element_shape"]))


@concat_v2.kernel(CPU, GPU)
def _(node, env):
    lengths = _numbers(node, 2, X2)
    return Call(TensorList.concatenate, _self(), _dims(node, 1, X1), lengths, _dtype(node))


@concat.kernel(CPU, GPU)
def _(node, env):
    return Call(TensorList.concatenate, _self(), node.attributes["element_shape"], [], _dtype(node))


@concat_v2.gradient
@concat.gradient
def _(op, dy, _):
    dlist = F.TensorListSplit(dy, _shape_of(op.inputs[0]), op.outputs[1])
    return [dlist] + [None] * (len(op.inputs) - 1)


split = _makes_list(
    "TensorListSplit", "tensor: element_dtype, element_shape: shape_type, lengths: int64", _SHAPED,
    keeps=[0], host=["element_shape", "lengths"],
)  # fmt: skip


@split.infer
def _(node):
    _check_rows(node, node.dims(0), 1, 0)
    return ()


@split.kernel(CPU, GPU)
def _(node, env):
    dtype, device = _dtype(node), env.device

    def parts(tensor: Any, dims: Dims, lengths: list[int]) -> TensorList:
        if not tensor.ndim:
            raise invalid("Tensor must be at least a vector, but saw shape: []")
        start, values, size = 0, [], tensor.shape[0]
        for length in lengths:
            if length < 0:
                raise invalid(f"Invalid value in lengths: {length}")
            if start + length > size:
                raise invalid(
                    f"Attempting to slice [{start}, {start + length}] from tensor with length {size}"
                )
            values.append(tensor[start : start + length])
            start += length
        if start != size:
            raise invalid(f"Unused values in tensor. Length of tensor: {size} Values used: {start}")
        return TensorList(dtype, dims, values, device=device)

    return Call(parts, X0, _dims(node, 1, X1), _numbers(node, 2, X2))


@split.gradient
def _(op, dy):
    tensor, _, lengths = op.inputs
    row = F.Slice(F.Shape(tensor), [1], [-1])
    shape = F.ConcatV2([np.array([-1], np.int32), row], 0)
    return F.TensorListConcatV2(dy, shape, lengths, element_dtype=_dtype(op))[0], None, None


# ---- the list as a whole

length = op("TensorListLength", "input_handle: variant -> length: int32", host=["length"])
length.infer(lambda node: ())
length.not_differentiable()


@length.kernel(CPU, GPU)
def _(node, env):
    return lambda handle: torch.tensor(len(as_list(handle).values), dtype=torch.int32)


element_shape = op(
    "TensorListElementShape",
    "input_handle: variant -> element_shape: shape_type",
    f"shape_type: {_INDICES}",
    host=["element_shape"],
)
element_shape.infer(lambda node: None)
element_shape.not_differentiable()


@element_shape.kernel(CPU, GPU)
def _(node, env):
    dtype = node.attributes["shape_type"].torch

    def shape(handle: Any) -> Any:
        dims = as_list(handle).dims
        sizes = -1 if dims is None else [-1 if size is None else size for size in dims]
        return torch.tensor(sizes, dtype=dtype)

    return shape


resize = _makes_list("TensorListResize", "input_handle: variant, size: int32", host=["size"])


@resize.kernel(CPU, GPU)
def _(node, env):
    return Call(TensorList.resized, _self(), X1)


@resize.gradient
def _(op, dy):
    return F.TensorListResize(dy, F.TensorListLength(op.inputs[0])), None


push_back_batch = op(
    "TensorListPushBackBatch",
    "input_handles: variant, tensor: element_dtype -> output_handles: variant",
    _TYPE,
    keeps=[1],
)
push_back_batch.infer(lambda node: node.dims(0))
push_back_batch.no_gradient()


@push_back_batch.kernel(CPU, GPU)
def _(node, env):
    dtype = _dtype(node)

    def pushed(handles: Any, tensor: Any) -> Any:
        handles = boxed(handles)
        if tuple(handles.shape) != tuple(tensor.shape[: handles.ndim]):
            raise invalid(f"Batch of {handles.shape} lists, but tensor has shape {tuple(tensor.shape)}")
        result = np.empty(handles.shape, dtype=object)
        for i in np.ndindex(*handles.shape):
            result[i] = as_list(handles[i]).push(tensor[i], dtype)
        return result[()]

    return pushed
