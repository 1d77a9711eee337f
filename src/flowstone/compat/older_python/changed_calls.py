"""Functions of the library that took arguments which Python 3.10 to 3.13 refuse: they take them again.

A call that needs none of this goes through to the function as it is.
"""

from __future__ import annotations

import builtins
import collections.abc
import functools
import hmac
import io
import json
import math
import random
import re
from collections.abc import Callable
from typing import Any

__all__ = ["install"]

_FLAGS_WITHIN = re.compile(r"\(\?[aiLmsux]+\)")


def _with_universal_newlines(original: Any) -> Any:
    """`open` takes the mode "U", which has been what it does in any case."""

    def opened(file: Any, mode: Any = "r", *rest: Any, **keywords: Any) -> Any:
        if isinstance(mode, str) and "U" in mode:
            mode = mode.replace("U", "")
            mode = mode if set(mode) & set("rwax") else f"r{mode}"
        return original(file, mode, *rest, **keywords)

    return opened


def _without_encoding(original: Any) -> Any:
    """`json.loads` takes the `encoding` that it has never heeded; so does `json.load`, which calls it."""

    def loaded(s: Any, **keywords: Any) -> Any:
        keywords.pop("encoding", None)
        return original(s, **keywords)

    return loaded


def _with_own_numbers(original: Any) -> Any:
    """`shuffle` takes a function that draws from [0, 1)."""

    def shuffle(self: random.Random, x: Any, random: Callable[[], float] | None = None) -> None:
        if random is None:
            return original(self, x)  # type: ignore[no-any-return]
        for last in range(len(x) - 1, 0, -1):
            other = int(random() * (last + 1))
            x[last], x[other] = x[other], x[last]
        return None

    return shuffle


def _of_sets(original: Any) -> Any:
    """`sample` takes sets, and the keys of a dictionary."""

    def sample(self: random.Random, population: Any, k: int, **keywords: Any) -> Any:
        if isinstance(population, collections.abc.Set):
            population = tuple(population)
        return original(self, population, k, **keywords)

    return sample


def _of_whole_floats(original: Any) -> Any:
    """Numbers may be floats without a fraction."""

    def taken(*numbers: Any, **keywords: Any) -> Any:
        whole = [int(n) if isinstance(n, float) and n.is_integer() else n for n in numbers]
        return original(*whole, **keywords)

    return taken


def _by_md5(original: Any) -> Any:
    """`hmac.new` without a digest takes MD5."""

    def new(key: Any, msg: Any = None, digestmod: Any = "md5") -> Any:
        return original(key, msg, digestmod or "md5")

    return new


def _with_flags_anywhere(original: Any) -> Any:
    """Flags for a whole expression, as (?i), may stand at any place in it."""

    def compiled(pattern: Any, flags: Any) -> Any:
        try:
            return original(pattern, flags)
        except re.error as error:
            place = error.pos
            if not str(error).startswith("global flags not at the start") or not isinstance(pattern, str):
                raise
            found = None if place is None else _FLAGS_WITHIN.match(pattern, place)
            if found is None:
                raise
            return compiled(found.group() + pattern[: found.start()] + pattern[found.end() :], flags)

    return compiled


def _changed(place: Any, name: str, change: Callable[[Any], Any]) -> None:
    original = getattr(place, name)
    if not hasattr(original, "_flowstone_original"):
        function: Any = functools.wraps(original)(change(original))
        function._flowstone_original = original
        setattr(place, name, function)


def install() -> None:
    """Has the functions take what they took."""
    _changed(builtins, "open", _with_universal_newlines)
    io.open = builtins.open
    _changed(json, "loads", _without_encoding)
    _changed(hmac, "new", _by_md5)
    _changed(math, "factorial", _of_whole_floats)
    _changed(re, "_compile", _with_flags_anywhere)
    for name, change in (
        ("shuffle", _with_own_numbers),
        ("sample", _of_sets),
        ("randrange", _of_whole_floats),
    ):
        _changed(random.Random, name, change)
        setattr(random, name, getattr(random._inst, name))
