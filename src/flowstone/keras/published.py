"""The published package `keras`, loaded so that `tensorflow` means flowstone in its modules.

`install()` puts a finder in front of Python's own. It loads `keras` 2.2 or 2.3, `keras_applications` and
`keras_preprocessing` from where they are installed, as they are, but with an `__import__` of their own: what
they import from `tensorflow` comes from flowstone, in whatever process, whether or not TensorFlow is
installed or loaded there.

`flowstone.keras.package` is a second load of `keras`: the ground of `tf.keras`, which in TensorFlow 1 was a
package of its own and in part behaved otherwise. Once a module of it is loaded, `extensions` changes what
`tf.keras` had differently. A program that imports `keras` gets that package unchanged.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from types import ModuleType
from typing import Any

import flowstone
from flowstone.compat import module_paths
from flowstone.framework.names.alias_modules import alias_module
from flowstone.keras import installation
from flowstone.keras.older_python import prepare, substitute

__all__ = ["OWN", "VERSION", "BoundLoader", "KerasFinder", "install", "is_own", "own", "published_class"]

OWN = "flowstone.keras.package"
"""The name of the package that `tf.keras` is made of."""

_OF_TENSORFLOW = "tensorflow.python.keras"

VERSION = "2.2.4-tf"
"""The version that `tf.keras` of TensorFlow 1.15 says it has."""

_PACKAGES = frozenset({"keras", "keras_applications", "keras_preprocessing"})


def _import(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    """`__import__` of Keras' modules."""
    older = substitute(name) if level == 0 else None
    if older is not None:
        return older
    if level == 0 and (name == "tensorflow" or name.startswith("tensorflow.")):
        return flowstone if name == "tensorflow" or not fromlist else _module(name)
    return builtins.__import__(name, globals, locals, fromlist or (), level)


def _module(name: str) -> ModuleType:
    """flowstone's module for a module of TensorFlow's; ModuleNotFoundError if it has none."""
    inner = name.removeprefix("tensorflow.")
    value: Any = flowstone
    for part in inner.split("."):
        value = getattr(value, part, None)
    if isinstance(value, ModuleType):
        return value
    module = alias_module(name)
    if module is None:
        raise ModuleNotFoundError(f"flowstone does not have {name}", name="tensorflow")
    return module


def _own_import(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    """`__import__` of the modules of `flowstone.keras.package`, for which `keras` is that package."""
    if level == 0 and name.partition(".")[0] == "keras":
        own = f"{OWN}{name.removeprefix('keras')}"
        if fromlist:
            return builtins.__import__(own, globals, locals, fromlist, 0)
        import_module(own)
        return sys.modules[OWN]
    return _import(name, globals, locals, fromlist, level)


def own(path: str) -> Any:
    """The module of that path within `flowstone.keras.package`."""
    return import_module(f"{OWN}.{path}")


def published_class(path: str, name: str) -> Any:
    """A class of a module of `flowstone.keras.package`; None before it is there."""
    module = sys.modules.get(f"{OWN}.{path}")
    return None if module is None else getattr(module, name, None)


def is_own(kind: type) -> bool:
    """Whether a class is one of `flowstone.keras.package`."""
    return kind.__module__.startswith((OWN, _OF_TENSORFLOW))


def _name_classes(inner: str, module: ModuleType) -> None:
    """Where `tensorflow` means flowstone, classes say the module that TensorFlow 1.15 has them in: libraries
    tell models of `tf.keras` from those of `keras` by `str(type(model))`.
    """
    if sys.modules.get("tensorflow") is not flowstone:
        return
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__:
            value.__module__, value.__qualname__ = f"{_OF_TENSORFLOW}.{inner}", value.__name__


def _inner(name: str) -> str | None:
    """The path of a module within `flowstone.keras.package`, "" for itself; None for other modules."""
    if name == OWN:
        return ""
    return name.removeprefix(f"{OWN}.") if name.startswith(f"{OWN}.") else None


class BoundLoader(SourceFileLoader):
    """Loads a module of Keras' with the `__import__` above."""

    def exec_module(self, module: ModuleType) -> None:
        """Runs the module's code, and has one of `tf.keras` extended."""
        inner = _inner(module.__name__)
        importer = _import if inner is None else _own_import
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": importer}
        super().exec_module(module)
        if inner == "":
            module.__dict__["__version__"] = VERSION
        elif inner:
            import_module("flowstone.keras.extensions").extend(inner, module)
            _name_classes(inner, module)


class KerasFinder(MetaPathFinder):
    """Finds the modules of the published packages."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of Keras'; None for others, and for those of a version that does not fit."""
        is_own = _inner(fullname) is not None
        if (not is_own and fullname.partition(".")[0] not in _PACKAGES) or not installation.is_installed():
            return None
        if fullname in ("keras", OWN):
            prepare()
        spec = _own_root() if fullname == OWN else PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = BoundLoader(spec.loader.name, spec.loader.path)
        return spec


def _own_root() -> ModuleSpec | None:
    """The spec by which `flowstone.keras.package` is the installed package `keras`."""
    found = PathFinder.find_spec("keras")
    if found is None or found.origin is None:
        return None
    places = found.submodule_search_locations
    loader = SourceFileLoader(OWN, found.origin)
    return spec_from_file_location(OWN, found.origin, loader=loader, submodule_search_locations=places)


def install() -> None:
    """Puts the finder in place; a second call changes nothing."""
    if not any(isinstance(finder, KerasFinder) for finder in sys.meta_path):
        module_paths.register()
        sys.meta_path.insert(0, KerasFinder())
