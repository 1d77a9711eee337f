"""Datasets of files of comma-separated values: `CsvDataset`, and `make_csv_dataset` in batches by column."""

from __future__ import annotations

import csv
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from flowstone.data.dataset import Dataset, OpDataset
from flowstone.data.readers import TextLineDataset
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import as_dtype
from flowstone.io.file_system import get_matching_files, read_file_to_string
from flowstone.ops.parsing.csv_records import decode_csv

__all__ = ["CsvDataset", "make_csv_dataset"]


class CsvDataset(OpDataset):
    """The lines of CSV files as tuples of scalars, a line each record.

    Args:
        filenames: a string scalar or vector.
        record_defaults: for each column its type, where it must not be empty, or the value of empty fields.
        compression_type: "", "ZLIB" or "GZIP".
        buffer_size: says nothing here.
        header: whether the first line of each file is left out.
        field_delim, use_quote_delim, na_value: see `tf.decode_csv`.
        select_cols: the numbers of the columns, rising; all if None.

    An iterator fails with InvalidArgumentError for a line of other columns.
    """

    def __init__(
        self,
        filenames: Any,
        record_defaults: Sequence[Any],
        compression_type: Any = None,
        buffer_size: Any = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
    ) -> None:
        defaults = [_default(each) for each in record_defaults]

        def fields(line: Tensor) -> tuple[Tensor, ...]:
            columns = decode_csv(
                line, defaults, field_delim, use_quote_delim, na_value=na_value, select_cols=select_cols
            )
            return tuple(columns)

        lines: Dataset = TextLineDataset(filenames, compression_type)
        if header:
            files = Dataset.from_tensor_slices(_vector(filenames))
            lines = files.flat_map(lambda name: TextLineDataset(name, compression_type).skip(1))
        rows = lines.map(fields)
        super().__init__(rows._structure, rows._as_variant_tensor)


def _default(default: Any) -> Tensor:
    if isinstance(default, (dtypes.DType, type)):
        return convert_to_tensor([], as_dtype(default))
    tensor = convert_to_tensor(default)
    return tensor


def _vector(filenames: Any) -> Any:
    is_one = isinstance(filenames, (str, bytes)) or (
        isinstance(filenames, Tensor) and filenames.shape.ndims == 0
    )
    return [filenames] if is_one else filenames


def make_csv_dataset(
    file_pattern: Any,
    batch_size: int,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[Any] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: str | None = None,
    ignore_errors: bool = False,
) -> Dataset:
    """Batches of CSV files: an OrderedDict from columns to vectors, or (that, labels) with `label_name`.

    The columns' names are those of the first file's header, unless `column_names` gives them. Their types
    are those of `column_defaults`, or what the first `num_rows_for_inference` rows can be read as: int32,
    int64, float32, float64, string. `select_columns` are names or numbers. Without `num_epochs` the files
    are read again and again, and batches are whole. `compression_type` needs both names and defaults.
    ValueError for columns that the files lack.
    """
    names_of_files = _files(file_pattern)
    if compression_type is not None and (column_names is None or column_defaults is None):
        raise ValueError("Compressed files need column_names and column_defaults.")
    dialect: dict[str, Any] = {"delimiter": field_delim}
    dialect["quoting"] = csv.QUOTE_MINIMAL if use_quote_delim else csv.QUOTE_NONE
    if column_names is None:
        if not header:
            raise ValueError("Cannot infer column names without a header line.")
        column_names = next(_rows(names_of_files[0], dialect))
    if len(column_names) != len(set(column_names)):
        raise ValueError("Cannot have duplicate column names.")
    places = _places(select_columns, column_names)
    if column_defaults is None:
        column_defaults = _inferred(names_of_files, places, dialect, header, na_value, num_rows_for_inference)
    kept = [column_names[i] for i in places]
    if label_name is not None and label_name not in kept:
        raise ValueError("`label_name` provided must be one of the columns.")

    def rows_of(name: Any) -> Dataset:
        return CsvDataset(
            name, column_defaults, compression_type, None, header, field_delim, use_quote_delim, na_value,
            places if select_columns is not None else None,
        )  # fmt: skip

    def by_name(*columns: Tensor) -> Any:
        features = OrderedDict(zip(kept, columns))
        return features if label_name is None else (features, features.pop(label_name))

    dataset = Dataset.from_tensor_slices(names_of_files)
    if shuffle:
        dataset = dataset.shuffle(len(names_of_files), shuffle_seed)
    dataset = dataset.interleave(rows_of, num_parallel_reads or 1)
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    batches = dataset.repeat(num_epochs).batch(batch_size, drop_remainder=num_epochs is None).map(by_name)
    return batches.prefetch(-1 if prefetch_buffer_size is None else prefetch_buffer_size)


def _files(patterns: Any) -> list[str]:
    """The files of a pattern or of several, sorted. ValueError if there are none."""
    found = sorted({name for each in _vector(patterns) for name in get_matching_files(each)})
    if not found:
        raise ValueError(f"No files match {patterns}.")
    return found


def _rows(name: str, dialect: dict[str, Any]) -> Any:
    return csv.reader(str(read_file_to_string(name)).splitlines(), **dialect)


def _places(select: Sequence[Any] | None, names: Sequence[str]) -> list[int]:
    if select is None:
        return list(range(len(names)))
    unknown = [each for each in select if not isinstance(each, int) and each not in names]
    if unknown:
        raise ValueError(f"select_columns has names that the files lack: {unknown}")
    places = sorted(each if isinstance(each, int) else list(names).index(each) for each in select)
    if len(set(places)) != len(places) or places[-1] >= len(names):
        raise ValueError("select_columns must be different columns of the files.")
    return places


_KINDS = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string)
_LARGEST = {dtypes.int32: 2**31 - 1, dtypes.int64: 2**63 - 1, dtypes.float32: 3.4028234e38}


def _inferred(
    files: list[str], places: list[int], dialect: dict[str, Any], header: bool, missing: str, most: int | None
) -> list[Any]:
    """For each column a default of the first type as which all its fields can be read."""
    ranks, read = [0] * len(places), 0
    for name in files:
        rows = _rows(name, dialect)
        if header:
            next(rows, None)
        for row in rows:
            if most is not None and read >= most:
                break
            read += 1
            for i, place in enumerate(places):
                while row[place] != missing and not _fits(row[place], _KINDS[ranks[i]]):
                    ranks[i] += 1
    return [convert_to_tensor(["" if rank == 4 else 0], _KINDS[rank]) for rank in ranks]


def _fits(text: str, kind: Any) -> bool:
    if kind is dtypes.string:
        return True
    try:
        number = int(text) if kind.is_integer else float(text)
    except ValueError:
        return False
    return abs(number) <= _LARGEST.get(kind, float("inf"))
