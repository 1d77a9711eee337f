"""Values between NumPy and a step."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from flowstone.framework.types import dtypes
from flowstone.framework.types.values import as_bytes_array, to_numpy, to_runtime

NUMERIC = [d for d in dtypes.ALL_DTYPES if d.torch is not None]


@pytest.mark.parametrize("dtype", NUMERIC, ids=lambda d: d.name)
def test_every_type_survives_the_round_trip(dtype):
    array = np.zeros((2, 3), dtype.as_numpy_dtype)
    if not dtype.is_quantized:
        array = np.arange(6).reshape(2, 3).astype(dtype.as_numpy_dtype)
    value = to_runtime(array, dtype)
    assert value.dtype is dtype.torch and tuple(value.shape) == (2, 3)
    back = to_numpy(value, dtype)
    assert back.dtype == array.dtype and (back == array).all()


def test_memory_is_shared():
    array = np.float32([1, 2])
    value = to_runtime(array, dtypes.float32)
    array[0] = 9
    assert value[0] == 9
    to_numpy(value, dtypes.float32)[1] = 7
    assert array[1] == 7


def test_unusual_layouts_are_copied():
    array = np.arange(6, dtype=">i4").reshape(2, 3)
    assert to_runtime(array, dtypes.int32).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert to_runtime(np.arange(3, dtype=np.int32)[::-1], dtypes.int32).tolist() == [2, 1, 0]
    assert to_runtime(np.arange(6, dtype=np.int32).reshape(2, 3).T, dtypes.int32).tolist() == [
        [0, 3],
        [1, 4],
        [2, 5],
    ]


def test_complex_views_are_resolved():
    value = torch.tensor([1 + 2j]).conj()
    assert to_numpy(value, dtypes.complex64).tolist() == [1 - 2j]


def test_strings_are_arrays_of_bytes():
    array = as_bytes_array([["a", b"\xff"], ["ü", b"x"]])
    assert array.dtype == object and array.tolist() == [[b"a", b"\xff"], ["ü".encode(), b"x"]]
    assert as_bytes_array(np.array([b"ab", b"c"])).tolist() == [b"ab", b"c"]
    assert as_bytes_array("word")[()] == b"word"
    holder = np.empty(1, dtype=object)
    holder[0] = bytearray(b"y")
    assert as_bytes_array(holder).tolist() == [b"y"]
    with pytest.raises(TypeError, match="Expected binary or unicode string"):
        as_bytes_array([1, 2])
