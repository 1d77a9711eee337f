"""Datasets of files give their records, end files that are damaged, and go on where they were."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_bytes(b"l1\nl2\r\n\nlast")
    (tmp_path / "b").write_bytes(b"only\n")
    (tmp_path / "x").write_bytes(b"HHaabbccF")
    with gzip.open("g", "wb") as file:
        file.write(b"l1\nl2")
    with tf.python_io.TFRecordWriter("r") as writer:
        for i in range(5):
            writer.write(b"record %d" % i)
    (tmp_path / "damaged").write_bytes(Path("r").read_bytes()[:60] + b"!" * 40)
    return tmp_path


def elements(make: Any) -> list[Any]:
    """The elements, and the class of what is raised between them."""
    with tf.Graph().as_default(), tf.Session() as session:
        dataset = make()
        assert dataset.output_types is tf.string
        found: list[Any] = []
        following = dataset.make_one_shot_iterator().get_next()
        for _ in range(20):
            try:
                value = session.run(following)
                found.append(value if isinstance(value, bytes) else value.tolist())
            except tf.errors.OutOfRangeError:
                return found
            except tf.errors.OpError as error:
                found.append(type(error).__name__)
        return found


RECORDS = [b"record %d" % i for i in range(5)]


def test_text_lines() -> None:
    assert elements(lambda: tf.data.TextLineDataset(["a", "b"])) == [b"l1", b"l2", b"", b"last", b"only"]
    assert elements(lambda: tf.data.TextLineDataset("b")) == [b"only"]
    assert elements(lambda: tf.data.TextLineDataset("g", "GZIP")) == [b"l1", b"l2"]
    assert elements(lambda: tf.data.TextLineDataset(["nope", "b"])) == ["NotFoundError", b"only"]


def test_records() -> None:
    assert elements(lambda: tf.data.TFRecordDataset(["r", "r"])) == RECORDS * 2
    assert elements(lambda: tf.data.TFRecordDataset(["r"]).batch(3)) == [RECORDS[:3], RECORDS[3:]]
    assert elements(lambda: tf.data.TFRecordDataset(["damaged", "r"])) == [
        *RECORDS[:2],
        "DataLossError",
        *RECORDS,
    ]


def test_batches_lose_what_came_before_an_error() -> None:
    found = elements(lambda: tf.data.TFRecordDataset(["damaged", "r"]).batch(4))
    assert found == ["DataLossError", RECORDS[:4], RECORDS[4:]]


def test_records_of_a_fixed_length() -> None:
    assert elements(lambda: tf.data.FixedLengthRecordDataset(["x"], 2, 2, 1)) == [b"aa", b"bb", b"cc"]
    assert elements(lambda: tf.data.FixedLengthRecordDataset(["x", "x"], 3)) == [b"HHa", b"abb", b"ccF"] * 2
    assert elements(lambda: tf.data.FixedLengthRecordDataset(["g"], 5, compression_type="GZIP")) == [
        b"l1\nl2"
    ]
    assert elements(lambda: tf.data.FixedLengthRecordDataset(["x"], 4)) == ["InvalidArgumentError"]


def test_names_of_a_dataset() -> None:
    def make() -> Any:
        return tf.data.TFRecordDataset(tf.data.Dataset.from_tensor_slices(["r", "r"]))

    assert elements(make) == RECORDS * 2


def test_matching_files() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        variant = F.MatchingFilesDataset(["[ab]", "x"])
        handle = F.IteratorV2(output_types=[tf.string], output_shapes=[[]], shared_name="", container="")
        session.run(F.MakeIterator(variant, handle))
        following = F.IteratorGetNext(handle, output_types=[tf.string], output_shapes=[[]])
        assert [session.run(following)[0] for _ in range(3)] == [b"./a", b"./b", b"x"]


def test_iterators_go_on_where_they_were() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        iterator = tf.data.TFRecordDataset(["r", "r"]).make_initializable_iterator()
        following = iterator.get_next()
        session.run(iterator.initializer)
        for _ in range(6):
            session.run(following)
        state = session.run(F.SerializeIterator(iterator._iterator_resource))
        rest = [session.run(following) for _ in range(4)]
        session.run(iterator.initializer)
        holder = tf.placeholder(tf.variant, [None])
        session.run(F.DeserializeIterator(iterator._iterator_resource, holder), {holder: state})
        assert [session.run(following) for _ in range(4)] == rest == RECORDS[1:]


def test_records_of_several_files_in_turn(tmp_path: Path) -> None:
    names = []
    for number in range(3):
        names.append(str(tmp_path / f"{number}"))
        with tf.python_io.TFRecordWriter(names[-1]) as writer:
            for record in range(4 - number):
                writer.write(b"%d%d" % (number, record))
    expected = {  # TensorFlow 1.15's
        None: "00 01 02 03 10 11 12 20 21",
        1: "00 01 02 03 10 11 12 20 21",
        2: "00 10 01 11 02 12 03 20 21",
        3: "00 10 20 01 11 21 02 12 03",
        5: "00 10 20 01 11 21 02 12 03",
    }
    for count, records in expected.items():
        for filenames in (names, tf.data.Dataset.from_tensor_slices(names)):
            dataset = tf.data.TFRecordDataset(filenames, num_parallel_reads=count)
            assert isinstance(dataset, tf.data.TFRecordDataset)
            element = dataset.make_one_shot_iterator().get_next()
            with tf.Session() as session:
                found = [session.run(element).decode() for _ in records.split()]
                assert found == records.split()
                with pytest.raises(tf.errors.OutOfRangeError):
                    session.run(element)
    single = tf.data.TFRecordDataset(names[0], num_parallel_reads=2).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run(single) == b"00"
