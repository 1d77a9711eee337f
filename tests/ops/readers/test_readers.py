"""Readers give what TensorFlow 2.21 gives, with its keys and counts, and wait for their queue."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_bytes(b"l1\nl2\r\nl\r3\n\nlast")
    (tmp_path / "b").write_bytes(b"only\n")
    (tmp_path / "e").write_bytes(b"")
    (tmp_path / "x").write_bytes(b"HHaabbccddF")
    (tmp_path / "y").write_bytes(b"HHaabbccdF")
    (tmp_path / "z").write_bytes(zlib.compress(b"HHaabbccddF"))
    with tf.python_io.TFRecordWriter("r") as writer:
        for record in (b"one", b"", b"three"):
            writer.write(record)
    return tmp_path


def results(make: Callable[[], Any], files: list[str], up_to: int | None = None) -> list[tuple[Any, ...]]:
    """Keys and values, then how many records and works were read, of each read; at the end the counts."""
    with tf.Graph().as_default(), tf.Session() as session:
        queue = tf.FIFOQueue(10, tf.string)
        session.run(queue.enqueue_many([files]))
        session.run(queue.close())
        reader = make()
        read = reader.read(queue) if up_to is None else reader.read_up_to(queue, up_to)
        counts = [reader.num_records_produced(), reader.num_work_units_completed()]
        found: list[tuple[Any, ...]] = []
        while True:
            try:
                key, value = session.run(read)
            except tf.errors.OutOfRangeError:
                break
            if up_to is not None:
                key, value = key.tolist(), value.tolist()
            found.append((key, value, *map(int, session.run(counts))))
        found.append(tuple(map(int, session.run(counts))))
        session.run(reader.reset())
        assert [int(n) for n in session.run(counts)] == [0, 0]
    return found


def test_text_lines() -> None:
    assert results(tf.TextLineReader, ["a", "e", "b"]) == [
        (b"a:1", b"l1", 1, 0),
        (b"a:2", b"l2", 2, 0),
        (b"a:3", b"l\r3", 3, 0),
        (b"a:4", b"", 4, 0),
        (b"a:5", b"last", 5, 0),
        (b"b:1", b"only", 6, 2),
        (6, 3),
    ]
    assert results(lambda: tf.TextLineReader(skip_header_lines=2), ["a", "e", "b"]) == [
        (b"a:3", b"l\r3", 1, 0),
        (b"a:4", b"", 2, 0),
        (b"a:5", b"last", 3, 0),
        (3, 3),
    ]


def test_whole_files_and_the_queue_itself() -> None:
    assert results(tf.WholeFileReader, ["x", "e"]) == [
        (b"x", b"HHaabbccddF", 1, 1),
        (b"e", b"", 2, 2),
        (2, 2),
    ]
    assert results(tf.IdentityReader, ["p", "q"]) == [(b"p", b"p", 1, 1), (b"q", b"q", 2, 2), (2, 2)]
    assert results(tf.IdentityReader, ["p", "q"], 5) == [
        ([b"p"], [b"p"], 1, 1),
        ([b"q"], [b"q"], 2, 2),
        (2, 2),
    ]


def test_records() -> None:
    assert results(tf.TFRecordReader, ["r", "e", "r"]) == [
        (b"r:0", b"one", 1, 0),
        (b"r:19", b"", 2, 0),
        (b"r:35", b"three", 3, 0),
        (b"r:0", b"one", 4, 2),
        (b"r:19", b"", 5, 2),
        (b"r:35", b"three", 6, 2),
        (6, 3),
    ]


def test_several_at_once_are_of_one_file() -> None:
    first, rest = ([b"r:0", b"r:19"], [b"one", b""]), ([b"r:35"], [b"three"])
    assert results(tf.TFRecordReader, ["r", "e", "r"], 2) == [
        (*first, 2, 0),
        (*rest, 3, 1),
        (*first, 5, 2),
        (*rest, 6, 3),
        (6, 3),
    ]
    every = ([b"r:0", b"r:19", b"r:35"], [b"one", b"", b"three"])
    assert results(tf.TFRecordReader, ["r", "e", "r"], 5) == [(*every, 3, 1), (*every, 6, 3), (6, 3)]


def test_records_of_a_fixed_length() -> None:
    four = [(b"%d" % i, 2 * bytes([97 + i])) for i in range(4)]

    def numbered(name: bytes, count: int) -> list[tuple[Any, ...]]:
        return [(name + b":" + key, value, i + 1, 0) for i, (key, value) in enumerate(four[:count])]

    make: Callable[[], Any] = lambda: tf.FixedLengthRecordReader(2, 2, 1)  # noqa: E731
    assert results(make, ["x"]) == [*numbered(b"x", 4), (4, 1)]
    assert results(make, ["y"]) == [*numbered(b"y", 3), (3, 1)]
    packed = lambda: tf.FixedLengthRecordReader(2, 2, 1, encoding="ZLIB")  # noqa: E731
    assert results(packed, ["z"]) == [*numbered(b"z", 4), (4, 1)]
    assert results(lambda: tf.FixedLengthRecordReader(20, 2, 1), ["x"]) == [(0, 1)]
    assert [each[1] for each in results(lambda: tf.FixedLengthRecordReader(3, 2, 1, 2), ["x"])[:-1]] == [
        b"aab",
        b"bbc",
        b"ccd",
    ]
    assert [each[1] for each in results(lambda: tf.FixedLengthRecordReader(3, 2, 1, 5), ["x"])[:-1]] == [
        b"aab",
        b"cdd",
    ]


@pytest.mark.parametrize(
    ("make", "file", "error"),
    [
        (tf.WholeFileReader, "nope", tf.errors.NotFoundError),
        (tf.TextLineReader, "nope", tf.errors.NotFoundError),
        (tf.TFRecordReader, "a", tf.errors.DataLossError),
    ],
)
def test_what_cannot_be_read_is_left(make: Any, file: str, error: type[Exception]) -> None:
    """The next read takes the next name."""
    with tf.Graph().as_default(), tf.Session() as session:
        queue = tf.FIFOQueue(10, tf.string)
        session.run(queue.enqueue_many([[file, "r"]]))
        read = make().read(queue)
        with pytest.raises(error, match=file):
            session.run(read)
        key, _ = session.run(read)
        assert key.startswith(b"r")


def test_states_are_saved() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        queue = tf.FIFOQueue(10, tf.string)
        session.run(queue.enqueue_many([["a", "b"]]))
        reader, other = tf.WholeFileReader(), tf.WholeFileReader(name="other")
        assert reader.supports_serialize
        session.run(reader.read(queue))
        state = session.run(reader.serialize_state())
        assert state == b"\x08\x01\x10\x01\x18\x01"
        session.run(other.restore_state(state))
        assert session.run(other.num_records_produced()) == 1
        for bad in (b"\xff", b"\x08\x01\x10\x02", b"\x08" + b"\xff" * 9 + b"\x01"):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(other.restore_state(bad))
        lines = tf.TextLineReader()
        assert not lines.supports_serialize
        with pytest.raises(tf.errors.UnimplementedError):
            session.run(lines.serialize_state())


def test_reads_wait_without_a_thread_and_in_order() -> None:
    """Reads of many steps wait for a name; a cancelled one leaves, the others share the records."""
    with tf.Graph().as_default(), tf.Session() as session:
        queue = tf.FIFOQueue(10, tf.string)
        name = tf.placeholder(tf.string)
        enqueue, read = queue.enqueue(name), tf.TextLineReader().read(queue)
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(read, options=tf.RunOptions(timeout_in_ms=50))
        found: list[bytes] = []
        threads = [threading.Thread(target=lambda: found.append(session.run(read)[1])) for _ in range(6)]
        for thread in threads:
            thread.start()
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(read, options=tf.RunOptions(timeout_in_ms=50))
        session.run(enqueue, {name: "a"})
        session.run(enqueue, {name: "b"})
        for thread in threads:
            thread.join()
        assert sorted(found) == sorted([b"l1", b"l2", b"l\r3", b"", b"last", b"only"])


def test_references() -> None:
    """The ops of older graphs, on references."""
    with tf.Graph().as_default(), tf.Session() as session:
        queue = F.FIFOQueue(component_types=[tf.string])
        reader = tf.ReaderBase(F.TextLineReader())
        session.run(F.QueueEnqueueMany(queue, [["a", "b"]]))
        assert [session.run(reader.read(queue))[1] for _ in range(2)] == [b"l1", b"l2"]
        keys, _ = session.run(reader.read_up_to(queue, 10))
        assert keys.tolist() == [b"a:3", b"a:4", b"a:5"]
        assert session.run([reader.num_records_produced(), reader.num_work_units_completed()]) == [5, 1]
        session.run(reader.reset())


def test_wrong_queues_and_lengths() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        numbers = tf.FIFOQueue(10, tf.int32)
        with pytest.raises(tf.errors.InvalidArgumentError, match="strings"):
            session.run(tf.IdentityReader().read(numbers))
        queue = tf.FIFOQueue(10, tf.string)
        with pytest.raises(tf.errors.InvalidArgumentError, match="positive"):
            session.run(tf.IdentityReader().read_up_to(queue, 0))
        with pytest.raises(tf.errors.InvalidArgumentError, match="record_bytes"):
            session.run(tf.FixedLengthRecordReader(0).read(queue))


def test_databases_say_what_they_need(folder: Path) -> None:
    """With the package lmdb a file that is no database is refused; without, its name is in the error."""
    with tf.Graph().as_default(), tf.Session() as session:
        queue = tf.FIFOQueue(10, tf.string)
        session.run(queue.enqueue("a"))
        refusals = (tf.errors.UnimplementedError, tf.errors.InvalidArgumentError)
        with pytest.raises(refusals, match=r"lmdb|MDB|a:"):
            session.run(tf.LMDBReader().read(queue))
