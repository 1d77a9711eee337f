"""Sums of many tensors of one shape: AddN and AccumulateNV2. Integers wrap around."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call, Environment, Input, Kernel
from flowstone.framework.declarations.operation import Equal, F, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, as_shape, merge
from flowstone.ops.lists.tensor_list import add_lists
from flowstone.ops.numbers.elementwise import ALL_NUMBERS, by_parts
from flowstone.ops.numbers.unsigned_integers import modular

__all__ = ["accumulate_n", "add_n"]


def _check_equal_shapes(inputs: Sequence[torch.Tensor]) -> None:
    shape = inputs[0].shape
    for i, x in enumerate(inputs):
        if x.shape != shape:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Inputs must have the same shape. Input 0: {list(shape)} != input {i}: {list(x.shape)}",
            )


def _add_all(x: torch.Tensor, y: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
    total = torch.add(x, y)
    for other in others:
        total.add_(other)
    return total


def _add_all_in_place(x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
    for other in others:
        x.add_(other)
    return x


def _sum_kernel(node: Node, env: Environment) -> Kernel:
    count, dtype = len(node.inputs), node.dtype(0)
    if dtype is dtypes.variant:
        return add_lists
    if count == 1:
        return Call(torch.clone, X0)
    total = by_parts(_add_all) if dtype.is_complex else modular(dtype, _add_all)
    shapes = [node.static_shape(i) for i in range(count)]
    if None in shapes or len(set(shapes)) > 1:

        def checked(*inputs: torch.Tensor) -> torch.Tensor:
            _check_equal_shapes(inputs)
            return total(*inputs)

        return checked
    if total is not _add_all:
        return total
    if count == 2:
        call = Call(torch.add, X0, X1).or_in_place(0, torch.Tensor.add_, X0, X1)
        return call.or_in_place(1, torch.Tensor.add_, X1, X0)
    inputs = [_input(i) for i in range(count)]
    return Call(_add_all, *inputs).or_in_place(0, _add_all_in_place, *inputs)


@functools.cache
def _input(i: int) -> Input:
    return Input(i)


def _all_merged(node: Node) -> Dims:
    dims = node.dims(0)
    for i in range(1, len(node.inputs)):
        try:
            dims = merge(dims, node.dims(i))
        except ValueError as error:
            raise ValueError(f"{error}\n\tFrom merging shape {i - 1} with other shapes.") from None
    return dims


add_n_op = op(
    "AddN",
    "inputs: N*T -> sum: T",
    T=(*ALL_NUMBERS, dtypes.variant),
    commutative=True,
    by_element=True,
    elementwise=True,
    adds=True,
)
add_n_op.infer(_all_merged)
add_n_op.kernel(CPU, GPU)(_sum_kernel)
accumulate_n_op = op(
    "AccumulateNV2", "inputs: N*T -> sum: T", "shape: shape", T=ALL_NUMBERS, commutative=True
)
accumulate_n_op.infer(lambda node: node.attributes["shape"])
accumulate_n_op.kernel(CPU, GPU)(_sum_kernel)


@add_n_op.gradient
@accumulate_n_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    return [dz] * len(op.inputs)


@add_n_op.fold
@accumulate_n_op.fold
def _(node: Node) -> Equal:
    return node.inputs[0] if len(node.inputs) == 1 else None


# ---- public functions


_NOT_A_LIST = "inputs must be a list of at least one Tensor with the same dtype and shape"


def _list_of_tensors(inputs: Any) -> list[Tensor]:
    if not inputs or not isinstance(inputs, (list, tuple)):
        raise ValueError(_NOT_A_LIST)
    tensors = [convert_to_tensor(each) for each in inputs]
    if any(x.dtype.base_dtype is not tensors[0].dtype.base_dtype for x in tensors):
        raise ValueError(_NOT_A_LIST)
    return tensors


@dispatched("of_list")
def add_n(inputs: Any, name: str | None = None) -> Tensor:
    """The sum of tensors of one shape and dtype.

    ValueError for an empty list; TypeError for unequal dtypes, also of what becomes a tensor here.
    """
    if not inputs or not isinstance(inputs, (list, tuple)):
        raise ValueError(_NOT_A_LIST)
    tensors = [convert_to_tensor(each) for each in inputs]
    if len(tensors) == 1:
        return F.Identity(tensors[0], name=name) if name else tensors[0]
    return add_n_op(tensors, name=name)


def accumulate_n(inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: str | None = None) -> Tensor:
    """The sum of tensors of one shape and dtype.

    `shape`, `tensor_dtype`: what they are expected to have. ValueError or TypeError where they do not.
    """
    tensors = _list_of_tensors(inputs)
    expected = as_shape(shape)
    for tensor in tensors:
        expected.assert_is_compatible_with(tensor.shape)
        if tensor_dtype is not None and dtypes.as_dtype(tensor_dtype) is not tensor.dtype.base_dtype:
            wanted = dtypes.as_dtype(tensor_dtype).name
            raise TypeError(f"tensor_dtype is {wanted}, but input is of type {tensor.dtype.name}")
    if len(tensors) == 1:
        return F.Identity(tensors[0], name=name) if name else tensors[0]
    return add_n_op(tensors, name=name)
