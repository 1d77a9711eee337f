"""What Keras 2.2 and 2.3 expect of Python, NumPy and h5py, and these have since dropped.

`substitute(name)` gives Keras' modules a module in the place of the one that they import: it has the names of
that one and those that it once had. Other programs see Python and NumPy as they are. h5py's text is another
matter: it passes from h5py through the program to Keras, so `prepare()` has h5py itself return text that
also has `decode`, as the bytes of h5py 2 had.
"""

from __future__ import annotations

import collections
import inspect
import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from flowstone.compat.older_python import arrays, standard_library

__all__ = ["prepare", "substitute"]


class Text(str):
    """Text that may be decoded, which leaves it as it is."""

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The text."""
        return str(self)


class EmptyArray(np.ndarray):
    """An array without elements, which is false, as it was with NumPy 1."""

    def __bool__(self) -> bool:
        """False."""
        return False


def _with(module: ModuleType, **names: Any) -> ModuleType:
    """A module with the names of `module` and, where it lacks them, these."""
    made = ModuleType(module.__name__, module.__doc__)
    made.__dict__.update(names)
    made.__dict__.update(vars(module))
    return made


def _argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> Any:
    """`np.argsort`, which kept the order of equal numbers in short rows."""
    return np.argsort(a, axis, kind or "stable", order)


_LIBRARY = standard_library.older_names()

_SUBSTITUTES: dict[str, ModuleType] = {
    "collections": _with(collections, **_LIBRARY["collections"]),
    "inspect": _with(inspect, **_LIBRARY["inspect"]),
    "numpy": _with(np, **arrays.older_names()),
}
_SUBSTITUTES["numpy"].__dict__.update(argsort=_argsort, array=arrays.array, asarray=arrays.asarray)


def substitute(name: str) -> ModuleType | None:
    """The module that Keras gets in the place of `name`; None if it gets that one."""
    return _SUBSTITUTES.get(name)


def _decodable(value: Any) -> Any:
    """Text, alone or in an array, as `Text`, an empty array as one that is false; others as they are."""
    if type(value) is str:
        return Text(value)
    if isinstance(value, np.ndarray) and value.size == 0:
        return value.view(EmptyArray)
    if isinstance(value, np.ndarray) and value.dtype == object:
        return np.array([_decodable(item) for item in value.flat], object).reshape(value.shape)
    return value


def _h5py_2() -> ModuleType | None:
    """h5py, whose files are opened for reading and writing unless a mode is given; None without it."""
    if find_spec("h5py") is None:
        return None
    module: Any = import_module("h5py")

    class File(module.File):  # type: ignore[misc]
        """A file, opened as h5py 2 did."""

        def __init__(self, name: Any, mode: str | None = None, *arguments: Any, **options: Any) -> None:
            by_number = isinstance(name, module.h5f.FileID)
            super().__init__(name, mode or ("r" if by_number else "a"), *arguments, **options)

    if not hasattr(module.File, "fid"):
        module.File.fid = property(lambda file: file.id)
    made = _with(module)
    made.__dict__["File"] = File
    return made


def prepare() -> None:
    """Prepares h5py, where it is installed; a second call changes nothing.

    Attributes that are text can be decoded, and lists of bytes are stored as bytes of one length, which is
    what TensorFlow 1 reads.
    """
    older = _SUBSTITUTES.get("h5py") or _h5py_2()
    if older is None or "h5py" in _SUBSTITUTES:
        return
    _SUBSTITUTES["h5py"] = older
    if sys.modules.get("tensorflow") is sys.modules["flowstone"]:  # a program of those years runs
        sys.modules["h5py"].__dict__["File"] = vars(older)["File"]
    attributes: Any = vars(older)["AttributeManager"]
    get, put = attributes.__getitem__, attributes.__setitem__

    def get_decodable(self: Any, name: Any) -> Any:
        return _decodable(get(self, name))

    def put_bytes(self: Any, name: Any, value: Any) -> None:
        is_bytes = (
            isinstance(value, (list, tuple)) and value and all(isinstance(item, bytes) for item in value)
        )
        put(self, name, np.asarray(value) if is_bytes else value)

    attributes.__getitem__, attributes.__setitem__ = get_decodable, put_bytes
