"""Placeholders of sparse tensors: three placeholders that one SparseTensorValue feeds.

The three are named NAME/indices, NAME/values and NAME/shape; sizes that are all known are a constant, as in
TensorFlow 1.15.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.arrays.constants import constant, placeholder

__all__ = ["sparse_placeholder"]


def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A SparseTensor of elements of `dtype` that must be fed, with a SparseTensorValue or its three arrays.

    `shape`: sizes, None or -1 for any, or an int64 vector tensor; None for any rank. Sizes that are all known
    need not be fed. ValueError for a shape
    of unknown rank, TypeError for what is no sequence.
    """

    def named(part: str) -> str | None:
        return None if name is None else f"{name}/{part}"

    sizes, rank, static = None, None, None
    if shape is not None:
        sizes, static = _sizes(shape, named("shape"))
        rank = static.ndims
    if sizes is None:
        sizes = placeholder(dtypes.int64, [rank], named("shape"))
    values = placeholder(dtype, [None], named("values"))
    result = SparseTensor(placeholder(dtypes.int64, [None, rank], named("indices")), values, sizes)
    if static is not None:
        result.set_shape(static)
    return result


def _sizes(shape: Any, name: str | None) -> tuple[Tensor | None, TensorShape]:
    """The sizes as a tensor, None if some are open, and as far as they are known."""
    if isinstance(shape, Tensor):
        known = static_value(shape)
        dims = [None] * (shape.shape[0].value or 0) if known is None else known.tolist()
        return shape, TensorShape([None if n is None or n < 0 else n for n in dims])
    if isinstance(shape, TensorShape) and shape.ndims is None:
        raise ValueError("Cannot take the length of shape with unknown rank.")
    len(shape)  # a number is no shape
    static = TensorShape([None if n in (None, -1) else n for n in shape])
    if not static.is_fully_defined():
        return None, static
    sizes = static.as_list()
    return constant(sizes, dtypes.int64, [len(sizes)], name=name or "Const"), static
