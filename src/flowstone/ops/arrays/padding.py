"""Tensors made larger: padded with a value or their own mirror image, or repeated."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, X0, Call, Environment, Kernel
from flowstone.framework.declarations.operation import Equal, F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine import machine
from flowstone.framework.machine.array_code import framed_rows
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import in_signed, invalid, is_text, moving
from flowstone.ops.arrays.packing import stack
from flowstone.ops.arrays.shapes import rank, shape, size

__all__ = ["pad", "tile"]

_PADDINGS = "Tpaddings: type in [int32, int64] = int32"


def _pairs(node: Node) -> list[list[int]] | None:
    known = node.constant(1)
    return None if known is None else known.tolist()


def _padded_dims(node: Node, sign: int = 1) -> Dims:
    dims, pairs, shape = node.dims(0), _pairs(node), node.dims(1)
    if shape is not None and len(shape) != 2:
        raise ValueError(f"Shape must be rank 2 but is rank {len(shape)}")
    if shape is not None and shape[1] not in (None, 2):
        raise ValueError(f"Dimension must be 2 but is {shape[1]}")
    if shape is not None and dims is not None and shape[0] not in (None, len(dims)):
        raise ValueError(f"Dimension must be {shape[0]} but is {len(dims)}")
    if pairs is not None and any(n < 0 for pair in pairs for n in pair):
        raise ValueError(f"Paddings must be non-negative: {pairs}")
    if pairs is None:
        rank = len(dims) if dims is not None else None if shape is None else shape[0]
        return None if rank is None else (None,) * rank
    if dims is None:
        return (None,) * len(pairs)
    return tuple(
        [None if n is None else n + sign * (before + after) for n, (before, after) in zip(dims, pairs)]
    )


def _checked(x: Any, paddings: Any) -> list[list[int]]:
    if paddings.ndim != 2 or paddings.shape[1] != 2:
        raise invalid(f"paddings must be a matrix with 2 columns: {list(paddings.shape)}")
    pairs: list[list[int]] = paddings.tolist()
    if len(pairs) != x.ndim:
        raise invalid(
            f"The first dimension of paddings must be the rank of inputs {[len(pairs), 2]} {list(x.shape)}"
        )
    if any(n < 0 for pair in pairs for n in pair):
        raise invalid(f"Paddings must be non-negative: {pairs}")
    return pairs


def _flat(pairs: list[list[int]]) -> list[int]:
    """Paddings in ATen's order: from the last dimension on."""
    return [n for pair in reversed(pairs) for n in pair]


def _pad_kernel(node: Node, value_at: int | None) -> Kernel:
    pairs = _pairs(node)
    value: float | None = 0 if value_at is None else None
    known = None if value_at is None else node.constant(value_at)
    if is_text(node):
        return _pad_text
    if known is not None and known.dtype.names is None:
        value = known.item() if node.dtype(0) is not dtypes.bfloat16 else float(known)
    if value is None:
        return lambda x, paddings, value: _pad_with(x, _checked(x, paddings), value)
    if pairs is not None:
        return Call(_pad_by, X0, pairs, value)
    return lambda x, paddings, *_: _pad_by(x, _checked(x, paddings), value)


def _pad_by(x: Any, pairs: Any, value: Any) -> Any:
    """x, padded by a number."""
    found = _pad_by_code(x, pairs, value)
    return torch.constant_pad_nd(x, _flat(pairs), value) if found is None else found


def _pad_by_code(x: Any, pairs: Any, value: Any) -> Any:
    """x, padded by machine code; None where there is none, or ATen is faster."""
    is_large = x.numel() >= machine.current().profile.native_framed
    code = framed_rows(x.itemsize) if is_large and x.is_cpu else None
    return None if code is None else code.pad(x, pairs, torch.as_tensor(value, dtype=x.dtype))


def _pad_with(x: Any, pairs: Any, value: Any) -> Any:
    found = _pad_by_code(x, pairs, value)
    if found is not None:
        return found
    result = x.new_empty([n + before + after for n, (before, after) in zip(x.shape, pairs)])
    result.copy_(value)
    result[tuple([slice(before, before + n) for n, (before, _) in zip(x.shape, pairs)])] = x
    return result


def _pad_text(x: Any, paddings: Any, value: Any = b"") -> Any:
    pairs = _checked(x, paddings)
    result = np.full([n + before + after for n, (before, after) in zip(x.shape, pairs)], b"", dtype=object)
    result[...] = value
    result[tuple([slice(before, before + n) for n, (before, _) in zip(x.shape, pairs)])] = x
    return result


def _unpadded(op: Operation, dy: Tensor) -> Tensor:
    """The part of `dy` that is not padding."""
    x, paddings = op.inputs[0], op.inputs[1]
    column = stack([rank(x), 1])
    begin = F.Reshape(F.Slice(paddings, [0, 0], column), [-1])
    return F.Slice(dy, begin, shape(x, out_type=begin.dtype.base_dtype))


pad_op = op(
    "Pad", "input: T, paddings: Tpaddings -> output: T", _PADDINGS, T=None, host=["paddings"], by_element=True
)
pad_op.infer(_padded_dims)
pad_op.kernel(CPU, GPU)(lambda node, env: _pad_kernel(node, None))
pad_op.gradient(lambda op, dy: (_unpadded(op, dy), None))

pad_v2_op = op(
    "PadV2",
    "input: T, paddings: Tpaddings, constant_values: T[?] -> output: T",
    _PADDINGS,
    T=None,
    host=["paddings"],
)
pad_v2_op.infer(_padded_dims)
pad_v2_op.kernel(CPU, GPU)(lambda node, env: _pad_kernel(node, 2))
pad_v2_op.gradient(lambda op, dy: (_unpadded(op, dy), None, None))

# ---- mirrors

_MODE = f"{_PADDINGS} ; mode: string in ['REFLECT', 'SYMMETRIC']"


def _check_mirror(n: int, before: int, after: int, skip: int) -> None:
    """InvalidArgumentError if a dimension of size `n` is too short; `skip`: edges are not repeated."""
    if max(before, after) > n - skip:
        rule, wrong = ("less than", "not less than") if skip else ("no greater than", "greater than")
        raise invalid(f"paddings must be {rule} the dimension size: {before}, {after} {wrong} {n}")


mirror_pad_op = op(
    "MirrorPad", "input: T, paddings: Tpaddings -> output: T", _MODE, T=None, host=["paddings"]
)


@mirror_pad_op.infer
def _(node: Node) -> Shapes:
    return _padded_dims(node)


@mirror_pad_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    skip = int(node.attributes["mode"] == "REFLECT")

    def pad(x: Any, paddings: Any) -> Any:
        pairs = _checked(x, paddings)
        for n, (before, after) in zip(x.shape, pairs):
            _check_mirror(n, before, after, skip)
        out = x.new_empty([n + sum(pair) for n, pair in zip(x.shape, pairs)])
        inner = out
        for axis, (before, _) in enumerate(pairs):
            inner = inner.narrow(axis, before, x.shape[axis])
        inner.copy_(x)
        for axis, (before, after) in enumerate(pairs):  # of later axes what is mirrored is filled in later
            end = before + x.shape[axis]
            if before:
                out.narrow(axis, 0, before).copy_(out.narrow(axis, before + skip, before).flip(axis))
            if after:
                out.narrow(axis, end, after).copy_(out.narrow(axis, end - skip - after, after).flip(axis))
        return out

    return moving(node, pad)


@mirror_pad_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return F.MirrorPadGrad(dy, op.inputs[1], mode=op.attributes["mode"]), None


mirror_pad_grad_op = op(
    "MirrorPadGrad", "input: T, paddings: Tpaddings -> output: T", _MODE, T=None, host=["paddings"]
)
mirror_pad_grad_op.infer(lambda node: _padded_dims(node, -1))


@mirror_pad_grad_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    skip = int(node.attributes["mode"] == "REFLECT")

    def fold(dy: Any, paddings: Any) -> Any:
        pairs = _checked(dy, paddings)
        for length, (before, after) in zip(dy.shape, pairs):
            if before or after:
                _check_mirror(length - before - after, before, after, skip)
        edges = [(axis, before, after) for axis, (before, after) in enumerate(pairs) if before or after]
        return _folded(dy, edges, skip)

    return in_signed(node.dtype(0), fold, 0)


def _folded(dy: Any, edges: list[tuple[int, int, int]], skip: int) -> Any:
    """The middle of dy, to which its edges are added: so much (axis, before, after) of some axes."""
    if not edges:
        return dy.clone(memory_format=torch.contiguous_format)
    *others, (axis, before, after) = edges
    n = dy.shape[axis] - before - after
    middle = _folded(dy.narrow(axis, before, n), others, skip)
    for place, start, count in ((skip, 0, before), (n - skip - after, before + n, after)):
        if count:
            edge = _folded(dy.narrow(axis, start, count), others, skip)
            middle.narrow(axis, place, count).add_(edge.flip(axis))
    return middle


@mirror_pad_grad_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return F.MirrorPad(dy, op.inputs[1], mode=op.attributes["mode"]), None


# ---- Tile

tile_op = op(
    "Tile",
    "input: T, multiples: Tmultiples -> output: T",
    "Tmultiples: type in [int32, int64] = int32",
    T=None,
    host=["multiples"],
    by_element=True,
)


@tile_op.infer
def _(node: Node) -> Shapes:
    dims, counts = node.dims(0), node.constant_dims(1)
    if counts is None:
        return None if dims is None else tuple([0 if n == 0 else None for n in dims])
    if dims is None:
        dims = (None,) * len(counts)
    if len(dims) != len(counts):
        raise ValueError(f"Shape must be rank {len(dims)} but is rank {len(counts)}")
    return tuple([_repeated(n, count) for n, count in zip(dims, counts)])


def _repeated(n: int | None, count: int | None) -> int | None:
    if 0 in (n, count):
        return 0
    return None if n is None or count is None else n * count


@tile_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    known = node.constant(1)
    if is_text(node):
        return lambda x, counts: np.tile(x, _counts(x, counts))
    if known is not None and node.dims(0) is not None:
        if any(known < 0):
            return lambda x, counts: x.repeat(_counts(x, counts))
        return Call(torch.tile, X0, tuple(known.tolist())) if any(known != 1) else Call(torch.clone, X0)
    return lambda x, counts: x.repeat(_counts(x, counts))


def _counts(x: Any, counts: Any) -> list[int]:
    if counts.ndim != 1:
        raise invalid(f"Expected multiples to be 1-D, but got shape {list(counts.shape)}")
    result: list[int] = counts.tolist()
    if len(result) != x.ndim:
        raise invalid(
            f"Expected multiples argument to be a vector of length {x.ndim} but got length {len(result)}"
        )
    if any(n < 0 for n in result):
        raise invalid(f"Expected multiples >= 0, but got {result}")
    return result


@tile_op.fold
def _(node: Node) -> Equal:
    known = node.constant(1)
    return node.inputs[0] if known is not None and node.dims(0) is not None and (known == 1).all() else None


@tile_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x, counts = op.inputs
    dy = convert_to_tensor(dy)
    sizes = F.Pack([counts, shape(x, out_type=counts.dtype.base_dtype)], name="stack")
    pairs = F.Reshape(F.Transpose(sizes, [1, 0], name="transpose"), [-1])
    axes = F.Range(np.int32(0), size(pairs), np.int32(2), name="range")
    return F.Sum(F.Reshape(dy, pairs), axes), None


# ---- public functions


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", name: str | None = None, constant_values: Any = 0
) -> Tensor:
    """`tensor` with ``paddings[d]`` = (before, after) elements added in dimension d.

    `mode`: CONSTANT (`constant_values`), REFLECT or SYMMETRIC (without, with the border). Else ValueError.
    """
    kind = mode.upper()
    if kind == "CONSTANT":
        if not isinstance(constant_values, Tensor) and np.ndim(constant_values) == 0 and constant_values == 0:
            return pad_op(tensor, paddings, name=name)
        return pad_v2_op(tensor, paddings, constant_values, name=name)
    if kind not in ("REFLECT", "SYMMETRIC"):
        raise ValueError(
            'Value of argument `mode` expected to be one of "CONSTANT", "REFLECT", or "SYMMETRIC". '
            f"Received `mode` = {kind}"
        )
    return mirror_pad_op(tensor, paddings, mode=kind, name=name)


@dispatched("tile")
def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """`input` repeated ``multiples[d]`` times along dimension d."""
    return tile_op(input, multiples, name=name)
