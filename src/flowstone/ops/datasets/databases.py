"""Datasets of the rows that a query finds in a SQLite database.

Values become the types that are asked for as in SQLite: a text counts as the number that it begins with, NULL
as 0 or the empty text, a number that a type cannot hold as its lowest bits.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import Environment
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.io.file_system import as_path
from flowstone.ops.arrays.arrays import boxed, invalid
from flowstone.ops.datasets.iteration import Dataset, Element, Iteration, dataset_op

__all__: list[str] = []

_INTEGERS = {dtypes.int8: 8, dtypes.int16: 16, dtypes.int32: 32, dtypes.int64: 64,
             dtypes.uint8: 8, dtypes.uint16: 16}  # fmt: skip
_TYPES = (*_INTEGERS, dtypes.bool, dtypes.float64, dtypes.string)
_INTEGER = re.compile(rb"\s*([+-]?\d+)")
_local = threading.local()  # has a connection to no file
_NUMBER = re.compile(rb"\s*([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)")


class SqlDataset(Dataset):
    """The rows that `query` finds in the SQLite database `path`, their columns of `types`."""

    def __init__(self, path: str, query: str, types: Sequence[DType]) -> None:
        self.path, self.query = path, query
        self.converters = [_converter(dtype) for dtype in types]

    def iterate(self) -> Iteration:
        """A pass that runs the query when its first row is asked for."""
        return _Rows(self)


class _Rows(Iteration):
    """Has read `place` rows of what `cursor` finds."""

    def __init__(self, dataset: SqlDataset) -> None:
        self.dataset, self.place = dataset, 0
        self.connection: Any = None
        self.cursor: Any = None

    def next(self, step: Any) -> Element | None:
        row = self._read()
        if row is None:
            return None
        self.place += 1
        convert = self.dataset.converters
        return tuple([convert[i](value) for i, value in enumerate(row)])

    def _read(self) -> Any:
        try:
            if self.cursor is None:
                self._begin()
            return self.cursor.fetchone()
        except (sqlite3.Error, sqlite3.Warning) as error:
            self.close()
            dataset = self.dataset
            raise errors.UnknownError(None, None, f"{dataset.path}: {error}: {dataset.query}") from None

    def _begin(self) -> None:
        dataset = self.dataset
        self.connection = _connection(dataset.path)
        self.cursor = self.connection.execute(dataset.query)
        columns, wanted = len(self.cursor.description or ()), len(dataset.converters)
        if columns != wanted:
            self.close()
            raise invalid(
                f"The number of columns in query ({columns}) must match the number of elements in "
                f"output_types ({wanted})."
            )

    def save(self) -> Any:
        return self.place

    def restore(self, step: Any, state: Any) -> None:
        self.close()
        self.place = state
        for _ in range(self.place):
            self._read()

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection = self.cursor = None


def _connection(path: str) -> sqlite3.Connection:
    """The database `path`, to be read by any one thread."""
    if path != ":memory:" and not os.path.isfile(path):
        raise errors.NotFoundError(None, None, f"There is no database {path}")
    name = path if path == ":memory:" else f"file:{quote(path)}?mode=ro"
    connection = sqlite3.connect(name, uri=True, check_same_thread=False)
    connection.text_factory = bytes
    return connection


# ---- values


def _converter(dtype: DType) -> Callable[[Any], Any]:
    """What makes a value of SQLite a scalar of `dtype`."""
    if dtype is dtypes.string:
        return lambda value: boxed(_as_text(value))
    kind = dtype.torch
    if dtype is dtypes.float64:
        return lambda value: torch.tensor(_as_float(value), dtype=kind)
    if dtype is dtypes.bool:
        return lambda value: torch.tensor(_as_integer(value) != 0)
    bits, signed = _INTEGERS[dtype], dtype.min < 0
    return lambda value: torch.tensor(_wrapped(_as_integer(value), bits, signed), dtype=kind)


def _as_text(value: Any) -> bytes:
    if value is None:
        return b""
    if isinstance(value, float):  # which SQLite writes in a way of its own
        if not hasattr(_local, "connection"):
            _local.connection = sqlite3.connect(":memory:")
        value = _local.connection.execute("select cast(? as text)", (value,)).fetchone()[0]
    return value if isinstance(value, bytes) else str(value).encode()


def _as_float(value: Any) -> float:
    if isinstance(value, bytes):
        found = _NUMBER.match(value)
        return float(found[1]) if found else 0.0
    return float(value or 0)


def _as_integer(value: Any) -> int:
    """The value as an integer of 64 bits, the nearest one if it is out of their range."""
    if isinstance(value, bytes):
        found = _INTEGER.match(value)
        value = int(found[1]) if found else 0
    value = value or 0
    if value != value:
        return 0
    return int(max(min(value, (1 << 63) - 1), -1 << 63))


def _wrapped(number: int, bits: int, signed: bool) -> int:
    number &= (1 << bits) - 1
    return number - (1 << bits) if signed and number >> (bits - 1) else number


# ---- the op


def _make_sql(node: Node, env: Environment) -> Callable[..., Dataset]:
    types = node.attributes["output_types"]
    for dtype in types:
        if dtype not in _TYPES:
            names = ", ".join(each.name for each in _TYPES)
            raise invalid(f"Each element of `output_types` must be one of: {names}, not {dtype.name}")
    if any(dims != () for dims in node.attributes["output_shapes"]):
        raise invalid("Each element of `output_shapes` must be a scalar.")

    def make(driver_name: Any, data_source_name: Any, query: Any) -> Dataset:
        driver = as_path(driver_name.item())
        if driver != "sqlite":
            raise invalid(
                f"The database type, {driver}, is not supported by SqlDataset. The set of supported "
                "databases is: {'sqlite'}."
            )
        return SqlDataset(as_path(data_source_name.item()), as_path(query.item()), types)

    return make


sql_dataset_op = dataset_op(
    "SqlDataset", "driver_name: string, data_source_name: string, query: string", _make_sql, stateful=True
)
