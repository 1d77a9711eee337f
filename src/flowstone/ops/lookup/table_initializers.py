"""What tables are initialised from: keys and values, or lines of a text file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.lookup.assets import Asset
from flowstone.ops.lookup.table_files import LINE_NUMBER, WHOLE_LINE
from flowstone.ops.lookup.table_types import TypedByKeyAndValue

__all__ = [
    "KeyValueTensorInitializer",
    "TableInitializerBase",
    "TextFileIdTableInitializer",
    "TextFileIndex",
    "TextFileInitializer",
    "TextFileStringTableInitializer",
]


class TableInitializerBase(TypedByKeyAndValue, ABC):
    """Gives a table, whose keys are of `key_dtype` and values of `value_dtype`, its contents."""

    @property
    def shared_name(self) -> str:
        """The name under which all tables with these contents may share one; '' if that cannot be known."""
        return ""

    @abstractmethod
    def initialize(self, table: Any) -> Operation:
        """The operation that gives `table` its contents."""

    def _checkpoint_children(self) -> list[tuple[str, Any]]:
        """What a checkpoint or SavedModel has of it: the asset, if there is one."""
        asset = getattr(self, "_asset", None)
        return [] if asset is None else [("_filename", asset)]

    def _check(self, table: Any) -> None:
        """TypeError if the table has other types."""
        for what, own, of_table in (
            ("key", self._key_dtype, table.key_dtype),
            ("value", self._value_dtype, table.value_dtype),
        ):
            if own.base_dtype is not of_table.base_dtype:
                raise TypeError(f"Invalid {what} dtype, expected {own} but got {of_table}.")


def add_to_collection(operation: Operation) -> Operation:
    """Makes it one of the operations that `tables_initializer` runs."""
    get_default_graph().add_to_collection(GraphKeys.TABLE_INITIALIZERS, operation)
    return operation


class KeyValueTensorInitializer(TableInitializerBase):
    """Contents from two vectors of one length.

    Args:
        keys, values: tensors, or what makes them.
        key_dtype, value_dtype: their types; by default those that the tensors have.
        name: of the operation's scope.
    """

    def __init__(
        self,
        keys: Any,
        values: Any,
        key_dtype: Any = None,
        value_dtype: Any = None,
        name: str | None = None,
    ) -> None:
        self._keys = convert_to_tensor(keys, key_dtype, name="keys")
        self._values = convert_to_tensor(values, value_dtype, name="values")
        self._name = name or "key_value_init"
        super().__init__(self._keys.dtype, self._values.dtype)

    def initialize(self, table: Any) -> Operation:
        """The operation that gives `table` its contents. TypeError if it has other types."""
        self._check(table)
        with get_default_graph().name_scope(self._name):
            return add_to_collection(
                F.LookupTableImportV2.operation(table.resource_handle, self._keys, self._values)
            )


class TextFileIndex:
    """What a key or value may be, other than a column of its line."""

    WHOLE_LINE = WHOLE_LINE
    LINE_NUMBER = LINE_NUMBER


class TextFileInitializer(TableInitializerBase):
    """Contents from a text file, a line a key.

    Args:
        filename: a path, or a string tensor of one.
        key_dtype, value_dtype: string, an integer type or, of values, a floating one.
        key_index, value_index: the column of a line, from 0 on, or one of `TextFileIndex`.
        vocab_size: how many lines count; None: all.
        delimiter: one character, which separates columns.
        name: of the operation's scope.
        value_index_offset: what is added to a value that is a line number.

    Raises ValueError for indexes that do not exist or do not fit the types, and for a size below 1. A step
    that initialises raises NotFoundError if there is no such file, InvalidArgumentError for lines that lack
    columns, are empty or fewer than `vocab_size`, and for fields that are no numbers.
    """

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
        value_index_offset: int = 0,
    ) -> None:
        if not isinstance(filename, Tensor) and not filename:
            raise ValueError(f"Filename required for {name}.")
        super().__init__(key_dtype, value_dtype)
        _check_file_key(key_index, self._key_dtype)
        _check_file_value(value_index, self._value_dtype)
        if vocab_size is not None and vocab_size <= 0:
            raise ValueError(f"Invalid vocab_size {vocab_size}.")
        self._name, self._path = name, None if isinstance(filename, Tensor) else filename
        self._key_index, self._value_index, self._offset = key_index, value_index, value_index_offset
        self._vocab_size, self._delimiter = vocab_size, delimiter
        self._asset = Asset(filename)

    @property
    def shared_name(self) -> str:
        """Made of the path, the size and the indexes."""
        if self._path is None:
            return ""
        size = "" if self._vocab_size is None else f"_{self._vocab_size}"
        offset = f"_{self._offset}" if self._offset else ""
        path = self._path.decode() if isinstance(self._path, bytes) else self._path
        return f"hash_table_{path}{size}_{self._key_index}_{self._value_index}{offset}"

    def initialize(self, table: Any) -> Operation:
        """The operation that gives `table` its contents. TypeError if it has other types."""
        self._check(table)
        with get_default_graph().name_scope(self._name or "text_file_init"):
            return add_to_collection(
                F.InitializeTableFromTextFileV2.operation(
                    table.resource_handle,
                    self._asset.asset_path,
                    key_index=self._key_index,
                    value_index=self._value_index,
                    vocab_size=-1 if self._vocab_size is None else self._vocab_size,
                    delimiter=self._delimiter,
                    offset=self._offset,
                )
            )


def _check_file_key(index: int, dtype: dtypes.DType) -> None:
    if index < WHOLE_LINE:
        raise ValueError(f"Invalid key index {index}.")
    if index == LINE_NUMBER and dtype is not dtypes.int64:
        raise ValueError(f"Signature mismatch. Keys must be dtype {dtypes.int64!r}, got {dtype!r}.")
    if index == WHOLE_LINE and not (dtype.is_integer or dtype is dtypes.string):
        raise ValueError(f"Signature mismatch. Keys must be integer or string, got {dtype!r}.")


def _check_file_value(index: int, dtype: dtypes.DType) -> None:
    if index < WHOLE_LINE:
        raise ValueError(f"Invalid value index {index}.")
    if index == LINE_NUMBER and dtype is not dtypes.int64:
        raise ValueError(f"Signature mismatch. Values must be dtype {dtypes.int64!r}, got {dtype!r}.")
    if index == WHOLE_LINE and dtype is not dtypes.string:
        raise ValueError(f"Signature mismatch. Values must be dtype {dtypes.string!r}, got {dtype!r}.")


class TextFileStringTableInitializer(TextFileInitializer):
    """From int64 ids to the strings of a file: by default, from line numbers to whole lines."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = LINE_NUMBER,
        value_column_index: int = WHOLE_LINE,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str = "text_file_string_table_init",
    ) -> None:
        super().__init__(
            filename,
            dtypes.int64,
            key_column_index,
            dtypes.string,
            value_column_index,
            vocab_size,
            delimiter,
            name,
        )


class TextFileIdTableInitializer(TextFileInitializer):
    """From the strings (or integers) of a file to int64 ids: by default, whole lines to their numbers."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = WHOLE_LINE,
        value_column_index: int = LINE_NUMBER,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str = "text_file_id_table_init",
        key_dtype: Any = dtypes.string,
    ) -> None:
        super().__init__(
            filename,
            key_dtype,
            key_column_index,
            dtypes.int64,
            value_column_index,
            vocab_size,
            delimiter,
            name,
        )
