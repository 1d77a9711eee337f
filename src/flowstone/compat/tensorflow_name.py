"""Makes `tensorflow` another name for flowstone in this process.

After `install()`, an import of

- `tensorflow` or `tensorflow.compat.v1` gives the module `flowstone` itself,
- `tensorflow.NAME` or `tensorflow.compat.v1.NAME` gives flowstone's public namespace `NAME` itself,
- `tensorflow.compat.v2` and what is below it gives modules of `version_two`,
- `tensorflow_estimator` and what is below it gives what `tensorflow` has under the names of that package,
- an internal module that `module_paths` (here or in `contrib`) lists gives an alias module, which looks its
  names up where that table says, each when it is first asked for; `python -m tensorflow.python.tools.NAME`
  calls its `main()`,
- anything else fails with a `ModuleNotFoundError` that says flowstone does not have it, and what is nearest;
  so does `from tensorflow.contrib import NAME` for the packages that are not here.

Old names that flowstone lacks as attributes are then found in `eras`, and `tf.contrib`, `tf.python` and
so on in the alias modules.

    >>> install()
    >>> import tensorflow.compat.v1 as tf
    >>> tf is sys.modules["flowstone"]
    True
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, FunctionType, ModuleType
from typing import Any

import flowstone
from flowstone.compat import eras, module_paths, version_two
from flowstone.contrib.absent import NEAREST, nearest
from flowstone.framework.names.alias_modules import (
    AliasModule,
    alias_module,
    import_if_there,
    sources_of,
)

__all__ = ["TensorFlowFinder", "install"]

# Roots that are attributes of `tf` without an import: tf.python.ops.
_ROOTS = ("core", "examples", "models", "python")
_ESTIMATORS = "tensorflow_estimator"
_TOOLS = "tensorflow.python.tools."
_PROGRAM = ".__main__"
_CONTRIB = "flowstone.contrib."


def _is_from_import() -> bool:
    """Whether a statement `from a import b` asks for a module."""
    frame = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back  # type: ignore[assignment]
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        if frame.f_code.co_name == "_handle_fromlist":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


class TensorFlowFinder(MetaPathFinder, Loader):
    """Finds and loads `tensorflow.*`, all of it, so that nothing is loaded twice or from elsewhere."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module below `tensorflow`; None for other names.

        Raises ModuleNotFoundError if flowstone has no such module or name.
        """
        if fullname.split(".")[0] == _ESTIMATORS:
            return ModuleSpec(fullname, self, is_package=True)
        if fullname.removeprefix(_CONTRIB) in NEAREST and fullname.startswith(_CONTRIB) and _is_from_import():
            raise ModuleNotFoundError(nearest(fullname.removeprefix(_CONTRIB)), name="tensorflow")
        if not fullname.startswith("tensorflow."):
            return None
        if _tool(fullname) is not None:
            return ModuleSpec(fullname, self)
        if _public_module(fullname) is None and sources_of(fullname) is None:
            # `from a import b` swallows an error that is named a.b; pydoc.locate knows one by that name.
            name = "tensorflow" if _is_from_import() else fullname
            raise ModuleNotFoundError(f"flowstone does not have {fullname}{_instead_of(fullname)}", name=name)
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """An alias module, or None for a public one, which `exec_module` puts in place.

        Raises ModuleNotFoundError for what the package of the estimators has and flowstone lacks.
        """
        if spec.name.split(".")[0] == _ESTIMATORS:
            _same_of_tensorflow(spec.name)
            return None
        return alias_module(spec.name) if _public_module(spec.name) is None else None

    def exec_module(self, module: ModuleType) -> None:
        """Puts flowstone's own module in the place of a public name."""
        if module.__name__.split(".")[0] == _ESTIMATORS:
            sys.modules[module.__name__] = _same_of_tensorflow(module.__name__)
        elif not isinstance(module, AliasModule):
            public = _public_module(module.__name__)
            assert public is not None, "find_spec has found it"
            sys.modules[module.__name__] = public

    def get_code(self, fullname: str) -> CodeType | None:
        """What `python -m` executes of a tool; None for other modules."""
        tool = _tool(fullname)
        return None if tool is None else compile(f"from {tool} import main\nmain()", fullname, "exec")


def _instead_of(fullname: str) -> str:
    """What to use in place of a module that is not here, as the end of a message; empty if none is known."""
    first, _, below = fullname.removeprefix("tensorflow.").removeprefix("compat.v1.").partition(".")
    if first in _ROOTS:
        return ""
    if first == "contrib":
        message = nearest(below.partition(".")[0])
    else:
        try:
            getattr(flowstone, first)
            return ""
        except AttributeError as error:
            message = str(error)
    _, found, instead = message.partition("use ")
    return f"; use {instead}" if found else ""


def _tool(fullname: str) -> str | None:
    """The tool that is the program `fullname`, NAME.__main__; None where there is none."""
    name = fullname.removesuffix(_PROGRAM)
    if name == fullname or not name.startswith(_TOOLS) or sources_of(name) is None:
        return None
    return name if hasattr(alias_module(name), "main") else None


def _same_of_tensorflow(fullname: str) -> ModuleType:
    """What `tensorflow` has under the name of the package that its estimators were in from 1.13 on."""
    if fullname == _ESTIMATORS:
        return flowstone  # whose attribute is `estimator`
    return import_module(f"tensorflow.{fullname.removeprefix(_ESTIMATORS + '.')}")


def _public_module(fullname: str) -> ModuleType | None:
    """flowstone's module for `tensorflow[.compat.v1].NAME`; None for internal modules and unknown names."""
    inner = fullname.removeprefix("tensorflow.")
    if inner == "compat.v1":
        return flowstone
    if inner == "compat.v2" or inner.startswith("compat.v2."):
        return version_two.namespace(inner.removeprefix("compat.v2").lstrip("."))
    inner = inner.removeprefix("compat.v1.")
    if inner.partition(".")[0] in _ROOTS:
        return None
    return None if _is_public_object(inner) else import_if_there(f"flowstone.{inner}")


def _is_public_object(inner: str) -> bool:
    """Whether `tensorflow.NAME` is a function or a class, though flowstone has a file of that name, too."""
    package, _, name = f"flowstone.{inner}".rpartition(".")
    if package == "flowstone" or package not in sys.modules:
        return False
    return isinstance(getattr(sys.modules[package], name, None), (FunctionType, type))


def _internal_root(name: str) -> Any:
    """The internal module that is an attribute of `tf`, such as `tf.python`; None for other names."""
    return import_module(f"tensorflow.{name}") if name in _ROOTS else None


def _keep_tensorboard_to_itself() -> None:
    """Has the package tensorboard use its own file access instead of whatever is called tensorflow."""
    sys.modules.setdefault("tensorboard.compat.notf", ModuleType("tensorboard.compat.notf"))


def install() -> None:
    """Makes `tensorflow` mean flowstone from here on; a second call changes nothing.

    Raises RuntimeError if TensorFlow itself is loaded already.
    """
    present = sys.modules.get("tensorflow")
    if present is flowstone:
        return
    if present is not None:
        raise RuntimeError("TensorFlow itself is loaded already: flowstone cannot take its name now")
    sys.modules["tensorflow"] = flowstone
    module_paths.register()
    sys.meta_path.insert(0, TensorFlowFinder())
    import_module("flowstone.keras")  # which finds the package keras, should the program import it
    _keep_tensorboard_to_itself()
    eras.install(_internal_root)
