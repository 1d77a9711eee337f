"""Where files are: the local file system, through `os`, and any store that fsspec knows.

``scheme://`` before a path says which store (``file``, ``memory``, ``s3`` …); without it the path is local.
A `Store` raises OSError; `file_system` makes TensorFlow's errors of them. All paths that go into a store's
methods are whole, with the scheme.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple, Protocol

from flowstone.framework import errors

LOCAL_SCHEME = "file://"
_BUFFER = 1 << 17  # bytes
_COPIED = 1 << 22  # bytes at a time


class FileStatistics(NamedTuple):
    """A file's length in bytes, the time of its last change in ns since 1970, and whether it is a folder."""

    length: int
    mtime_nsec: int
    is_directory: bool


class Store(Protocol):
    """What a kind of store can do with the file or folder at a path."""

    def open(self, path: str, mode: str) -> BinaryIO: ...

    def written_whole(self, path: str, durable: bool) -> contextlib.AbstractContextManager[BinaryIO]: ...

    def exists(self, path: str) -> bool: ...

    def is_directory(self, path: str) -> bool: ...

    def names(self, path: str) -> list[str]: ...

    def stat(self, path: str) -> FileStatistics: ...

    def make_directory(self, path: str) -> None: ...

    def make_directories(self, path: str) -> None: ...

    def rename(self, old: str, new: str) -> None: ...

    def copy(self, old: str, new: str) -> None: ...

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None: ...


class LocalStore:
    """The files of this machine."""

    def open(self, path: str, mode: str) -> BinaryIO:
        return open(_local(path), mode, buffering=_BUFFER)  # type: ignore[return-value]

    @contextlib.contextmanager
    def written_whole(self, path: str, durable: bool) -> Iterator[BinaryIO]:
        """A file that is at `path` once the context ends well, and never seen before."""
        target = _local(path)
        temporary = f"{target}.tempstate{os.urandom(8).hex()}"
        try:
            with open(temporary, "xb", buffering=_BUFFER) as file:
                yield file
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        if durable:
            sync_directory(os.path.dirname(target))

    def exists(self, path: str) -> bool:
        return os.path.exists(_local(path).rstrip("/") or path[-1:])

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(_local(path))

    def names(self, path: str) -> list[str]:
        return sorted(os.listdir(_local(path)))

    def stat(self, path: str) -> FileStatistics:
        found = os.stat(_local(path))
        return FileStatistics(found.st_size, found.st_mtime_ns, os.path.isdir(_local(path)))

    def make_directory(self, path: str) -> None:
        os.mkdir(_local(path))

    def make_directories(self, path: str) -> None:
        os.makedirs(_local(path), exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        os.rename(_local(old), _local(new))

    def copy(self, old: str, new: str) -> None:
        with contextlib.suppress(shutil.SameFileError):
            shutil.copyfile(_local(old), _local(new))

    def remove(self, path: str) -> None:
        os.unlink(_local(path))

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(_local(path))


def _local(path: str) -> str:
    return path.removeprefix(LOCAL_SCHEME)


def sync_directory(path: str) -> None:
    """Makes names that were given and taken in a local folder last."""
    descriptor = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class RemoteStore:
    """The files of one of fsspec's file systems, which takes whole paths and keeps no listings."""

    def __init__(self, file_system: Any) -> None:
        self._files = file_system

    def open(self, path: str, mode: str) -> BinaryIO:
        if "r" in mode and self._files.isdir(path):
            raise IsADirectoryError(path)
        return self._files.open(path, mode)  # type: ignore[no-any-return]

    @contextlib.contextmanager
    def written_whole(self, path: str, durable: bool) -> Iterator[BinaryIO]:
        """A file that is at `path` once the context ends well. What a store took, lasts."""
        temporary = f"{path}.tempstate{os.urandom(8).hex()}"
        try:
            with self._files.open(temporary, "wb") as file:
                yield file
            self._files.mv(temporary, path)
        except BaseException:
            with contextlib.suppress(Exception):
                self._files.rm_file(temporary)
            raise

    def exists(self, path: str) -> bool:
        return bool(self._files.exists(path))

    def is_directory(self, path: str) -> bool:
        return bool(self._files.isdir(path))

    def names(self, path: str) -> list[str]:
        own = self._files._strip_protocol(path).rstrip("/")
        found = self._files.ls(path, detail=False)
        return sorted({item.rstrip("/").rpartition("/")[2] for item in found if item.rstrip("/") != own})

    def stat(self, path: str) -> FileStatistics:
        found = self._files.info(path)
        try:
            changed = int(self._files.modified(path).timestamp() * 1e9)
        except (NotImplementedError, KeyError, OSError, AttributeError):  # a store without, or a folder
            changed = 0
        return FileStatistics(int(found.get("size") or 0), changed, found["type"] == "directory")

    def make_directory(self, path: str) -> None:
        self._files.mkdir(path, create_parents=False)

    def make_directories(self, path: str) -> None:
        self._files.makedirs(path, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        self._files.mv(old, new, recursive=self._files.isdir(old))

    def copy(self, old: str, new: str) -> None:
        self._files.cp_file(old, new)

    def remove(self, path: str) -> None:
        if self._files.isdir(path):
            raise IsADirectoryError(path)
        self._files.rm_file(path)

    def remove_tree(self, path: str) -> None:
        self._files.rm(path, recursive=True)


LOCAL = LocalStore()


def store_of(path: str) -> Store:
    """The store of a path. UnimplementedError for schemes that fsspec, as it is installed, does not know."""
    scheme, separator, _ = path.partition("://")
    return LOCAL if not separator or scheme == "file" else _remote(scheme, path)


def _remote(scheme: str, path: str) -> RemoteStore:
    try:
        return _file_system(scheme, "" if "::" not in scheme else path)
    except (ImportError, ValueError) as error:
        message = f"File system scheme '{scheme}' not implemented (file: '{path}')"
        if isinstance(error, ImportError):
            message += f": {error}"
        raise errors.UnimplementedError(None, None, message) from None


@functools.lru_cache(maxsize=64)
def _file_system(scheme: str, chain: str) -> RemoteStore:
    import fsspec  # slow to import and seldom needed

    if chain:
        return RemoteStore(fsspec.core.url_to_fs(chain, use_listings_cache=False)[0])
    return RemoteStore(fsspec.filesystem(scheme, use_listings_cache=False))


def copy_across(old: str, new: str) -> None:
    """Copies a file from one store to another."""
    with store_of(old).open(old, "rb") as source, store_of(new).open(new, "wb") as target:
        shutil.copyfileobj(source, target, _COPIED)
