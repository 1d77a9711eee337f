"""Decorators for functions that are to go: a warning at the first use, a note in the documentation."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

import flowstone as tf

__all__ = ["deprecated", "deprecated_arg_values", "deprecated_args"]

Function = TypeVar("Function", bound=Callable[..., Any])


def _when(date: str | None, instructions: str) -> str:
    """When something goes. ValueError for another form of date, or without instructions."""
    if date is not None and not re.fullmatch(r"20\d\d-[01]\d-[0-3]\d", date):
        raise ValueError("Date must be YYYY-MM-DD.")
    if not instructions:
        raise ValueError("Don't deprecate things without conversion instructions!")
    return "in a future version" if date is None else f"after {date}"


def _documented(function: Any, label: str, notice: str) -> str:
    summary, _, rest = inspect.cleandoc(function.__doc__ or f"{label.upper()} FUNCTION").partition("\n")
    parts = [f"{summary} ({label})", f"Warning: {notice}"]
    return "\n\n".join([*parts, rest.strip()] if rest.strip() else parts)


def _warning(
    function: Function, applies: Callable[..., bool], label: str, notice: str, warn_once: bool
) -> Function:
    """The function, which warns when a call's arguments are those that go."""
    warned = False

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        nonlocal warned
        if not (warn_once and warned) and applies(*args, **kwargs):
            warned = True
            tf.logging.warning(f"From {function.__module__}: {function.__name__}: {notice}")
        return function(*args, **kwargs)

    wrapper.__doc__ = _documented(function, label, notice)
    return wrapper  # type: ignore[return-value]


def deprecated(date: str | None, instructions: str, warn_once: bool = True) -> Callable[[Function], Function]:
    """A decorator for a function that goes.

    Args:
        date: when, as YYYY-MM-DD; None does not say.
        instructions: what to use instead.
        warn_once: whether only the first call warns.

    ValueError for another form of date, or empty instructions.
    """
    when = _when(date, instructions)

    def decorate(function: Function) -> Function:
        notice = f"THIS FUNCTION IS DEPRECATED. It will be removed {when}."
        notice += f"\nInstructions for updating:\n{instructions}"
        return _warning(function, lambda *args, **kwargs: True, "deprecated", notice, warn_once)

    return decorate


def deprecated_args(
    date: str | None, instructions: str, *deprecated_arg_names_or_tuples: Any, **kwargs: Any
) -> Callable[[Function], Function]:
    """A decorator for arguments that go: a call that gives one warns.

    An argument is a name, or a tuple of the name and a value for which nothing is said. The keyword
    `warn_once` (True) is as in `deprecated`. ValueError without arguments, and for one that the function does
    not have.
    """
    when = _when(date, instructions)
    if not deprecated_arg_names_or_tuples:
        raise ValueError("Specify which argument is deprecated.")
    warn_once = kwargs.pop("warn_once", True)
    fine: dict[str, Any] = dict(
        given if isinstance(given, tuple) else (given, _Never) for given in deprecated_arg_names_or_tuples
    )

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        missing = sorted(fine.keys() - signature.parameters.keys())
        if missing:
            raise ValueError(
                "The following deprecated arguments are not present in the function signature: "
                f"{missing}. Found next arguments: {list(signature.parameters)}."
            )

        def applies(*args: Any, **given: Any) -> bool:
            values = signature.bind_partial(*args, **given).arguments
            return any(name in values and values[name] is not value for name, value in fine.items())

        names = ", ".join(sorted(fine))
        notice = f"SOME ARGUMENTS ARE DEPRECATED: `({names})`. They will be removed {when}."
        notice += f"\nInstructions for updating:\n{instructions}"
        return _warning(function, applies, "deprecated arguments", notice, warn_once)

    return decorate


class _Never:
    """A value that no call gives."""


def deprecated_arg_values(
    date: str | None, instructions: str, warn_once: bool = True, **deprecated_kwargs: Any
) -> Callable[[Function], Function]:
    """A decorator for values of arguments that go: a call that gives such a value warns.

    ValueError without values; see `deprecated`.
    """
    when = _when(date, instructions)
    if not deprecated_kwargs:
        raise ValueError("Specify which argument values are deprecated.")

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)

        def applies(*args: Any, **given: Any) -> bool:
            values = signature.bind_partial(*args, **given).arguments
            return any(name in values and values[name] == old for name, old in deprecated_kwargs.items())

        listed = ", ".join(f"{name}={value!r}" for name, value in sorted(deprecated_kwargs.items()))
        notice = f"SOME ARGUMENT VALUES ARE DEPRECATED: `({listed})`. They will be removed {when}."
        notice += f"\nInstructions for updating:\n{instructions}"
        return _warning(function, applies, "deprecated argument values", notice, warn_once)

    return decorate
