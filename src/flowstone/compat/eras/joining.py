"""The white paper's Figure 1 and TensorFlow 0.x: placeholders without a type, axes before values.

| then | now |
| --- | --- |
| `placeholder(name="x")` | `placeholder(float32, name="x")` |
| `concat(axis, values)` | `concat(values, axis)` |
| `split(axis, count, value)` | `split(value, count, axis)` |
| `session.Run(fetches, feeds)` | `session.run(fetches, feeds)` |

Which form is meant is always plain: an axis is an integer where the other form has tensors.
"""

from __future__ import annotations

import numbers
from typing import Any

import flowstone

__all__ = ["concat", "install", "placeholder", "split"]

_placeholder: Any = flowstone.placeholder
_concat: Any = flowstone.concat
_split: Any = flowstone.split


def placeholder(dtype: Any = None, shape: Any = None, name: str | None = None) -> Any:
    """`tf.placeholder`, float32 where no dtype is given, as in Figure 1 of the white paper."""
    return _placeholder(flowstone.float32 if dtype is None else dtype, shape, name)


def _is_axis(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def concat(values: Any = None, axis: Any = None, name: str = "concat", *, concat_dim: Any = None) -> Any:
    """`tf.concat(values, axis)`, or `tf.concat(concat_dim, values)` of TensorFlow 0.x."""
    if concat_dim is not None:
        # The values may have come under their name or alone as the first argument.
        axis = concat_dim
    elif _is_axis(values) and not _is_axis(axis):
        values, axis = axis, values
    return _concat(values, axis, name)


def split(
    value: Any = None,
    num_or_size_splits: Any = None,
    axis: Any = 0,
    num: int | None = None,
    name: str = "split",
    *,
    split_dim: Any = None,
    num_split: int | None = None,
) -> Any:
    """`tf.split(value, sizes, axis)`, or `tf.split(split_dim, num_split, value)` of TensorFlow 0.x."""
    if num_split is not None:
        num_or_size_splits = num_split
    if split_dim is not None:
        axis = split_dim
    elif _is_axis(value) and not _is_axis(axis):
        value, axis = axis, value
    return _split(value, num_or_size_splits, axis, num, name)


def install() -> None:
    """Makes both forms understood by `flowstone.placeholder`, `.concat`, `.split` and by sessions."""
    public: Any = flowstone
    public.placeholder = placeholder
    public.concat = concat
    public.split = split
    for session in (public.Session, public.InteractiveSession):
        session.Run = session.run
