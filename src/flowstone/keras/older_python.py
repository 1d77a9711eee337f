"""What Keras 2.2 and 2.3 expect of Python, NumPy and h5py, and these have since dropped.

`substitute(name)` gives Keras' modules a module in the place of the one that they import: it has the names of
that one and those that it once had. Other programs see Python and NumPy as they are, but for h5py's text: it
passes through the program to Keras (`compat/older_python/stored_arrays.py`).
"""

from __future__ import annotations

import collections
import inspect
from types import ModuleType
from typing import Any

import numpy as np

from flowstone.compat.older_python import arrays, standard_library, stored_arrays

__all__ = ["prepare", "substitute"]


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


def prepare() -> None:
    """Prepares h5py, where it is installed; a second call changes nothing."""
    older = _SUBSTITUTES.get("h5py") or stored_arrays.older_module()
    if older is not None:
        _SUBSTITUTES["h5py"] = older
