"""`tensorflow.python.util.tf_export`: the names under which a program's own functions are public."""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["SymbolAlreadyExposedError", "estimator_export", "keras_export", "tf_export"]

Symbol = TypeVar("Symbol")


class SymbolAlreadyExposedError(Exception):
    """A symbol is already exported under other names."""


class tf_export:
    """A decorator that notes the public names of a function or class on it, and leaves it as it is.

    Args:
        names: the dotted public names.
        overrides: symbols whose exported names these take over; `v1`, `allow_multiple_exports`: noted only.
    """

    _attribute = "_tf_api_names"

    def __init__(self, *names: str, **options: Any) -> None:
        self._names = names
        self._overrides = options.get("overrides", ())
        self._allow_several = options.get("allow_multiple_exports", False)

    def __call__(self, func: Symbol) -> Symbol:
        for other in self._overrides:
            vars(other).pop(self._attribute, None) if hasattr(other, "__dict__") else None
        if self._attribute in getattr(func, "__dict__", {}) and not self._allow_several:
            raise SymbolAlreadyExposedError(f"Symbol {func!r} is already exposed as {self._names}.")
        setattr(func, self._attribute, self._names)
        return func


class estimator_export(tf_export):
    """`tf_export` for names below `tf.estimator`."""

    _attribute = "_estimator_api_names"


class keras_export(tf_export):
    """`tf_export` for names below `tf.keras`."""

    _attribute = "_keras_api_names"
