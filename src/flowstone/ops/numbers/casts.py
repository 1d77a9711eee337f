"""Conversion of element types: by value (Cast) and by bits (Bitcast)."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.building import graph_of
from flowstone.framework.declarations.kernel import CPU, GPU, X0, Call, Environment, Kernel
from flowstone.framework.declarations.operation import Equal, F, Gradients, Known, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.composite import IndexedSlices, SparseTensor
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.ops.arrays.arrays import computed
from flowstone.ops.numbers.elementwise import ALL_NUMBERS, same_shape

__all__ = [
    "bitcast", "cast", "saturate_cast", "to_bfloat16", "to_complex64", "to_complex128", "to_double",
    "to_float", "to_int32", "to_int64",
]  # fmt: skip

cast_op = op(
    "Cast",
    "x: SrcT -> y: DstT",
    "Truncate: bool = false",
    SrcT=None,
    DstT=None,
    by_element=True,
    elementwise=True,
)
cast_op.infer(same_shape)


@cast_op.value(0)
def _(node: Node) -> Known | list[Known]:
    known = node.inputs[0]._static_value
    return known if type(known) is tuple and node.attributes["DstT"].is_integer else computed(node)


@cast_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    source, target = node.dtype(0), node.attributes["DstT"]
    if source is not target and dtypes.string in (source, target):
        return functools.partial(_refuse, source, target)
    if source.torch is target.torch:
        return Call(torch.clone, X0)
    if source.is_complex and target.is_bool:
        return Call(torch.ne, Call(torch.real, X0), 0)
    is_part = source.is_complex and not target.is_complex
    value = Call(torch.real, X0) if is_part else X0
    if target is dtypes.bfloat16 and source is dtypes.float32 and node.attributes["Truncate"]:
        return lambda x: (x.view(torch.int32) & -65536).view(torch.float32).to(torch.bfloat16)
    if target.is_unsigned and not source.is_integer and not source.is_bool:
        value = Call(torch.Tensor.to, value, torch.int64)
    if is_part:  # of the input's own memory
        return Call(torch.Tensor.to, value, target.torch, copy=True)
    return Call(torch.Tensor.to, value, target.torch)


def _refuse(source: DType, target: DType, _: Any) -> Any:
    raise errors.UnimplementedError(
        None,
        None,
        f"Cast {source.name} to {target.name} is not supported; tf.string_to_number reads numbers, "
        "tf.as_string writes them",
    )


_DIFFERENTIABLE = frozenset([*dtypes.FLOATS_WITH_BFLOAT16, *dtypes.COMPLEX])


@cast_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    source = op.inputs[0].dtype.base_dtype
    if source in _DIFFERENTIABLE and op.attributes["DstT"] in _DIFFERENTIABLE:
        return (F.Cast(dy, DstT=source),)
    return (None,)


@cast_op.fold
def _(node: Node) -> Equal:
    return node.inputs[0] if node.dtype(0) is node.attributes["DstT"] else None


bitcast_op = op("Bitcast", "input: T -> output: type", T=ALL_NUMBERS, type=ALL_NUMBERS, aliases=[0])
bitcast_op.no_gradient()


@bitcast_op.infer
def _(node: Node) -> Shapes:
    dims, source, target = node.dims(0), node.dtype(0).size, node.attributes["type"].size
    if dims is None or source == target:
        return dims
    if source > target:
        return (*dims, source // target)
    if not dims or dims[-1] not in (None, target // source):
        raise ValueError(
            f"Cannot bitcast from {node.dtype(0).name} to {node.attributes['type'].name} due to shape. "
            f"{dims[-1] if dims else 'no dimension'} does not match {target // source}"
        )
    return dims[:-1]


@bitcast_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    source, target = node.dtype(0).size, node.attributes["type"]
    if source == target.size:
        return Call(torch.Tensor.view, X0, target.torch)
    if source < target.size and 0 in (node.static_shape(0) or (0,)):
        return lambda x: x.contiguous().view(target.torch).squeeze(-1) if x.numel() else _no_bits(x, target)
    if source < target.size:
        return Call(
            torch.squeeze, Call(torch.Tensor.view, Call(torch.Tensor.contiguous, X0), target.torch), -1
        )
    return Call(torch.Tensor.view, Call(torch.unsqueeze, Call(torch.Tensor.contiguous, X0), -1), target.torch)


def _no_bits(x: torch.Tensor, target: DType) -> torch.Tensor:
    return torch.empty(x.shape[:-1], dtype=target.torch, device=x.device)


@bitcast_op.fold
def _(node: Node) -> Equal:
    return node.inputs[0] if node.dtype(0) is node.attributes["type"] else None


# ---- public functions


@dispatched("unary")
def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """`x` (tensor, SparseTensor, IndexedSlices or value) with its elements converted to `dtype`.

    Floats are rounded towards zero to integers, complex numbers lose their imaginary part. A tensor that
    has the type already is returned itself.
    """
    dtype = dtypes.as_dtype(dtype).base_dtype
    if isinstance(x, Tensor) and x.dtype is dtype:
        return x
    graph = graph_of([x])
    with graph.as_default(), graph.name_scope(name or "Cast") as scope:
        if isinstance(x, SparseTensor):
            return SparseTensor(x.indices, cast(x.values, dtype, scope), x.dense_shape)
        if isinstance(x, IndexedSlices):
            return IndexedSlices(cast(x.values, dtype, scope), x.indices, x.dense_shape)
        x = convert_to_tensor(x, name="x")
        return x if x.dtype.base_dtype is dtype else cast_op(x, DstT=dtype, name=scope)


def to_float(x: Any, name: str = "ToFloat") -> Any:
    """`x` cast to float32."""
    return cast(x, dtypes.float32, name)


def to_double(x: Any, name: str = "ToDouble") -> Any:
    """`x` cast to float64."""
    return cast(x, dtypes.float64, name)


def to_int32(x: Any, name: str = "ToInt32") -> Any:
    """`x` cast to int32."""
    return cast(x, dtypes.int32, name)


def to_int64(x: Any, name: str = "ToInt64") -> Any:
    """`x` cast to int64."""
    return cast(x, dtypes.int64, name)


def to_complex64(x: Any, name: str = "ToComplex64") -> Any:
    """`x` cast to complex64."""
    return cast(x, dtypes.complex64, name)


def to_complex128(x: Any, name: str = "ToComplex128") -> Any:
    """`x` cast to complex128."""
    return cast(x, dtypes.complex128, name)


def to_bfloat16(x: Any, name: str = "ToBFloat16") -> Any:
    """`x` cast to bfloat16."""
    return cast(x, dtypes.bfloat16, name)


@dispatched("unary")
def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """`value` cast to `dtype`; what lies outside its range becomes its nearest end."""
    graph, dtype = graph_of([value]), dtypes.as_dtype(dtype).base_dtype
    with graph.as_default(), graph.name_scope(name or "saturate_cast") as scope:
        value = convert_to_tensor(value, name="value")
        source = value.dtype.base_dtype
        if source is dtype:
            return F.Identity(value, name=scope)
        if dtype.is_bool:
            raise TypeError(f"Cannot find minimum value of {dtype!r}.")
        if not source.is_complex and not dtype.is_complex:
            low, high = _range_within(source, dtype)
            if source.min < dtype.min:
                value = F.Maximum(value, convert_to_tensor(low, name="min"))
            if source.max > dtype.max:
                value = F.Minimum(value, convert_to_tensor(high, name="max"))
        result: Tensor = cast(value, dtype, scope)
        return result


def _range_within(source: dtypes.DType, target: dtypes.DType) -> tuple[Any, Any]:
    """The least and greatest values of `source` that `target` holds, as scalars of `source`."""
    low, high = max(source.min, target.min), min(source.max, target.max)
    kind = source.as_numpy_dtype
    if source.is_integer:
        return kind(int(low)), kind(int(high))
    low, high = np.asarray(low).astype(kind), np.asarray(high).astype(kind)
    if target.is_integer:  # rounding to a float may have left the range
        high = np.nextafter(high, kind(0)) if int(high) > target.max else high
        low = np.nextafter(low, kind(0)) if int(low) < target.min else low
    return low, high


def bitcast(input: Any, type: Any, name: str | None = None) -> Tensor:
    """The bits of `input` as elements of `type`; a narrower type adds a last dimension, a wider one takes
    it away.

    ValueError if the last dimension does not make up one element.
    """
    return bitcast_op(input, type=dtypes.as_dtype(type), name=name)
