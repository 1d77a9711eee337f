"""Whether a value is a data frame or a series, without importing the library it would be of."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["is_frame", "is_series"]

_MODULES = {"pandas": "pandas", "dask": "dask.dataframe"}


def is_frame(value: Any, library: str) -> bool:
    """Whether the value is a DataFrame of "pandas" or "dask"."""
    return _is(value, library, "DataFrame")


def is_series(value: Any, library: str) -> bool:
    """Whether the value is a Series of "pandas" or "dask"."""
    return _is(value, library, "Series")


def _is(value: Any, library: str, kind: str) -> bool:
    module = sys.modules.get(_MODULES[library])  # without the module there is no such value
    return module is not None and isinstance(value, getattr(module, kind))
