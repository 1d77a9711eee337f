"""`tensorflow.python.framework.common_shapes`: shapes of results, for functions that infer them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.framework.types.shape import as_shape

__all__ = [
    "broadcast_shape",
    "call_cpp_shape_fn",
    "get2d_conv_output_size",
    "get_conv_output_size",
    "is_broadcast_compatible",
    "no_outputs",
    "rank",
    "scalar_shape",
    "unchanged_shape",
    "unchanged_shape_with_rank",
    "unchanged_shape_with_rank_at_least",
    "unchanged_shape_with_rank_at_most",
    "unknown_shape",
]


def rank(tensor: Any) -> int | None:
    """The number of a tensor's dimensions, or None."""
    ndims: int | None = tensor.shape.ndims
    return ndims


def no_outputs(unused_op: Any) -> list[Any]:
    """The shapes of an operation without outputs."""
    return []


def scalar_shape(unused_op: Any) -> list[Any]:
    """The shape of one scalar."""
    return [tf.TensorShape([])]


def unknown_shape(op: Any) -> list[Any]:
    """An unknown shape for each output of an operation."""
    return [tf.TensorShape(None) for _ in op.outputs]


def unchanged_shape(op: Any) -> list[Any]:
    """The shape of an operation's first input."""
    return [op.inputs[0].get_shape()]


def unchanged_shape_with_rank(rank: int) -> Callable[[Any], list[Any]]:
    """A function from an operation to its first input's shape, which must have this rank."""
    return lambda op: [op.inputs[0].get_shape().with_rank(rank)]


def unchanged_shape_with_rank_at_least(rank: int) -> Callable[[Any], list[Any]]:
    """A function from an operation to its first input's shape, which must have this rank or a higher one."""
    return lambda op: [op.inputs[0].get_shape().with_rank_at_least(rank)]


def unchanged_shape_with_rank_at_most(rank: int) -> Callable[[Any], list[Any]]:
    """A function from an operation to its first input's shape, which must have this rank or a lower one."""
    return lambda op: [op.inputs[0].get_shape().with_rank_at_most(rank)]


def call_cpp_shape_fn(op: Any, require_shape_fn: bool = True) -> Any:
    """The shapes of an operation's outputs, as its declaration infers them, under `shapes`."""
    return {"shapes": [output.get_shape().as_proto() for output in op.outputs], "inputs_needed": None}


def get_conv_output_size(
    input_size: Any, filter_size: Any, strides: Any, padding_type: bytes | str
) -> tuple[Any, ...]:
    """The sizes that a window leaves: one for each of `input_size`, None where it is not known.

    `padding_type` is b"VALID" or b"SAME". Raises ValueError where the window is larger than a valid input.
    """
    sizes = []
    for size, window, stride in zip(map(_size, input_size), map(_size, filter_size), strides):
        if tf.compat.as_str(padding_type) == "SAME":
            sizes.append(None if size is None else -(-size // stride))
        elif size is None or window is None:
            sizes.append(None)
        elif window > size:
            raise ValueError(f"Filter must not be larger than the input: Filter: {window} Input: {size}")
        else:
            sizes.append((size - window + stride) // stride)
    return tuple(sizes)


def _size(size: Any) -> int | None:
    return size.value if isinstance(size, tf.Dimension) else size


def get2d_conv_output_size(
    input_height: Any,
    input_width: Any,
    filter_height: Any,
    filter_width: Any,
    row_stride: int,
    col_stride: int,
    padding_type: bytes | str,
) -> tuple[Any, ...]:
    """(rows, columns) that a window leaves; see `get_conv_output_size`."""
    return get_conv_output_size(
        (input_height, input_width), (filter_height, filter_width), (row_stride, col_stride), padding_type
    )


def is_broadcast_compatible(shape_x: Any, shape_y: Any) -> bool:
    """Whether two shapes may be broadcast to one, as far as they are known; False for unknown ranks."""
    x, y = as_shape(shape_x), as_shape(shape_y)
    if x.ndims is None or y.ndims is None:
        return False
    return _broadcast_dims(x, y) is not None


def broadcast_shape(shape_x: Any, shape_y: Any) -> Any:
    """The shape to which two shapes are broadcast; unknown if a rank is. ValueError if there is none."""
    x, y = as_shape(shape_x), as_shape(shape_y)
    if x.ndims is None or y.ndims is None:
        return tf.TensorShape(None)
    dims = _broadcast_dims(x, y)
    if dims is None:
        raise ValueError(f"Incompatible shapes for broadcasting: {shape_x} and {shape_y}")
    return tf.TensorShape(dims)


def _broadcast_dims(x: Any, y: Any) -> list[int | None] | None:
    longest = max(x.ndims, y.ndims)
    pairs = zip(*([1] * (longest - each.ndims) + each.as_list() for each in (x, y)))
    dims: list[int | None] = []
    for a, b in pairs:
        if a == 1 or b == 1:
            dims.append(b if a == 1 else a)
        elif a is None or b is None:
            # A size beyond 1 is not broadcast: the unknown one is 1 or the same.
            dims.append(a if b is None else b)
        elif a != b:
            return None
        else:
            dims.append(a)
    return dims
