"""Tensors made lists of their rows, and lists made tensors: the operations on lists that take all elements.

==================================================  ===================================================
op                                                  meaning
==================================================  ===================================================
TensorListFromTensor, Scatter(V2)                   a list of a tensor's rows, in order or at places
TensorListScatterIntoExistingList                   a list with a tensor's rows at places
TensorListStack, Gather                             a tensor of the elements as rows
TensorListSplit, Concat(V2)                         the same where an element is several rows
==================================================  ===================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, X2, Call, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims, format_dims, is_compatible
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.lists.tensor_list import TensorList
from flowstone.ops.lists.tensor_list_arguments import (
    SHAPED,
    TYPE,
    declare_list,
    dims_argument,
    element_dtype,
    known_dims,
    list_argument,
    numbers_argument,
    parsed,
    rows_dims,
    rows_of,
    shape_of,
)

__all__: list[str] = []


# ---- all elements

from_tensor = declare_list(
    "TensorListFromTensor", "tensor: element_dtype, element_shape: shape_type", SHAPED,
    keeps=[0], host=["element_shape"],
)  # fmt: skip


@from_tensor.infer
def _(node: Node) -> Shapes:
    _check_rows(node, node.dims(0), 1, 1)
    return ()


def _check_rows(node: Node, dims: Dims, shape: int, skipped: int) -> None:
    """Raises ValueError if the rows of a tensor of these dims cannot have the `element_shape`."""
    if dims is None:
        return
    if len(dims) < 1:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    expected = known_dims(node, shape)
    if expected is not None and not is_compatible(expected[1 - skipped :], dims[1:]):
        raise ValueError(f"Shapes are {format_dims(dims[1:])} and {format_dims(expected[1 - skipped :])}.")


@from_tensor.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype, device = element_dtype(node), env.device

    def listed(tensor: Any, dims: Dims) -> TensorList:
        rows = rows_of(tensor)
        if not is_compatible(dims, tuple(tensor.shape[1:])):
            raise invalid(
                f"Specified a list with shape {format_dims(dims)} from a tensor with shape "
                f"{format_dims(tuple(tensor.shape[1:]))}"
            )
        return TensorList(dtype, dims, rows, device=device)

    return Call(listed, X0, dims_argument(node, 1, X1))


@from_tensor.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    tensor = op.inputs[0]
    dims = tensor.dims
    count = -1 if dims is None or dims[0] is None else dims[0]
    dtensor = F.TensorListStack(
        dy, F.Slice(F.Shape(tensor), [1], [-1]), element_dtype=element_dtype(op), num_elements=count
    )
    return dtensor, None


stack = op(
    "TensorListStack",
    "input_handle: variant, element_shape: int32 -> tensor: element_dtype",
    f"{TYPE} ; num_elements: int = -1",
    host=["element_shape"],
)


@stack.infer
def _(node: Node) -> Shapes:
    count = node.attributes["num_elements"]
    return rows_dims(node, None if count < 0 else count, 1)


@stack.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return Call(
        TensorList.stack,
        list_argument(),
        dims_argument(node, 1, X1),
        element_dtype(node),
        node.attributes["num_elements"],
    )


@stack.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return F.TensorListFromTensor(dy, shape_of(op.inputs[0])), None


gather = op(
    "TensorListGather",
    "input_handle: variant, indices: int32, element_shape: int32 -> values: element_dtype",
    TYPE,
    host=["indices", "element_shape"],
)
gather.infer(lambda node: rows_dims(node, (node.dims(1) or (None,))[0], 2))


@gather.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return Call(
        TensorList.gather,
        list_argument(),
        numbers_argument(node, 1, X1),
        dims_argument(node, 2, X2),
        element_dtype(node),
    )


@gather.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    handle, indices = op.inputs[:2]
    count = F.TensorListLength(handle)
    return F.TensorListScatterV2(dy, indices, shape_of(handle), count), None, None


def _scattered(node: Node, env: Environment) -> Callable[..., TensorList]:
    dtype, device = element_dtype(node), env.device

    def scattered(tensor: Any, places: list[int], dims: Dims, count: int = -1) -> TensorList:
        if 0 <= count <= max(places, default=-1):
            raise invalid(
                f"TensorListScatter: Trying to scatter at index {max(places)} in list with size {count}"
            )
        unset = TensorList(dtype, dims, [None] * max(count, 0), device=device)
        return unset.scattered(places, rows_of(tensor))

    return scattered


scatter = declare_list(
    "TensorListScatter", "tensor: element_dtype, indices: int32, element_shape: shape_type", SHAPED,
    keeps=[0], host=["indices", "element_shape"],
)  # fmt: skip
scatter_v2 = declare_list(
    "TensorListScatterV2",
    "tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32",
    SHAPED,
    keeps=[0],
    host=["indices", "element_shape", "num_elements"],
)


@scatter.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return Call(_scattered(node, env), X0, numbers_argument(node, 1, X1), dims_argument(node, 2, X2))


@scatter_v2.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    scattered = _scattered(node, env)
    return lambda tensor, indices, shape, count: scattered(
        tensor, indices.tolist(), parsed(shape), int(count)
    )


@scatter.gradient
@scatter_v2.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    shape = F.Slice(F.Shape(op.inputs[0]), [1], [-1])
    dtensor = F.TensorListGather(dy, op.inputs[1], shape, element_dtype=element_dtype(op))
    return [dtensor] + [None] * (len(op.inputs) - 1)


scatter_into = declare_list(
    "TensorListScatterIntoExistingList",
    "input_handle: variant, tensor: element_dtype, indices: int32",
    TYPE,
    keeps=[1],
    host=["indices"],
)


@scatter_into.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    places = numbers_argument(node, 2, X2)
    return Call(TensorList.with_rows, list_argument(), places, Call(rows_of, X1), element_dtype(node))


@scatter_into.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    tensor, indices = op.inputs[1:]
    shape = F.Slice(F.Shape(tensor), [1], [-1])
    dtensor = F.TensorListGather(dy, indices, shape, element_dtype=element_dtype(op))
    return F.TensorListScatterIntoExistingList(dy, F.ZerosLike(tensor), indices), dtensor, None


# ---- elements of several rows

concat_v2 = op(
    "TensorListConcatV2",
    "input_handle: variant, element_shape: shape_type, leading_dims: int64 "
    "-> tensor: element_dtype, lengths: int64",
    SHAPED,
    host=["element_shape", "leading_dims", "lengths"],
)
concat = op(
    "TensorListConcat",
    "input_handle: variant -> tensor: element_dtype, lengths: int64",
    f"{TYPE} ; element_shape: shape = ?",
    host=["lengths"],
)


def _concat_shapes(dims: Dims) -> list[Any]:
    return [None if dims is None else (None, *dims[1:]), (None,)]


concat_v2.infer(lambda node: _concat_shapes(known_dims(node, 1)))
concat.infer(lambda node: _concat_shapes(node.attributes["element_shape"]))


@concat_v2.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    lengths = numbers_argument(node, 2, X2)
    return Call(
        TensorList.concatenate, list_argument(), dims_argument(node, 1, X1), lengths, element_dtype(node)
    )


@concat.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return Call(
        TensorList.concatenate, list_argument(), node.attributes["element_shape"], [], element_dtype(node)
    )


@concat_v2.gradient
@concat.gradient
def _(op: Operation, dy: Tensor, _: Tensor) -> Gradients:
    dlist = F.TensorListSplit(dy, shape_of(op.inputs[0]), op.outputs[1])
    return [dlist] + [None] * (len(op.inputs) - 1)


split = declare_list(
    "TensorListSplit", "tensor: element_dtype, element_shape: shape_type, lengths: int64", SHAPED,
    keeps=[0], host=["element_shape", "lengths"],
)  # fmt: skip


@split.infer
def _(node: Node) -> Shapes:
    _check_rows(node, node.dims(0), 1, 0)
    return ()


@split.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype, device = element_dtype(node), env.device

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

    return Call(parts, X0, dims_argument(node, 1, X1), numbers_argument(node, 2, X2))


@split.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    tensor, _, lengths = op.inputs
    row = F.Slice(F.Shape(tensor), [1], [-1])
    shape = F.ConcatV2([np.array([-1], np.int32), row], 0)
    return F.TensorListConcatV2(dy, shape, lengths, element_dtype=element_dtype(op))[0], None, None
