"""Shell patterns of paths, as TensorFlow reads them.

``*`` and ``?`` stand for characters of one path component, ``[a-z]`` and ``[^a-z]`` for one character in or
outside a set; a backslash takes the next character as it is. Names that begin with a dot fit too, and a name
without a directory is given as ``./name``.

>>> matching_paths("/data/*.tx?", lambda path: path == "/data", {"/data": ["a.txt", "b.c"]}.__getitem__)
['/data/a.txt']
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

_WILDCARD = re.compile(r"[*?\[\\]")


def matching_paths(
    pattern: str, exists: Callable[[str], bool], names: Callable[[str], Iterable[str]], here: str = "."
) -> list[str]:
    """The paths that fit `pattern`, in no particular order.

    `exists` tells whether there is a path, `names` what is in a folder (nothing, where it is none). `here`
    is the folder of names that are given without one.
    """
    if not _WILDCARD.search(pattern):
        return [pattern] if exists(pattern) else []
    components = pattern.split("/")
    fixed = next(i for i, component in enumerate(components) if _WILDCARD.search(component))
    paths = ["/".join(components[:fixed]) or ("/" if fixed else here)]
    for component in filter(None, components[fixed:]):
        accepts = _accepting(component)
        paths = [_joined(path, name) for path in paths for name in names(path) if accepts(name)]
    return paths


def _joined(folder: str, name: str) -> str:
    return folder + name if not folder or folder.endswith("/") else f"{folder}/{name}"


def _accepting(component: str) -> Callable[[str], Any]:
    """What tells whether a name fits one path component of a pattern; nothing fits a malformed one."""
    try:
        return re.compile(_expression(component), re.DOTALL).fullmatch
    except re.error:
        return lambda name: None


def _expression(component: str) -> str:
    words, rest = [], component
    while rest:
        sign, rest = rest[0], rest[1:]
        if sign == "*":
            words.append(".*")
        elif sign == "?":
            words.append(".")
        elif sign == "[":
            negated = rest[:1] in ("^", "!")
            members, closed, rest = rest[negated:].partition("]")
            if not closed or not members:
                raise re.error("unterminated set")
            words.append(f"[{'^' if negated else ''}{_set(members)}]")
        else:
            if sign == "\\" and rest:
                sign, rest = rest[0], rest[1:]
            words.append(re.escape(sign))
    return "".join(words)


def _set(members: str) -> str:
    """Members of a character set; only the minus between two of them has a meaning."""
    return "".join(sign if sign == "-" else re.escape(sign) for sign in members)
