"""`tf.io.gfile`: files of any store by their paths, under the names of the functions of `os` and `glob`.

These are the functions of `file_system`, with the arguments of TensorFlow 1.13 and later; `tf.gfile` has the
same under its older names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from flowstone.framework import errors
from flowstone.io import file_system
from flowstone.io.file_objects import FileIO as GFile
from flowstone.io.stores import FileStatistics

__all__ = [
    "GFile",
    "copy",
    "exists",
    "glob",
    "isdir",
    "listdir",
    "makedirs",
    "mkdir",
    "remove",
    "rename",
    "rmtree",
    "stat",
    "walk",
]


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copies a file; AlreadyExistsError if there is one at `dst`, unless it may be overwritten."""
    file_system.copy(src, dst, overwrite)


def exists(path: Any) -> bool:
    """Whether there is a file or folder."""
    return file_system.file_exists(path)


def glob(pattern: Any) -> list[str]:
    """The files that match a pattern, or one of several, in order."""
    return file_system.get_matching_files(pattern)


def isdir(path: Any) -> bool:
    """Whether there is a folder."""
    return file_system.is_directory(path)


def listdir(path: Any) -> list[str]:
    """The names in a folder; NotFoundError if it is none."""
    return file_system.list_directory(path)


def makedirs(path: Any) -> None:
    """Makes a folder and those above it that are missing."""
    file_system.recursive_create_dir(path)


def mkdir(path: Any) -> None:
    """Makes a folder in one that is there."""
    file_system.create_dir(path)


def remove(path: Any) -> None:
    """Deletes a file; NotFoundError if there is none."""
    file_system.delete_file(path)


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Renames a file or folder; AlreadyExistsError if there is one at `dst`, unless it may be overwritten."""
    file_system.rename(src, dst, overwrite)


def rmtree(path: Any) -> None:
    """Deletes a folder and all in it."""
    file_system.delete_recursively(path)


def stat(path: Any) -> FileStatistics:
    """Size, time of change and kind of a file."""
    return file_system.stat(path)


def walk(
    top: Any, topdown: bool = True, onerror: Callable[[Exception], None] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Each folder below `top`, with the names of its folders and of its files; without a folder, nothing.

    The error of a `top` that is no folder is passed over, and given to `onerror`.
    """
    try:
        file_system.list_directory(top)
    except errors.NotFoundError as error:
        if onerror is not None:
            onerror(error)
        return
    yield from file_system.walk(top, topdown)
