"""`tf.keras.layers` and the other namespaces of `tf.keras`.

A namespace is the published package's module of that name itself, unless `BESIDE` names files here: then it
is a module that looks names up in those, and in the package's. `install()` lets them be imported as
`flowstone.keras.NAME`, and has `tensorflow.python.keras.NAME` looked up in the same places.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from flowstone.framework.names.alias_modules import AliasModule, add_paths
from flowstone.keras import installation
from flowstone.keras.published import OWN, VERSION

__all__ = ["NAMES", "find", "install"]

_OURS = "flowstone.keras."
_INTERNAL = ("tensorflow.python.keras._impl.keras.", "tensorflow.python.keras.")

_NAMESPACES = (
    "activations applications backend callbacks constraints datasets engine initializers layers losses"
    " metrics models optimizers preprocessing regularizers utils wrappers"
)
_MODELS = f"{OWN}.models"
_CLASSES = {"Input": "flowstone.keras.layer_classes", "Model": _MODELS, "Sequential": _MODELS}
_FILES = ("estimator", "experimental", "mixed_precision")  # namespaces that are files here
NAMES = frozenset({*_NAMESPACES.split(), *_CLASSES, *_FILES, "__version__"})
"""The names of `tf.keras`."""

# What is looked up instead of the package's module, and where that lacks a name, by the namespace's path.
INSTEAD: dict[str, tuple[str, ...]] = {
    "layers": ("flowstone.keras.layer_classes", f"{OWN}.layers"),
    "optimizers": (f"{OWN}.optimizers",),
}
BESIDE: dict[str, tuple[str, ...]] = {
    "backend": ("flowstone.keras.foundation",),
    "backend_config": (f"{OWN}.backend",),
    "engine.input_spec": (f"{OWN}.engine.base_layer",),
    "optimizers.schedules": ("flowstone.keras.extensions.learning_rate_schedules",),
    **{
        f"optimizer_v2.{name}": (f"{OWN}.optimizers",)
        for name in ["adadelta", "adagrad", "adam", "adamax", "ftrl", "gradient_descent", "nadam", "rmsprop"]
    },
    "optimizer_v2": (f"{OWN}.optimizers",),
    "optimizer_v2.learning_rate_schedule": ("flowstone.keras.extensions.learning_rate_schedules",),
    "optimizer_v2.optimizer_v2": ("flowstone.keras.extensions.optimizer_base",),
    "saving": (f"{OWN}.engine.saving",),
    "saving.hdf5_format": (f"{OWN}.engine.saving",),
    "saving.save": (f"{OWN}.engine.saving",),
    "utils": (f"{OWN}.utils.data_utils",),  # SequenceEnqueuer
    "utils.generic_utils": ("flowstone.keras.extensions.names",),
    "utils.tf_utils": ("flowstone.keras.tf_utils",),
}

# Where names are looked up of modules that are there without the package.
_LAYERS = "flowstone.layers"
_WITHOUT_PACKAGE: dict[str, tuple[str, ...]] = {
    "engine": (),
    "engine.base_layer": (_LAYERS, f"{_LAYERS}.base", f"{_LAYERS}.calls"),
    "engine.input_spec": (_LAYERS,),
}


def find(name: str) -> Any:
    """The namespace or class `name` of `tf.keras`; AttributeError if there is none."""
    if name in NAMES and name not in (*BESIDE, *_FILES):
        installation.check()
    if name in _CLASSES:
        import_module(OWN)
        return getattr(import_module(_CLASSES[name]), name)
    if name == "__version__":
        return VERSION
    if name in NAMES:
        return import_module(_OURS + name)
    raise AttributeError(f"flowstone does not have the name tf.keras.{name}")


def sources_of_internal(name: str) -> tuple[str, ...] | None:
    """The modules in which the names of TensorFlow's own module of Keras `name` are looked up."""
    if f"{name}." in (_INTERNAL[0], _INTERNAL[0].removesuffix("keras.")):  # TensorFlow 1.4's packages
        return ("flowstone.keras",)
    for prefix in _INTERNAL:
        if name.startswith(prefix):
            path = name.removeprefix(prefix)
            if path == "backend":  # the package's own asks here, while it is loaded
                return ("flowstone.keras.foundation", "flowstone.keras.backend")
            if path in _WITHOUT_PACKAGE and not installation.is_installed():
                return _WITHOUT_PACKAGE[path]
            return (_OURS + path,) if _exists(path) else None
    return None


def _exists(path: str) -> bool:
    """Whether the package, or this one, has a module of that path."""
    if path in BESIDE:
        return True
    if not installation.is_installed():
        return path in NAMES
    return _has_module(path)


def _has_module(path: str) -> bool:
    """Whether the package has a module of that path."""
    try:
        return find_spec(f"{OWN}.{path}") is not None
    except ModuleNotFoundError:
        return False


class PartOfNamespace(AliasModule):
    """The names of a namespace that are there without the package."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if not name.startswith("_"):
                installation.check()
            raise


class NamespaceFinder(MetaPathFinder, Loader):
    """Finds `flowstone.keras.NAME` where it is not one of the files here; `keras.NAME`, too, for a program
    that says ``sys.modules["keras"] = tf.keras``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a namespace; None for other names."""
        if fullname.startswith("keras.") and sys.modules.get("keras") is sys.modules.get("flowstone.keras"):
            inner = fullname.removeprefix("keras.")
            return ModuleSpec(fullname, self, is_package=True) if inner in _FILES or _exists(inner) else None
        inner = fullname.removeprefix(_OURS)
        known = inner in BESIDE or (inner.partition(".")[0] in NAMES and _exists(inner))
        if inner == fullname or inner in _FILES or not known:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """None: `exec_module` puts the namespace in place."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Puts the package's module, or one with more names, in the place of `module`."""
        if module.__name__.startswith("keras."):
            sys.modules[module.__name__] = import_module(_OURS + module.__name__.removeprefix("keras."))
            return
        path = module.__name__.removeprefix(_OURS)
        ours = BESIDE.get(path)
        if path in INSTEAD:
            installation.check()
            namespace: ModuleType = AliasModule(module.__name__, INSTEAD[path])
        elif ours is None:
            installation.check()
            namespace = import_module(f"{OWN}.{path}")
        elif installation.is_installed():
            published = (f"{OWN}.{path}",) if _has_module(path) else ()
            namespace = AliasModule(module.__name__, (*published, *ours))
        else:
            namespace = PartOfNamespace(module.__name__, ours)
        sys.modules[module.__name__] = namespace


def install() -> None:
    """Lets the namespaces be imported; a second call changes nothing."""
    if not any(isinstance(finder, NamespaceFinder) for finder in sys.meta_path):
        add_paths(sources_of_internal)
        sys.meta_path.insert(0, NamespaceFinder())
