"""What the operations on lists of tensors share: how they are declared, and the arguments of their kernels.

A variant's value is a `TensorList`. `element_shape` is a vector with -1 for unknown dimensions, or the scalar
-1 if even the rank is unknown. What the plan knows of such an argument is worked out there.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations.kernel import X0, Call
from flowstone.framework.declarations.operation import F, OpDeclaration, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import boxed, invalid
from flowstone.ops.lists.tensor_list import as_list

TYPE = "element_dtype: type"
INDICES = "type in [int32, int64]"
SHAPED = f"{TYPE} ; shape_type: {INDICES}"


# ---- the arguments of kernels


def parsed(shape: Any) -> Dims:
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


def known_dims(node: Node, i: int) -> Dims:
    """The dims that input `i`, an `element_shape`, stands for, as far as the plan knows them."""
    known = node.constant(i)
    if known is not None:
        return parsed(known) if known.ndim <= 1 else None
    return node.constant_dims(i) if node.dims(i) != () else None


def dims_argument(node: Node, i: int, argument: Any) -> Any:
    """That as an argument of a call."""
    known = node.constant(i)
    return parsed(known) if known is not None else Call(parsed, argument)


def numbers_argument(node: Node, i: int, argument: Any) -> Any:
    """The vector of numbers that is input `i` as an argument of a call, a list."""
    known = node.constant(i)
    return known.tolist() if known is not None else Call(torch.Tensor.tolist, argument)


def list_argument() -> Call:
    """Input 0, which must be a list, as an argument of a call."""
    return Call(as_list, X0)


def element_dtype(node: Node) -> Any:
    """The type of the elements that the node takes or gives."""
    return node.attributes["element_dtype"]


def rows_of(value: Any) -> list[Any]:
    """The rows of a step's tensor, at least a vector, as views."""
    if not value.ndim:
        raise invalid("Tensor must be at least a vector, but saw shape: []")
    return list(value.unbind() if isinstance(value, torch.Tensor) else (boxed(row) for row in value))


# ---- declarations


def declare_list(name: str, signature: str, attributes: str = "", **traits: Any) -> OpDeclaration:
    """An op whose only output is a list."""
    declaration = op(
        name, f"{signature} -> {traits.pop('output', 'output_handle')}: variant", attributes, **traits
    )
    declaration.infer(lambda node: ())
    declaration.value()(lambda node: None)
    return declaration


def rows_dims(node: Node, count: int | None, shape: int) -> Dims:
    """The dims of `count` elements, whose `element_shape` is input `shape`, along a new first axis."""
    dims = known_dims(node, shape)
    return None if dims is None else (count, *dims)


def shape_of(handle: Any) -> Any:
    """The `element_shape` of a list, as a tensor of the graph."""
    return F.TensorListElementShape(handle, shape_type=dtypes.int32)
