"""Blocks of space moved to the channels or to the batch and back, and image patches.

All are one recipe: split dimensions into blocks (a reshape), permute, join dimensions (a reshape). Padding
comes before, cropping after.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node, static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, merge
from flowstone.ops.arrays.arrays import invalid, moving, product
from flowstone.ops.arrays.constants import constant, zeros
from flowstone.ops.arrays.packing import stack

__all__ = [
    "batch_to_space",
    "batch_to_space_nd",
    "depth_to_space",
    "required_space_to_batch_paddings",
    "space_to_batch",
    "space_to_batch_nd",
    "space_to_depth",
]

# ---- depth

_DEPTH = "block_size: int >= 2 ; data_format: string in ['NHWC', 'NCHW', 'NCHW_VECT_C'] = 'NHWC'"


def times(n: int | None, factor: int) -> int | None:
    return None if n is None else n * factor


def _divided(n: int | None, factor: int, what: str) -> int | None:
    if n is not None and n % factor:
        raise ValueError(f"Dimension size must be evenly divisible by {factor} but is {n} ({what})")
    return None if n is None else n // factor


def _image_dims(node: Node) -> tuple[Any, Any, Any, Any]:
    """(n, h, w, c) of an image batch in the node's format."""
    dims = node.dims(0)
    if dims is None:
        return (None,) * 4
    if len(dims) != 4:
        raise ValueError(f"Shape must be rank 4 but is rank {len(dims)}")
    if node.attributes["data_format"] == "NHWC":
        return dims
    return dims[0], dims[2], dims[3], dims[1]


def _in_format(node: Node, n: Any, h: Any, w: Any, c: Any) -> Dims:
    return (n, h, w, c) if node.attributes["data_format"] == "NHWC" else (n, c, h, w)


def _depth_op(name: str, infer: Any, move: Any, back: str) -> OpDeclaration:
    declaration = op(name, "input: T -> output: T", _DEPTH, T=None)
    declaration.infer(infer)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        block, is_last = node.attributes["block_size"], node.attributes["data_format"] == "NHWC"

        def moved(x: Any) -> Any:
            return (
                move(x, block)
                if is_last
                else move(x.permute(0, 2, 3, 1), block).permute(0, 3, 1, 2).contiguous()
            )

        return moving(node, moved)

    @declaration.gradient
    def _(op: Operation, dy: Tensor) -> Gradients:
        attributes = {key: op.attributes[key] for key in ("block_size", "data_format")}
        return (getattr(F, back)(dy, **attributes),)

    return declaration


def _copied(x: Any, sizes: list[int]) -> Any:
    """The elements in their order, in memory of their own also where they are in order already."""
    return x.clone(memory_format=torch.contiguous_format).reshape(sizes)


def _depth_to_space(x: Any, block: int) -> Any:
    n, h, w, c = x.shape
    if c % (block * block):
        raise invalid(f"Input depth dimension {c} should be divisible by: {block * block}")
    rest = c // (block * block)
    split = x.reshape(n, h, w, block, block, rest).permute(0, 1, 3, 2, 4, 5)
    return _copied(split, [n, h * block, w * block, rest])


def _space_to_depth(x: Any, block: int) -> Any:
    n, h, w, c = x.shape
    if h % block or w % block:
        raise invalid(f"Image width {w} and height {h} should be divisible by block_size: {block}")
    split = x.reshape(n, h // block, block, w // block, block, c).permute(0, 1, 3, 2, 4, 5)
    return _copied(split, [n, h // block, w // block, c * block * block])


def _depth_to_space_dims(node: Node) -> Dims:
    n, h, w, c = _image_dims(node)
    block = node.attributes["block_size"]
    return _in_format(node, n, times(h, block), times(w, block), _divided(c, block * block, "depth"))


def _space_to_depth_dims(node: Node) -> Dims:
    n, h, w, c = _image_dims(node)
    block = node.attributes["block_size"]
    return _in_format(
        node, n, _divided(h, block, "height"), _divided(w, block, "width"), times(c, block * block)
    )


depth_to_space_op = _depth_op("DepthToSpace", _depth_to_space_dims, _depth_to_space, "SpaceToDepth")
space_to_depth_op = _depth_op("SpaceToDepth", _space_to_depth_dims, _space_to_depth, "DepthToSpace")

# ---- batch


def _space_to_batch(x: Any, blocks: list[int], pads: list[list[int]]) -> Any:
    count = len(blocks)
    if x.ndim < count + 1:
        raise invalid(f"input rank should be >= {count + 1} instead of {x.ndim}")
    if any(n < 0 for pair in pads for n in pair):
        raise invalid("paddings must be non-negative")
    rest = x.shape[count + 1 :]
    flat = [0, 0] * len(rest) + [n for pair in reversed(pads) for n in pair]
    if any(flat):  # or the move would be of a copy
        x = torch.constant_pad_nd(x, flat)
    split: list[int] = [x.shape[0]]
    for n, block in zip(x.shape[1:], blocks):
        if n % block:
            raise invalid(f"padded_shape {list(x.shape)} is not divisible by block_shape {blocks}")
        split += [n // block, block]
    inner = [2 * i + 2 for i in range(count)]
    outer = [2 * i + 1 for i in range(count)]
    order = [*inner, 0, *outer, *range(2 * count + 1, 2 * count + 1 + len(rest))]
    sizes = [x.shape[0] * product(blocks), *[split[i] for i in outer], *rest]
    return _copied(x.reshape([*split, *rest]).permute(order), sizes)


def _batch_to_space(x: Any, blocks: list[int], crops: list[list[int]]) -> Any:
    count = len(blocks)
    if x.ndim < count + 1:
        raise invalid(f"input rank should be >= {count + 1} instead of {x.ndim}")
    if any(n < 0 for pair in crops for n in pair):
        raise invalid("crops must be non-negative")
    batch, space, rest = x.shape[0], x.shape[1 : count + 1], x.shape[count + 1 :]
    if batch % product(blocks):
        raise invalid(
            f"Input batch dimension ({batch}) is not divisible by product of block sizes ({product(blocks)})"
        )
    order = [count]
    for i in range(count):
        order += [count + 1 + i, i]
    order += range(2 * count + 1, 2 * count + 1 + len(rest))
    sizes = [batch // product(blocks), *[n * block for n, block in zip(space, blocks)], *rest]
    whole = _copied(x.reshape([*blocks, sizes[0], *space, *rest]).permute(order), sizes)
    for i, (before, after) in enumerate(crops):
        left = sizes[i + 1] - before - after
        if left < 0:
            raise invalid(f"cropped size must be non-negative, got {left}")
        whole = whole.narrow(i + 1, before, left)
    return whole.contiguous()


def _pairs(value: Any, count: int, what: str) -> list[list[int]]:
    """The pairs of numbers, one a block, that an argument has to be."""
    if list(value.shape) != [count, 2]:
        raise invalid(f"{what} should have shape [{count}, 2] instead of {list(value.shape)}")
    found: list[list[int]] = value.tolist()
    return found


def _moved_dims(dims: Any, blocks: Any, pairs: Any, is_to_batch: bool) -> Dims:
    """Static shape after the move; `blocks` is a list, `pairs` one or None."""
    if dims is None:
        return None
    if len(dims) < len(blocks) + 1:
        raise ValueError(f"Shape must be at least rank {len(blocks) + 1} but is rank {len(dims)}")
    size = product(blocks)
    result = [times(dims[0], size) if is_to_batch else _divided(dims[0], size, "batch")]
    for i, block in enumerate(blocks):
        n = dims[i + 1]
        if n is None or pairs is None:
            result.append(None)
        elif min(pairs[i]) < 0:
            raise ValueError("paddings cannot be negative" if is_to_batch else "crops cannot be negative")
        elif is_to_batch:
            result.append(_divided(n + sum(pairs[i]), block, "padded dimension"))
        else:
            left = n * block - sum(pairs[i])
            result.append(left)
            if left < 0:
                raise ValueError(f"Negative dimension size caused by cropping {pairs[i]} from {n * block}")
    return (*result, *dims[len(blocks) + 1 :])


def _listed(value: Any) -> Any:
    return None if value is None else value.tolist()


def _nd_op(name: str, second: str, move: Any, is_to_batch: bool, back: str) -> OpDeclaration:
    declaration = op(
        name,
        f"input: T, block_shape: Tblock_shape, {second}: T{second} -> output: T",
        f"Tblock_shape: type in [int32, int64] = int32 ; T{second}: type in [int32, int64] = int32",
        T=None,
        host=["block_shape", second],
    )

    @declaration.infer
    def _(node: Node) -> Shapes:
        blocks = node.dims(1)
        if blocks is not None and len(blocks) != 1:
            raise ValueError("block_shape must have rank 1.")
        if blocks is None or blocks[0] is None:
            raise ValueError("block_shape must have known size.")
        merge(node.dims(2), (blocks[0], 2))
        dims, known = node.dims(0), _listed(node.constant(1))
        if known is not None and min(known, default=1) < 1:
            raise ValueError("block_shape must be positive")
        if dims is not None and known is None:
            return (*[None] * (blocks[0] + 1), *dims[blocks[0] + 1 :])
        return _moved_dims(dims, known, _listed(node.constant(2)), is_to_batch)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        def moved(x: Any, blocks: Any, pairs: Any) -> Any:
            return move(x, blocks.tolist(), _pairs(pairs, blocks.numel(), second))

        return moved

    @declaration.gradient
    def _(op: Operation, dy: Tensor) -> Gradients:
        return getattr(F, back)(dy, op.inputs[1], op.inputs[2]), None, None

    return declaration


space_to_batch_nd_op = _nd_op("SpaceToBatchND", "paddings", _space_to_batch, True, "BatchToSpaceND")
batch_to_space_nd_op = _nd_op("BatchToSpaceND", "crops", _batch_to_space, False, "SpaceToBatchND")


def _square_op(
    name: str, second: str, attribute: str, move: Any, is_to_batch: bool, back: str
) -> OpDeclaration:
    declaration = op(
        name,
        f"input: T, {second}: {attribute} -> output: T",
        f"{attribute}: type in [int32, int64] = int32 ; block_size: int >= 2",
        T=None,
        host=[second],
    )

    @declaration.infer
    def _(node: Node) -> Shapes:
        dims = node.dims(0)
        merge(node.dims(1), (2, 2))
        if dims is None:
            dims = (None,) * 4
        if len(dims) != 4:
            raise ValueError(f"Shape must be rank 4 but is rank {len(dims)}")
        return _moved_dims(dims, [node.attributes["block_size"]] * 2, _listed(node.constant(1)), is_to_batch)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        blocks = [node.attributes["block_size"]] * 2
        return lambda x, pairs: move(x, blocks, _pairs(pairs, 2, second))

    @declaration.gradient
    def _(op: Operation, dy: Tensor) -> Gradients:
        return getattr(F, back)(dy, op.inputs[1], block_size=op.attributes["block_size"]), None

    return declaration


space_to_batch_op = _square_op("SpaceToBatch", "paddings", "Tpaddings", _space_to_batch, True, "BatchToSpace")
batch_to_space_op = _square_op("BatchToSpace", "crops", "Tidx", _batch_to_space, False, "SpaceToBatch")


# ---- public functions


def depth_to_space(input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """[n, h, w, c·b·b] to [n, h·b, w·b, c]: channels become blocks of b by b places."""
    return depth_to_space_op(input, block_size=block_size, data_format=data_format, name=name)


def space_to_depth(input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """[n, h·b, w·b, c] to [n, h, w, c·b·b]: blocks of b by b places become channels."""
    return space_to_depth_op(input, block_size=block_size, data_format=data_format, name=name)


def _blocks(block_size: Any, block_shape: Any) -> Any:
    """The sizes of blocks; one number is that of both dimensions."""
    given = block_shape if block_size is None else block_size
    is_shape = block_size is None and not isinstance(block_shape, (int, np.integer))
    return given if is_shape else np.array([given, given], np.int64)


def space_to_batch(
    input: Any, paddings: Any, block_size: int | None = None, name: str | None = None, block_shape: Any = None
) -> Tensor:
    """[n, h, w, c], padded, to [n·b·b, h/b, w/b, c]: places of a block go to different images."""
    result = space_to_batch_nd(input, _blocks(block_size, block_shape), paddings, name)
    result.set_shape((None,) * 4)
    return result


def batch_to_space(
    input: Any, crops: Any, block_size: int | None = None, name: str | None = None, block_shape: Any = None
) -> Tensor:
    """The inverse of `space_to_batch`; `crops` [2, 2] are cut off afterwards."""
    result = batch_to_space_nd(input, _blocks(block_size, block_shape), crops, name)
    result.set_shape((None,) * 4)
    return result


def space_to_batch_nd(input: Any, block_shape: Any, paddings: Any, name: str | None = None) -> Tensor:
    """As `space_to_batch` for M spatial dimensions: `block_shape` [M], `paddings` [M, 2]."""
    return space_to_batch_nd_op(input, block_shape, paddings, name=name)


def batch_to_space_nd(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """The inverse of `space_to_batch_nd`; `crops` [M, 2] are cut off afterwards."""
    return batch_to_space_nd_op(input, block_shape, crops, name=name)


def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """(paddings, crops), both [M, 2]: what `space_to_batch_nd` needs so that blocks divide the padded sizes.

    `input_shape`, `block_shape`: int32 [M]; `base_paddings`: int32 [M, 2], the least padding (0).
    """
    with get_default_graph().name_scope(name or "required_space_to_batch_paddings"):
        sizes = convert_to_tensor(input_shape, dtypes.int32, "input_shape")
        blocks = convert_to_tensor(block_shape, dtypes.int32, "block_shape")
        blocks.shape.assert_is_fully_defined()
        blocks.shape.assert_has_rank(1)
        (count,) = blocks.static_shape or (0,)
        if count == 0:
            return zeros([0, 2], dtypes.int32), zeros([0, 2], dtypes.int32)
        if base_paddings is None:
            base = zeros([count, 2], dtypes.int32)
        else:
            base = convert_to_tensor(base_paddings, dtypes.int32, "base_paddings")
        known = [static_value(x) for x in (sizes, blocks, base)]
        if all(isinstance(value, np.ndarray) for value in known):
            size, block, least = known
            after = least[:, 1] + -(size + least[:, 0] + least[:, 1]) % block
            paddings = np.stack([least[:, 0], after], 1)
            crops = np.stack([np.zeros_like(after), after - least[:, 1]], 1)
            return constant(paddings, dtypes.int32, name="paddings"), constant(
                crops, dtypes.int32, name="crops"
            )
        before, least_after = base[:, 0], base[:, 1]
        extra = (blocks - (sizes + before + least_after) % blocks) % blocks
        after_all = least_after + extra
        paddings_of = stack([[before[i], after_all[i]] for i in range(count)], name="paddings")
        crops_of = stack([[0, extra[i]] for i in range(count)], name="crops")
        return paddings_of, crops_of
