"""What configurations of TensorFlow's layers have besides the package's, so that models go both ways.

A layer takes these arguments, too. They choose among ways to compute the same values, or have one value that
the package knows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from flowstone.keras.published import own

__all__ = ["extend"]


class _Argument(NamedTuple):
    """An argument that only TensorFlow's layer has: its name, values, the first by default, and its place."""

    name: str
    values: tuple[Any, ...]
    after: str  # the entry of the configuration that it follows


_FORMAT = _Argument("data_format", ("channels_last",), "padding")
_WAY = _Argument("implementation", (1, 2, 3), "bias_constraint")
_TIME_MAJOR = _Argument("time_major", (False,), "stateful")
_ARGUMENTS = {
    "LocallyConnected1D": (_FORMAT, _WAY),
    "LocallyConnected2D": (_WAY,),
    "CuDNNGRU": (_TIME_MAJOR,),
    "CuDNNLSTM": (_TIME_MAJOR,),
}
_KERNELS = ("SeparableConv1D", "SeparableConv2D")  # of which the package leaves the kernel's settings out


def _changed_init(
    published: Callable[..., None], own_arguments: tuple[_Argument, ...]
) -> Callable[..., None]:
    def __init__(self: Any, *arguments: Any, **keywords: Any) -> None:
        """A layer; see the package. NotImplementedError for a value that it does not know."""
        for name, values, _ in own_arguments:
            value = keywords.pop(name, None)
            if value is not None and value not in values:
                raise NotImplementedError(f"{type(self).__name__} with {name}={value!r} is not available.")
            setattr(self, name, values[0] if value is None else value)
        published(self, *arguments, **keywords)

    __init__.__signature__ = _with_arguments(inspect.signature(published), own_arguments)  # type: ignore[attr-defined]
    return __init__


def _with_arguments(signature: inspect.Signature, own_arguments: tuple[_Argument, ...]) -> inspect.Signature:
    """The signature with TensorFlow's own arguments in their places, as far as it lacks them."""
    parameters = list(signature.parameters.values())
    for name, values, after in own_arguments:
        names = [each.name for each in parameters]
        if name not in names and after in names:
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            parameters.insert(names.index(after) + 1, inspect.Parameter(name, kind, default=values[0]))
    return signature.replace(parameters=parameters)


def _changed_config(
    published: Callable[..., dict[str, Any]], own_arguments: tuple[_Argument, ...]
) -> Callable[..., dict[str, Any]]:
    def get_config(self: Any) -> dict[str, Any]:
        """What it is made of."""
        config = {}
        for name, value in published(self).items():
            config[name] = value
            config.update(
                {each.name: getattr(self, each.name) for each in own_arguments if each.after == name}
            )
        return config

    return get_config


def _with_kernel(published: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    def get_config(self: Any) -> dict[str, Any]:
        """What it is made of."""
        config = {}
        for name, value in published(self).items():
            kind = name.removeprefix("bias_")
            if name != kind:
                serialize = own(f"{kind}s").serialize
                config[f"kernel_{kind}"] = serialize(getattr(self, f"kernel_{kind}"))
            config[name] = value
        return config

    return get_config


def _typed(published: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: Any, *arguments: Any, **keywords: Any) -> None:
        """A table of vectors; see the package. Its type is known from the beginning."""
        keywords["dtype"] = keywords.get("dtype") or own("backend").floatx()
        published(self, *arguments, **keywords)

    return __init__


def extend(module: ModuleType) -> None:
    """Changes the layers above, in the module that defines them."""
    for name, value in vars(module).items():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if name in _ARGUMENTS:
            value.__init__ = _changed_init(value.__init__, _ARGUMENTS[name])
            value.get_config = _changed_config(value.get_config, _ARGUMENTS[name])
        elif name in _KERNELS:
            value.get_config = _with_kernel(value.get_config)
        elif name == "Embedding":
            value.__init__ = _typed(value.__init__)
