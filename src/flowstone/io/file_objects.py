"""Files as TensorFlow's programs see them: opened when first used, text in UTF-8 unless the mode has a ``b``.

A file is read, written or both (``r``, ``w``, ``a``, each with ``+``). Positions and sizes are bytes in
either mode. What was opened for reading and for writing are two files, which `close` ends; use after it opens
them anew. What was written to a file that is still open when the interpreter exits is in the store then.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, BinaryIO

from flowstone.framework import errors
from flowstone.io import file_system
from flowstone.io.exit_writes import done_writing, write_at_exit
from flowstone.io.file_errors import errors_of

__all__ = ["FileIO"]

_MODES = ("r", "w", "a", "r+", "w+", "a+")


class FileIO:
    """A file by its path.

    `name`: path of any store (`file_system`). `mode`: one of r, w, a, r+, w+, a+, with a b for bytes; w
    empties the file when it is first written.

    Raises InvalidArgumentError for other modes. Reading where the mode has none of it, and writing, raise
    PermissionDeniedError; files that cannot be opened raise the errors of `file_system` when first used.
    """

    def __init__(self, name: Any, mode: str = "r") -> None:
        self._name, self._mode = name, mode
        self._binary = "b" in mode
        kind = mode.replace("b", "")
        if kind not in _MODES:
            raise errors.InvalidArgumentError(
                None, None, "mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+'"
            )
        self._reads = kind == "r" or kind.endswith("+")
        self._writes = kind != "r"
        self._opens = "r+b" if kind == "r+" else f"{kind[0]}b"
        self._reader: BinaryIO | None = None
        self._writer: BinaryIO | None = None

    @property
    def name(self) -> Any:
        """The path, as it was given."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode, as it was given."""
        return self._mode

    def _read_file(self) -> BinaryIO:
        if not self._reads:
            raise errors.PermissionDeniedError(None, None, f"{self._path}; File isn't open for reading")
        if self._reader is None:
            if self._writer is not None:
                self.flush()
            self._reader = file_system.open_file(self._name, "rb")
        return self._reader

    def _write_file(self) -> BinaryIO:
        if not self._writes:
            raise errors.PermissionDeniedError(None, None, f"{self._path}; File isn't open for writing")
        if self._writer is None:
            self._writer = file_system.open_file(self._name, self._opens)
            write_at_exit(self)
        return self._writer

    @property
    def _path(self) -> str:
        return file_system.as_path(self._name)

    def size(self) -> int:
        """The length in bytes of what is written to the store."""
        return file_system.stat(self._name).length

    def write(self, file_content: str | bytes) -> None:
        """Writes bytes, or text in UTF-8."""
        if isinstance(file_content, str):
            file_content = file_content.encode("utf-8")
        elif not isinstance(file_content, bytes):
            raise TypeError(f"Expected binary or unicode string, got {file_content!r}")
        file = self._write_file()
        with errors_of(self._path):
            file.write(file_content)

    def read(self, n: int = -1) -> Any:
        """The next `n` bytes, or all the rest, as text or bytes."""
        file = self._read_file()
        with errors_of(self._path):
            return self._decoded(file.read(n if n >= 0 else -1))

    def _decoded(self, content: bytes) -> Any:
        return content if self._binary else content.decode("utf-8")

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Goes to where the next byte is read: `offset` after the begin (0), the place (1) or the end (2).

        `position` is an older name of `offset`. InvalidArgumentError before the begin, OutOfRangeError behind
        the end.
        """
        file = self._read_file()
        offset = position if position is not None else offset
        if offset is None:
            raise TypeError("seek(): offset argument required")
        if whence not in (os.SEEK_SET, os.SEEK_CUR, os.SEEK_END):
            raise errors.InvalidArgumentError(
                None, None, f"Invalid whence argument: {whence}. Valid values are 0, 1, or 2."
            )
        with errors_of(self._path):
            here = file.tell()
            end = file.seek(0, os.SEEK_END)
            target = offset + (0, here, end)[whence]
            file.seek(target if 0 <= target <= end else here)
        if target < 0:
            raise errors.InvalidArgumentError(None, None, f"Seeking to a negative position: {target}")
        if target > end:
            raise errors.OutOfRangeError(None, None, f"{self._path}; reached end of file")

    def tell(self) -> int:
        """Where the next byte is read or, in a file that is only written, written."""
        file = self._read_file() if self._reads else self._write_file()
        with errors_of(self._path):
            return file.tell()

    def seekable(self) -> bool:
        """True."""
        return True

    def readline(self) -> Any:
        """The next line with its end, as text or bytes; empty at the end of the file."""
        file = self._read_file()
        with errors_of(self._path):
            return self._decoded(file.readline())

    def readlines(self) -> list[Any]:
        """The rest of the file by lines."""
        return list(self)

    def __iter__(self) -> FileIO:
        return self

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    def next(self) -> Any:
        """The next line; StopIteration at the end of the file."""
        return self.__next__()

    def flush(self) -> None:
        """Hands what is written to the store."""
        if self._writer is not None:
            with errors_of(self._path):
                self._writer.flush()

    def write_at_exit(self) -> None:
        """Ends writing: a store may take a file only then."""
        self.close()

    def close(self) -> None:
        """Ends reading and writing; what is written is then in the store."""
        reader, writer = self._reader, self._writer
        self._reader = self._writer = None
        done_writing(self)
        with errors_of(self._path):
            if reader is not None:
                reader.close()
            if writer is not None:
                writer.close()

    def __enter__(self) -> FileIO:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
