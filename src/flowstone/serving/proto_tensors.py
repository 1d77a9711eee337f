"""Arrays in TensorProtos of requests and responses.

A request's tensor may say with few bytes that it is large: a shape, and one value for all. `array_of_proto`
compares what the shape needs with a limit before memory is taken. A response's values are in the list of
their type (``float_val`` …), where clients of TensorFlow Serving look for them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowstone.framework import errors
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.tensor_proto import add_values, make_ndarray, messages
from flowstone.serving.inference import invalid

__all__ = ["array_of_proto", "proto_of_array"]

Array = np.ndarray[Any, Any]
_POINTER_BYTES = 8


def array_of_proto(name: str, proto: Any, max_bytes: int) -> Array:
    """The array of a request's tensor. InvalidArgumentError for a damaged one, ResourceExhaustedError for one
    of more than `max_bytes`."""
    try:
        dtype = dtypes.as_dtype(proto.dtype)
        if proto.tensor_shape.unknown_rank:
            raise ValueError("its rank is unknown")
        if len(proto.tensor_shape.dim) > 32:
            raise ValueError("it has more than 32 dimensions")
        count = math.prod(max(dim.size, 0) for dim in proto.tensor_shape.dim)
        if count * (dtype.size or _POINTER_BYTES) > max_bytes:
            raise errors.ResourceExhaustedError(
                None, None, f"input tensor '{name}' has {count} elements; the limit is {max_bytes} bytes."
            )
        return make_ndarray(proto)
    except (TypeError, ValueError, OverflowError, IndexError) as error:
        raise invalid(f"input tensor '{name}' cannot be read: {error}") from None


def proto_of_array(array: Array, dtype: DType) -> Any:
    """The TensorProto of an output."""
    shape = messages("tensor_shape_pb2").TensorShapeProto
    proto = messages("tensor_pb2").TensorProto(
        dtype=dtype.as_datatype_enum, tensor_shape=shape(dim=[shape.Dim(size=n) for n in array.shape])
    )
    add_values(proto, array, dtype)
    return proto
