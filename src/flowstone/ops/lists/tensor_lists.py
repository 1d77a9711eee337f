"""Operations on variants that hold lists of tensors: what later TensorFlow's functional loops keep arrays in.

==================================================  ===================================================
op                                                  meaning
==================================================  ===================================================
EmptyTensorList, TensorListReserve                  a list of no element; of `num_elements` unset ones
TensorListPushBack, PopBack, GetItem, SetItem       one element
TensorListLength, ElementShape, Resize              the list as a whole
TensorListPushBackBatch, TensorListConcatLists      one element for each of several lists; lists joined
==================================================  ===================================================

Whole tensors become lists, and lists tensors, in `tensor_list_rows.py`. The gradient of a list is a list of
the elements' gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, X1, X2, Call, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import merge
from flowstone.ops.arrays.arrays import boxed, invalid
from flowstone.ops.lists.tensor_list import TensorList, as_list
from flowstone.ops.lists.tensor_list_arguments import (
    INDICES,
    SHAPED,
    TYPE,
    declare_list,
    dims_argument,
    element_dtype,
    known_dims,
    list_argument,
    parsed,
    shape_of,
)

__all__: list[str] = []


# ---- creation

empty_list = declare_list(
    "EmptyTensorList", "element_shape: shape_type, max_num_elements: int32", SHAPED, output="handle",
    host=["element_shape", "max_num_elements"],
)  # fmt: skip
empty_list.no_gradient()


@empty_list.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype, device = element_dtype(node), env.device
    return lambda shape, limit: TensorList(dtype, parsed(shape), [], int(limit), device)


reserve = declare_list(
    "TensorListReserve", "element_shape: shape_type, num_elements: int32", SHAPED, output="handle",
    host=["element_shape", "num_elements"],
)  # fmt: skip
reserve.no_gradient()


@reserve.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype, device = element_dtype(node), env.device

    def reserved(shape: Any, count: Any) -> TensorList:
        if count.ndim or count < 0:
            raise invalid(
                f"The num_elements to reserve must be a non negative number, but got {count.tolist()}"
            )
        return TensorList(dtype, parsed(shape), [None] * int(count), device=device)

    return reserved


# ---- one element

push_back = declare_list(
    "TensorListPushBack", "input_handle: variant, tensor: element_dtype", TYPE, keeps=[1]
)


@push_back.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return Call(TensorList.push, list_argument(), X1, element_dtype(node))


@push_back.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    shape = F.Shape(op.inputs[1])
    return F.TensorListPopBack(dy, shape, element_dtype=element_dtype(op))


pop_back = op(
    "TensorListPopBack",
    "input_handle: variant, element_shape: int32 -> output_handle: variant, tensor: element_dtype",
    TYPE,
    overlapping=True,  # other lists may hold the same tensor: not to be overwritten
    host=["element_shape"],
)
pop_back.infer(lambda node: [(), known_dims(node, 1)])


@pop_back.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return Call(TensorList.pop, list_argument(), dims_argument(node, 1, X1), element_dtype(node))


@pop_back.gradient
def _(op: Operation, dlist: Tensor, dy: Tensor) -> Gradients:
    if dlist is None:
        dlist = F.EmptyTensorList(shape_of(op.inputs[0]), -1, element_dtype=element_dtype(op))
    if dy is None:
        dy = F.ZerosLike(op.outputs[1])
    return F.TensorListPushBack(dlist, dy), None


get_item = op(
    "TensorListGetItem",
    "input_handle: variant, index: int32, element_shape: Tshape -> item: element_dtype",
    f"{TYPE} ; Tshape: {INDICES} = int32",
    overlapping=True,
    host=["index", "element_shape"],
    numbers=["index"],
)
get_item.infer(lambda node: known_dims(node, 2))


@get_item.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return Call(TensorList.get, list_argument(), X1, dims_argument(node, 2, X2), element_dtype(node))


@get_item.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    source = op.inputs[0]
    unset = F.TensorListReserve(shape_of(source), F.TensorListLength(source), element_dtype=element_dtype(op))
    return F.TensorListSetItem(unset, op.inputs[1], dy), None, None


set_item = declare_list(
    "TensorListSetItem",
    "input_handle: variant, index: int32, item: element_dtype",
    f"{TYPE} ; resize_if_index_out_of_bounds: bool = false",
    keeps=[2],
    host=["index"],
    numbers=["index"],
)


@set_item.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    grows = node.attributes["resize_if_index_out_of_bounds"]
    return Call(TensorList.put, list_argument(), X1, X2, element_dtype(node), grows)


@set_item.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    _, index, item = op.inputs
    others = F.TensorListSetItem(dy, index, F.ZerosLike(item))
    ditem = F.TensorListGetItem(dy, index, F.Shape(item), element_dtype=element_dtype(op))
    return F.TensorListResize(others, F.TensorListLength(op.inputs[0])), None, ditem


# ---- the list as a whole

length = op("TensorListLength", "input_handle: variant -> length: int32", host=["length"])
length.infer(lambda node: ())
length.not_differentiable()


@length.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return lambda handle: torch.tensor(len(as_list(handle).values), dtype=torch.int32)


element_shape = op(
    "TensorListElementShape",
    "input_handle: variant -> element_shape: shape_type",
    f"shape_type: {INDICES}",
    host=["element_shape"],
)
element_shape.infer(lambda node: None)
element_shape.not_differentiable()


@element_shape.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype = node.attributes["shape_type"].torch

    def shape(handle: Any) -> Any:
        dims = as_list(handle).dims
        sizes = -1 if dims is None else [-1 if size is None else size for size in dims]
        return torch.tensor(sizes, dtype=dtype)

    return shape


resize = declare_list("TensorListResize", "input_handle: variant, size: int32", host=["size"])


@resize.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return Call(TensorList.resized, list_argument(), X1)


@resize.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return F.TensorListResize(dy, F.TensorListLength(op.inputs[0])), None


push_back_batch = op(
    "TensorListPushBackBatch",
    "input_handles: variant, tensor: element_dtype -> output_handles: variant",
    TYPE,
    keeps=[1],
)
push_back_batch.infer(lambda node: node.dims(0))
push_back_batch.not_differentiable()


@push_back_batch.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype = element_dtype(node)

    def pushed(handles: Any, tensor: Any) -> Any:
        handles = boxed(handles)
        if tuple(handles.shape) != tuple(tensor.shape[: handles.ndim]):
            raise invalid(f"Batch of {handles.shape} lists, but tensor has shape {tuple(tensor.shape)}")
        result = np.empty(handles.shape, dtype=object)
        for i in np.ndindex(*handles.shape):
            result[i] = as_list(handles[i]).push(tensor[i], dtype)
        return result[()]

    return pushed


concat_lists = op("TensorListConcatLists", "input_a: variant, input_b: variant -> output: variant", TYPE)
concat_lists.not_differentiable()


@concat_lists.infer
def _(node: Node) -> Shapes:
    a, b = node.dims(0), node.dims(1)
    return merge(a, b)


@concat_lists.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype = element_dtype(node)

    def joined(a: Any, b: Any) -> Any:
        a, b = boxed(a), boxed(b)
        if a.shape != b.shape:
            raise invalid(f"Lists of shapes {a.shape} and {b.shape} cannot be joined")
        result = np.empty(a.shape, dtype=object)
        for i in np.ndindex(*a.shape):
            result[i] = as_list(a[i]).followed_by(as_list(b[i]), dtype)
        return result[()]

    return joined
