"""Files by their paths, on this machine or any store that fsspec knows; errors are TensorFlow's.

What fails raises the class of `errno` (NotFoundError, AlreadyExistsError, FailedPreconditionError,
PermissionDeniedError, ResourceExhaustedError …) with the path in its message, and UnimplementedError for a
scheme that nobody knows. Paths are str, bytes or `os.PathLike`. Names are those of TensorFlow's ``file_io``.

>>> write_string_to_file("memory://notes/a.txt", "first")
>>> copy("memory://notes/a.txt", "memory://notes/b.txt")
>>> get_matching_files("memory://notes/*"), read_file_to_string("memory://notes/b.txt")
(['memory://notes/a.txt', 'memory://notes/b.txt'], 'first')
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from flowstone.framework import errors
from flowstone.io import file_patterns
from flowstone.io.file_errors import errors_of
from flowstone.io.stores import FileStatistics, copy_across, store_of

__all__ = [
    "FileStatistics",
    "as_path",
    "atomic_write_string_to_file",
    "copy",
    "create_dir",
    "delete_file",
    "delete_recursively",
    "file_exists",
    "get_matching_files",
    "is_directory",
    "list_directory",
    "open_file",
    "read_bytes",
    "read_file_to_string",
    "recursive_create_dir",
    "rename",
    "stat",
    "walk",
    "write_string_to_file",
    "written_whole",
]


def as_path(path: Any) -> str:
    """`path` as str. TypeError for what is no path."""
    if isinstance(path, str):
        return path
    if isinstance(path, (bytes, os.PathLike)):
        return os.fsdecode(path)
    raise TypeError(f"Expected binary or unicode string, got {path!r}")


# ---- contents


def open_file(filename: Any, mode: str = "rb") -> BinaryIO:
    """A binary file of Python's kind, for reading (``rb``), writing (``wb``) or appending (``ab``)."""
    path = as_path(filename)
    with errors_of(path):
        return store_of(path).open(path, mode)


def read_bytes(filename: Any) -> bytes:
    """All bytes of a file."""
    path = as_path(filename)
    with errors_of(path), store_of(path).open(path, "rb") as file:
        return file.read()


def read_file_to_string(filename: Any, binary_mode: bool = False) -> str | bytes:
    """All of a file, as text in UTF-8 or, in binary mode, as bytes."""
    contents = read_bytes(filename)
    return contents if binary_mode else contents.decode("utf-8")


def write_string_to_file(filename: Any, file_content: str | bytes) -> None:
    """Makes `file_content` (text: in UTF-8) all that is in the file."""
    path = as_path(filename)
    with errors_of(path), store_of(path).open(path, "wb") as file:
        file.write(_as_bytes(file_content))


def atomic_write_string_to_file(filename: Any, contents: str | bytes, overwrite: bool = True) -> None:
    """Like `write_string_to_file`, but whoever reads the file sees all of it or what was there before.

    AlreadyExistsError if there is such a file, unless `overwrite`.
    """
    path = as_path(filename)
    if not overwrite and file_exists(path):
        raise errors.AlreadyExistsError(None, None, f"{path}; file already exists")
    with written_whole(path) as file:
        file.write(_as_bytes(contents))


def _as_bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8") if isinstance(text, str) else text


@contextlib.contextmanager
def written_whole(filename: Any, durable: bool = True) -> Iterator[BinaryIO]:
    """A context that gives a file to write, which gets its name when the context ends without an error.

    Whoever opens the name sees all of it, or what was there before, also after a crash of this process and,
    if `durable`, of the machine: it has another name in the same folder, and is synchronised, until then.
    """
    path = as_path(filename)
    with errors_of(path), store_of(path).written_whole(path, durable) as file:
        yield file


# ---- what there is


def file_exists(filename: Any) -> bool:
    """Whether there is a file or folder of this name."""
    path = as_path(filename)
    with errors_of(path):
        return bool(path) and store_of(path).exists(path)


def is_directory(dirname: Any) -> bool:
    """Whether there is a folder of this name."""
    path = as_path(dirname)
    with errors_of(path):
        return store_of(path).is_directory(path)


def list_directory(dirname: Any) -> list[str]:
    """The names in a folder, in alphabetical order. NotFoundError where there is no folder."""
    path = as_path(dirname)
    if not is_directory(path):
        raise errors.NotFoundError(None, None, f"Could not find directory {path}")
    with errors_of(path):
        return store_of(path).names(path)


def stat(filename: Any) -> FileStatistics:
    """Length, time of the last change, and whether it is a folder."""
    path = as_path(filename)
    with errors_of(path):
        return store_of(path).stat(path)


def get_matching_files(filename: Any) -> list[str]:
    """The paths that fit a shell pattern, or any of several, in alphabetical order for each.

    See `file_patterns` for what a pattern is. Nothing fits where there is no such folder.
    """
    if isinstance(filename, (str, bytes, os.PathLike)):
        return _matching(as_path(filename))
    if not isinstance(filename, Iterable):
        raise TypeError(f"Expected binary or unicode string, got {filename!r}")
    return [path for pattern in filename for path in _matching(as_path(pattern))]


def _matching(pattern: str) -> list[str]:
    scheme, separator, rest = pattern.rpartition("://")
    prefix = scheme + separator
    store = store_of(pattern)

    def names(path: str) -> list[str]:
        try:
            return store.names(prefix + path)
        except OSError:  # no folder, or not ours to read: nothing there fits
            return []

    def exists(path: str) -> bool:
        return bool(path) and store.exists(prefix + path)

    with errors_of(pattern):
        found = file_patterns.matching_paths(rest, exists, names, "" if prefix else ".")
    return sorted(prefix + path for path in found)


def walk(top: Any, in_order: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:
    """For each folder in and below `top`: its path, and the names of the folders and of the files in it.

    A folder comes before those in it or, if not `in_order`, after them. Nothing where there is no folder.
    """
    path = as_path(top)
    try:
        names = list_directory(path)
    except errors.NotFoundError:
        return
    below: list[str] = []
    files: list[str] = []
    for name in names:
        (below if is_directory(_child(path, name)) else files).append(name)
    if in_order:
        yield path, below, files
    for name in below:
        yield from walk(_child(path, name), in_order)
    if not in_order:
        yield path, below, files


def _child(folder: str, name: str) -> str:
    return folder + name if not folder or folder.endswith("/") else f"{folder}/{name}"


# ---- changes


def create_dir(dirname: Any) -> None:
    """Makes a folder, unless there is something of that name. NotFoundError if the one above is missing."""
    path = as_path(dirname)
    if not file_exists(path):
        with errors_of(path), contextlib.suppress(FileExistsError):
            store_of(path).make_directory(path)


def recursive_create_dir(dirname: Any) -> None:
    """Makes a folder and those above it, as far as they are missing. FailedPreconditionError over a file."""
    path = as_path(dirname)
    with errors_of(path):
        try:
            store_of(path).make_directories(path)
        except FileExistsError:
            raise errors.FailedPreconditionError(None, None, f"{path} is not a directory") from None


def rename(oldname: Any, newname: Any, overwrite: bool = False) -> None:
    """Gives a file or folder another name, at once. Another store's name raises UnimplementedError.

    AlreadyExistsError if there is something of the new name, unless `overwrite`.
    """
    old, new = as_path(oldname), as_path(newname)
    _check_free(new, overwrite)
    if store_of(old) is not store_of(new):
        raise errors.UnimplementedError(None, None, f"Renaming {old} to {new} not implemented")
    with errors_of(old):
        store_of(old).rename(old, new)


def copy(oldpath: Any, newpath: Any, overwrite: bool = False) -> None:
    """Copies a file, also from one store to another.

    AlreadyExistsError if there is something of the new name, unless `overwrite`.
    """
    old, new = as_path(oldpath), as_path(newpath)
    _check_free(new, overwrite)
    if not file_exists(old):
        raise errors.NotFoundError(None, None, f"{old}; No such file or directory")
    if is_directory(old):
        raise errors.InvalidArgumentError(None, None, f"{old}; Is a directory, which is not copied")
    with errors_of(new):
        if store_of(old) is store_of(new):
            store_of(new).copy(old, new)
        else:
            copy_across(old, new)


def _check_free(path: str, overwrite: bool) -> None:
    if not overwrite and file_exists(path):
        raise errors.AlreadyExistsError(None, None, f"{path}; file already exists")


def delete_file(filename: Any) -> None:
    """Deletes a file."""
    path = as_path(filename)
    with errors_of(path):
        store_of(path).remove(path)


def delete_recursively(dirname: Any) -> None:
    """Deletes a folder and all that is in it."""
    path = as_path(dirname)
    if not file_exists(path):
        raise errors.NotFoundError(None, None, f"{path} not found")
    with errors_of(path):
        if not store_of(path).is_directory(path):
            raise NotADirectoryError(path)
        store_of(path).remove_tree(path)
