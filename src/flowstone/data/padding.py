"""The arguments of `Dataset.padded_batch`: shapes and values, nested as the elements are."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.data.structure import Leaf, Structure, flatten_like
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape


def padded_shapes_of(structure: Structure, padded_shapes: Any) -> tuple[list[Tensor], list[TensorShape]]:
    """The int64 vectors, -1 for open dimensions, and the static shapes.

    TypeError or ValueError for shapes that are nested otherwise, are no vectors or have another rank than
    the component, or a smaller dimension.
    """
    if padded_shapes is None:
        raise ValueError("padded_shapes must be given")
    given = flatten_like(structure.form, padded_shapes, "padded_shapes")
    vectors, static = [], []
    for leaf, shape in zip(structure.leaves, given):
        vector = _as_vector(shape)
        known = static_value(vector)
        dims = None if known is None else TensorShape([None if n is None or n < 0 else int(n) for n in known])
        _check(leaf, shape, dims)
        vectors.append(vector)
        static.append(TensorShape(None) if dims is None else dims)
    return vectors, static


def _as_vector(shape: Any) -> Tensor:
    if not isinstance(shape, Tensor):
        if isinstance(shape, TensorShape) and shape.ndims is None:
            raise ValueError("Padded shape <unknown> must be a 1-D tensor of tf.int64 values")
        try:
            sizes = [n.value for n in TensorShape(shape)]
        except (TypeError, ValueError):
            sizes = list(np.asarray(shape).reshape(-1))
        shape = np.asarray([-1 if n is None else n for n in sizes], np.int64)
    vector = convert_to_tensor(shape, preferred_dtype=dtypes.int64)
    if vector.shape.ndims not in (1, None):
        raise ValueError(
            f"Padded shape {shape} must be a 1-D tensor of tf.int64 values, but its shape was {vector.shape}."
        )
    if vector.dtype.base_dtype is not dtypes.int64:
        raise TypeError(
            f"Padded shape {shape} must be a 1-D tensor of tf.int64 values, but its element type was "
            f"{vector.dtype.name}."
        )
    return vector


def _check(leaf: Leaf, given: Any, shape: TensorShape | None) -> None:
    if shape is None or leaf.shape.ndims is None:
        return
    fits = shape.ndims == leaf.shape.ndims and all(
        n.value is None or m.value is None or n.value >= m.value for n, m in zip(shape, leaf.shape)
    )
    if not fits:
        raise ValueError(
            f"The padded shape {shape} is not compatible with the corresponding input component shape "
            f"{leaf.shape}."
        )


def padding_values_of(structure: Structure, padding_values: Any) -> list[Tensor]:
    """The scalars with which components are padded.

    TypeError for values of other types, ValueError for such that are no scalars.
    """
    if padding_values is None:
        given: list[Any] = [None] * len(structure.leaves)
    else:
        given = flatten_like(structure.form, padding_values, "padding_values")
    return [_as_padding(leaf.dtype, value) for leaf, value in zip(structure.leaves, given)]


def _as_padding(dtype: Any, value: Any) -> Tensor:
    if value is None:
        value = b"" if dtype is dtypes.string else np.zeros((), dtype.as_numpy_dtype)
    scalar = convert_to_tensor(value, name="padding_value")
    if not scalar.shape.is_compatible_with([]):
        raise ValueError(f"Padding value should be a scalar, but is not: {value}.")
    if scalar.dtype.base_dtype is not dtype:
        raise TypeError(
            f"Padding value tensor ({value}) does not match output type: {scalar.dtype.name} is not "
            f"{dtype.name}"
        )
    return scalar
