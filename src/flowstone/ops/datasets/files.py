"""Datasets of what is in files: lines, TFRecords, records of a fixed length; and of the names of files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from flowstone.framework.declarations.kernel import Environment
from flowstone.framework.tensors.node import Node
from flowstone.io.file_system import as_path, get_matching_files
from flowstone.io.records import RecordReader
from flowstone.ops.arrays.arrays import boxed, invalid
from flowstone.ops.datasets.iteration import Columns, Dataset, Element, Iteration, dataset_op
from flowstone.ops.readers.record_streams import fixed_records, lines

Opener: TypeAlias = "Callable[[str], Iterator[bytes]]"


class FilesDataset(Dataset):
    """The records of files, one file after the other; `open_file(path)` gives those of one."""

    def __init__(self, paths: list[str], open_file: Opener) -> None:
        self.paths, self.open_file = paths, open_file

    def iterate(self) -> Iteration:
        """A pass over the records."""
        return _Records(self)


class _Records(Iteration):
    """Has read `place` records of file number `file`."""

    def __init__(self, dataset: FilesDataset) -> None:
        self.dataset = dataset
        self.file = self.place = 0
        self.stream: Any = None

    def _take(self, count: int) -> list[bytes]:
        """Up to `count` records; an error of a file ends that file."""
        found: list[bytes] = []
        while len(found) < count and self.file < len(self.dataset.paths):
            try:
                if self.stream is None:
                    self.stream = self.dataset.open_file(self.dataset.paths[self.file])
                record = next(self.stream, None)
            except Exception:
                if found:  # the stream is at its end now: the error comes again when the file is read anew
                    self._reopen()
                    return found
                self._next_file()
                raise
            if record is None:
                self._next_file()
            else:
                found.append(record)
                self.place += 1
        return found

    def _next_file(self) -> None:
        self.close()
        self.file, self.place = self.file + 1, 0

    def _reopen(self) -> None:
        """Opens the file again, behind the records that were read."""
        self.close()
        self.stream = self.dataset.open_file(self.dataset.paths[self.file])
        for _ in range(self.place):
            next(self.stream)

    def next(self, step: Any) -> Element | None:
        found = self._take(1)
        return (boxed(found[0]),) if found else None

    def several(self, step: Any, count: int) -> Columns | None:
        found = self._take(count)
        if not found:
            return None
        column = np.empty(len(found), object)
        column[:] = found
        return len(found), [column]

    def save(self) -> Any:
        return self.file, self.place

    def restore(self, step: Any, state: Any) -> None:
        self.close()
        self.file, self.place = state
        if self.place:
            self._reopen()

    def close(self) -> None:
        if self.stream is not None:
            self.stream.close()
            self.stream = None


def _paths(filenames: Any) -> list[str]:
    if filenames.ndim > 1:
        raise invalid(f"`filenames` must be a scalar or a vector, but has shape {list(filenames.shape)}")
    return [as_path(each) for each in filenames.reshape(-1).tolist()]


def _compression(value: Any) -> str:
    kind = str(value.item().decode(errors="replace"))
    if kind not in ("", "ZLIB", "GZIP"):
        raise invalid(f"Unsupported compression_type: {kind}")
    return kind


def _records(path: str, compression: str) -> Iterator[bytes]:
    with RecordReader(path, compression) as reader:
        yield from reader


def _make_text_lines(node: Node, env: Environment) -> Callable[..., Dataset]:
    def make(filenames: Any, compression: Any, buffer_size: Any) -> Dataset:
        return FilesDataset(_paths(filenames), partial(lines, compression=_compression(compression)))

    return make


def _make_records(node: Node, env: Environment) -> Callable[..., Dataset]:
    def make(filenames: Any, compression: Any, buffer_size: Any) -> Dataset:
        return FilesDataset(_paths(filenames), partial(_records, compression=_compression(compression)))

    return make


def _make_fixed(node: Node, env: Environment) -> Callable[..., Dataset]:
    def make(
        filenames: Any, header: Any, record: Any, footer: Any, buffer_size: Any, kind: Any = None
    ) -> Dataset:
        sizes = int(header), int(record), int(footer), int(record)
        if sizes[1] <= 0:
            raise invalid(f"`record_bytes` must be > 0, got {sizes[1]}")
        if sizes[0] < 0 or sizes[2] < 0:
            raise invalid(f"`header_bytes` and `footer_bytes` must be >= 0, got {sizes[0]} and {sizes[2]}")
        compression = "" if kind is None else _compression(kind)
        read = partial(fixed_records, sizes=sizes, compression=compression, exact=True)
        return FilesDataset(_paths(filenames), read)

    return make


_TEXT = "filenames: string, compression_type: string, buffer_size: int64[]"
_FIXED = (
    "filenames: string, header_bytes: int64, record_bytes: int64, footer_bytes: int64, buffer_size: int64[]"
)
_METADATA = "metadata: string = ''"
text_line_dataset_op = dataset_op(
    "TextLineDataset", _TEXT, _make_text_lines, _METADATA, elements="", stateful=True
)
tf_record_dataset_op = dataset_op(
    "TFRecordDataset", _TEXT, _make_records, _METADATA, elements="", stateful=True
)
fixed_length_record_dataset_op = dataset_op(
    "FixedLengthRecordDataset", _FIXED, _make_fixed, _METADATA, elements="", stateful=True
)
fixed_length_record_dataset_v2_op = dataset_op(
    "FixedLengthRecordDatasetV2", f"{_FIXED}, compression_type: string", _make_fixed, _METADATA, elements="",
    stateful=True,
)  # fmt: skip


# ---- names of files


def _name(path: str) -> Iterator[bytes]:
    yield path.encode(errors="surrogateescape")


class _MatchingFilesDataset(Dataset):
    """The names of the files that fit the patterns, looked for by each pass."""

    def __init__(self, patterns: list[str]) -> None:
        self.patterns = patterns

    def iterate(self) -> Iteration:
        return _Records(FilesDataset(sorted(set(get_matching_files(self.patterns))), _name))


matching_files_dataset_op = dataset_op(
    "MatchingFilesDataset", "patterns: string",
    lambda node, env: lambda patterns: _MatchingFilesDataset(_paths(patterns)), elements="", stateful=True,
)  # fmt: skip
