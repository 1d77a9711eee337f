"""RecordInput: every record once an epoch, in an order of the seed; its names and batches; what fails."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.ops.readers.record_input import RecordInput

FILES, RECORDS = 5, 40
ALL = sorted(b"%d.%d" % (file, i) for file in range(FILES) for i in range(RECORDS))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for file in range(FILES):
        for name, kind in ((f"{file}.records", ""), (f"{file}.zlib", "ZLIB")):
            with tf.python_io.TFRecordWriter(name, kind) as writer:
                for i in range(RECORDS):
                    writer.write(b"%d.%d" % (file, i))
    Path("none").write_bytes(b"")
    Path("cut").write_bytes(Path("0.records").read_bytes()[:-3])
    return tmp_path


def taken(count: int, pattern: str = "*.records", **keywords: Any) -> list[bytes]:
    """The records of so many steps of one session."""
    with tf.Graph().as_default(), tf.Session() as session:
        records = RecordInput(pattern, **keywords).get_yield_op()
        return [record for _ in range(count) for record in session.run(records).tolist()]


@pytest.mark.parametrize("parallelism", [1, 3, 16])
@pytest.mark.parametrize("buffer_size", [1, 7, 1000])
def test_every_epoch_has_every_record(parallelism: int, buffer_size: int) -> None:
    found = taken(20, batch_size=30, buffer_size=buffer_size, parallelism=parallelism)
    for epoch in range(3):
        assert sorted(found[epoch * len(ALL) : (epoch + 1) * len(ALL)]) == ALL
    assert found[: len(ALL)] != found[len(ALL) : 2 * len(ALL)]


def test_the_order_is_the_seeds() -> None:
    first, again, other = (
        taken(12, batch_size=50, buffer_size=30, parallelism=1, seed=seed) for seed in (1, 1, 2)
    )
    assert first == again != other


def test_chance_chooses_within_the_buffer() -> None:
    in_order = taken(1, batch_size=len(ALL))
    files = [int(record[:1]) for record in in_order]
    assert in_order == [b"%d.%d" % (file, i % RECORDS) for i, file in enumerate(files)]
    assert len({*files[::RECORDS]}) == FILES
    mixed = taken(1, batch_size=len(ALL), buffer_size=10)
    assert mixed != in_order
    # The n-th record cannot come before all but nine of those before it.
    assert all(mixed.index(record) >= place - 9 for place, record in enumerate(in_order))


def test_files_are_turned_by_the_ratio() -> None:
    def order(ratio: float) -> list[bytes]:
        return [record[:1] for record in taken(1, batch_size=len(ALL), shift_ratio=ratio)[::RECORDS]]

    files = order(0)
    assert order(0.4) == files[-2:] + files[:-2]
    assert order(1) == order(0.1) == files


def test_batches_and_names_are_tensorflows() -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        plain = RecordInput("*.records", batch_size=3).get_yield_op()
        assert plain.name == "RecordInput:0" and plain.shape.ndims is None
        source = RecordInput("*.records", batch_size=3, batches=2, name="rr")
        first, second = source.get_yield_op()
        assert [x.name for x in first] == ["rr_1/Reshape:0", "rr_1/Reshape_2:0", "rr_1/Reshape_4:0"]
        assert {tuple(x.shape) for x in (*first, *second)} == {()}
        assert graph.get_operation_by_name("rr").get_attr("batch_size") == 6
        values = session.run([first, second])
        number = [int(each.split(b".")[1]) for each in [*values[0], *values[1]]]
        assert number == [0, 2, 4, 1, 3, 5]
    with pytest.raises(ValueError, match="at least 1"):
        RecordInput("x", batches=0)


def test_compressed_files() -> None:
    kind = tf.python_io.TFRecordCompressionType.ZLIB
    assert sorted(taken(4, "*.zlib", batch_size=50, compression_type=kind)) == ALL


def test_two_nodes_and_threads_share_nothing_wrongly() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        records = RecordInput("*.records", batch_size=10, buffer_size=20, parallelism=2).get_yield_op()
        found: list[bytes] = []

        def steps() -> None:
            for _ in range(5):
                found.extend(session.run(records).tolist())

        threads = [threading.Thread(target=steps) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(found) == ALL


@pytest.mark.parametrize(
    ("pattern", "kind", "message"),
    [
        ("nothing*", tf.errors.NotFoundError, r"Found no files at nothing\*"),
        ("none", tf.errors.OutOfRangeError, "No records in the files none"),
        ("cut", tf.errors.DataLossError, "cut; truncated record at"),
        ("0.zlib", tf.errors.DataLossError, "0.zlib; corrupted record at 0"),
    ],
)
def test_files_that_give_none(pattern: str, kind: type[Exception], message: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        records = RecordInput(pattern, batch_size=200, parallelism=2).get_yield_op()
        for _ in range(2):
            with pytest.raises(kind, match=message):
                session.run(records)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch_size", -1),
        ("file_buffer_size", 0),
        ("file_parallelism", 0),
        ("file_shuffle_shift_ratio", 1.5),
    ],
)
def test_attributes_that_say_nothing(name: str, value: float) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"{name} must be.*{value}"):
            session.run(F.RecordInput(file_pattern="*.records", **{name: value}))
        assert session.run(F.RecordInput(file_pattern="*.records", batch_size=0)).shape == (0,)


def test_threads_end_with_the_session() -> None:
    before = {*threading.enumerate()}
    taken(1, batch_size=3, parallelism=4)
    for thread in {*threading.enumerate()} - before:
        if thread.name == "flowstone dataset":
            thread.join(10)
            assert not thread.is_alive()
