"""The published package `keras`, loaded so that `tensorflow` means flowstone in its modules.

`install()` puts a finder in front of Python's own. It loads `keras` 2.2 or 2.3, `keras_applications` and
`keras_preprocessing` from where they are installed, as they are, but with an `__import__` of their own: what
they import from `tensorflow` comes from flowstone, in whatever process, whether or not TensorFlow is
installed or loaded there. It also finds `flowstone.keras.NAME` (see `namespaces`).
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

import flowstone
from flowstone.compat import module_paths
from flowstone.framework.alias_modules import alias_module
from flowstone.keras import installation
from flowstone.keras.older_python import prepare, substitute

__all__ = ["BoundLoader", "KerasFinder", "install"]

# Modules of the package that get members once they are loaded, and which file here has them.
_EXTENDED = {
    "keras.engine.base_layer": "flowstone.keras.layer_members",
}
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


class BoundLoader(SourceFileLoader):
    """Loads a module of Keras' with the `__import__` above."""

    def exec_module(self, module: ModuleType) -> None:
        """Runs the module's code."""
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _import}
        super().exec_module(module)
        if module.__name__ in _EXTENDED:
            import_module(_EXTENDED[module.__name__]).extend(module)


class KerasFinder(MetaPathFinder):
    """Finds the modules of the published packages."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of Keras'; None for others, and for those of a version that does not fit."""
        if fullname.partition(".")[0] not in _PACKAGES or not installation.is_installed():
            return None
        if fullname == "keras":
            prepare()
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = BoundLoader(spec.loader.name, spec.loader.path)
        return spec


def install() -> None:
    """Puts the finder in place; a second call changes nothing."""
    if not any(isinstance(finder, KerasFinder) for finder in sys.meta_path):
        module_paths.register()
        sys.meta_path.insert(0, KerasFinder())
