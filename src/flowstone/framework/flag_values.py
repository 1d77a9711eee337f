"""Flags and their values: `FLAGS`, which programs read, parses the command line when it is first asked."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

__all__ = [
    "FLAGS",
    "DuplicateFlagError",
    "Error",
    "Flag",
    "FlagValues",
    "IllegalFlagValueError",
    "UnparsedFlagAccessError",
    "UnrecognizedFlagError",
    "ValidationError",
]

Parser = Callable[[Any], Any]


class Error(Exception):
    """What goes wrong with flags."""


class DuplicateFlagError(Error):
    """A flag of this name exists."""


class IllegalFlagValueError(Error):
    """A value that the flag does not take."""


class ValidationError(Error):
    """A value that a validator refuses."""


class UnrecognizedFlagError(Error):
    """No flag has this name."""


class UnparsedFlagAccessError(Error):
    """A value was asked for before the command line was read; `FLAGS` reads it by itself instead."""


class Flag:
    """One flag: `name`, `default`, `value`, `help`, `short_name`, whether it is `boolean`, and `present`
    (set by the user).
    """

    def __init__(
        self, name: str, default: Any, help_text: str | None, parse: Parser, short_name: str | None, kind: str
    ) -> None:
        self.name, self.help, self.short_name, self.kind = name, help_text, short_name, kind
        self._parse = parse
        self.default = None if default is None else self.parsed(default)
        self.value = self.default
        self.present = 0
        self.validators: list[tuple[Callable[[Any], Any], str]] = []

    @property
    def boolean(self) -> bool:
        """Whether it is a switch."""
        return self.kind == "bool"

    def parsed(self, text: Any) -> Any:
        """The value that `text` (or a value of the type) stands for. IllegalFlagValueError if it stands for
        none.
        """
        try:
            return self._parse(text)
        except (TypeError, ValueError) as error:
            raise IllegalFlagValueError(f"flag --{self.name}={text}: {error}") from None

    def take(self, text: Any) -> None:
        """Takes a value from the command line: of several the last; a flag for several collects them."""
        value = self.parsed(text)
        repeated = self.kind.startswith("multi ") and self.present
        self.value = self.value + value if repeated else value
        self.present += 1

    def reset(self) -> None:
        """Back to the default."""
        self.value, self.present = self.default, 0

    def check(self) -> None:
        """Raises ValidationError if a validator refuses the value."""
        for accepts, message in self.validators:
            if not accepts(self.value):
                raise ValidationError(f"flag --{self.name}={self.value}: {message}")


class FlagValues:
    """Flags by name, as items (`Flag`) and as attributes (their values); see the module."""

    def __init__(self) -> None:
        self.__dict__["_flags"] = {}
        self.__dict__["_aliases"] = {}
        self.__dict__["_parsed"] = False

    # ---- the flags

    def _add(self, flag: Flag) -> None:
        for name in filter(None, (flag.name, flag.short_name)):
            known = self._flags.get(name)
            if known is not None and (known.default, known.help) != (flag.default, flag.help):
                raise DuplicateFlagError(f"The flag '{name}' is defined twice.")
        # The same definition again (a module imported under two names) means the same flag.
        for name in filter(None, (flag.name, flag.short_name)):
            self._flags.setdefault(name, flag)

    def __getitem__(self, name: str) -> Flag:
        flag: Flag = self._flags[self._aliases.get(name, name)]
        return flag

    def __contains__(self, name: object) -> bool:
        return name in self._flags or name in self._aliases

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._flags))

    def __len__(self) -> int:
        return len(self._flags)

    def __dir__(self) -> list[str]:
        return sorted(self._flags)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self:
            raise AttributeError(f"no flag is named {name!r}")
        if not self._parsed:
            self(sys.argv, known_only=True)
        return self[name].value

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self:
            raise AttributeError(f"no flag is named {name!r}")
        flag = self[name]
        flag.value = value
        flag.present += 1
        flag.check()

    def __delattr__(self, name: str) -> None:
        flag = self[name]
        for key in [key for key, other in self._flags.items() if other is flag]:
            del self._flags[key]

    def set_default(self, name: str, value: Any) -> None:
        """Gives a flag another default. UnrecognizedFlagError if there is no such flag."""
        if name not in self:
            raise UnrecognizedFlagError(f"Unknown command line flag '{name}'")
        flag = self[name]
        flag.default = None if value is None else flag.parsed(value)
        if not flag.present:
            flag.value = flag.default

    def flag_values_dict(self) -> dict[str, Any]:
        """The values by name."""
        return {name: flag.value for name, flag in self._flags.items()}

    @property
    def __flags(self) -> dict[str, Any]:  # FLAGS._FlagValues__flags and FLAGS.__flags are read by programs
        return self.flag_values_dict()

    # ---- the command line

    def __call__(self, argv: Sequence[str], known_only: bool = False) -> list[str]:
        """Reads a command line (its first word is the program) and returns the words that are no flags.

        Raises UnrecognizedFlagError for unknown flags, unless `known_only` keeps them among the arguments,
        and IllegalFlagValueError or ValidationError for values that do not fit.
        """
        self.__dict__["_parsed"] = True
        words, rest = list(argv[1:]), [*argv[:1]]
        while words:
            word = words.pop(0)
            if word == "--":
                rest += ["--", *words] if known_only else words
                break
            if not self._take(word, words):
                if word.startswith("-") and len(word) > 1 and not known_only:
                    raise UnrecognizedFlagError(
                        f"Unknown command line flag '{word.lstrip('-').partition('=')[0]}'"
                    )
                rest.append(word)
        for flag in self._flags.values():
            flag.check()
        return rest

    def _take(self, word: str, following: list[str]) -> bool:
        """Takes one flag, with its value from `following` if it has none of its own; False if it is no
        known flag.
        """
        if not word.startswith("-") or word in ("-", "--"):
            return False
        name, has_value, text = word.lstrip("-").partition("=")
        if name in self:
            flag = self[name]
            if has_value:
                flag.take(text)
            elif flag.boolean:
                flag.take(True)
            elif following:
                flag.take(following.pop(0))
            else:
                raise Error(f"Missing value for flag --{name}")
            return True
        if name.startswith("no") and name[2:] in self and self[name[2:]].boolean and not has_value:
            self[name[2:]].take(False)
            return True
        if name in ("help", "helpfull", "helpshort") and not has_value:
            print(self.get_help())
            sys.exit(0)
        return False

    def _parse_flags(self, args: Sequence[str] | None = None) -> list[str]:
        """Reads `args` (default: the process's), without the program's name; returns what is no flag."""
        argv = sys.argv if args is None else [sys.argv[0], *args]
        return self(argv, known_only=True)[1:]

    def is_parsed(self) -> bool:
        """Whether a command line was read."""
        return bool(self._parsed)

    def mark_as_parsed(self) -> None:
        """Keeps the command line from being read."""
        self.__dict__["_parsed"] = True

    def unparse_flags(self) -> None:
        """Takes all values back to their defaults; the command line is read again when one is asked for."""
        for flag in self._flags.values():
            flag.reset()
        self.__dict__["_parsed"] = False

    def get_help(self) -> str:
        """One paragraph a flag."""
        lines = ["flags:"]
        for name in sorted(self._flags):
            flag = self._flags[name]
            switch = f"--[no]{name}" if flag.boolean else f"--{name}"
            lines += [f"  {switch}: {flag.help or ''}", f"    (default: {flag.default!r})"]
        return "\n".join(lines)

    @contextlib.contextmanager
    def overridden(self, **values: Any) -> Iterator[None]:
        """Within the context these flags have these values."""
        before = {name: (self[name].value, self[name].present) for name in values}
        try:
            for name, value in values.items():
                setattr(self, name, value)
            yield
        finally:
            for name, (value, present) in before.items():
                self[name].value, self[name].present = value, present


FLAGS = FlagValues()
