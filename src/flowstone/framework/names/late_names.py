"""Names of a module that are imported when a program first asks for them.

    __getattr__, __dir__ = late_names(globals(), {"flowstone.ops.algebra.factorizations": "cholesky qr"})

Importing flowstone costs what most programs use; what few use is named in such a table. `from … import *`
takes all names, the late ones among them; so does `vars(module)`. Nothing is collected meanwhile, for all
that an import makes stays.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from flowstone.framework.process.collector import paused

_DICTIONARY: Any = vars(ModuleType)["__dict__"]
own_names: Callable[[ModuleType], dict[str, Any]] = _DICTIONARY.__get__
_COMPLETE: set[ModuleType] = set()


def all_names(module: ModuleType) -> dict[str, Any]:
    """The module's own dictionary, once what `dir` names is in it, but for what is not installed."""
    found = own_names(module)
    if module not in _COMPLETE:
        _COMPLETE.add(module)
        for name in dir(module):
            if name not in found:
                with contextlib.suppress(AttributeError, ImportError):
                    getattr(module, name)
    return found


class _ModuleOfLateNames(ModuleType):
    """A module whose dictionary has the late names, too: programs look classes up in `vars(tf.train)`."""

    __dict__ = property(all_names)

    def __dir__(self) -> list[str]:
        names: list[str] = own_names(self)["__dir__"]()
        return names


def late_names(
    module: dict[str, Any], names: Mapping[str, str], namespaces: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a module.

    Args:
        module: the module's globals; a name that has been asked for becomes one of them.
        names: for each file, by its dotted name, the names that the module takes from it. ``name=own`` takes
            the file's ``own`` under ``name``.
        namespaces: the modules below this one that are its attributes.

    Names and namespaces are separated by spaces.
    """
    own_name = module["__name__"]
    sources: dict[str, tuple[str, str]] = {}
    for file, text in names.items():
        for item in text.split():
            name, _, own = item.partition("=")
            sources[name] = (file, own or name)
    below = frozenset(namespaces.split())
    if own_name in sys.modules:
        sys.modules[own_name].__class__ = _ModuleOfLateNames

    def get(name: str) -> Any:
        if name in sources:
            file, own = sources[name]
            with paused():
                value = getattr(import_module(file), own)
        elif name in below:
            with paused():
                value = import_module(f"{own_name}.{name}")
        elif name == "__all__":  # `from … import *` asks for it
            return [each for each in names_of_all() if not each.startswith("_")]
        else:
            raise AttributeError(f"{own_name} has no name {name!r}")
        module[name] = value
        return value

    def names_of_all() -> list[str]:
        return sorted({*module, *sources, *below})

    return get, names_of_all
