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
    """String scalars of files; `make(filenames)` adds the dataset of these. The names may be a dataset's."""

    def __init__(
        self, filenames: Any, make: Callable[[Any], Tensor], of_one: Callable[[Any], Dataset]
    ) -> None:
        if isinstance(filenames, Dataset):
            every = filenames.flat_map(of_one)
            super().__init__(Structure.of(dtypes.string, []), every._as_variant_tensor)
        else:
            names = convert_to_tensor(filenames, dtypes.string, name="filenames")
            super().__init__(Structure.of(dtypes.string, []), lambda: make(names))


def _text(value: Any, name: str) -> Tensor:
    return convert_to_tensor("" if value is None else value, dtypes.string, name=name)


class TextLineDataset(_FilesDataset):
    """The lines of text files, without their ends: string scalars.

    `filenames`: a string scalar or vector, or a Dataset of names. `compression_type`: "", "ZLIB" or "GZIP".
    `buffer_size` says nothing here. An iterator fails with NotFoundError where a file is missing.
    """

    def __init__(self, filenames: Any, compression_type: Any = None, buffer_size: Any = None) -> None:
        kind = _text(compression_type, "compression_type")
        size = as_int64(_BUFFER if buffer_size is None else buffer_size, "buffer_size")
        super().__init__(
            filenames,
            lambda names: F.TextLineDataset(names, kind, size),
            lambda name: TextLineDataset(name, compression_type, buffer_size),
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
        if num_parallel_reads is not None:
            if not isinstance(filenames, Dataset):
                names = convert_to_tensor(filenames, dtypes.string, name="filenames")
                filenames = Dataset.from_tensor_slices(F.Reshape(names, [-1]))
            in_turn = filenames.interleave(
                lambda name: TFRecordDataset(name, compression_type, buffer_size),
                num_parallel_reads,
                num_parallel_calls=num_parallel_reads,
            )
            OpDataset.__init__(self, Structure.of(dtypes.string, []), in_turn._as_variant_tensor)
            return
        kind = _text(compression_type, "compression_type")
        size = as_int64(_BUFFER if buffer_size is None else buffer_size, "buffer_size")
        super().__init__(
            filenames,
            lambda names: F.TFRecordDataset(names, kind, size),
            lambda name: TFRecordDataset(name, compression_type, buffer_size),
        )


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
        sizes = [
            as_int64(value or 0, name) if not isinstance(value, Tensor) else value
            for value, name in (
                (header_bytes, "header_bytes"),
                (record_bytes, "record_bytes"),
                (footer_bytes, "footer_bytes"),
                (_BUFFER if buffer_size is None else buffer_size, "buffer_size"),
            )
        ]
        kind = None if compression_type is None else _text(compression_type, "compression_type")

        def make(names: Any) -> Tensor:
            if kind is None:
                return F.FixedLengthRecordDataset(names, *sizes)
            return F.FixedLengthRecordDatasetV2(names, *sizes, kind)

        lengths = (record_bytes, header_bytes, footer_bytes, buffer_size, compression_type)
        super().__init__(filenames, make, lambda name: FixedLengthRecordDataset(name, *lengths))


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
