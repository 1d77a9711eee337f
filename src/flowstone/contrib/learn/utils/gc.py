"""Which exports stay: functions from lists of paths to sorted lists of those that they choose.

>>> newest = largest_export_versions(2)
>>> [path.export_version for path in newest([Path("/a/1", 1), Path("/a/7", 7), Path("/a/5", 5)])]
[5, 7]
"""

from __future__ import annotations

import heapq
import math
import os
from collections import namedtuple
from collections.abc import Callable, Iterable
from typing import Any

import flowstone as tf

__all__ = [
    "Path",
    "get_paths",
    "largest_export_versions",
    "mod_export_version",
    "negation",
    "one_of_every_n_export_versions",
    "union",
]

Path = namedtuple("Path", ["path", "export_version"])
Chooser = Callable[[Iterable[Any]], "list[Any]"]


def largest_export_versions(n: int) -> Chooser:
    """The function that chooses the `n` paths of the largest versions."""

    def keep(paths: Iterable[Any]) -> list[Any]:
        return sorted(heapq.nlargest(n, paths, key=lambda path: path.export_version))

    return keep


def one_of_every_n_export_versions(n: int) -> Chooser:
    """The function that chooses the latest path of every range of `n` versions."""

    def keep(paths: Iterable[Any]) -> list[Any]:
        best: dict[int, Any] = {}
        for path in paths:
            interval = math.floor((path.export_version - 1) / n)
            if interval not in best or best[interval].export_version < path.export_version:
                best[interval] = path
        return sorted(best.values())

    return keep


def mod_export_version(n: int) -> Chooser:
    """The function that chooses the paths whose versions `n` divides."""
    return lambda paths: sorted(path for path in paths if path.export_version % n == 0)


def union(lf: Chooser, rf: Chooser) -> Chooser:
    """The function that chooses what either of two functions does."""

    def keep(paths: Iterable[Any]) -> list[Any]:
        every = list(paths)
        return sorted({*lf(every), *rf(every)})

    return keep


def negation(f: Chooser) -> Chooser:
    """The function that chooses what another does not."""

    def keep(paths: Iterable[Any]) -> list[Any]:
        every = list(paths)
        return sorted(set(every) - set(f(every)))

    return keep


def get_paths(base_dir: Any, parser: Callable[[Path], Any]) -> list[Any]:
    """The folders below `base_dir`, sorted, as `parser` completes them; it leaves out by None."""
    base = os.fsdecode(base_dir)
    found = []
    for name in tf.gfile.ListDirectory(base):
        path = os.path.join(base, name.strip("/"))
        if tf.gfile.IsDirectory(path):
            parsed = parser(Path(path, None))
            if parsed:
                found.append(parsed)
    return sorted(found)
