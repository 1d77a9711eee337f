"""Datasets of what is in files: text, TFRecords, records of a fixed length, SQLite databases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.data.arguments import as_int64
from flowstone.data.dataset import Dataset, OpDataset
from flowstone.data.structure import Structure, mapped
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape

__all__ = ["FixedLengthRecordDataset", "SqlDataset", "TFRecordDataset", "TextLineDataset"]

_BUFFER = 256 * 1024  # bytes; what files are read by is `io`'s choice


class _FilesDataset(OpDataset):
    """String scalars of files, one after the other; `make(name)` adds the dataset of one. The names may be a
    dataset's."""

    def __init__(self, filenames: Any, make: Callable[[Any], Tensor]) -> None:
        every = _names(filenames).flat_map(lambda name: OpDataset(_STRINGS, lambda: make(name)))
        super().__init__(_STRINGS, every._as_variant_tensor)


_STRINGS = Structure.of(dtypes.string, [])


def _names(filenames: Any) -> Dataset:
    if isinstance(filenames, Dataset):
        return filenames
    given = convert_to_tensor(filenames, dtypes.string)
    return Dataset.from_tensor_slices(F.Reshape(given, [-1], name="flat_filenames"))


def _how_read(compression_type: Any, buffer_size: Any) -> tuple[Tensor, Tensor]:
    size = as_int64(_BUFFER if buffer_size is None else buffer_size, "buffer_size")
    return _text(compression_type, "compression_type"), size


def _text(value: Any, name: str) -> Tensor:
    return convert_to_tensor("" if value is None else value, dtypes.string, name=name)


class TextLineDataset(_FilesDataset):
    """The lines of text files, without their ends: string scalars.

    `filenames`: a string scalar or vector, or a Dataset of names. `compression_type`: "", "ZLIB" or "GZIP".
    `buffer_size` says nothing here. An iterator fails with NotFoundError where a file is missing.
    """

    def __init__(self, filenames: Any, compression_type: Any = None, buffer_size: Any = None) -> None:
        super().__init__(
            filenames, lambda name: F.TextLineDataset(name, *_how_read(compression_type, buffer_size))
        )


class TFRecordDataset(_FilesDataset):
    """The records of TFRecord files: string scalars.

    Arguments are those of `TextLineDataset`; with `num_parallel_reads` a record comes from each of so many
    files in turn, else one file after the other. An iterator fails with DataLossError for a damaged record.
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
    ) -> None:
        def make(name: Any) -> Tensor:
            made: Tensor = F.TFRecordDataset(name, *_how_read(compression_type, buffer_size))
            return made

        if num_parallel_reads is None:
            super().__init__(filenames, make)
            return
        in_turn = _names(filenames).interleave(
            lambda name: OpDataset(_STRINGS, lambda: make(name)),
            num_parallel_reads,
            num_parallel_calls=num_parallel_reads,
        )
        OpDataset.__init__(self, _STRINGS, in_turn._as_variant_tensor)


class FixedLengthRecordDataset(_FilesDataset):
    """Records of `record_bytes` between the `header_bytes` and the `footer_bytes` of files: string scalars.

    An iterator fails with InvalidArgumentError for a file that is not a whole number of records.
    """

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
        compression_type: Any = None,
    ) -> None:
        def make(name: Any) -> Tensor:
            sizes = [
                as_int64(value or 0, what) if not isinstance(value, Tensor) else value
                for value, what in (
                    (header_bytes, "header_bytes"),
                    (record_bytes, "record_bytes"),
                    (footer_bytes, "footer_bytes"),
                    (_BUFFER if buffer_size is None else buffer_size, "buffer_size"),
                )
            ]
            made: Tensor
            if compression_type is None:
                made = F.FixedLengthRecordDataset(name, *sizes)
            else:
                made = F.FixedLengthRecordDatasetV2(name, *sizes, _text(compression_type, "compression_type"))
            return made

        super().__init__(filenames, make)


class SqlDataset(OpDataset):
    """The rows that `query`, a string scalar, finds in a database: scalars of `output_types`.

    `driver_name`: "sqlite"; `data_source_name`: the path of a local SQLite file. `output_types`: a tuple of
    the columns' types, signed integers, uint8, uint16, bool, float64, string. An iterator fails with
    InvalidArgumentError where the query has another number of columns, NotFoundError where there is no
    database, UnknownError for what SQLite refuses.
    """

    def __init__(self, driver_name: Any, data_source_name: Any, query: Any, output_types: Any) -> None:
        texts = [
            convert_to_tensor(value, dtypes.string, name=name)
            for value, name in (
                (driver_name, "driver_name"),
                (data_source_name, "data_source_name"),
                (query, "query"),
            )
        ]
        structure = Structure.of(output_types, mapped(lambda each: TensorShape([]), output_types))
        super().__init__(structure, lambda: F.SqlDataset(*texts, **structure.attributes))
