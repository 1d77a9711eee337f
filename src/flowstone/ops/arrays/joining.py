"""Tensors one after the other along a dimension, and one tensor cut into parts along it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Known, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine.array_code import framed_rows
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node, Output
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dimension import Dimension
from flowstone.framework.types.shape import Dims, merge, num_elements
from flowstone.ops.arrays.arrays import (
    as_known,
    call_on_list,
    checked_axis,
    computed,
    elements,
    invalid,
    is_text,
    replaced,
    scalar_element,
)
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.shapes import rank, shape, shape_n

__all__ = ["concat", "joining", "split"]

# ---- Concat


def _concat_dims(node: Node, values: Any, axis_at: int) -> Dims:
    node.expect_scalar(axis_at)
    axis = node.constant(axis_at)
    known = [x.dims for x in values if x.dims is not None]
    if axis is None:
        rank = next((len(dims) for dims in known), None)
        return None if rank is None else (None,) * rank
    if not known:
        return None
    rank = len(known[0])
    if rank == 0:
        raise ValueError("Can't concatenate scalars (use tf.stack instead)")
    at = int(axis)
    if not -rank <= at < rank:
        raise ValueError(f"Shape must be at least rank {at + 1 if at >= 0 else -at} but is rank {rank}")
    at %= rank
    total: int | None = 0
    whole: Any = None
    for x in values:
        if x.dims is None:
            total = None
            continue
        if len(x.dims) != rank:
            raise ValueError(f"Shapes must be equal rank, but are {rank} and {len(x.dims)}")
        size = x.dims[at]
        total = None if size is None or total is None else total + size
        whole = merge(whole, replaced(x.dims, at, None))
    return replaced(whole, at, total)


def joining(node: Node, env: Environment, join: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.cat` or `torch.stack`; where the result is known to be large, by machine code if that suits."""
    elements, dtype = num_elements(node.outputs[0].static_shape), node.outputs[0].dtype.base_dtype.torch
    if elements is None or dtype is None or env.device.type != "cpu":
        return join
    if elements * dtype.itemsize < env.machine.profile.streamed_copies:
        return join
    is_new = join is torch.stack

    def join_many(xs: Any, axis: int) -> Any:
        code = framed_rows(xs[0].itemsize)
        found = None if code is None else code.join(xs, axis, is_new)
        return join(xs, axis) if found is None else found

    return join_many


def _concat_kernel(node: Node, env: Environment, first: int, count: int, axis_at: int) -> Kernel:
    axis = node.constant(axis_at)
    if is_text(node, first):
        return lambda *xs: np.concatenate(xs[first : first + count], int(xs[axis_at]))
    are_known = all(node.dims(i) is not None for i in range(first, first + count))
    join = joining(node, env, torch.cat) if are_known else _join
    if axis is not None:
        return call_on_list(join, first, count, int(axis))
    return lambda *xs: join(xs[first : first + count], int(xs[axis_at]))


def _join(tensors: list[Any] | tuple[Any, ...], axis: int) -> Any:
    """`torch.cat`, which by itself leaves out empty vectors of any company."""
    for i, x in enumerate(tensors):
        if x.ndim != tensors[0].ndim:
            raise invalid(
                f"Ranks of all input tensors should match: shape[0] = {list(tensors[0].shape)} vs. "
                f"shape[{i}] = {list(x.shape)}"
            )
    return torch.cat(tensors, axis)


concat_v2_op = op(
    "ConcatV2",
    "values: N*T, axis: Tidx -> output: T",
    "N: int >= 2 ; Tidx: type in [int32, int64] = int32",
    T=None,
    host=["axis"],
    by_element=True,
    moves=True,
)
concat_v2_op.infer(lambda node: _concat_dims(node, node.inputs[:-1], len(node.inputs) - 1))
concat_v2_op.kernel(CPU, GPU)(
    lambda node, env: _concat_kernel(node, env, 0, len(node.inputs) - 1, len(node.inputs) - 1)
)

concat_op = op(
    "Concat",
    "concat_dim: int32, values: N*T -> output: T",
    "N: int >= 2",
    T=None,
    host=["concat_dim"],
    by_element=True,
)
concat_op.infer(lambda node: _concat_dims(node, node.inputs[1:], 0))
concat_op.kernel(CPU, GPU)(lambda node, env: _concat_kernel(node, env, 1, len(node.inputs) - 1, 0))


def _elements_of(x: Output) -> tuple[int | None, ...] | None:
    known, dims = elements(x._static_value), x.dims
    if known is None and dims is not None and len(dims) == 1 and dims[0] is not None and dims[0] <= 32:
        return (None,) * dims[0] if x.dtype.is_integer else None
    return known


@concat_v2_op.value(*range(32))
def _(node: Node) -> Known | list[Known]:
    if len(node.inputs) > 32:
        return None
    found = [_elements_of(x) for x in node.inputs[:-1]]
    parts = [part for part in found if part is not None]
    axis = node.inputs[-1]._static_value
    if len(parts) < len(found) or scalar_element(axis) not in (0, -1):
        return computed(node)
    return as_known([n for part in parts for n in part], node.dtype(0).as_numpy_dtype)


def _concat_gradient(dy: Any, values: list[Tensor], axis: Tensor) -> list[Any]:
    """The pieces of `dy` that belong to the inputs of a concatenation."""
    if len(values) == 1:
        return [dy]
    if isinstance(dy, IndexedSlices):
        known, dims = scalar_element(axis._static_value), values[0].dims
        if known is not None and (known >= 0 or dims is not None):
            return _concat_gradient_of_rows(dy, values, axis, int(known) % len(dims) if dims else int(known))
        dy = convert_to_tensor(dy)
    if axis.op.type == "Const" and axis.op._control_flow_context is not dy.op._control_flow_context:
        axis = constant(axis.op.attributes["value"], axis.dtype)  # in the context of the gradient
    axis = F.FloorMod(axis, rank(values[0]), name="mod")
    shapes = _shapes_of(values)
    if len(values) > _MANY:
        sizes = F.Slice(F.Pack(shapes, axis=1, name="stack"), [axis, 0], [1, -1])
        sizes = F.Squeeze(sizes)
        return F.SplitV.several(dy, sizes, axis, num_split=len(values), name="split")  # type: ignore[no-any-return]
    return [F.Slice(dy, begin, size) for begin, size in zip(F.ConcatOffset(axis, shapes), shapes)]


def _concat_gradient_of_rows(dy: IndexedSlices, values: list[Tensor], axis: Tensor, known: int) -> list[Any]:
    """The same of some rows: those of each piece, or pieces of them."""
    axis, shapes = F.FloorMod(axis, rank(values[0]), name="mod"), _shapes_of(values)
    found: list[Any] = []
    begin: Any
    if known == 0:
        begin = constant(0, dy.indices.dtype.base_dtype)
        for each in shapes:
            size = F.GatherV2(each, axis, 0)
            if size.dtype is not begin.dtype:
                size = F.Cast(size, DstT=begin.dtype)
            end = F.AddV2(begin, size, name="add")
            is_in = F.LogicalAnd(F.GreaterEqual(dy.indices, begin), F.Less(dy.indices, end))
            places = F.Squeeze(F.Where(is_in), squeeze_dims=[1])
            indices = F.Sub(F.GatherV2(dy.indices, places, 0), begin, name="sub")
            found.append(IndexedSlices(F.GatherV2(dy.values, places, 0), indices, each))
            begin = end
        return found
    count = shape(shapes[0])
    behind = F.Sub(F.Sub(count, axis, name="sub"), 1, name="sub")
    is_axis = F.ConcatV2([F.Fill(F.ExpandDims(axis, 0), 0), [1], F.Fill(behind, 0)], 0, name="concat")
    begin = F.Fill(count, 0)
    for each in shapes:
        sizes = F.ConcatV2([[-1], F.Slice(each, [1], [-1])], 0, name="concat")
        found.append(IndexedSlices(F.Slice(dy.values, begin, sizes), dy.indices, each))
        begin = F.Add(begin, F.Mul(each, is_axis, name="mul"))
    return found


_MANY = 16  # values, up to which a slice is taken for each


def _shapes_of(values: list[Tensor]) -> list[Tensor]:
    shapes = []
    for x in values:
        shapes.append(shape(x))
        if shapes[-1].op.type != "Const":
            return shape_n(values)
    return shapes


@concat_v2_op.gradient
def _(op: Operation, dy: Any) -> Gradients:
    axis = op.inputs[-1]
    if axis.dtype.base_dtype is dtypes.int64 and op.constant(len(op.inputs) - 1) is None:
        axis = F.Cast(axis, DstT=dtypes.int32)
    return (*_concat_gradient(dy, op.inputs[:-1], axis), None)


@concat_op.gradient
def _(op: Operation, dy: Any) -> Gradients:
    return (None, *_concat_gradient(dy, op.inputs[1:], op.inputs[0]))


concat_offset_op = op(
    "ConcatOffset",
    "concat_dim: int32[], shape: N*shape_type -> offset: N*shape_type",
    "N: int >= 2 ; shape_type: type in [int32, int64] = int32",
    host=["concat_dim", "shape", "offset"],
)
concat_offset_op.infer(lambda node: [x.dims for x in node.inputs[1:]])
concat_offset_op.not_differentiable()


@concat_offset_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype = node.dtype(1).torch

    def offsets(axis: Any, *shapes: Any) -> list[Any]:
        sizes = [x.tolist() for x in shapes]
        rank = len(sizes[0])
        at = int(axis)
        if not -rank <= at < rank:
            raise invalid(f"Concat dim is out of range: {at} vs. {rank}")
        at %= rank
        result, offset = [], 0
        for other in sizes:
            if len(other) != rank or replaced(tuple(other), at) != replaced(tuple(sizes[0]), at):
                raise invalid(f"All dimensions except {at} must match: {sizes[0]} and {other}")
            result.append(torch.tensor([offset if i == at else 0 for i in range(rank)], dtype=dtype))
            offset += other[at]
        return result

    return offsets


# ---- Split

split_op = op(
    "Split",
    "split_dim: int32[], value: T -> output: num_split*T",
    "num_split: int >= 1",
    T=None,
    aliases=[1],
    snapshot=True,
    host=["split_dim"],
    later_names={"axis": "split_dim"},
    by_element=True,
)


@split_op.infer
def _(node: Node) -> Shapes:
    count, dims, axis = node.attributes["num_split"], node.dims(1), node.constant(0)
    if dims is None:
        return [None] * count
    if axis is None:
        return [(None,) * len(dims)] * count
    at = checked_axis(int(axis), len(dims), "split_dim")
    size = dims[at]
    if size is not None and size % count:
        raise ValueError(
            f"Dimension size must be evenly divisible by {count} but is {size}. "
            "Number of ways to split should evenly divide the split dimension"
        )
    return [replaced(dims, at, None if size is None else size // count)] * count


@split_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    count, axis, dims = node.attributes["num_split"], node.constant(0), node.dims(1)
    if is_text(node, 1):
        return lambda axis, x: np.split(x, count, int(axis))
    if count > 1 and axis is not None and dims is not None and dims[int(axis)] is not None:
        return Call(torch.split_with_sizes, X1, [dims[int(axis)] // count] * count, int(axis))

    def split(axis: Any, x: Any) -> Any:
        at = int(axis)
        if not -x.ndim <= at < x.ndim:
            raise invalid(f"-input rank(-{x.ndim}) <= split_dim < input rank ({x.ndim}), but got {at}")
        if x.shape[at] % count:
            raise invalid(
                f"Number of ways to split should evenly divide the split dimension, but got {count} "
                f"and {x.shape[at]}"
            )
        return torch.split_with_sizes(x, [x.shape[at] // count] * count, at)

    return split


@split_op.gradient
def _(op: Operation, *dys: Tensor) -> Gradients:
    return None, _joined(dys, op.inputs[0])


def _joined(parts: Any, axis: Any) -> Any:
    return F.ConcatV2(list(parts), axis, name="concat") if len(parts) > 1 else parts[0]


split_v_op = op(
    "SplitV",
    "value: T, size_splits: Tlen, split_dim: int32[] -> output: num_split*T",
    "num_split: int >= 1 ; Tlen: type in [int8, int32, int64] = int64",
    T=None,
    aliases=[0],
    snapshot=True,
    host=["size_splits", "split_dim"],
    later_names={"axis": "split_dim"},
    by_element=True,
)


@split_v_op.infer
def _(node: Node) -> Shapes:
    count, dims, sizes, axis = node.attributes["num_split"], node.dims(0), node.constant(1), node.constant(2)
    if sizes is not None and len(sizes) != count:
        raise ValueError(
            f"Length of size_splits should be equal to num_outputs, got {len(sizes)} and {count}"
        )
    if dims is None:
        return [None] * count
    if axis is None:
        return [(None,) * len(dims)] * count
    at = checked_axis(int(axis), len(dims), "split_dim")
    if count == 1 and (sizes is None or sizes[0] in (-1, dims[at])):
        return [dims]
    if sizes is None:
        return [replaced(dims, at, None)] * count
    return [replaced(dims, at, n) for n in _complete(sizes.tolist(), dims[at], ValueError)]


def _complete(sizes: list[int], total: int | None, error: Any) -> list[Any]:
    """The sizes of the parts with a -1 replaced, by None if `total` is unknown."""
    known = sum(n for n in sizes if n >= 0)
    if sizes.count(-1) > 1:
        raise error("size_splits can only have one -1")
    if min(sizes) < -1:
        raise error(f"Split size must be >= 0, got {min(sizes)}")
    if total is not None and (known > total if -1 in sizes else known != total):
        raise error(
            f"Determined shape must either match input shape along split_dim exactly or be smaller: "
            f"{sizes}, {total}"
        )
    return [(None if total is None else total - known) if n == -1 else n for n in sizes]


@split_v_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dims, sizes, axis = node.dims(0), node.constant(1), node.constant(2)
    if is_text(node):
        return lambda x, n, axis: np.split(
            x, np.cumsum(_complete(n.tolist(), x.shape[int(axis)], invalid))[:-1], int(axis)
        )
    if (
        sizes is not None
        and axis is not None
        and len(sizes) > 1
        and dims is not None
        and dims[int(axis)] is not None
    ):
        return Call(
            torch.split_with_sizes, X0, _complete(sizes.tolist(), dims[int(axis)], invalid), int(axis)
        )

    def split(x: Any, sizes: Any, axis: Any) -> Any:
        at = int(axis)
        if not -x.ndim <= at < x.ndim:
            raise invalid(f"-input rank(-{x.ndim}) <= split_dim < input rank ({x.ndim}), but got {at}")
        return torch.split_with_sizes(x, _complete(sizes.tolist(), x.shape[at], invalid), at)

    return split


@split_v_op.gradient
def _(op: Operation, *dys: Tensor) -> Gradients:
    return _joined(dys, op.inputs[2]), None, None


# ---- public functions


@dispatched("concat")
def concat(values: Any, axis: Any, name: str = "concat") -> Tensor:
    """Tensors of equal shapes, except along `axis`, one after the other along it."""
    if not isinstance(values, (list, tuple)):
        values = [values]
    if len(values) == 1:
        with get_default_graph().name_scope(name):
            at = convert_to_tensor(axis, dtypes.int32, "concat_dim")
            at.shape.assert_has_rank(0)
            return F.Identity(values[0], name=name)
    return concat_v2_op(list(values), axis, name=name)


def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list[Tensor]:
    """`value` cut along `axis` into equal parts (an int: how many) or parts of given sizes (one may be -1).

    `num`: the number of sizes, where a tensor of sizes does not tell. ValueError if it cannot be inferred or
    the static shape does not divide.
    """
    if isinstance(num_or_size_splits, (int, np.integer, Dimension)) and not isinstance(
        num_or_size_splits, bool
    ):
        convert_to_tensor(int(num_or_size_splits))  # read by nobody, as TensorFlow's
        return split_op.several(axis, value, num_split=int(num_or_size_splits), name=name)  # type: ignore[no-any-return]
    sizes = convert_to_tensor(num_or_size_splits)
    if sizes.dims == () and sizes.dtype.is_integer:
        raise ValueError(
            "Rank-0 tensors are not supported as the num_or_size_splits argument to split. "
            f"Argument provided: {num_or_size_splits}"
        )
    if num is None:
        dims = sizes.dims
        num = dims[0] if dims else None
        if num is None:
            raise ValueError(f"Cannot infer argument `num` from shape {num_or_size_splits}")
    return split_v_op.several(value, sizes, axis, num_split=num, name=name)  # type: ignore[no-any-return]
