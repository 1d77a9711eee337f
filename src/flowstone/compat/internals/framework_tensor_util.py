"""`tensorflow.python.framework.tensor_util`: values, messages and shapes of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf
from flowstone.framework.graphs.graph_functions import constant_value_as_shape

__all__ = [
    "ExtractBitsFromFloat16",
    "MakeNdarray",
    "ShapeEquals",
    "TensorShapeProtoToList",
    "constant_value",
    "constant_value_as_shape",
]

MakeNdarray = tf.make_ndarray


def constant_value(tensor: Any, partial: bool = False) -> Any:
    """The value of a tensor as far as it is known without running a step: an array, or None.

    What is no tensor is given back.
    """
    if not tf.is_tensor(tensor):
        return tensor
    return tf.get_static_value(tensor, partial)


def TensorShapeProtoToList(shape: Any) -> list[int]:
    """The sizes of a TensorShapeProto."""
    return [dim.size for dim in shape.dim]


def ShapeEquals(tensor_proto: Any, shape: Any) -> bool:
    """Whether a TensorProto has this shape: a TensorShapeProto, or sizes.

    Raises TypeError for other things.
    """
    if not hasattr(tensor_proto, "tensor_shape"):
        raise TypeError("tensor_proto is not a tensor_pb2.TensorProto object")
    if hasattr(shape, "dim"):
        shape = TensorShapeProtoToList(shape)
    elif not isinstance(shape, (list, tuple)):
        raise TypeError("shape is not a list or tuple")
    return TensorShapeProtoToList(tensor_proto.tensor_shape) == list(shape)


def ExtractBitsFromFloat16(x: Any) -> int:
    """The bits of a number as float16, as an integer."""
    return int(np.asarray(x, np.float16).view(np.uint16).item())
