"""`tensorflow.python.util.lazy_loader`: modules that are imported when they are first used."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

__all__ = ["LazyLoader"]


class LazyLoader(ModuleType):
    """A module that is imported at the first access to one of its attributes.

    Args:
        local_name: the name that the module gets among `parent_module_globals`.
        parent_module_globals: the globals of the module that imports it.
        name: the dotted name of the module.
    """

    def __init__(self, local_name: str, parent_module_globals: dict[str, Any], name: str) -> None:
        super().__init__(name)
        self._local_name = local_name
        self._parent_module_globals = parent_module_globals

    def _load(self) -> ModuleType:
        module = importlib.import_module(self.__name__)
        self._parent_module_globals[self._local_name] = module
        self.__dict__.update(module.__dict__)
        return module

    def __getattr__(self, item: str) -> Any:
        return getattr(self._load(), item)

    def __dir__(self) -> list[str]:
        return dir(self._load())
