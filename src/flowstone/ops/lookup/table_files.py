"""Contents of tables from text files: a line a key.

The key, and the value, are a column of the line, the whole line (`WHOLE_LINE`), or its number from 0 on
(`LINE_NUMBER`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework import errors
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.io.file_system import read_bytes
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.strings.elementwise_strings import as_array
from flowstone.ops.strings.number_texts import parse_numbers

WHOLE_LINE, LINE_NUMBER = -2, -1
Array = np.ndarray[Any, Any]


class TextFile:
    """The lines of a file, at most `most` of them unless that is -1.

    Raises the errors of files that cannot be read, OutOfRangeError for one without lines, and
    InvalidArgumentError for an empty line or fewer lines than `most`.
    """

    def __init__(self, path: str, delimiter: bytes, most: int) -> None:
        if len(delimiter) != 1:
            raise invalid("delimiter should be only 1 char")
        self.path, self._delimiter = path, delimiter
        lines = read_bytes(path).replace(b"\r", b"").split(b"\n")
        if not lines[-1]:
            lines.pop()
        if not lines or most == 0:
            raise errors.OutOfRangeError(None, None, f"Finished reading 0 of lines from {path}")
        if most > len(lines):
            raise invalid(f"Invalid vocab_size in {path}: expected {most} but got {len(lines)}")
        self.lines = lines if most < 0 else lines[:most]
        if b"" in self.lines:
            at = self.lines.index(b"")
            position = len(b"\n".join(self.lines[:at])) + (2 if at else 1)
            raise invalid(f"Invalid content in {path}: empty line found at position {position}.")
        self._columns: list[list[bytes]] = []

    def check_columns(self, *indices: int) -> None:
        """InvalidArgumentError if a line lacks one of these columns."""
        wanted = max(indices) + 1
        if wanted <= 0:
            return
        self._columns = [line.split(self._delimiter) for line in self.lines]
        for number, columns in enumerate(self._columns):
            if len(columns) < wanted:
                line = self.lines[number].decode("utf-8", "backslashreplace")
                raise invalid(
                    f"Invalid number of columns in {self.path} line {number} ({line}) : expected at least "
                    f"{wanted} got {len(columns)}"
                )

    def read(self, index: int, dtype: DType, offset: int = 0) -> Array:
        """What `index` says of each line, as `dtype`; to line numbers, `offset` is added."""
        if index == LINE_NUMBER:
            return np.arange(offset, offset + len(self.lines), dtype=np.int64)
        fields = self.lines if index == WHOLE_LINE else [columns[index] for columns in self._columns]
        if dtype is dtypes.string:
            return as_array(fields, (len(fields),))
        try:
            return parse_numbers(fields, dtype)
        except errors.InvalidArgumentError:
            number = next(i for i, field in enumerate(fields) if not _is_number(field, dtype))
        field = fields[number].decode("utf-8", "backslashreplace")
        name = {"float32": "float", "float64": "double"}.get(dtype.name, dtype.name)
        raise invalid(f"Field {field} in line {number} is not a valid {name}.")


def _is_number(field: bytes, dtype: DType) -> bool:
    try:
        parse_numbers([field], dtype)
    except errors.InvalidArgumentError:
        return False
    return True


def check_types(key_index: int, value_index: int, key_dtype: DType, value_dtype: DType) -> None:
    """InvalidArgumentError for line numbers that are no int64, and whole lines that can be no key."""
    for what, index, dtype in (("Key", key_index, key_dtype), ("Value", value_index, value_dtype)):
        if index == LINE_NUMBER and dtype is not dtypes.int64:
            raise invalid(
                f"{what} index for line number requires table {what.lower()} dtype of int64, got {dtype.name}"
            )
