"""Tensors stacked along a new dimension and unstacked; and lists that contain tensors as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, X0, Call, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Known, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor, register_tensor_conversion_function
from flowstone.framework.types import dtypes
from flowstone.framework.types.dimension import Dimension
from flowstone.framework.types.shape import Dims, as_shape, merge
from flowstone.ops.arrays.arrays import (
    as_known,
    boxed,
    call_on_list,
    checked_axis,
    computed,
    elements,
    invalid,
    is_handle,
    is_text,
    replaced,
    scalar_element,
    unboxing,
)
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.joining import joining

__all__ = ["parallel_stack", "stack", "unstack"]

# ---- Pack and Unpack

pack_op = op("Pack", "values: N*T -> output: T", "axis: int = 0", T=None, by_element=True, moves=True)


@pack_op.infer
def _(node: Node) -> Shapes:
    dims: Any = None
    for x in node.inputs:
        dims = merge(dims, x.dims)
    if dims is None:
        return None
    at = checked_axis(node.attributes["axis"], len(dims) + 1)
    return (*dims[:at], len(node.inputs), *dims[at:])


@pack_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    axis, count = node.attributes["axis"], len(node.inputs)
    if is_text(node):
        return lambda *xs: np.stack(xs, axis)
    if is_handle(node):
        return unboxing(lambda *xs: np.stack(xs, axis))
    return call_on_list(joining(node, env, torch.stack), 0, count, axis)


@pack_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return F.Unpack(convert_to_tensor(dy), num=len(op.inputs), axis=op.attributes["axis"], name="unstack")


@pack_op.value(*range(32))
def _(node: Node) -> Known | list[Known]:
    inputs = node.inputs
    if len(inputs) > 32 or inputs[0].dims != () or not node.dtype(0).is_integer:
        return computed(node) if len(inputs) <= 32 else None
    return as_known([scalar_element(x._static_value) for x in inputs], node.dtype(0).as_numpy_dtype)


unpack_op = op(
    "Unpack",
    "value: T -> output: num*T",
    "num: int >= 0 ; axis: int = 0",
    T=None,
    aliases=[0],
    snapshot=True,
    by_element=True,
    moves=True,
)


@unpack_op.infer
def _(node: Node) -> Shapes:
    count, dims = node.attributes["num"], node.dims(0)
    if dims is None:
        return [None] * count
    if not dims:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    at = checked_axis(node.attributes["axis"], len(dims))
    if dims[at] not in (None, count):
        raise ValueError(f"Dimension must be {count} but is {dims[at]}")
    return [replaced(dims, at)] * count


@unpack_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    axis, count, dims = node.attributes["axis"], node.attributes["num"], node.dims(0)
    if is_handle(node):
        return lambda x: list(np.moveaxis(x, axis, 0))
    if is_text(node):
        return lambda x: [boxed(part) for part in np.moveaxis(x, axis, 0)]
    if count > 1 and dims is not None and dims[axis] == count:
        return Call(torch.unbind, X0, axis)

    def unpack(x: Any) -> Any:
        if not -x.ndim <= axis < x.ndim:
            raise invalid(f"axis = {axis} not in [{-x.ndim}, {x.ndim})")
        if x.shape[axis] != count:
            raise invalid(f"Input shape axis {axis} must equal {count}, got shape {list(x.shape)}")
        return torch.unbind(x, axis)

    return unpack


@unpack_op.gradient
def _(op: Operation, *dys: Tensor) -> Gradients:
    return (F.Pack(list(dys), axis=op.attributes["axis"], name="stack"),)


@unpack_op.value(0)
def _(node: Node) -> Known | list[Known]:
    whole = node.inputs[0]._static_value
    if whole is None:
        return None
    known = elements(whole)
    if known is None:
        return [computed(node, i) for i in range(len(node.outputs))]
    return [None if n is None else np.array(n, node.dtype(0).as_numpy_dtype) for n in known]


# ---- lists that contain tensors

_PLAIN = frozenset((int, float, bool, str, bytes, complex, type(None), Dimension, np.ndarray))


def _is_tensor_kind(kind: type) -> bool:
    return kind not in _PLAIN and (kind is Tensor or hasattr(kind, "_as_graph_element"))


def _tensor_in(values: Any) -> Any:
    """The first tensor (or variable) in nested lists, or None."""
    kinds = set(map(type, values))
    if kinds <= _PLAIN:
        return None
    if any(_is_tensor_kind(kind) for kind in kinds):
        return next(value for value in values if _is_tensor_kind(type(value)))
    for value in values:
        if isinstance(value, (list, tuple)):
            found = _tensor_in(value)
            if found is not None:
                return found
    return None


def _packed(values: Any, dtype: dtypes.DType, name: str) -> Any:
    """`values` as one tensor if a tensor is in it, else as it is."""
    with get_default_graph().name_scope(name) as scope:
        parts = []
        for i, value in enumerate(values):
            if _is_tensor_kind(type(value)):
                if not isinstance(value.dtype, dtypes.DType):
                    raise TypeError(f"{value!r} is no value")
                if value.dtype.base_dtype is not dtype:
                    raise TypeError(
                        f"Cannot convert a list containing a tensor of dtype "
                        f"{value.dtype.base_dtype!r} to {dtype!r} "
                        f"(Tensor is: {value!r})"
                    )
                parts.append(value)
            elif isinstance(value, (list, tuple)):
                parts.append(_packed(value, dtype, str(i)))
            else:
                parts.append(value)
        if not any(_is_tensor_kind(type(part)) for part in parts):
            return values
        tensors = [
            convert_to_tensor(part) if _is_tensor_kind(type(part)) else constant(part, dtype, name=str(i))
            for i, part in enumerate(parts)
        ]
        return pack_op(tensors, name=scope)


def _pack_list(values: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Any:
    found = None if as_ref else _tensor_in(values)
    if found is None:
        return NotImplemented
    actual = found.dtype.base_dtype
    if dtype is not None and dtype.base_dtype is not actual:
        values = _cast_tensors(values, dtype.base_dtype)
    return _packed(values, actual if dtype is None else dtype.base_dtype, name or "packed")


def _cast_tensors(values: Any, dtype: dtypes.DType) -> Any:
    if isinstance(values, (list, tuple)):
        return [_cast_tensors(value, dtype) for value in values]
    if _is_tensor_kind(type(values)) and values.dtype.base_dtype is not dtype:
        return F.Cast(values, DstT=dtype)
    return values


register_tensor_conversion_function((list, tuple), _pack_list, 100)

parallel_concat_op = op("ParallelConcat", "values: N*T -> output: T", "shape: shape", T=None)
parallel_concat_op.no_gradient()


@parallel_concat_op.infer
def _(node: Node) -> Shapes:
    dims: Dims = node.attributes["shape"]
    if dims is None or None in dims:
        raise ValueError("shape attr must be fully defined.")
    for x in node.inputs:
        if x.dims is None or None in x.dims:
            raise ValueError("All input shapes must be fully defined.")
        if x.dims[:1] != (1,):
            raise ValueError("Size of first dimension must be 1.")
        merge(x.dims, (1, *dims[1:]))
    return dims


@parallel_concat_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    if is_text(node):
        return lambda *xs: np.concatenate(xs, 0)
    return call_on_list(torch.cat, 0, len(node.inputs), 0)


# ---- public functions


@dispatched("stack")
def stack(values: Sequence[Any] | Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Tensors of one shape as one tensor with a new dimension `axis`. ValueError if that is out of range."""
    if axis == 0 and not any(isinstance(value, np.ndarray) and value.ndim for value in _listed(values)):
        try:
            return convert_to_tensor(values, name=name)
        except (TypeError, ValueError):
            pass  # values of several types, which only Pack can name
    first = values[0]
    dims = (first if isinstance(first, Tensor) else convert_to_tensor(first, name=name)).dims
    if dims is not None and not -len(dims) - 1 <= axis < len(dims) + 1:
        raise ValueError(f"Argument `axis` = {axis} not in range [{-len(dims) - 1}, {len(dims) + 1})")
    return pack_op(values, axis=axis, name=name)


def _listed(values: Any) -> Any:
    return values if isinstance(values, (list, tuple)) else ()


def unstack(value: Any, num: int | None = None, axis: int = 0, name: str = "unstack") -> list[Tensor]:
    """The slices of `value` along `axis`, without that dimension.

    `num`: how many; inferred from the static shape if None. ValueError if unknown or `axis` is out of range.
    """
    if num is None:
        value = convert_to_tensor(value)
        dims = value.dims
        if dims is not None:
            if not -len(dims) <= axis < len(dims):
                raise ValueError(f"Argument `axis` = {axis} not in range [{-len(dims)}, {len(dims)})")
            num = dims[axis]
        if num is None:
            raise ValueError(f"Cannot infer argument `num` from shape {value.shape}")
    return unpack_op.several(value, num=num, axis=axis, name=name)  # type: ignore[no-any-return]


def parallel_stack(values: Sequence[Any], name: str = "parallel_stack") -> Tensor:
    """Tensors of one, fully known shape, stacked along a new first dimension. ValueError if it is unknown."""
    with get_default_graph().name_scope(name):
        dims = convert_to_tensor(values[0]).dims
        whole = as_shape(None if dims is None else (len(values), *dims))
        return parallel_concat_op([F.ExpandDims(value, 0) for value in values], shape=whole)
