"""Signals cut into frames that overlap, and put together again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes

_INT = np.int32
Size = Any  # an int, or a scalar tensor where it is not known before the step


def frame(
    signal: Any,
    frame_length: Any,
    frame_step: Any,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: int = -1,
    name: str | None = None,
) -> Tensor:
    """The frames [..., frames, frame_length, ...] of a signal along an axis, each a step after the last.

    Args:
        signal: [..., samples, ...], of known rank if the axis is not the last.
        frame_length: the number of samples of a frame.
        frame_step: the number of samples from one frame's start to the next one's.
        pad_end: whether there are frames past the end, filled with `pad_value`: as many as there are steps.
        pad_value: a number.
        axis: the axis of the samples.
        name: a name for the operations.
    """
    with get_default_graph().name_scope(name or "frame"):
        x = convert_to_tensor(signal, name="signal")
        length, step = _scalar(frame_length, "frame_length"), _scalar(frame_step, "frame_step")
        if x.dims is None:
            if axis != -1:
                raise ValueError(f"the rank of the signal must be known for axis {axis}")
            return over_last(x, 1, lambda rows: frame(rows, length, step, pad_end, pad_value))
        rank = len(x.dims)
        if not -rank <= axis < rank:
            raise ValueError(f"axis {axis} is out of bounds of a signal of rank {rank}")
        place = axis % rank
        samples = size_of(x, place)
        if pad_end:
            count = _minus(0, _floor_divided(_minus(0, samples), step))
            lacking = _at_least(0, _minus(_plus(length, _times(step, _minus(count, 1))), samples))
            paddings = [[_INT(0), lacking if i == place else _INT(0)] for i in range(rank)]
            x = F.PadV2(x, _tensor(paddings), convert_to_tensor(pad_value, x.dtype))
        else:
            count = _at_least(0, _plus(1, _floor_divided(_minus(samples, length), step)))
        starts = F.Mul(F.Range(_INT(0), _value(count), _INT(1)), _value(step))
        within = F.Range(_INT(0), _value(length), _INT(1))
        return F.GatherV2(x, F.AddV2(F.ExpandDims(starts, _INT(1)), within), _INT(place))


def overlap_and_add(signal: Any, frame_step: Any, name: str | None = None) -> Tensor:
    """The sum [..., samples] of frames [..., frames, frame_length], each set a step after the last.

    There are frame_step (frames - 1) + frame_length samples.
    """
    with get_default_graph().name_scope(name or "overlap_and_add"):
        x = convert_to_tensor(signal, name="signal")
        if x.dims is not None and len(x.dims) < 2:
            raise ValueError(f"signal must have a rank of at least 2, not {x.shape}")
        step_tensor = convert_to_tensor(frame_step, name="frame_step")
        if not step_tensor.dtype.is_integer:
            raise ValueError(f"frame_step must be an integer. Got {step_tensor.dtype}")
        step = _scalar(frame_step, "frame_step")
        if x.dims is None:
            return over_last(x, 2, lambda rows: overlap_and_add(rows, frame_step))
        rank = len(x.dims)
        outer = [size_of(x, i) for i in range(rank - 2)]
        frames, length = size_of(x, rank - 2), size_of(x, rank - 1)
        total = _plus(length, _times(step, _minus(frames, 1)))
        parts = _minus(0, _floor_divided(_minus(0, length), step))  # steps that a frame reaches over
        return _sum_of_parts(x, outer, (frames, parts, step), total, length)


def _sum_of_parts(
    x: Tensor, outer: list[Size], sizes: tuple[Size, Size, Size], total: Size, length: Size
) -> Tensor:
    """Part j of frame i is part i + j of the sum. Rows of parts that are one too short move each by one."""
    frames, parts, step = sizes
    rank = len(outer) + 2
    paddings = [[_INT(0), _INT(0)]] * (rank - 2) + [
        [_INT(0), parts],
        [_INT(0), _minus(_times(parts, step), length)],
    ]
    x = F.Pad(x, _tensor(paddings))
    rows = _plus(frames, parts)
    x = F.Reshape(x, _tensor([*outer, rows, parts, step]))
    x = F.Transpose(x, [*range(rank - 2), rank - 1, rank - 2, rank])
    x = F.Reshape(x, _tensor([*outer, _times(parts, rows), step]))
    kept, moved = _times(parts, _minus(rows, 1)), _minus(rows, 1)
    x = F.StridedSlice(
        x, [0, 0, 0], _tensor([0, kept, 0]), [1, 1, 1], ellipsis_mask=1, begin_mask=4, end_mask=4
    )
    x = F.Sum(F.Reshape(x, _tensor([*outer, parts, moved, step])), [rank - 2])
    x = F.Reshape(x, _tensor([*outer, _times(moved, step)]))
    return F.StridedSlice(x, [0, 0], _tensor([0, total]), [1, 1], ellipsis_mask=1)


# ---- ranks and sizes that may be known only in the step


def over_last(x: Tensor, count: int, function: Callable[[Tensor], Tensor]) -> Tensor:
    """`function`, which keeps the first axis, of x [..., the last `count` axes] as one batch."""
    shape = F.Shape(x)
    outer = F.StridedSlice(shape, [0], [-count], [1], begin_mask=1)
    inner = F.StridedSlice(shape, [-count], [0], [1], end_mask=1)
    rows = F.Reshape(x, F.ConcatV2([F.ExpandDims(F.Prod(outer, 0), 0), inner], 0))
    rows.set_shape([None] * (count + 1))
    found = function(rows)
    return F.Reshape(found, F.ConcatV2([outer, F.StridedSlice(F.Shape(found), [1], [0], [1], end_mask=1)], 0))


def size_of(x: Tensor, axis: int) -> Size:
    """The size of an axis: an int, or a scalar tensor where it is not known."""
    size = x.dims[axis] if x.dims is not None else None
    if size is not None:
        return size
    return F.StridedSlice(F.Shape(x), [axis], [axis + 1], [1], shrink_axis_mask=1)


def _scalar(value: Any, name: str) -> Size:
    tensor = convert_to_tensor(value, dtypes.int32, name=name)
    known = static_value(tensor)
    if tensor.dims:
        raise ValueError(f"{name} must be a scalar, not of shape {tensor.shape}")
    return tensor if known is None else int(known)


def _value(size: Size) -> Any:
    return size if isinstance(size, Tensor) else _INT(size)


def _tensor(sizes: list[Any]) -> Any:
    """A tensor of (lists of) sizes."""
    if isinstance(sizes[0], list):
        return F.Pack([convert_to_tensor(_tensor(row)) for row in sizes])
    if any(isinstance(size, Tensor) for size in sizes):
        return F.Pack([_value(size) for size in sizes])
    return np.array(sizes, _INT)


def _plus(a: Size, b: Size) -> Size:
    return F.AddV2(_value(a), _value(b)) if isinstance(a, Tensor) or isinstance(b, Tensor) else a + b


def _minus(a: Size, b: Size) -> Size:
    return F.Sub(_value(a), _value(b)) if isinstance(a, Tensor) or isinstance(b, Tensor) else a - b


def _times(a: Size, b: Size) -> Size:
    return F.Mul(_value(a), _value(b)) if isinstance(a, Tensor) or isinstance(b, Tensor) else a * b


def _floor_divided(a: Size, b: Size) -> Size:
    in_step = isinstance(a, Tensor) or isinstance(b, Tensor) or not b  # a division by 0 fails there
    return F.FloorDiv(_value(a), _value(b)) if in_step else a // b


def _at_least(least: int, a: Size) -> Size:
    return F.Maximum(_INT(least), a) if isinstance(a, Tensor) else max(least, a)
