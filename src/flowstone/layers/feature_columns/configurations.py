"""Columns as dicts of plain values, and back: what layers of Keras are saved as.

A column is ``{"class_name": …, "config": …}``, a feature's key itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flowstone.framework.types import dtypes

__all__ = [
    "callable_named",
    "check_config",
    "deserialized",
    "dtype_named",
    "name_of_callable",
    "register",
    "serialized",
]

_classes: dict[str, Any] = {}


def register(*classes: Any) -> None:
    """Makes the classes known by their names."""
    _classes.update({each.__name__: each for each in classes})


def serialized(column: Any) -> Any:
    """The column, or key, as a plain value."""
    if isinstance(column, str):
        return column
    return {"class_name": type(column).__name__, "config": column._get_config()}


def deserialized(config: Any, custom_objects: Any = None, columns_by_name: Any = None) -> Any:
    """The column, or key, of a plain value.

    Args:
        config: what `serialized` gave.
        custom_objects: classes and functions by their names, beside those known here.
        columns_by_name: a dict in which columns made before are found, and new ones put.

    Raises ValueError for a class that is not known.
    """
    if isinstance(config, str):
        return config
    if not isinstance(config, Mapping) or "class_name" not in config or "config" not in config:
        raise ValueError(f"Improper config format: {config}")
    known = {**_classes, **(custom_objects or {})}
    if config["class_name"] not in known:
        raise ValueError(f"Unknown feature_column_v2: {config['class_name']}")
    kind = known[config["class_name"]]
    column = kind._from_config(config["config"], custom_objects, columns_by_name)
    if columns_by_name is None:
        return column
    return columns_by_name.setdefault(f"{kind.__name__}:{column.name}", column)


def check_config(config: Any, expected: Iterable[str]) -> dict[str, Any]:
    """A copy of `config`, with tuples for lists. ValueError unless it has the keys `expected`."""
    if set(config) != set(expected):
        raise ValueError(f"Invalid config: {config}, expected keys: {expected}")
    return {key: _tuples(value) for key, value in config.items()}


def _tuples(value: Any) -> Any:
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value


def dtype_named(dtype: Any) -> Any:
    """The type of a name."""
    return dtypes.as_dtype(dtype)


def name_of_callable(function: Any) -> Any:
    """The name of a function, the class and configuration of an initialiser; None for None."""
    if function is None:
        return None
    if hasattr(function, "get_config"):
        return {"class_name": type(function).__name__, "config": function.get_config()}
    return function.__name__


def callable_named(name: Any, custom_objects: Any = None, known: Mapping[str, Any] | None = None) -> Any:
    """The function or initialiser that `name_of_callable` named. ValueError if it is not known."""
    if name is None or callable(name):
        return name
    found = {**(known or {}), **(custom_objects or {})}
    wanted = name["class_name"] if isinstance(name, Mapping) else name
    if wanted not in found:
        raise ValueError(f"Unknown function or initializer: {wanted}; give it in custom_objects")
    if isinstance(name, Mapping):
        return found[wanted].from_config(name["config"])
    return found[wanted]
