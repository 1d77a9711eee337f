"""What NumPy had when TensorFlow 1 was written, and NumPy 1.20 to 2 have no more; how it printed scalars."""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from flowstone.compat.older_python.late_modules import add_missing, replace

__all__ = ["array", "asanyarray", "asarray", "install", "older_methods", "older_names"]


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


def older_names() -> dict[str, Any]:
    """What NumPy had: objects by their names."""
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


def _expand_dims(a: Any, axis: Any) -> Any:
    """`np.expand_dims`, which put an axis beyond the last one at the end."""
    if isinstance(axis, (int, np.integer)):
        axis = min(axis, np.ndim(a))
    return _np_expand_dims(a, axis)


_np_expand_dims = np.expand_dims


def _reshape(a: Any, shape: Any = None, order: Any = "C", *, newshape: Any = None, **keywords: Any) -> Any:
    """`np.reshape`, whose second argument was called `newshape`."""
    return _np_reshape(a, shape if newshape is None else newshape, order, **keywords)


_np_reshape = np.reshape


def _fromstring(string: Any, dtype: Any = float, count: int = -1, *, sep: str = "", **keywords: Any) -> Any:
    """`np.fromstring`, which without a separator copied the numbers that the bytes are."""
    if sep:
        return _np_fromstring(string, dtype, count, sep=sep, **keywords)
    data = string.encode("latin-1") if isinstance(string, str) else string
    return np.frombuffer(data, dtype, count, **keywords).copy()


_np_fromstring = np.fromstring

_WHOLE_FAMILIES = {float: np.floating, int: np.signedinteger, complex: np.complexfloating}


def _issubdtype(arg1: Any, arg2: Any) -> bool:
    """`np.issubdtype`, to which `float` (and `np.float`, which was the same) meant all floating types."""
    return bool(_np_issubdtype(arg1, _WHOLE_FAMILIES.get(arg2, arg2) if isinstance(arg2, type) else arg2))


_np_issubdtype = np.issubdtype


def _tostring(self: Any, order: Any = "C") -> bytes:
    return self.tobytes(order)  # type: ignore[no-any-return]


def _itemset(self: Any, *args: Any) -> None:
    """Sets one element: `itemset(value)`, `itemset(index, value)` or an index an axis."""
    *index, value = args
    if len(index) == 1 and not isinstance(index[0], tuple):
        self.flat[index[0]] = value
    elif index:
        self[index[0] if len(index) == 1 else tuple(index)] = value
    elif self.size != 1:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    else:
        self[...] = value


def _ptp(self: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    return np.ptp(self, axis, out, keepdims)


def _newbyteorder(self: Any, new_order: str = "S") -> Any:
    return self.view(self.dtype.newbyteorder(new_order))


def older_methods() -> dict[str, Callable[..., Any]]:
    """What arrays had: methods by their names."""
    return {"itemset": _itemset, "newbyteorder": _newbyteorder, "ptp": _ptp, "tostring": _tostring}


def _add_methods(kind: type, methods: dict[str, Callable[..., Any]]) -> None:
    """Gives a type of C methods that it lacks. Its attributes cannot be set; its dictionary can."""
    (names,) = (each for each in gc.get_referents(kind.__dict__) if isinstance(each, dict))
    for name, method in methods.items():
        names.setdefault(name, method)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def _taking_ragged(make: Any) -> Any:
    """A function such as `np.array`, which made an array of objects of sequences of several lengths.

    `copy=False` meant not to copy what need not be copied; since NumPy 2 that is None.
    """

    @functools.wraps(make)
    def made(a: Any, *arguments: Any, **keywords: Any) -> Any:
        if keywords.get("copy", True) is False:
            keywords["copy"] = None
        try:
            return make(a, *arguments, **keywords)
        except ValueError as error:
            if arguments or keywords.get("dtype") is not None or "inhomogeneous" not in str(error):
                raise
            others = {key: keywords[key] for key in keywords if key != "dtype"}
            return make(np.array(a, dtype=object), **others)

    return made


array, asarray, asanyarray, copy = map(_taking_ragged, (np.array, np.asarray, np.asanyarray, np.copy))


def _giving_lists(make: Callable[..., Any]) -> Callable[..., Any]:
    """`make`, several arrays as a list, as before NumPy 2: programs change it, or give it to `np.block`."""

    @functools.wraps(make)
    def made(*arguments: Any, **keywords: Any) -> Any:
        given = make(*arguments, **keywords)
        return list(given) if isinstance(given, tuple) else given

    return made


_SEVERAL = ("atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "meshgrid")
_lists = {name: _giving_lists(getattr(np, name)) for name in _SEVERAL}


def _print_as_numpy_1() -> None:
    """Has scalars printed as before NumPy 2, without their types: `0.5` for `np.float32(0.5)`."""
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        np.set_printoptions(legacy="1.25")


def _fill_products(module: ModuleType) -> None:
    """``numpy.core.umath_tests``, whose products programs took before NumPy had them for stacks."""
    products = {"inner1d": lambda a, b: np.einsum("...i,...i->...", a, b), "matrix_multiply": np.matmul}
    add_missing(module, products)


# Modules whose names are in others since NumPy 2 (`numpy.testing.utils` since 1.25).
_MOVED = {"numpy.testing.utils": "numpy.testing"} | {
    f"numpy.lib.{name}": f"numpy.lib._{name}_impl"
    for name in (
        "arraypad",
        "arraysetops",
        "function_base",
        "histograms",
        "index_tricks",
        "nanfunctions",
        "npyio",
    )
    + ("polynomial", "shape_base", "stride_tricks", "twodim_base", "type_check", "ufunclike", "utils")
}


def _fill_moved(module: ModuleType) -> None:
    """A module under its former name."""
    add_missing(module, vars(importlib.import_module(_MOVED[module.__name__])))


def install() -> None:
    """Gives the names back, as far as this NumPy lacks them."""
    _print_as_numpy_1()
    # NumPy's own __getattr__ answers the dropped names with an error; names in the module come first.
    module: Any = np
    add_missing(module, older_names())
    add_missing(module.random, {"random_integers": _random_integers})
    module.expand_dims, module.issubdtype, module.reshape = _expand_dims, _issubdtype, _reshape
    module.fromstring = _fromstring
    _add_methods(np.ndarray, older_methods())
    _add_methods(np.generic, {"newbyteorder": _newbyteorder, "tostring": _tostring})
    module.array, module.asarray, module.asanyarray, module.copy = array, asarray, asanyarray, copy
    replace("numpy.core.umath_tests", _fill_products)
    for name in _MOVED:
        replace(name, _fill_moved)
    for name, made in _lists.items():
        setattr(module, name, made)
