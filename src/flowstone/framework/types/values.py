"""Values at the border between NumPy and a step.

Inside a step a value is a torch tensor, for strings a NumPy object array of `bytes`, for references and
resources the object itself. Both directions share memory wherever they can; whoever keeps a value copies it.

>>> import numpy as np
>>> to_runtime(np.float32([1, 2]), dtypes.float32)
tensor([1., 2.])
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch

from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType

warnings.filterwarnings("ignore", message="The given NumPy array is not writable")

# Element types that torch.from_numpy does not take, and the integer type of the same width that it does.
_STORED_AS = {
    dtypes.bfloat16: np.int16,
    dtypes.qint8: np.int8,
    dtypes.quint8: np.uint8,
    dtypes.qint16: np.int16,
    dtypes.quint16: np.uint16,
    dtypes.qint32: np.int32,
}


LONGEST_RUN = 2**24  # elements of one value, however corrupt the shape: longer ones stay views of it


def to_runtime(array: np.ndarray[Any, Any], dtype: DType) -> Any:
    """The runtime value of an array that already has the NumPy type of `dtype`; shares its memory where
    possible. A value that repeats is written out, up to `LONGEST_RUN`.
    """
    if dtype.torch is None:
        return as_bytes_array(array) if dtype.base_dtype is dtypes.string else array.item()
    if 1 < array.size <= LONGEST_RUN and not any(array.strides):
        array = array.copy(order="C")
    if not array.flags.c_contiguous and any(stride < 0 for stride in array.strides):
        array = np.asarray(array, order="C")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    stored = _STORED_AS.get(dtype.base_dtype)
    if stored is not None:
        array = np.asarray(array, order="C").view(stored)
    tensor = torch.from_numpy(array)
    return tensor.view(dtype.torch) if dtype.base_dtype is dtypes.bfloat16 else tensor


def to_numpy(value: Any, dtype: DType) -> np.ndarray[Any, Any]:
    """The NumPy array of a runtime value of element type `dtype`; shares its memory where possible."""
    if isinstance(value, torch.Tensor):
        if value.device.type != "cpu":
            value = value.cpu()
        if value.dtype is torch.bfloat16:
            return np.asarray(
                value.contiguous().view(torch.int16).numpy().view(dtypes.bfloat16.as_numpy_dtype)
            )
        array = value.resolve_conj().resolve_neg().numpy()
        if dtype.base_dtype in _STORED_AS:
            array = np.asarray(array, order="C").view(dtype.as_numpy_dtype)
        return array  # type: ignore[no-any-return]
    if isinstance(value, np.ndarray):
        return value
    holder = np.empty((), dtype=object)
    holder[()] = value
    return holder


def as_bytes_array(array: Any) -> np.ndarray[Any, Any]:
    """An object array of `bytes` from an array of str, bytes or objects; raises TypeError for other
    elements.
    """
    if not isinstance(array, (np.ndarray, np.generic)):
        array = np.array(array, dtype=object)
    if array.dtype.kind == "S":
        return np.asarray(array, dtype=object)
    if array.dtype.kind == "U":
        return np.array([text.encode() for text in array.ravel()], dtype=object).reshape(array.shape)  # type: ignore[no-any-return]
    if list(map(type, array.reshape(-1).tolist())).count(bytes) == array.size:  # at once, which most are
        return array.astype(object)  # type: ignore[no-any-return]
    result = np.empty(array.shape, dtype=object)
    flat, source = result.reshape(-1), array.reshape(-1)
    for i, item in enumerate(source):
        if isinstance(item, str):
            flat[i] = item.encode()
        elif isinstance(item, (bytes, bytearray)):
            flat[i] = bytes(item)
        else:
            raise TypeError(f"Expected binary or unicode string, got {item!r}")
    return result
