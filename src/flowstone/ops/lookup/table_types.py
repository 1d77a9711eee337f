"""What tables and their initialisers have in common: the types of keys and values."""

from __future__ import annotations

from typing import Any

from flowstone.framework.types import dtypes


class TypedByKeyAndValue:
    """Has the properties `key_dtype` and `value_dtype`."""

    def __init__(self, key_dtype: Any, value_dtype: Any) -> None:
        self._key_dtype, self._value_dtype = dtypes.as_dtype(key_dtype), dtypes.as_dtype(value_dtype)

    @property
    def key_dtype(self) -> dtypes.DType:
        """The keys' type."""
        return self._key_dtype

    @property
    def value_dtype(self) -> dtypes.DType:
        """The values' type."""
        return self._value_dtype
