"""Transformations that choose, bucket, reduce and read; the values are those of TensorFlow 1.15.5."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

D, E = tf.data.Dataset, tf.data.experimental


def elements(dataset: Any, most: int = 50) -> list[Any]:
    """The elements, arrays as lists."""
    following = dataset.make_one_shot_iterator().get_next()
    found: list[Any] = []
    with tf.Session() as session:
        try:
            while len(found) < most:
                found.append(plain(session.run(following)))
        except tf.errors.OutOfRangeError:
            pass
    return found


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(value[key]) for key in value}
    if isinstance(value, tuple):
        return tuple(plain(each) for each in value)
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def lengths(count: int) -> Any:
    """count vectors: i + 1 times i."""
    return D.range(count).map(lambda i: tf.fill([tf.cast(i + 1, tf.int32)], i))


def refusal(make: Callable[[], Any]) -> type:
    with pytest.raises(Exception) as caught:
        make()
    return caught.type


def test_choices_pass_over_datasets_that_have_ended() -> None:
    choices = D.from_tensor_slices(np.array([0, 1, 0, 1, 0, 0, 1], np.int64))
    assert elements(E.choose_from_datasets([D.range(2), D.range(10, 20)], choices)) == [0, 10, 1, 11, 12]
    assert refusal(lambda: E.choose_from_datasets([D.range(2)], D.from_tensors(1.0))) is TypeError
    wrong = E.choose_from_datasets([D.range(2)], D.from_tensors(np.int64(3)))
    assert refusal(lambda: elements(wrong)) is tf.errors.InvalidArgumentError


def test_samples_come_from_datasets_of_positive_weight() -> None:
    parts = [D.from_tensors(i).repeat() for i in range(3)]
    found = elements(E.sample_from_datasets(parts, [0.5, 0.0, 0.5], seed=3), 60)
    assert set(found) == {0, 2}
    assert set(elements(E.sample_from_datasets(parts, seed=3), 60)) == {0, 1, 2}
    rows = D.from_tensors([0.0, 1.0, 0.0]).repeat(4)
    assert elements(E.sample_from_datasets(parts, rows)) == [1] * 4
    assert refusal(lambda: E.sample_from_datasets(parts, [0.5, 0.5])) is ValueError
    assert refusal(lambda: E.sample_from_datasets(parts, [1, 2, 3])) is TypeError


def test_resampled_classes_are_distributed_as_wanted() -> None:
    source = D.range(4000).map(lambda i: tf.cast(tf.equal(i % 4, 0), tf.int32))  # a quarter of class 1
    for initial in (None, [0.75, 0.25]):
        resampled = source.apply(E.rejection_resample(lambda x: x, [0.5, 0.5], initial, seed=5))
        found = elements(resampled, 600)
        assert all(number == value for number, value in found)
        assert 0.4 < np.mean([number for number, _ in found]) < 0.6  # 600 draws: four deviations are 0.08


@pytest.mark.parametrize(
    ("initial", "count", "first"),
    [
        (None, 90, [1, 0, 1, 1, 0, 1, 2, 0, 1, 2, 1, 0, 1, 0, 0, 1, 1, 1, 2, 0, 1, 0, 1, 1]),
        ([0.3, 0.3, 0.4], 166, [1, 0, 0, 1, 1, 1, 2, 0, 1, 2, 0, 1, 0, 1, 0, 1, 1, 1, 0, 1, 0, 1, 1, 1]),
    ],
)
def test_resampled_classes_are_those_of_tensorflow(
    initial: list[float] | None, count: int, first: list[int]
) -> None:
    """TensorFlow 1.15 gives these elements: a share of them as they come, without any rejected."""
    tf.set_random_seed(3)
    source = D.from_tensor_slices(np.arange(120) % 3)
    resample = E.rejection_resample(lambda x: tf.cast(x, tf.int32), [0.2, 0.7, 0.1], initial, seed=9)
    found = [number for number, _ in elements(source.apply(resample), 200)]
    assert len(found) == count and found[:24] == first


def test_classes_that_are_as_wanted_stay() -> None:
    source = D.range(30).repeat()
    resample = E.rejection_resample(lambda x: tf.cast(x % 2, tf.int32), [0.5, 0.5], [0.5, 0.5], seed=4)
    assert len(elements(source.apply(resample), 100)) == 100  # does not wait for elements that nothing keeps
    assert len(elements(source.take(9).apply(resample), 100)) >= 9  # and ends


def test_numbers_without_end() -> None:
    assert elements(E.Counter(5, 3), 4) == [5, 8, 11, 14]
    assert elements(E.Counter(1.5, -1, tf.float32), 2) == [1.5, 0.5]
    drawn = elements(E.RandomDataset(seed=1), 20)
    assert len(set(drawn)) == 20
    assert min(drawn) >= 0 and max(drawn) < 2**32


def test_each_once_and_while_something_holds() -> None:
    assert elements(D.from_tensor_slices([3, 1, 3, 2, 1]).apply(E.unique())) == [3, 1, 2]
    assert elements(D.from_tensor_slices(["a", "b", "a"]).apply(E.unique())) == [b"a", b"b"]
    assert refusal(lambda: D.from_tensors(1.0).apply(E.unique())) is TypeError
    assert elements(D.from_tensor_slices([1, 2, 9, 1]).apply(E.take_while(lambda x: x < 5))) == [1, 2]
    assert refusal(lambda: D.range(3).apply(E.take_while(lambda x: x))) is ValueError


def test_parallel_interleave() -> None:
    found = D.range(3).apply(E.parallel_interleave(lambda i: D.from_tensors(i).repeat(2), cycle_length=2))
    assert elements(found) == [0, 1, 0, 1, 2, 2]


def test_buckets() -> None:
    whole = E.bucket_by_sequence_length(tf.size, [3, 6, 20], [2, 2, 2, 2], pad_to_bucket_boundary=True)
    found = elements(lengths(6).apply(whole))
    assert found == [[[0, 0], [1, 1]], [[2, 2, 2, 0, 0], [3, 3, 3, 3, 0]], [[4] * 5], [[5] * 6 + [0] * 13]]
    longest = E.bucket_by_sequence_length(tf.size, [3], [2, 3])
    assert elements(lengths(3).apply(longest)) == [[[0, 0], [1, 1]], [[2, 2, 2]]]
    dropping = E.bucket_by_sequence_length(tf.size, [3], [2, 3], drop_remainder=True)
    assert elements(lengths(3).apply(dropping)) == [[[0, 0], [1, 1]]]
    bare = E.bucket_by_sequence_length(lambda x: x, [2], [2, 2], no_padding=True)
    assert elements(D.range(4).apply(bare)) == [[0, 1], [2, 3]]
    assert refusal(lambda: E.bucket_by_sequence_length(tf.size, [3], [2])) is ValueError
    short = E.bucket_by_sequence_length(tf.size, [2], [2, 2], pad_to_bucket_boundary=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have length < max"):
        elements(lengths(3).apply(short))
    of_known_sizes = E.bucket_by_sequence_length(lambda x: x, [2], [2, 2], pad_to_bucket_boundary=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have length < max"):
        elements(D.range(4).apply(of_known_sizes))


def test_a_row_that_is_too_long_begins_a_batch_anew() -> None:
    """As in TensorFlow 1.15: what was taken before it is dropped with it."""
    rows = D.range(1, 7).map(lambda n: tf.ones([tf.where(tf.equal(n, 4), 5, 1)]))
    following = rows.apply(E.dense_to_sparse_batch(2, [4])).make_one_shot_iterator().get_next()
    sizes = []
    with tf.Session() as session:
        for _ in range(3):
            try:
                sizes.append(len(session.run(following).values))
            except tf.errors.DataLossError as error:
                sizes.append(error.message.partition(" (inputs")[0])
    assert sizes == [2, "Input element had shape ([5]) that is larger than the row shape ([4]).", 2]


def test_reducers() -> None:
    pairs = E.Reducer(lambda key: (key, key), lambda s, x: (s[0] + x, s[1]), lambda a, b: a + b)
    assert elements(D.range(5).apply(E.group_by_reducer(lambda x: x % 2, pairs))) == [6, 6]


def test_transfers_keep_the_elements() -> None:
    for transfer in (E.prefetch_to_device("/cpu:0"), E.copy_to_device("/cpu:0")):
        assert elements(D.range(3).apply(transfer)) == [0, 1, 2]


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "a.csv"
    path.write_text('a,b,c\n1,2.5,x\n2,,y\n3000000000,1,"q,r"\n')
    return str(path)


def test_lines_of_a_table(table: str) -> None:
    rows = E.CsvDataset(table, [tf.int64, 1.5, tf.string], header=True)
    assert elements(rows) == [(1, 2.5, b"x"), (2, 1.5, b"y"), (3000000000, 1.0, b"q,r")]
    some = E.CsvDataset(table, [tf.int64, ""], header=True, select_cols=[0, 2])
    assert elements(some) == [(1, b"x"), (2, b"y"), (3000000000, b"q,r")]


def test_columns_of_a_table(table: str) -> None:
    batches = E.make_csv_dataset(table, 2, num_epochs=1, shuffle=False, label_name="c")
    assert batches.output_types == ({"a": tf.int64, "b": tf.float32}, tf.string)
    assert elements(batches) == [
        ({"a": [1, 2], "b": [2.5, 0.0]}, [b"x", b"y"]),
        ({"a": [3000000000], "b": [1.0]}, [b"q,r"]),
    ]
    some = E.make_csv_dataset(table, 2, num_epochs=1, shuffle=False, select_columns=["a", "c"])
    assert elements(some)[1] == {"a": [3000000000], "c": [b"q,r"]}
    assert refusal(lambda: E.make_csv_dataset(table, 2, label_name="z")) is ValueError


def test_batches_of_examples(tmp_path: Path) -> None:
    path = str(tmp_path / "examples")
    with tf.python_io.TFRecordWriter(path) as writer:
        for i in range(5):
            value = tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))
            features = tf.train.Features(feature={"a": value})
            writer.write(tf.train.Example(features=features).SerializeToString())
    wanted = {"a": tf.FixedLenFeature([], tf.int64)}
    batches = E.make_batched_features_dataset(path, 2, wanted, num_epochs=1, shuffle=False)
    assert elements(batches) == [{"a": [0, 1]}, {"a": [2, 3]}, {"a": [4]}]
    labelled = E.make_batched_features_dataset(path, 2, wanted, num_epochs=1, shuffle=False, label_key="a")
    assert elements(labelled)[0] == ({}, [0, 1])
    parsed = tf.data.TFRecordDataset(path).batch(5).apply(E.parse_example_dataset(wanted))
    assert elements(parsed) == [{"a": [0, 1, 2, 3, 4]}]
    batch = tf.contrib.data.read_batch_features(path, 2, wanted, num_epochs=1, randomize_input=False)
    with tf.Session() as session:
        assert session.run(batch)["a"].tolist() == [0, 1]


@pytest.mark.parametrize(
    "name", ["TFRecordWriter"],
)  # fmt: skip
def test_what_is_refused_names_another_way(name: str) -> None:
    with pytest.raises(NotImplementedError, match=f"{name}: use "):
        getattr(E, name)(None)
