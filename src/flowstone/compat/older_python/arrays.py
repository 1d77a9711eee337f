"""What NumPy had when TensorFlow 1 was written, and NumPy 1.20 to 2 have no more."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.compat.older_python.late_modules import add_missing

__all__ = ["install"]


def _asscalar(a: Any) -> Any:
    return a.item()


def _asfarray(a: Any, dtype: Any = np.float64) -> Any:
    wanted = np.dtype(dtype)
    return np.asarray(a, wanted if np.issubdtype(wanted, np.inexact) else np.float64)


def _msort(a: Any) -> Any:
    return np.sort(a, axis=0)


def _rank(a: Any) -> int:
    return np.ndim(a)


def _find_common_type(array_types: Any, scalar_types: Any) -> Any:
    return np.result_type(*array_types, *scalar_types)


def _random_integers(low: int, high: int | None = None, size: Any = None) -> Any:
    """Integers from `low` to `high`, both included, or from 1 to `low`."""
    low, high = (1, low) if high is None else (low, high)
    return np.random.randint(low, high + 1, size)


def _names() -> dict[str, Any]:
    of_python = {
        "bool": bool,
        "complex": complex,
        "float": float,
        "int": int,
        "long": int,
        "object": object,
        "str": str,
        "unicode": str,
    }
    types = {
        "bool8": np.bool_,
        "cfloat": np.complex128,
        "complex_": np.complex128,
        "float_": np.float64,
        "int0": np.intp,
        "longfloat": np.longdouble,
        "object0": np.object_,
        "singlecomplex": np.complex64,
        "str0": np.str_,
        "string_": np.bytes_,
        "uint0": np.uintp,
        "unicode_": np.str_,
    }
    numbers = {
        "Inf": np.inf,
        "Infinity": np.inf,
        "NAN": np.nan,
        "NINF": -np.inf,
        "NZERO": -0.0,
        "NaN": np.nan,
        "PINF": np.inf,
        "PZERO": 0.0,
        "infty": np.inf,
    }
    functions = {
        "alltrue": np.all,
        "asfarray": _asfarray,
        "asscalar": _asscalar,
        "cumproduct": np.cumprod,
        "find_common_type": _find_common_type,
        "in1d": np.isin,
        "mat": np.asmatrix,
        "msort": _msort,
        "product": np.prod,
        "rank": _rank,
        "round_": np.round,
        "row_stack": np.vstack,
        "sometrue": np.any,
        "trapz": getattr(np, "trapezoid", None) or getattr(np, "trapz", None),
    }
    return of_python | types | numbers | functions


def install() -> None:
    """Gives the names back, as far as this NumPy lacks them."""
    module: Any = np
    # NumPy's own __getattr__ answers the dropped names with an error; names in the module come first.
    add_missing(module, {name: value for name, value in _names().items() if not _has(module, name)})
    random: Any = np.random
    add_missing(random, {"random_integers": _random_integers})


def _has(module: Any, name: str) -> bool:
    return name in vars(module)
