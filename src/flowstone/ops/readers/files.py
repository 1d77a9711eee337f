"""Operations that look at the file system.

Patterns are those of the shell: ``*`` and ``?`` stand for characters of one path component, ``[a-z]`` and
``[^a-z]`` for one character in or outside a set; a backslash takes the next character as it is. Names that
begin with a dot are found too, and a name without a directory is given as ``./name``. ``file://`` may stand
before a path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework import errors
from flowstone.framework.kernel import CPU, Environment
from flowstone.framework.node import Node
from flowstone.framework.operation import op
from flowstone.framework.shape import format_dims
from flowstone.framework.tensor import Tensor
from flowstone.framework.values import as_bytes_array

__all__ = ["matching_files"]

_WILDCARD = re.compile(r"[*?\[\\]")
_LOCAL = "file://"


# A plan must look again in every step, although the op has no effect.
matching_files_op = op("MatchingFiles", "pattern: string -> filenames: string", stateful=True)
matching_files_op.no_gradient()


@matching_files_op.infer
def _(node: Node) -> tuple[None]:
    dims = node.dims(0)
    if dims is not None and len(dims) > 1:
        raise ValueError(f"Shape must be at most rank 1 but is rank {len(dims)}")
    return (None,)


@matching_files_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[[Any], Any]:
    return _matches


def _matches(patterns: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if patterns.ndim > 1:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"Input patterns tensor must be scalar or vector, but had shape: {format_dims(patterns.shape)}",
        )
    found = [os.fsencode(path) for p in patterns.reshape(-1) for path in matching_paths(os.fsdecode(p))]
    return as_bytes_array(np.array(sorted(found), object))


def matching_paths(pattern: str) -> list[str]:
    """The paths of the local file system that fit `pattern`, in no particular order.

    UnimplementedError for schemes other than ``file``.
    """
    scheme, separator, rest = pattern.partition("://")
    if separator and scheme != "file":
        raise errors.UnimplementedError(
            None, None, f"File system scheme '{scheme}' not implemented (file: '{pattern}')"
        )
    if separator:
        return [_LOCAL + path for path in _local_paths(rest)]
    return _local_paths(pattern)


def _local_paths(pattern: str) -> list[str]:
    if not _WILDCARD.search(pattern):
        return [pattern] if os.path.exists(pattern) else []
    components = pattern.split("/")
    fixed = next(i for i, component in enumerate(components) if _WILDCARD.search(component))
    paths = ["/".join(components[:fixed]) or ("/" if fixed else ".")]
    for component in filter(None, components[fixed:]):
        accepts = _accepting(component)
        paths = [os.path.join(path, name) for path in paths for name in _names(path) if accepts(name)]
    return paths


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:  # no directory, or not ours to read: nothing there fits
        return []


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


def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """The names of the files that fit the shell pattern, or any of the patterns, in alphabetical order.

    `pattern`: a string scalar or vector. Returns a string vector, empty where nothing fits; the file system
    is asked in every step.
    """
    return matching_files_op(pattern, name=name)
