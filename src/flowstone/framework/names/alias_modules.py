"""Modules of TensorFlow's that have no file here: each looks its names up in modules of flowstone.

A room that knows where such modules' names are registers a finder with `add_paths`: from the module's dotted
name, `tensorflow.python.ops.init_ops`, to the modules in which its names are looked up, in order. With
`add_objects` it registers which single names are which objects: `Zeros` of that module is
`tf.zeros_initializer`. `alias_module` gives the one module of a name; its attributes are found when they are
first asked for: a module below it, then a single object, then a name of the sources.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from flowstone.framework.names.late_names import all_names, own_names

__all__ = [
    "AliasModule",
    "add_neighbours",
    "add_objects",
    "add_paths",
    "alias_module",
    "import_if_there",
    "sources_of",
]

# A finder returns None for a module that it does not know, an empty sequence for one of modules only.
Finder = Callable[[str], Sequence[str] | None]
# From a module's name and a name in it to the dotted name of an object; None where there is no single one.
ObjectFinder = Callable[[str, str], str | None]

# From a module's name and a name in it to the module that TensorFlow's one imports under that name.
NeighbourFinder = Callable[[str, str], str | None]

_FINDERS: list[Finder] = []
_NEIGHBOUR_FINDERS: list[NeighbourFinder] = []
_OBJECT_FINDERS: list[ObjectFinder] = []
# From a module's name to the names in it that object finders know.
_OBJECT_NAMES: list[Callable[[str], Iterable[str]]] = []
_MODULES: dict[str, AliasModule] = {}


def add_paths(find: Finder) -> None:
    """Has `find` asked, after those added before, where the names of a module are."""
    if find not in _FINDERS:
        _FINDERS.append(find)


def add_objects(find: ObjectFinder, names: Callable[[str], Iterable[str]]) -> None:
    """Has `find` asked which object a name of a module is; `names` gives those that it knows in a module."""
    if find not in _OBJECT_FINDERS:
        _OBJECT_FINDERS.append(find)
        _OBJECT_NAMES.append(names)


def add_neighbours(find: NeighbourFinder) -> None:
    """Has `find` asked which module a module has imported under a name that is nothing else."""
    if find not in _NEIGHBOUR_FINDERS:
        _NEIGHBOUR_FINDERS.append(find)


def sources_of(name: str) -> Sequence[str] | None:
    """The modules in which the names of TensorFlow's module `name` are looked up; None if there is none."""
    for find in _FINDERS:
        sources = find(name)
        if sources is not None:
            return sources
    return None


def alias_module(name: str) -> AliasModule | None:
    """The module that stands for TensorFlow's `name`; None if no room knows it."""
    if name not in _MODULES:
        sources = sources_of(name)
        if sources is None:
            return None
        _MODULES[name] = AliasModule(name, sources)
    return _MODULES[name]


def import_if_there(name: str) -> ModuleType | None:
    """The module of that name, or else the module that is an attribute of its parent, or None.

    Errors within the module pass through.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
    parent, _, leaf = name.rpartition(".")
    value = getattr(sys.modules.get(parent), leaf, None) if parent else None
    return value if isinstance(value, ModuleType) and not isinstance(value, AliasModule) else None


class AliasModule(ModuleType):
    """A module of TensorFlow's whose names are looked up in flowstone, in the first source that has one."""

    def __init__(self, name: str, sources: Sequence[str]) -> None:
        super().__init__(name, f"{name}, as flowstone has it.")
        self.__path__: list[str] = []
        self.__sources__ = tuple(sources)

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [public for public in dir(self) if not public.startswith("_")]
        if not (name.startswith("__") and name.endswith("__")):
            # A module below this one first: tensorflow.python.ops is not flowstone's package ops. But
            # where a source has something else of that name, a package's function hides its module.
            below = alias_module(f"{self.__name__}.{name}")
            if below is not None:
                setattr(self, name, below)
                return own_names(self)[name]
            found = self._object(name)
            if found is not None:
                setattr(self, name, found[0])
                return found[0]
        raise AttributeError(f"flowstone does not have the name {self.__name__}.{name}")

    def _object(self, name: str) -> tuple[Any] | None:
        """The object of that name, or None: it may be None itself."""
        for find in _OBJECT_FINDERS:
            path = find(self.__name__, name)
            if path is not None:
                root, *attributes = path.split(".")
                return (functools.reduce(getattr, attributes, import_module(root)),)
        for source in self._source_modules():
            try:
                return (getattr(source, name),)
            except AttributeError:
                continue
        for find in _NEIGHBOUR_FINDERS:
            neighbour = find(self.__name__, name)
            if neighbour is not None:
                return (alias_module(neighbour),)
        return None

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, AliasModule):  # set here or, after an import, by Python
            value = self._hiding(name, value)
        super().__setattr__(name, value)

    def _hiding(self, name: str, below: AliasModule) -> Any:
        """What a source has under the name of a module below this one, if no module, else `below`."""
        for source in self._source_modules():
            try:
                own = getattr(source, name, None)
            except ImportError:  # an optional package is not installed
                continue
            if own is not None and not isinstance(own, ModuleType):
                return own
        return below

    def __dir__(self) -> list[str]:
        names = {name for source in self._source_modules() for name in dir(source)}
        names.update(*(names_of(self.__name__) for names_of in _OBJECT_NAMES))
        return sorted(names.union(own_names(self)))

    __dict__ = property(all_names)

    def _source_modules(self) -> list[ModuleType]:
        return [module for module in map(import_if_there, self.__sources__) if module is not None]
