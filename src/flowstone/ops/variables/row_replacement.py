"""Rows of a plain tensor that are written, added to or subtracted from, by their numbers.

InplaceUpdate, InplaceAdd and InplaceSub change `x` where nobody reads it afterwards, and else a copy of it,
such as of a variable's value. A row number is taken modulo the number of rows. Rows that repeat are changed
one after the other.
Empty is a tensor whose values nothing says; here they are zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, X2, Call, Environment, Kernel
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import format_dims
from flowstone.ops.arrays.arrays import in_signed, invalid, whole_copy
from flowstone.ops.variables.scatter import ROW_FUNCTIONS


def _check(x: Any, rows: Any, values: Any) -> None:
    """InvalidArgumentError unless `values` are rows of `x`, one for each of the vector `rows`."""
    shapes = [tuple(each.shape) for each in (x, rows, values)]
    dims, count, found = shapes
    if len(count) != 1:
        raise invalid(f"i must be a vector. {format_dims(count)}")
    if len(dims) != len(found):
        raise invalid(
            f"x and v shape doesn't match (ranks differ): {format_dims(dims)} vs. {format_dims(found)}"
        )
    for axis in range(1, len(dims)):
        if dims[axis] != found[axis]:
            raise invalid(
                f"x and v shape doesn't match at index {axis} : {format_dims(dims)} vs. {format_dims(found)}"
            )
    if not dims or count[0] != found[0]:
        raise invalid(
            f"i and x shape doesn't match at index 0: {format_dims(count)} vs. {format_dims(found)}"
        )


def _changed(kind: str) -> Any:
    function = ROW_FUNCTIONS[kind]

    def change(x: torch.Tensor, rows: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        _check(x, rows, values)
        result = whole_copy(x)
        if result.numel():
            function(result, rows.long() % x.shape[0], values)
        return result

    return change


def _change_in_place(kind: str) -> Any:
    function, changed = ROW_FUNCTIONS[kind], _changed(kind)

    def change_in_place(x: torch.Tensor, rows: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        if not x.is_contiguous():
            return x.copy_(changed(x, rows, values))
        _check(x, rows, values)
        if x.numel():
            function(x, rows.long() % x.shape[0], values)
        return x

    return change_in_place


def _changed_strings(x: Any, rows: torch.Tensor, values: Any) -> Any:
    _check(x, rows, values)
    result = x.copy()
    for row, value in zip(rows.tolist() if len(x) else (), values):
        result[row % len(x)] = value
    return result


def _declare(name: str, kind: str) -> OpDeclaration:
    asks_host = kind == "Update"  # whether rows repeat
    capturable = False if asks_host else None
    declaration = op(name, "x: T, i: int32, v: T -> y: T", T=None, capturable=capturable)
    declaration.infer(lambda node: node.dims(0))
    declaration.no_gradient()

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        dtype = node.dtype(0)
        if kind != "Update" and dtype in (dtypes.string, dtypes.bool):
            raise invalid(f"Unsupported data type: {dtype.name}")
        if dtype.torch is None:
            return _changed_strings
        function = in_signed(dtype, _changed(kind), 0, 2)
        call = Call(function, X0, X1, X2)
        is_plain = in_signed(dtype, _changed, 0, 2) is _changed
        return call.or_in_place(0, _change_in_place(kind), X0, X1, X2) if is_plain else call

    return declaration


update_op = _declare("InplaceUpdate", "Update")
add_op = _declare("InplaceAdd", "Add")
sub_op = _declare("InplaceSub", "Sub")

empty_op = op(
    "Empty",
    "shape: int32 -> output: dtype",
    "init: bool = false",
    dtype=None,
    stateful=True,
    host=["shape"],
)
empty_op.infer(lambda node: node.constant_dims(0))
empty_op.not_differentiable()


@empty_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype = node.attributes["dtype"].torch
    if dtype is None:
        return lambda sizes: np.full(sizes.tolist(), b"", dtype=object)
    return lambda sizes: torch.zeros(sizes.tolist(), dtype=dtype, device=env.device)
