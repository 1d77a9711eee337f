"""`tensorflow.compat.v2`: the names that TensorFlow 1.15 has there, for graphs.

Libraries of 2019 wrote `import tensorflow.compat.v2 as tf` and still built graphs. A name is flowstone's own,
unless `forms` says that it has other arguments, is another object or is refused. Variables are resource
variables. `enable_v2_behavior` is refused as everywhere: there is no eager execution.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import flowstone
from flowstone.compat.version_two.forms import GIVEN, OTHERS, REFUSED, RENAMED, SIGNATURES

__all__ = ["namespace"]

_ROOT = "tensorflow.compat.v2"
_AS_THEY_ARE = ("compat", "estimator", "raw_ops")


def namespace(name: str = "") -> ModuleType | None:
    """The module `tensorflow.compat.v2.NAME`; None if there is none."""
    module: Any = _ROOTED
    for part in filter(None, name.split(".")):
        module = getattr(module, part, None)
    return module if isinstance(module, ModuleType) else None


class _Namespace(ModuleType):
    """A namespace, whose names are found when they are first asked for."""

    def __init__(self, path: str, ours: ModuleType) -> None:
        super().__init__(f"{_ROOT}.{path}".rstrip("."), ours.__doc__)
        self.__path__: list[str] = []
        self._path, self._ours = path, ours

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"{self.__name__} has no name {name!r}")
        path = f"{self._path}.{name}".lstrip(".")
        if path in REFUSED:
            raise AttributeError(f"flowstone does not have {_ROOT}.{path}: use {REFUSED[path]}")
        value = _named(OTHERS[path]) if path in OTHERS else getattr(self._ours, name)
        if path in _signatures():
            value = _with_signature(value, path)
        elif path == "Variable":
            value = Variable
        elif (
            isinstance(value, ModuleType)
            and value.__name__ == f"flowstone.{path}"
            and path not in _AS_THEY_ARE
        ):
            value = _Namespace(path, value)
            sys.modules.setdefault(value.__name__, value)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        others = [path.rpartition(".") for path in (*OTHERS, *_signatures())]
        return sorted({*dir(self._ours), *[name for own, _, name in others if own == self._path]})


def _named(path: str) -> Any:
    """flowstone's object of a dotted name, also one of a room."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(f"flowstone.{module}".rstrip(".")), name)


@functools.cache
def _signatures() -> dict[str, inspect.Signature]:
    """The signature of each function of the table, by its dotted name."""
    found: dict[str, inspect.Signature] = {}
    for text in textwrap.dedent(SIGNATURES).strip().replace("\n        ", " ").splitlines():
        if not text.startswith(" "):
            prefix = "" if text == "tf:" else text.replace(":", ".")
            continue
        if text.strip().startswith("="):
            of, _, alike = text.strip("= ").partition(": ")
            of = "" if of == "tf" else f"{of}."
            found.update({prefix + name: found[of + name] for name in alike.split()})
            continue
        name, _, rest = text.strip().partition("(")
        (function,) = ast.parse(f"def f({rest}: ...").body
        assert isinstance(function, ast.FunctionDef)
        names = [each.arg for each in function.args.args]
        values = [_default(each) for each in function.args.defaults]
        defaults = [inspect.Parameter.empty] * (len(names) - len(values)) + values
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(each, kind, default=value) for each, value in zip(names, defaults)]
        found[prefix + name] = inspect.Signature(parameters)
    return found


def _default(value: ast.expr) -> Any:
    return getattr(flowstone, value.id) if isinstance(value, ast.Name) else ast.literal_eval(value)


def _with_signature(function: Callable[..., Any], path: str) -> Callable[..., Any]:
    """The function as it is called there."""
    signature, renamed, given = _signatures()[path], RENAMED.get(path, {}), GIVEN.get(path, {})

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        bound = signature.bind(*arguments, **keywords)
        bound.apply_defaults()
        values = {renamed.get(name, name): value for name, value in bound.arguments.items()}
        return function(**{name: value for name, value in values.items() if value is not None}, **given)

    call.__signature__ = signature  # type: ignore[attr-defined]
    del call.__wrapped__
    return call


class _VariableType(type):
    """`isinstance` and calls of `Variable` concern flowstone's variables."""

    def __call__(
        cls,
        initial_value: Any = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: str | None = None,
        constraint: Any = None,
        synchronization: Any = flowstone.VariableSynchronization.AUTO,
        aggregation: Any = flowstone.VariableAggregation.NONE,
        shape: Any = None,
    ) -> Any:
        kind: Any = flowstone.Variable
        return kind(
            initial_value,
            trainable=trainable,
            validate_shape=validate_shape,
            caching_device=caching_device,
            name=name,
            variable_def=variable_def,
            dtype=dtype,
            import_scope=import_scope,
            constraint=constraint,
            synchronization=synchronization,
            aggregation=aggregation,
            use_resource=True,
            **({} if shape is None else {"shape": shape}),
        )

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, flowstone.Variable)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, flowstone.Variable)


class Variable(metaclass=_VariableType):
    """`tf.Variable` of TensorFlow 2: a resource variable."""


_ROOTED = _Namespace("", flowstone)
