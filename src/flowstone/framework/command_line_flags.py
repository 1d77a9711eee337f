"""Command-line flags of a program: ``DEFINE_integer("steps", 100, "how many")``, then ``FLAGS.steps``.

`FLAGS` holds a flag by name: its default, the value that the command line or an assignment gave, and how
text becomes a value. The command line is read at the first look at a value (or when `FLAGS` is called):
``--name=value``, ``--name value``, ``-name``, ``--switch``, ``--noswitch``; ``--`` ends the flags, and what
is no known flag stays an argument.

>>> values = FlagValues()
>>> DEFINE_integer("steps", 100, "how many steps", flag_values=values)
>>> DEFINE_bool("verbose", True, "say more", flag_values=values)
>>> values(["program", "--steps", "3", "--noverbose", "input.txt"])
['program', 'input.txt']
>>> values.steps, values.verbose
(3, False)
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

from flowstone.framework.flag_values import FLAGS, Flag, FlagValues, Parser

__all__ = [
    "DEFINE_alias",
    "DEFINE_bool",
    "DEFINE_boolean",
    "DEFINE_enum",
    "DEFINE_enum_class",
    "DEFINE_float",
    "DEFINE_integer",
    "DEFINE_list",
    "DEFINE_multi_float",
    "DEFINE_multi_integer",
    "DEFINE_multi_string",
    "DEFINE_spaceseplist",
    "DEFINE_string",
    "mark_flag_as_required",
    "mark_flags_as_required",
    "register_validator",
    "validator",
]

# ---- values from text


def _to_int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise TypeError(f"expect an integer, found {value!r}")
    return value if isinstance(value, int) else int(value, 0)


def _to_float(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError(f"expect a float, found {value!r}")
    return float(value)


def _to_bool(value: Any) -> bool:
    word = str(value).lower()
    if word in ("true", "t", "1", "yes", "y"):
        return True
    if word in ("false", "f", "0", "no", "n"):
        return False
    raise ValueError("Non-boolean argument to boolean flag")


def _to_string(value: Any) -> str:
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"flag value must be a string, found {type(value).__name__}")
    return value if isinstance(value, str) else value.decode()


def _to_comma_list(value: Any) -> list[str]:
    if isinstance(value, (list, tuple)):
        return list(value)
    return (
        [item.strip() for row in csv.reader(io.StringIO(value), strict=True) for item in row] if value else []
    )


def _to_word_list(value: Any) -> list[str]:
    return list(value) if isinstance(value, (list, tuple)) else value.split()


def _one_of(choices: Sequence[str], case_sensitive: bool) -> Parser:
    def parse(value: Any) -> str:
        for choice in choices:
            if value == choice or (not case_sensitive and str(value).lower() == choice.lower()):
                return choice
        raise ValueError(f"value should be one of <{'|'.join(choices)}>")

    return parse


def _member_of(enum_class: Any) -> Parser:
    def parse(value: Any) -> Any:
        if isinstance(value, enum_class):
            return value
        if value not in enum_class.__members__:
            raise ValueError(f"value should be one of <{'|'.join(enum_class.__members__)}>")
        return enum_class[value]

    return parse


def _several(parse: Parser) -> Parser:
    return lambda value: (
        [parse(item) for item in value] if isinstance(value, (list, tuple)) else [parse(value)]
    )


# ---- definitions


def _define(kind: str, parse: Parser) -> Callable[..., None]:
    def define(
        name: str | None = None,
        default: Any = None,
        help: str | None = None,
        flag_values: FlagValues | None = None,
        short_name: str | None = None,
        required: bool = False,
        *,
        flag_name: str | None = None,
        default_value: Any = None,
        docstring: str | None = None,
        **bounds: Any,
    ) -> None:
        # `flag_name`, `default_value` and `docstring` are TensorFlow 1.4's names of the first three.
        name = name if name is not None else flag_name
        if name is None:
            raise TypeError("a flag needs a name")
        default = default if default is not None else default_value
        values = FLAGS if flag_values is None else flag_values
        flag = Flag(name, default, help if help is not None else docstring, parse, short_name, kind)
        values._add(flag)
        _add_bounds(flag, bounds)
        if required:
            mark_flag_as_required(name, values)

    define.__doc__ = f"Defines a flag ({kind}); DuplicateFlagError if one of this name differs."
    return define


def _add_bounds(flag: Flag, bounds: dict[str, Any]) -> None:
    low, high = bounds.pop("lower_bound", None), bounds.pop("upper_bound", None)
    if bounds:
        raise TypeError(f"unexpected arguments of flag '{flag.name}': {sorted(bounds)}")
    if low is not None:
        flag.validators.append((lambda value: value is None or value >= low, f"must be at least {low}"))
    if high is not None:
        flag.validators.append((lambda value: value is None or value <= high, f"must be at most {high}"))
    flag.check()


DEFINE_string = _define("string", _to_string)
DEFINE_integer = _define("integer", _to_int)
DEFINE_float = _define("float", _to_float)
DEFINE_bool = DEFINE_boolean = _define("bool", _to_bool)
DEFINE_list = _define("comma-separated list", _to_comma_list)
DEFINE_spaceseplist = _define("space-separated list", _to_word_list)
DEFINE_multi_string = _define("multi string", _several(_to_string))
DEFINE_multi_integer = _define("multi integer", _several(_to_int))
DEFINE_multi_float = _define("multi float", _several(_to_float))


def DEFINE_enum(
    name: str,
    default: str | None,
    enum_values: Sequence[str],
    help: str | None = None,
    flag_values: FlagValues | None = None,
    case_sensitive: bool = True,
    **options: Any,
) -> None:
    """Defines a flag whose value is one of `enum_values`."""
    _define("enum", _one_of(enum_values, case_sensitive))(name, default, help, flag_values, **options)


def DEFINE_enum_class(
    name: str,
    default: Any,
    enum_class: Any,
    help: str | None = None,
    flag_values: FlagValues | None = None,
    **options: Any,
) -> None:
    """Defines a flag whose value is a member of an enumeration, given by name."""
    _define("enum", _member_of(enum_class))(name, default, help, flag_values, **options)


def DEFINE_alias(name: str, original_name: str, flag_values: FlagValues | None = None) -> None:
    """Makes `name` another name of a flag."""
    values = FLAGS if flag_values is None else flag_values
    values[original_name]  # a KeyError says that there is none
    values._aliases[name] = original_name


def register_validator(
    flag_name: str,
    checker: Callable[[Any], Any],
    message: str = "Flag validation failed",
    flag_values: FlagValues | None = None,
) -> None:
    """Has `checker` judge each value of a flag; what it finds false is a ValidationError with `message`."""
    values = FLAGS if flag_values is None else flag_values
    values[flag_name].validators.append((checker, message))


def validator(
    flag_name: str, message: str = "Flag validation failed", flag_values: FlagValues | None = None
) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """`register_validator` as a decorator."""

    def register(checker: Callable[[Any], Any]) -> Callable[[Any], Any]:
        register_validator(flag_name, checker, message, flag_values)
        return checker

    return register


def mark_flag_as_required(flag_name: str, flag_values: FlagValues | None = None) -> None:
    """Makes a flag without a value a ValidationError when the command line is read."""
    message = f"Flag --{flag_name} must have a value other than None."
    register_validator(flag_name, lambda value: value is not None, message, flag_values)


def mark_flags_as_required(flag_names: Sequence[str], flag_values: FlagValues | None = None) -> None:
    """`mark_flag_as_required` for each."""
    for name in flag_names:
        mark_flag_as_required(name, flag_values)
