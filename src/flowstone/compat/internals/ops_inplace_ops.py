"""`tensorflow.python.ops.inplace_ops`: rows of tensors that are written, added to and subtracted from.

``inplace_…(x, i, v)`` changes a copy of `x`; ``alias_inplace_…`` may change `x` itself, which is not to be
read afterwards. `i` is a vector of row numbers, for each of which `v` has a row; a number, whose row `v` is;
or None: `v` is all of `x`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf

__all__ = [
    "alias_inplace_add",
    "alias_inplace_sub",
    "alias_inplace_update",
    "empty",
    "empty_like",
    "inplace_add",
    "inplace_sub",
    "inplace_update",
]


def _changed(function: Callable[..., Any], x: Any, i: Any, v: Any) -> Any:
    x, v = tf.convert_to_tensor(x), tf.convert_to_tensor(v)
    if i is None:
        row = function(x=tf.reshape(x, [1, -1]), i=[0], v=tf.reshape(v, [1, -1]))
        return tf.reshape(row, tf.shape(x))
    i = tf.cast(tf.convert_to_tensor(i), tf.int32)
    if i.shape.rank == 0:
        i, v = tf.reshape(i, [1]), tf.expand_dims(v, 0)
    return function(x=x, i=i, v=v)


def alias_inplace_update(x: Any, i: Any, v: Any) -> Any:
    """`x` with rows `i` replaced by `v`."""
    return _changed(tf.raw_ops.InplaceUpdate, x, i, v)


def alias_inplace_add(x: Any, i: Any, v: Any) -> Any:
    """`x` with `v` added to rows `i`."""
    return _changed(tf.raw_ops.InplaceAdd, x, i, v)


def alias_inplace_sub(x: Any, i: Any, v: Any) -> Any:
    """`x` with `v` subtracted from rows `i`."""
    return _changed(tf.raw_ops.InplaceSub, x, i, v)


def inplace_update(x: Any, i: Any, v: Any) -> Any:
    """A copy of `x` with rows `i` replaced by `v`."""
    return alias_inplace_update(tf.raw_ops.DeepCopy(x=x), i, v)


def inplace_add(x: Any, i: Any, v: Any) -> Any:
    """A copy of `x` with `v` added to rows `i`."""
    return alias_inplace_add(tf.raw_ops.DeepCopy(x=x), i, v)


def inplace_sub(x: Any, i: Any, v: Any) -> Any:
    """A copy of `x` with `v` subtracted from rows `i`."""
    return alias_inplace_sub(tf.raw_ops.DeepCopy(x=x), i, v)


def empty(shape: Any, dtype: Any, init: bool = False, name: str | None = None) -> Any:
    """A tensor whose values nothing says; with `init` zeros."""
    return tf.raw_ops.Empty(shape=shape, dtype=dtype, init=init, name=name)


def empty_like(x: Any, init: bool | None = None) -> Any:
    """A tensor of the type and shape of `x` whose values nothing says; with `init` zeros."""
    x = tf.convert_to_tensor(x)
    return empty(tf.shape(x), x.dtype, bool(init))
