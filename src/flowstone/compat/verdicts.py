"""Whether flowstone has a name of TensorFlow, and takes a call as it is written.

`tensorflow.install()` has been called before: names are looked up as a program would find them.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from flowstone.compat.eras.names import AMBIGUOUS
from flowstone.compat.program_names import Use

__all__ = ["Verdict", "verdict_of"]


class Verdict(NamedTuple):
    """`kind`: "fits", "missing", "refused", "ambiguous" or "differs"; `text` says what and what to do."""

    kind: str
    text: str = ""


def verdict_of(use: Use) -> Verdict:
    """What becomes of a use when the program runs."""
    found, why = _resolve(use.name, use.is_import)
    if why:
        return Verdict("missing", why)
    instead = getattr(found, "instead", None)
    if isinstance(instead, str) and callable(found):
        return Verdict("refused", f"graphs have no {_spelled(use.name)}: use {instead}")
    reason = AMBIGUOUS.get(_spelled(use.name))
    if reason is not None and use.positional is not None and use.positional > 1:
        return Verdict("ambiguous", reason)
    wrong = _wrong_call(found, use)
    return Verdict("differs", wrong) if wrong else Verdict("fits")


def _spelled(name: str) -> str:
    return name.replace("tensorflow", "tf", 1)


def _resolve(name: str, is_import: bool) -> tuple[Any, str]:
    """The object of a dotted name, or why there is none."""
    if is_import:
        try:
            return import_module(name), ""
        except ImportError as error:
            return None, str(error)
    value: Any = import_module("tensorflow")
    path = "tensorflow"
    for part in name.split(".")[1:]:
        path = f"{path}.{part}"
        try:
            value = getattr(value, part)
        except (AttributeError, ImportError) as error:
            if isinstance(value, ModuleType):
                try:
                    value = import_module(path)
                    continue
                except ImportError:
                    pass
            if not isinstance(value, (ModuleType, type)):
                return None, ""  # an attribute of an object that the program makes
            reason = str(error)
            return (
                None,
                reason if "flowstone" in reason or "install" in reason else f"there is no {_spelled(path)}",
            )
    return value, ""


def _wrong_call(function: Any, use: Use) -> str:
    """Why a call does not fit the parameters, or nothing."""
    if use.positional is None or not callable(function):
        return ""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    try:
        signature.bind_partial(*[None] * use.positional, **dict.fromkeys(use.keywords))
    except TypeError as error:
        return f"{_spelled(use.name)}(): {error}; it takes {signature}"
    return ""
