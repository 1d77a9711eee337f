"""Variables that are read in the type that the layer which is being called computes in.

variable = as_cast(variable)
with cast_to(tf.float16):
    variable.dtype, variable.value().dtype     # float16, float16
variable.dtype                                 # float32, in which it is kept and updated
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import flowstone as tf
from flowstone.ops.variables.resource_variable import ResourceVariable

__all__ = ["AutoCastVariable", "as_cast", "cast_to"]


class _Ambient(threading.local):
    dtype: Any = None  # the type of computation of the innermost layer that casts


_ambient = _Ambient()


@contextmanager
def cast_to(dtype: Any) -> Iterator[None]:
    """Within the context, cast variables are read in `dtype`."""
    before, _ambient.dtype = _ambient.dtype, dtype
    try:
        yield
    finally:
        _ambient.dtype = before


class AutoCastVariable(ResourceVariable):
    """A variable of floats whose reads are cast; see the module."""

    @property
    def dtype(self) -> Any:
        """The type in which it is read now."""
        return self._dtype if _ambient.dtype is None else _ambient.dtype

    @property
    def true_dtype(self) -> Any:
        """The type in which it is kept."""
        return self._dtype

    def value(self) -> Any:
        """The value, cast."""
        return tf.cast(super().value(), self.dtype)

    def read_value(self) -> Any:
        """The value, read where the control dependencies in force say, and cast."""
        return tf.cast(super().read_value(), self.dtype)

    def sparse_read(self, indices: Any, name: str | None = None) -> Any:
        """Rows of the value, cast."""
        return tf.cast(super().sparse_read(indices, name), self.dtype)

    def gather_nd(self, indices: Any, name: str | None = None) -> Any:
        """Elements of the value by index tuples, cast."""
        return tf.cast(super().gather_nd(indices, name), self.dtype)

    def _as_tensor(self, dtype: Any, name: str | None, as_ref: bool) -> Any:
        if dtype is not None and not dtype.is_compatible_with(self.dtype):
            raise ValueError(
                f"Incompatible type conversion requested to type {dtype.name!r} for variable of type "
                f"{self.dtype.name!r}"
            )
        return self.value()

    def __repr__(self) -> str:
        return (
            f"<AutoCastVariable '{self.name}' shape={self.shape} dtype={self.dtype.name} "
            f"true_dtype={self._dtype.name}>"
        )


def as_cast(variable: Any) -> Any:
    """The resource variable of floats `variable`, which becomes one that is cast where it is read."""
    variable.__class__ = AutoCastVariable
    return variable
