"""The shapes that samples are asked for in, and seeds for the second random op of a sample."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.arrays.shapes import reshape
from flowstone.ops.numbers.reductions import reduce_prod
from flowstone.ops.randomness.op_seeds import salted_seed


def as_vector(sample_shape: Tensor) -> tuple[Tensor, Any]:
    """The sample shape as a vector, and how many samples it has: a number if that is known, else a tensor."""
    known = static_value(sample_shape)
    if isinstance(known, np.ndarray):
        if known.ndim == 0:
            sample_shape = convert_to_tensor([int(known)], dtypes.int32, name="sample_shape")
        return sample_shape, math.prod(int(size) for size in np.atleast_1d(known))
    count = reduce_prod(sample_shape)
    return sample_shape if sample_shape.shape.ndims == 1 else reshape(sample_shape, [-1]), count


def static_sample_shape(sample_shape: Tensor, batch: TensorShape, event: TensorShape) -> TensorShape:
    """What is known of the shape of samples [*sample_shape, *batch, *event]."""
    known = static_value(sample_shape)
    if isinstance(known, np.ndarray):
        first = TensorShape([int(size) for size in known])
    else:
        sizes = sample_shape.shape.as_list() if sample_shape.shape.ndims == 1 else [None]
        first = TensorShape(None if sizes[0] is None else [None] * sizes[0])
    return first.concatenate(batch).concatenate(event)


def gen_new_seed(seed: int | None, salt: str) -> int | None:
    """Another seed, TensorFlow's own, that depends on this one and a word; None of None."""
    return None if seed is None else salted_seed(seed, salt)


def integer_vector(sizes: Any, name: str) -> Tensor:
    """A constant int32 vector, also of no sizes."""
    return convert_to_tensor(np.asarray(sizes, np.int32), dtypes.int32, name=name)


def is_scalar(shape: TensorShape, shape_tensor: Any, name: str) -> Tensor:
    """Whether a shape has no dimensions; `shape_tensor()` is asked only if that is not known."""
    if shape.ndims is not None:
        return convert_to_tensor(shape.ndims == 0, name=name)
    return F.Equal(F.Shape(shape_tensor())[0], 0)
