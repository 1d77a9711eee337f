"""Bytes and text, number types and dimensions, as `tf.compat` converts them.

>>> as_bytes("é"), as_text(b"\\xc3\\xa9"), as_str_any(3)
(b'\\xc3\\xa9', 'é', '3')
"""

from __future__ import annotations

import contextlib
import numbers
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from flowstone.framework.types.dimension import Dimension, dimension_value
from flowstone.framework.types.shape import TensorShape

__all__ = [
    "as_bytes",
    "as_str",
    "as_str_any",
    "as_text",
    "bytes_or_text_types",
    "complex_types",
    "dimension_at_index",
    "dimension_value",
    "forward_compatibility_horizon",
    "forward_compatible",
    "integral_types",
    "path_to_str",
    "real_types",
]

bytes_or_text_types: tuple[type, ...] = (bytes, str)
complex_types: tuple[type, ...] = (numbers.Complex, np.number)
integral_types: tuple[type, ...] = (numbers.Integral, np.integer)
real_types: tuple[type, ...] = (numbers.Real, np.integer, np.floating)


def as_bytes(bytes_or_text: bytes | str, encoding: str = "utf-8") -> bytes:
    """Bytes as they are, text encoded. Raises TypeError for anything else."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_text(bytes_or_text: bytes | str, encoding: str = "utf-8") -> str:
    """Text as it is, bytes decoded. Raises TypeError for anything else."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


as_str = as_text


def as_str_any(value: Any) -> str:
    """Bytes decoded, anything else as `str` shows it."""
    return as_str(value) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """A path object as the text of its path; anything else as it is."""
    return as_str_any(os.fspath(path)) if isinstance(path, os.PathLike) else path


def dimension_at_index(shape: TensorShape, index: int) -> Dimension:
    """The dimension at `index` of a shape, an unknown one if the rank is unknown."""
    dims = shape.dims
    return Dimension(None) if dims is None else dims[index]


def forward_compatible(year: int, month: int, day: int) -> bool:
    """Whether graphs may use ops that TensorFlow got by that day: always, as no older reader is involved."""
    return True


@contextlib.contextmanager
def forward_compatibility_horizon(year: int, month: int, day: int) -> Iterator[None]:
    """Accepted for programs that test several horizons; see `forward_compatible`."""
    yield
