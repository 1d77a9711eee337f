"""Command-line flags of a program: ``DEFINE_integer("steps", 100, "how many")``, then ``FLAGS.steps``.

The flags are absl's, so that ``from absl import flags`` means the same ones. What programs of TensorFlow 1
expect besides: the command line is read at the first look at a value; what is no known flag stays an
argument; TensorFlow 1.4's names of arguments; a flag of absl's own modules gives way to one of the program;
and the same definition twice (a module imported under two names) is one.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from absl import flags

__all__ = ["FLAGS", "ProgramFlags", "definer"]

flags.disclaim_key_flags()  # what is defined here belongs to the module that called
_OLD_NAMES = {"flag_name": "name", "default_value": "default", "docstring": "help"}


class ProgramFlags:
    """The flags of absl's `FlagValues`, as attributes (their values) and as items; see the module.

    ``FLAGS.__flags`` and ``FLAGS._parse_flags()`` are what programs before TensorFlow 1.5 use.
    """

    def __init__(self, flag_values: flags.FlagValues) -> None:
        self.__dict__["_wrapped"] = flag_values

    def __getattr__(self, name: str) -> Any:
        wrapped = self.__dict__["_wrapped"]
        if name in ("__flags", "_FlagValues__flags"):
            self._parse_flags()
            return wrapped.flag_values_dict()
        if not hasattr(type(wrapped), name) and name in wrapped and not wrapped.is_parsed():
            self._parse_flags()
        return getattr(wrapped, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._wrapped, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._wrapped, name)

    def __dir__(self) -> list[str]:
        return dir(self._wrapped)

    def __getitem__(self, name: str) -> Any:
        return self._wrapped[name]

    def __setitem__(self, name: str, flag: Any) -> None:
        self._wrapped[name] = flag

    def __contains__(self, name: str) -> bool:
        return name in self._wrapped

    def __iter__(self) -> Iterator[str]:
        return iter(self._wrapped)

    def __len__(self) -> int:
        return len(self._wrapped)

    def __str__(self) -> str:
        return str(self._wrapped)

    def __call__(self, argv: Sequence[str], known_only: bool = False) -> list[str]:
        """Reads a command line, whose first word is the program; returns the words that are no flags.

        Raises UnrecognizedFlagError for unknown flags, unless `known_only` keeps them among the arguments,
        and other errors of absl for values that do not fit.
        """
        return list(self._wrapped(argv, known_only))

    def _parse_flags(self, args: Sequence[str] | None = None) -> list[str]:
        """Reads `args` (default: the process's), without the program's name; returns what is no flag."""
        argv = sys.argv if args is None else [sys.argv[0], *args]
        return self(argv, known_only=True)[1:]


FLAGS = ProgramFlags(flags.FLAGS)


def definer(define: Callable[..., Any]) -> Callable[..., Any]:
    """A function of absl that defines a flag, as programs of TensorFlow 1 call it; see the module."""

    @functools.wraps(define)
    def define_flag(*args: Any, **kwargs: Any) -> Any:
        words = {_OLD_NAMES.get(word, word): value for word, value in kwargs.items()}
        values = words.get("flag_values") or flags.FLAGS
        if isinstance(values, ProgramFlags):
            values = words["flag_values"] = values._wrapped
        name = str(args[0] if args else words.get("name"))
        if name in values:
            if str(values.find_module_defining_flag(name)).startswith("absl."):
                delattr(values, name)
            elif _defines_again(define, args, words, values[name]):
                return None
        return define(*args, **words)

    return define_flag


def _defines_again(define: Callable[..., Any], args: Any, words: dict[str, Any], known: Any) -> bool:
    """Whether a definition says of a flag what is known of it."""
    alone = flags.FlagValues()  # type: ignore[no-untyped-call]
    define(*args, **{**words, "flag_values": alone})
    flag = alone[known.name]
    return (flag.default, flag.help) == (known.default, known.help)
