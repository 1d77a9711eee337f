"""Shapes: asking for them, computing with them, giving a tensor another one.

What is known of a shape is known of the vector that `shape` gives (the `value` hooks), also in part: so
``tf.reshape(x, tf.stack([tf.shape(x)[0], 784]))`` has the static shape (?, 784).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, X0, Call, Environment, Kernel
from flowstone.framework.declarations.operation import Equal, F, Gradients, Known, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.composite import SparseTensor, SparseTensorValue
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import format_dims, num_elements
from flowstone.ops.arrays.arrays import (
    as_known,
    boxed,
    checked_axis,
    computed,
    invalid,
    is_text,
    product,
    sizes_of,
)
from flowstone.ops.arrays.constants import constant

__all__ = [
    "expand_dims",
    "rank",
    "reshape",
    "shape",
    "shape_n",
    "size",
    "squeeze",
]

_INDEX = "[int32, int64]"
_QUESTION: dict[str, Any] = {"T": None, "host": ["output"], "free": True, "shape_only": True}

# ---- questions


def _question(name: str, attributes: str, result: str) -> OpDeclaration:
    declaration = op(name, f"input: T -> output: {result}", attributes, **_QUESTION)
    declaration.not_differentiable()
    return declaration


shape_op = _question("Shape", f"out_type: type in {_INDEX} = int32", "out_type")
shape_op.infer(lambda node: (_rank(node),))


def _rank(node: Node) -> int | None:
    dims = node.dims(0)
    return None if dims is None else len(dims)


@shape_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    told = _told_in(node.attributes["out_type"])
    return lambda x: told(x.shape)


def _told_in(dtype: DType) -> Callable[[Any], torch.Tensor]:
    """The function that makes a tensor of whole numbers: by NumPy in a third of the time that torch takes."""
    kind, array, from_numpy = np.dtype(dtype.as_numpy_dtype), np.array, torch.from_numpy

    def told(numbers: Any) -> torch.Tensor:
        try:
            return from_numpy(array(numbers, kind))
        except OverflowError:  # which ATen says in its own words
            return torch.tensor(numbers, dtype=dtype.torch)

    return told


@shape_op.value()
def _(node: Node) -> Known | list[Known]:
    dims = node.dims(0)
    return None if dims is None else as_known(dims, node.attributes["out_type"].as_numpy_dtype)


shape_n_op = op(
    "ShapeN", "input: N*T -> output: N*out_type", f"out_type: type in {_INDEX} = int32", **_QUESTION
)
shape_n_op.infer(lambda node: [(None if x.dims is None else len(x.dims),) for x in node.inputs])
shape_n_op.not_differentiable()


@shape_n_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    told = _told_in(node.attributes["out_type"])
    return lambda *inputs: [told(x.shape) for x in inputs]


@shape_n_op.value()
def _(node: Node) -> Known | list[Known]:
    dtype = node.attributes["out_type"].as_numpy_dtype
    return [None if x.dims is None else as_known(x.dims, dtype) for x in node.inputs]


size_op = _question("Size", f"out_type: type in {_INDEX} = int32", "out_type")
size_op.infer(lambda node: ())


@size_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    told = _told_in(node.attributes["out_type"])
    return lambda x: told(product(x.shape))


@size_op.value()
def _(node: Node) -> Known | list[Known]:
    count = num_elements(node.dims(0))
    dtype = node.attributes["out_type"].as_numpy_dtype
    if count is None or (dtype is np.int32 and count > 2**31 - 1):  # which the step refuses
        return None
    return np.array(count, dtype)


rank_op = _question("Rank", "", "int32")
rank_op.infer(lambda node: ())


@rank_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return lambda x: torch.tensor(len(x.shape), dtype=torch.int32)


@rank_op.value()
def _(node: Node) -> Known | list[Known]:
    known = _rank(node)
    return None if known is None else np.array(known, np.int32)


# ---- the same elements in another shape

_SAME_ELEMENTS: dict[str, Any] = {"T": None, "aliases": [0], "moves": True, "reshapes": True}
reshape_op = op(
    "Reshape",
    "tensor: T, shape: Tshape -> output: T",
    f"Tshape: type in {_INDEX} = int32",
    host=["shape"],
    **_SAME_ELEMENTS,
)


@reshape_op.infer
def _(node: Node) -> Shapes:
    given, dims = node.dims(0), sizes_of(node, 1)
    if dims is None:
        return None
    total = num_elements(given)
    known = product([n for n in dims if n is not None])
    unknown = dims.count(None)
    if total is None:
        _check_divisible(given, dims, known, unknown)
        return dims
    if not unknown:
        if known != total:
            raise ValueError(
                f"Cannot reshape a tensor with {total} elements to shape {format_dims(dims)} "
                f"({known} elements)"
            )
    elif unknown == 1 and known:
        if total % known:
            raise ValueError(f"Dimension size must be evenly divisible by {known} but is {total}")
        return tuple([total // known if n is None else n for n in dims])
    return dims


def _check_divisible(given: Any, dims: Any, known: int, unknown: int) -> None:
    """ValueError if no size of the one unknown input dimension gives the wholly known `dims`."""
    if given is not None and given.count(None) == 1 and not unknown:
        part = product([n for n in given if n is not None])
        if part and known % part:
            raise ValueError(f"Dimension size must be evenly divisible by {part} but is {known}")


@reshape_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dims, wanted = node.outputs[0].dims, node.constant(1)
    if is_text(node):
        return lambda x, shape: boxed(x.reshape(_completed(shape.tolist(), x.shape)))
    if wanted is not None and dims is not None and None not in dims:
        return Call(torch.reshape, X0, dims)
    if wanted is not None and (wanted == -1).sum() <= 1 and 0 not in wanted:
        return Call(torch.reshape, X0, tuple(wanted.tolist()))
    return _reshaped


def _reshaped(x: torch.Tensor, shape: torch.Tensor) -> torch.Tensor:
    """`x` in a shape that only the step knows. InvalidArgumentError if its elements do not fit."""
    sizes = shape.tolist()
    if 0 not in sizes:  # ATen means the same by -1 then, and refuses the same
        try:
            return x.reshape(sizes)
        except RuntimeError:
            pass
    return x.reshape(_completed(sizes, x.shape))


def _completed(sizes: list[int], given: Any) -> list[int]:
    """`sizes` with its -1 replaced. InvalidArgumentError if the elements of the `given` sizes do not fit.

    Of nothing, -1 is what it would be if no size were 0.
    """
    total = product(given)
    if any(n < -1 for n in sizes):
        raise invalid(f"Size {sizes.index(min(sizes))} must be non-negative, not {min(sizes)}")
    if sizes.count(-1) > 1:
        raise invalid("Only one input size may be -1")
    known = product([n for n in sizes if n >= 0])
    if -1 in sizes:
        if known == 0 and total == 0:
            known = product([n for n in sizes if n > 0])
            return [product([n for n in given if n]) // known if n == -1 else n for n in sizes]
        if known == 0 or total % known:
            raise invalid(
                f"Input to reshape is a tensor with {total} values, but the requested shape "
                f"requires a multiple of {known}"
            )
        return [total // known if n == -1 else n for n in sizes]
    if known != total:
        raise invalid(
            f"Input to reshape is a tensor with {total} values, but the requested shape has {known}"
        )
    return sizes


@reshape_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return F.Reshape(dy, shape(op.inputs[0])), None


@reshape_op.fold
def _(node: Node) -> Equal:
    dims = node.static_shape(0)
    return (
        node.inputs[0]
        if dims is not None and dims == node.outputs[0].dims and node.constant(1) is not None
        else None
    )


@reshape_op.value(0, 1)
def _(node: Node) -> Known | list[Known]:
    known = node.inputs[0]._static_value
    if type(known) is tuple and node.outputs[0].dims == (len(known),):
        return known
    return computed(node)


def _back_to_shape(op: Operation, dy: Tensor) -> Tensor:
    return F.Reshape(dy, shape(op.inputs[0]))


expand_dims_op = op(
    "ExpandDims",
    "input: T, dim: Tdim -> output: T",
    f"Tdim: type in {_INDEX} = int32",
    host=["dim"],
    later_names={"axis": "dim"},
    **_SAME_ELEMENTS,
)


@expand_dims_op.infer
def _(node: Node) -> Shapes:
    dims, axis = node.dims(0), node.constant(1)
    if axis is not None and axis.size != 1:
        raise ValueError(f"'dim' input must be a tensor with a single value, not {axis.size}")
    if dims is None or axis is None:
        return None
    at = checked_axis(int(axis.item()), len(dims) + 1, "dim")
    return (*dims[:at], 1, *dims[at:])


@expand_dims_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    if is_text(node):
        return lambda x, axis: np.expand_dims(x, _axis_in(axis, x.ndim + 1))
    axis = node.constant(1)
    if axis is not None:
        return Call(torch.unsqueeze, X0, int(axis.item()))
    return lambda x, axis: x.unsqueeze(_axis_in(axis, x.ndim + 1))


def _axis_in(axis: Any, rank: int) -> int:
    at = int(axis.item())
    if not -rank <= at < rank:
        raise invalid(f"Tried to expand dim index {at} for tensor with {rank - 1} dimensions.")
    return at


expand_dims_op.gradient(lambda op, dy: (_back_to_shape(op, dy), None))


@expand_dims_op.value(0, 1)
def _(node: Node) -> Known | list[Known]:
    return computed(node)


squeeze_op = op(
    "Squeeze",
    "input: T -> output: T",
    "squeeze_dims: list(int) >= 0 = []",
    later_names={"axis": "squeeze_dims"},
    **_SAME_ELEMENTS,
)


@squeeze_op.infer
def _(node: Node) -> Shapes:
    dims, axes = node.dims(0), node.attributes["squeeze_dims"]
    if dims is None:
        return None
    if not axes:
        return None if None in dims else tuple([n for n in dims if n != 1])
    chosen = {checked_axis(axis, len(dims), "squeeze dim") for axis in axes}
    for axis in chosen:
        if dims[axis] not in (1, None):
            raise ValueError(f"Can not squeeze dim[{axis}], expected a dimension of 1, got {dims[axis]}")
    return tuple([n for axis, n in enumerate(dims) if axis not in chosen])


@squeeze_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    axes, dims = node.attributes["squeeze_dims"], node.static_shape(0)
    if is_text(node):
        return lambda x: boxed(x.reshape(_without(tuple(x.shape), axes)))
    if dims is not None:
        return Call(torch.reshape, X0, _without(dims, axes))
    return lambda x: x.reshape(_without(tuple(x.shape), axes))


def _without(dims: tuple[int, ...], axes: Any) -> tuple[int, ...]:
    if not axes:
        return tuple([n for n in dims if n != 1])
    chosen = set()
    for axis in axes:
        at = axis + len(dims) if axis < 0 else axis
        if not 0 <= at < len(dims) or dims[at] != 1:
            size = dims[at] if 0 <= at < len(dims) else "none"
            raise invalid(f"Can not squeeze dim[{axis}], expected a dimension of 1, got {size}")
        chosen.add(at)
    return tuple([n for axis, n in enumerate(dims) if axis not in chosen])


squeeze_op.gradient(lambda op, dy: (_back_to_shape(op, dy),))


@squeeze_op.fold
def _(node: Node) -> Equal:
    dims = node.static_shape(0)
    return node.inputs[0] if dims is not None and dims == node.outputs[0].dims else None


# ---- public functions


def shape(input: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """The shape of a tensor: int32 (or `out_type` int64), [rank]; a constant if it is known."""
    return _shape(input, name, dtypes.int32 if out_type is None else dtypes.as_dtype(out_type))


def _shape(value: Any, name: str | None, out_type: dtypes.DType) -> Tensor:
    with get_default_graph().name_scope(name or "Shape") as scope:
        if isinstance(value, (SparseTensor, SparseTensorValue)):
            return F.Cast(value.dense_shape, DstT=out_type)
        tensor = value if type(value) is Tensor else convert_to_tensor(value)
        dims = tensor.dims
        if dims is not None and None not in dims:
            return constant(np.array(dims, out_type.as_numpy_dtype), out_type, name=scope)
        return shape_op(tensor, out_type=out_type, name=scope)


def shape_n(input: Any, out_type: Any = dtypes.int32, name: str | None = None) -> list[Tensor]:
    """The shapes of a list of tensors of one type."""
    return shape_n_op.several(input, out_type=out_type, name=name)  # type: ignore[no-any-return]


@dispatched("size")
def size(input: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """The number of elements: an int32 (or `out_type` int64) scalar; a constant if it is known."""
    wanted = dtypes.int32 if out_type is None else dtypes.as_dtype(out_type)
    with get_default_graph().name_scope(name or "Size") as scope:
        if isinstance(input, (SparseTensor, SparseTensorValue)):
            return F.Prod(F.Cast(input.dense_shape, DstT=wanted), 0, name=scope)
        tensor = convert_to_tensor(input)
        count = num_elements(tensor.dims)
        if count is not None:
            return constant(count, wanted, name=scope)
        return size_op(tensor, out_type=wanted, name=scope)


@dispatched("rank")
def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of dimensions: an int32 scalar; a constant if it is known."""
    with get_default_graph().name_scope(name or "Rank") as scope:
        if isinstance(input, (SparseTensor, SparseTensorValue)):
            return size_op(input.dense_shape, name=scope)
        tensor = convert_to_tensor(input)
        if tensor.dims is not None:
            return constant(len(tensor.dims), dtypes.int32, name=scope)
        return rank_op(tensor, name=scope)


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """The elements of `tensor` in row-major order in another shape; one size may be -1, which is computed.

    Raises ValueError if the static shapes do not fit; a step InvalidArgumentError.
    """
    return reshape_op(tensor, shape, name=name)


@dispatched("expand_dims")
def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """`input` with a dimension of size 1 inserted at `axis` (negative: from the end); `dim`: its old name."""
    if dim is not None:
        if axis is not None:
            raise ValueError("can't specify both 'dim' and 'axis'")
        axis = dim
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return expand_dims_op(input, axis, name=name)


@dispatched("squeeze")
def squeeze(input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None) -> Tensor:
    """`input` without its dimensions of size 1, or only those in `axis` (an int or a list)."""
    if squeeze_dims is not None:
        if axis is not None:
            raise ValueError("Cannot specify both 'squeeze_dims' and 'axis'")
        axis = squeeze_dims
    if axis is not None and not isinstance(axis, (list, tuple)):
        axis = [axis]
    return squeeze_op(input, squeeze_dims=axis or [], name=name)
