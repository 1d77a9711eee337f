"""Modules that are made where an import finds none, and modules that are completed when they are imported."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["complete", "install", "replace"]

_REPLACEMENTS: dict[str, Callable[[ModuleType], None]] = {}
_COMPLETIONS: dict[str, Callable[[ModuleType], None]] = {}


def replace(name: str, fill: Callable[[ModuleType], None]) -> None:
    """Has an import of `name` that finds no module make one, which `fill` gives its names."""
    _REPLACEMENTS[name] = fill


def complete(name: str, fill: Callable[[ModuleType], None]) -> None:
    """Has `fill` called on the module `name`: now if it is loaded, else after it has been imported."""
    _COMPLETIONS[name] = fill
    if name in sys.modules:
        fill(sys.modules[name])


def add_missing(module: ModuleType, names: dict[str, Any]) -> None:
    """Gives a module those names that it lacks."""
    for name, value in names.items():
        if name not in vars(module):
            setattr(module, name, value)


class _Made(MetaPathFinder, Loader):
    """Finds what all others have not found."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname in _REPLACEMENTS else None

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        _REPLACEMENTS[module.__name__](module)


class _Completed(MetaPathFinder):
    """Finds modules by the other finders, and has them completed once they are there."""

    def __init__(self) -> None:
        self._searching: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _COMPLETIONS or fullname in self._searching:
            return None
        self._searching.add(fullname)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._searching.discard(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _CompletingLoader(spec.loader)
        return spec


class _CompletingLoader(Loader):
    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _COMPLETIONS[module.__name__](module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def install() -> None:
    """Has imports ask here: before the others for completions, after them for replacements."""
    if not any(isinstance(finder, _Completed) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Completed())
        sys.meta_path.append(_Made())
