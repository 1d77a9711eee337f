"""TFRecord files are TensorFlow's; what is damaged is DataLossError, at its offset."""

from __future__ import annotations

import gzip
import itertools
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowstone as tf
from flowstone.framework import errors
from flowstone.io import records
from flowstone.io.records import RecordReader

RECORDS = [b"abc", b"", b"x" * 5]
# What TensorFlow 1.15 wrote of them.
PLAIN = bytes.fromhex(
    "0300000000000000b099490e6162636e57f121000000000000000029039807d8ea82a2"
    "0500000000000000eab2043e78787878783eda1095"
)
# ... of the first alone.
ZLIB = bytes.fromhex("789c636680800d333df9129392f3c23f2a02001c7904a1")
GZIP = bytes.fromhex("1f8b0800000000000003636680800d333df9129392f3c23f2a020032a97b3913000000")

io = tf.python_io
kinds = io.TFRecordCompressionType


def written(path: Path, values: list[bytes], options: Any = None) -> bytes:
    with io.TFRecordWriter(str(path), options) as writer:
        for value in values:
            writer.write(value)
    return path.read_bytes()


def test_bytes_are_tensorflows(tmp_path: Path) -> None:
    assert written(tmp_path / "a", RECORDS) == PLAIN == records.encode(RECORDS)
    first = written(tmp_path / "b", RECORDS[:1])
    assert zlib.decompress(written(tmp_path / "c", RECORDS[:1], "ZLIB")) == first
    assert gzip.decompress(written(tmp_path / "c", RECORDS[:1], io.TFRecordOptions(kinds.GZIP))) == first


@pytest.mark.parametrize(
    ("data", "options", "values"),
    [
        (PLAIN, None, RECORDS),
        (PLAIN, io.TFRecordOptions(kinds.NONE), RECORDS),
        (ZLIB, io.TFRecordOptions(kinds.ZLIB), RECORDS[:1]),
        (GZIP, io.TFRecordOptions("GZIP"), RECORDS[:1]),
        (GZIP + GZIP, "GZIP", RECORDS[:1] * 2),
        (GZIP + b"\0" * 9, "GZIP", RECORDS[:1]),
        (b"", None, []),
    ],
)
def test_reading_tensorflows(tmp_path: Path, data: bytes, options: Any, values: list[bytes]) -> None:
    (tmp_path / "a").write_bytes(data)
    assert list(io.tf_record_iterator(str(tmp_path / "a"), options)) == values


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.binary(max_size=40) | st.sampled_from([b"z" * 300_000, b"y" * (1 << 20)]), max_size=12),
    st.sampled_from(["", "ZLIB", "GZIP"]),
    st.integers(1, 5),
)
def test_what_is_written_is_read(values: list[bytes], kind: str, most: int) -> None:
    path = "memory://records/a"
    with io.TFRecordWriter(path, kind) as writer:
        for value in values:
            writer.write(value)
    assert list(io.tf_record_iterator(path, kind)) == values
    with RecordReader(path, kind) as reader:
        batches = list(iter(lambda: reader.read_many(most), []))
    assert list(itertools.chain(*batches)) == values
    assert all(len(batch) == most for batch in batches[:-1])


@pytest.mark.parametrize("kind", ["", "ZLIB", "GZIP"])
def test_offsets(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    written(path, RECORDS, kind)
    reader = RecordReader(path, kind)
    offsets = []
    while (offset := reader.offset) < 56:
        offsets.append((offset, next(reader)))
    assert list(reader) == []
    assert offsets == [(0, b"abc"), (19, b""), (35, b"xxxxx")]
    for offset, value in offsets:
        assert next(RecordReader(path, kind, offset)) == value
    reader = RecordReader(path, kind)
    assert reader.read_many(2) == RECORDS[:2] and reader.offset == 35
    assert reader.read_many(2) == RECORDS[2:] and reader.read_many(2) == []


def test_a_growing_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(PLAIN[:25])
    reader = RecordReader(path, to_be_continued=True)
    assert list(reader) == RECORDS[:1] and list(reader) == []
    with path.open("ab") as file:
        file.write(PLAIN[25:])
    assert list(reader) == RECORDS[1:]


def test_splitting_a_buffer() -> None:
    assert records.split(PLAIN) == (RECORDS, len(PLAIN))
    assert records.split(PLAIN[:-1]) == (RECORDS[:2], 35)
    assert records.split(b"") == ([], 0)
    with pytest.raises(errors.DataLossError, match="p; corrupted record at 135"):
        records.split(PLAIN[:-1] + b"?", "p", 100)


def test_every_truncation(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for end in range(len(PLAIN)):
        path.write_bytes(PLAIN[:end])
        whole = [begin for begin in (19, 35) if begin <= end]
        reader = RecordReader(path)
        assert reader.read_many(len(whole)) == RECORDS[: len(whole)]
        if end in (0, 19, 35):
            assert list(reader) == []
        else:
            with pytest.raises(errors.DataLossError, match=f"a; truncated record at {[0, *whole][-1]}"):
                next(reader)


def test_every_flipped_bit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for bit in range(8 * len(PLAIN)):
        damaged = bytearray(PLAIN)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        number = sum(begin <= bit // 8 for begin in (19, 35))
        reader = RecordReader(path)
        assert reader.read_many(number) == RECORDS[:number]
        for _ in range(2):
            where = (0, 19, 35)[number]
            with pytest.raises(errors.DataLossError, match=f"a; corrupted record at {where}$"):
                next(reader)


@given(st.binary(max_size=200), st.sampled_from(["", "ZLIB", "GZIP"]), st.booleans())
def test_any_bytes(data: bytes, kind: str, whole: bool) -> None:
    """Bytes that are no records end in DataLossError, or give what they hold."""
    start = {"": PLAIN, "ZLIB": ZLIB, "GZIP": GZIP}[kind] if whole else b""
    with tf.gfile.GFile("memory://records/any", "wb") as file:
        file.write(start + data)
    try:
        size = sum(map(len, io.tf_record_iterator("memory://records/any", kind)))
        assert size <= 1032 * (len(start) + len(data))  # deflate's greatest growth
    except errors.DataLossError as error:
        assert "memory://records/any" in error.message


def test_a_length_beyond_the_file_allocates_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(records._header(2**62) + b"abc")
    with pytest.raises(errors.DataLossError, match="truncated record at 0"):
        list(io.tf_record_iterator(str(path)))


def test_wrong_compression(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(PLAIN)
    (tmp_path / "gzip").write_bytes(GZIP)
    with pytest.raises(errors.DataLossError, match="inflate\\(\\) failed"):
        list(io.tf_record_iterator(str(tmp_path / "plain"), io.TFRecordOptions(kinds.GZIP)))
    with pytest.raises(errors.DataLossError, match="corrupted record at 0"):
        list(io.tf_record_iterator(str(tmp_path / "gzip")))
    (tmp_path / "gzip").write_bytes(GZIP[:-3])
    reader = io.tf_record_iterator(str(tmp_path / "gzip"), "GZIP")
    assert next(reader) == b"abc"
    with pytest.raises(errors.DataLossError, match="the compressed data end early"):
        next(reader)
    with pytest.raises(errors.InvalidArgumentError, match="Unknown compression type: 'LZ4'"):
        RecordReader(tmp_path / "gzip", "LZ4")


def test_options() -> None:
    assert io.TFRecordOptions.compression_type_map == {0: "", 1: "ZLIB", 2: "GZIP"}
    names = io.TFRecordOptions.get_compression_type_string
    assert [names(each) for each in (None, "", 0, 1, "GZIP", io.TFRecordOptions(kinds.ZLIB))] == [
        "", "", "", "ZLIB", "GZIP", "ZLIB",
    ]  # fmt: skip
    for wrong in ("foo", 9):
        with pytest.raises(ValueError, match=f'Not a valid compression_type: "{wrong}"'):
            io.TFRecordOptions(wrong)


def test_levels(tmp_path: Path) -> None:
    text = [b"abcdefgh" * 1000]
    sizes = [
        len(written(tmp_path / "a", text, io.TFRecordOptions("ZLIB", compression_level=n, window_bits=12)))
        for n in (0, 9)
    ]
    assert sizes[0] > 8000 and sizes[1] < 200
    assert list(io.tf_record_iterator(str(tmp_path / "a"), "ZLIB")) == text


def test_writing(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    with io.TFRecordWriter(path) as writer:
        writer.write(b"a")
        assert (tmp_path / "a").stat().st_size == 0
        writer.flush()
        assert (tmp_path / "a").stat().st_size == 17
        with pytest.raises(TypeError, match="expected bytes, str found"):
            writer.write("text")  # type: ignore[arg-type]
    writer.close()
    for act in (lambda: writer.write(b""), writer.flush):
        with pytest.raises(errors.FailedPreconditionError, match="not initialized or previously closed"):
            act()
    with pytest.raises(errors.NotFoundError, match="no/a; No such file"):
        io.TFRecordWriter(str(tmp_path / "no/a"))
    with pytest.raises(errors.NotFoundError, match="no; No such file"):
        list(io.tf_record_iterator(str(tmp_path / "no")))


@pytest.mark.parametrize("kind", ["ZLIB", "GZIP"])
def test_flushing_compressed_records(tmp_path: Path, kind: str) -> None:
    with io.TFRecordWriter(str(tmp_path / "a"), kind) as writer:
        writer.write(b"a")
        writer.flush()
        reader = io.tf_record_iterator(str(tmp_path / "a"), kind)
        assert next(reader) == b"a"


def test_a_full_disk() -> None:
    with pytest.raises(errors.ResourceExhaustedError, match="/dev/full; No space left"):
        io.TFRecordWriter("/dev/full").write(b"x" * 10**6)
