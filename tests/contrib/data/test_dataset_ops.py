"""`tf.contrib.data`: its Datasets with methods, and the transformations that `tf.data.experimental` lacks.

The windows are those of TensorFlow 1.15.5; the rest follows from what the methods say.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

contrib = tf.contrib.data
D = contrib.Dataset


def plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(plain(each) for each in value)
    return value if isinstance(value, bytes) else value.tolist()


def elements(dataset: Any) -> list[Any]:
    following = dataset.make_one_shot_iterator().get_next()
    found = []
    with tf.Session() as session:
        try:
            while True:
                value = session.run(following)
                found.append(plain(value))
        except tf.errors.OutOfRangeError:
            return found


def test_methods_give_datasets_with_methods() -> None:
    dataset = D.range(6).map(lambda x: x * 2, num_threads=2, output_buffer_size=3).filter(lambda x: x > 0)
    assert elements(dataset.enumerate(1)) == [(1, 2), (2, 4), (3, 6), (4, 8), (5, 10)]
    assert elements(dataset.batch(2).unbatch().skip(1).take(2).repeat(2)) == [4, 6, 4, 6]
    grouped = D.range(4).group_by_window(lambda x: x % 2, lambda key, window: window.batch(2), 2)
    assert elements(grouped) == [[0, 2], [1, 3]]
    assert elements(D.zip((D.range(2), D.range(5, 7)))) == [(0, 5), (1, 6)]
    assert elements(D.range(2).concatenate(D.range(1)).shard(2, 0)) == [0, 0]
    assert elements(D.range(2).flat_map(lambda x: D.from_tensors(x).repeat(2))) == [0, 0, 1, 1]
    assert elements(D.range(2).interleave(lambda x: D.from_tensors(x).repeat(2), 2)) == [0, 1, 0, 1]
    assert sorted(elements(D.range(3).shuffle(3).cache().prefetch(1))) == [0, 1, 2]
    padded = D.from_tensor_slices([[1], [2]]).padded_batch(2, [2]).apply(contrib.unbatch())
    assert elements(padded) == [[1, 0], [2, 0]]
    assert elements(D.from_generator(lambda: iter([1, 2]), tf.int32)) == [1, 2]
    sliced = D.from_tensors([1.0]).map(lambda x: tf.check_numerics(x / 0, "")).ignore_errors()
    assert elements(sliced) == []
    assert D.range(2).make_dataset_resource().dtype == tf.variant
    with pytest.raises(TypeError, match="must be a `Dataset`"):
        D(3)


def test_sparse_batches_and_slices() -> None:
    sparse = tf.SparseTensor([[0, 0], [1, 1]], [1, 2], [2, 2])
    for dataset in (D.from_sparse_tensor_slices(sparse), D.range(2).map(lambda x: [x])):
        assert isinstance(dataset, D)
    batch = D.range(2).map(lambda x: tf.fill([1], x)).dense_to_sparse_batch(2, [1])
    with tf.Session() as session:
        found = session.run(batch.make_one_shot_iterator().get_next())
    assert found.values.tolist() == [0, 1]


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"ab\ncd\n")
    assert elements(contrib.TextLineDataset(str(path)).take(1)) == [b"ab"]
    assert elements(contrib.FixedLengthRecordDataset(str(path), 3).skip(1)) == [b"cd\n"]
    assert elements(D.list_files(str(tmp_path / "*"))) == [str(path).encode()]
    records = str(tmp_path / "r")
    with tf.python_io.TFRecordWriter(records) as writer:
        writer.write(b"x")
    assert elements(contrib.TFRecordDataset(records).repeat(2)) == [b"x", b"x"]


def test_batches_of_one_size() -> None:
    assert elements(tf.data.Dataset.range(5).apply(contrib.batch_and_drop_remainder(2))) == [[0, 1], [2, 3]]
    vectors = D.range(3).map(lambda i: tf.fill([tf.cast(i + 1, tf.int32)], i))
    assert elements(vectors.apply(contrib.padded_batch_and_drop_remainder(2, [None]))) == [[[0, 0], [1, 1]]]


def test_windows() -> None:
    windows = contrib.sliding_window_batch(3, window_shift=2, window_stride=2)
    assert elements(D.range(9).apply(windows)) == [[0, 2, 4], [2, 4, 6], [4, 6, 8]]
    assert elements(D.range(5).apply(contrib.sliding_window_batch(1, stride=3))) == [[0], [3]]
    with pytest.raises(ValueError, match="both"):
        contrib.sliding_window_batch(3, 1, 1)


def test_reduced_and_checked() -> None:
    total = contrib.Reducer(lambda key: key, lambda state, x: state + x, lambda state: state * 10)
    with tf.Session() as session:
        assert session.run(contrib.reduce_dataset(D.range(4), total)) == 60
    with pytest.raises(TypeError):
        contrib.reduce_dataset(D.range(4), 3)
    unknown = D.from_tensors([1, 2]).map(lambda x: tf.py_func(lambda a: a, [x], tf.int32))
    assert unknown.apply(contrib.assert_element_shape([2])).output_shapes == [2]
    with pytest.raises(tf.errors.InvalidArgumentError):
        elements(unknown.apply(contrib.assert_element_shape([3])))
    with pytest.raises(ValueError):
        D.from_tensors([1]).apply(contrib.assert_element_shape([3]))


def test_sloppy_interleave() -> None:
    found = D.range(2).apply(contrib.sloppy_interleave(lambda x: tf.data.Dataset.from_tensors(x), 2))
    assert sorted(elements(found)) == [0, 1]


def test_no_database_of_that_kind() -> None:
    with pytest.raises(NotImplementedError, match="LMDBDataset: use "):
        contrib.LMDBDataset("x")
