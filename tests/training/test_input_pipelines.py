"""Input pipelines are built as TensorFlow builds them, and deliver their input."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.training import pipeline_programs

import flowstone as tf
from stepping import own_threads

GOLDEN = Path(__file__).parents[1] / "golden" / "training" / "pipelines.txt"


def golden_lines() -> dict[str, list[str]]:
    sections = GOLDEN.read_text(encoding="utf-8").split("# ")[1:]
    return {lines[0]: lines[1:] for lines in (section.strip().split("\n") for section in sections)}


GOLDENS = golden_lines()


def test_every_program_has_its_description() -> None:
    assert list(GOLDENS) == list(pipeline_programs.PROGRAMS)


@pytest.mark.parametrize("name", pipeline_programs.PROGRAMS)
def test_graph(name: str) -> None:
    assert pipeline_programs.described(tf, name) == GOLDENS[name]


# ---- building


def _tensor() -> tf.Tensor:
    return tf.constant([1.0, 2.0])


def _sparse(rank: int = 2) -> tf.SparseTensor:
    return tf.SparseTensor([[0] * rank], [1.0], [3] * rank)


MISTAKES: dict[str, tuple[type[Exception], str, Callable[[], object]]] = {
    "no tensors": (ValueError, "Expected at least one tensor in batch", lambda: tf.train.batch([], 2)),
    "empty dict": (ValueError, "Expected at least one tensor in batch", lambda: tf.train.batch({}, 2)),
    "a tensor": (TypeError, "iter", lambda: tf.train.batch(_tensor(), 2)),
    "unknown rank": (
        ValueError, "Cannot infer Tensor's rank", lambda: tf.train.batch([tf.placeholder(tf.float32)], 2)
    ),
    "unknown shape": (
        ValueError, "All shapes must be fully defined",
        lambda: tf.train.batch([tf.placeholder(tf.float32, [None])], 2),
    ),
    "no examples": (
        ValueError, "must have rank at least 1",
        lambda: tf.train.batch([tf.constant(1)], 2, enqueue_many=True),
    ),
    "other shapes": (ValueError, "incompatible", lambda: tf.train.batch([_tensor()], 2, shapes=[[3]])),
    "vector to keep": (
        ValueError, "`keep_input` cannot be a vector when `enqueue_many=False`",
        lambda: tf.train.maybe_batch([_tensor()], [True, False], 2),
    ),
    "matrix to keep": (
        ValueError, "`keep_input` must be 0 or 1 dimensions",
        lambda: tf.train.maybe_batch([_tensor()], [[True]], 2, enqueue_many=True),
    ),
    "unknown to keep": (
        ValueError, "`keep_input` dimensions must be known",
        lambda: tf.train.maybe_batch([_tensor()], tf.placeholder(tf.bool), 2),
    ),
    "nothing to join": (
        ValueError, "Expected at least one set of tensors", lambda: tf.train.batch_join([], 2)
    ),
    "other types": (
        TypeError, "Expected types to be consistent: float32 vs. int32",
        lambda: tf.train.batch_join([[_tensor()], [tf.constant(1)]], 2),
    ),
    "other keys": (
        ValueError, "All dictionaries in tensors_list must have the same keys",
        lambda: tf.train.batch_join([{"a": _tensor()}, {"b": _tensor()}], 2),
    ),
    "list and dict": (
        ValueError, "All dictionaries in tensors_list must have the same keys",
        lambda: tf.train.batch_join([{"a": _tensor()}, [_tensor()]], 2),
    ),
    "shapes to join": (
        ValueError, "are not compatible",
        lambda: tf.train.batch_join([[tf.zeros([2])], [tf.zeros([3])]], 2, dynamic_pad=True),
    ),
    "sparse and dense": (
        ValueError, "Inconsistent SparseTensors list",
        lambda: tf.train.batch_join([[_tensor()], [_sparse()]], 2),
    ),
    "sparse ranks": (
        ValueError, "Inconsistent SparseTensors list",
        lambda: tf.train.batch_join([[_sparse(2)], [_sparse(1)]], 2),
    ),
    "too small": (
        ValueError, "capacity 10 must be bigger than min_after_dequeue 10.",
        lambda: tf.train.shuffle_batch([_tensor()], 2, 10, 10),
    ),
    "no threads": (
        ValueError, "Must provide queue and enqueue_ops",
        lambda: tf.train.batch([_tensor()], 2, num_threads=0),
    ),
    "nothing to slice": (
        ValueError, "Expected at least one tensor in slice_input_producer",
        lambda: tf.train.slice_input_producer([]),
    ),
    "no strings": (
        ValueError, "requires a non-null input tensor", lambda: tf.train.string_input_producer([])
    ),
    "no strings in an array": (
        ValueError, "requires a non-null input tensor",
        lambda: tf.train.string_input_producer(np.array([], object)),
    ),
    "a string": (ValueError, "must have rank at least 1", lambda: tf.train.string_input_producer("a")),
    "numbers": (TypeError, "Expected string", lambda: tf.train.string_input_producer([1])),
    "a scalar": (ValueError, "must have rank at least 1", lambda: tf.train.input_producer(1)),
    "unknown rows": (
        ValueError, "must have a fully defined shape",
        lambda: tf.train.input_producer(tf.placeholder(tf.float32, [None, None])),
    ),
    "other rows": (
        ValueError, "are not compatible",
        lambda: tf.train.input_producer(tf.zeros([3, 2]), element_shape=[3]),
    ),
    "no epochs": (
        ValueError, "num_epochs must be > 0 not 0.",
        lambda: tf.train.input_producer(_tensor(), num_epochs=0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake: str) -> None:
    error, message, build = MISTAKES[mistake]
    with tf.Graph().as_default(), pytest.raises(error, match=re.escape(message)):
        build()


def test_without_epochs_nothing_is_limited() -> None:
    values = [1, 2]
    assert tf.train.limit_epochs(values) is values


def test_an_operation_to_cancel_with() -> None:
    with tf.Graph().as_default():
        cancel = tf.no_op()
        tf.train.string_input_producer(["a"], cancel_op=cancel)
        assert tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)[0].cancel_op is cancel


# ---- running


@contextlib.contextmanager
def running() -> Iterator[tf.Session]:
    """A session in which variables are initialised and the default graph's queue runners run."""
    before = own_threads()
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        yield session
        coord.request_stop()
        coord.join(threads)
    assert own_threads() <= before


def all_values(fetch: Any) -> list[Any]:
    """What a session fetches until the input ends."""
    values = []
    ended = pytest.raises(tf.errors.OutOfRangeError, match="is closed and has insufficient elements")
    with running() as session, ended:
        while True:
            values.append(session.run(fetch))
    return values


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        tf.set_random_seed(5)
        yield


def test_strings_in_order() -> None:
    queue = tf.train.string_input_producer(["a", "b", "c"], num_epochs=2, shuffle=False)
    assert all_values(queue.dequeue()) == [b"a", b"b", b"c"] * 2


def test_strings_shuffled_anew_in_each_epoch() -> None:
    names = [f"{i}".encode() for i in range(20)]
    queue = tf.train.string_input_producer(names, num_epochs=3, seed=1)
    found = all_values(queue.dequeue())
    epochs = [found[0:20], found[20:40], found[40:]]
    assert [sorted(epoch) for epoch in epochs] == [sorted(names)] * 3
    assert epochs[0] != epochs[1] != epochs[2]


def test_no_strings_are_an_error_of_the_step() -> None:
    queue = tf.train.string_input_producer(tf.placeholder_with_default(np.array([], object), [None]))
    with tf.Session() as session:
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        with pytest.raises(tf.errors.InvalidArgumentError, match="requires a non-null input tensor"):
            coord.join(threads)
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(queue.dequeue())


def test_ranges_and_rows() -> None:
    numbers = tf.train.range_input_producer(tf.constant(4, tf.int64), num_epochs=1, shuffle=False)
    rows = tf.train.input_producer(np.float32([[1, 2], [3, 4]]), num_epochs=2, shuffle=False)
    assert all_values(numbers.dequeue()) == [0, 1, 2, 3]
    assert np.array(all_values(rows.dequeue())).tolist() == [[1, 2], [3, 4]] * 2


def test_slices_belong_together() -> None:
    images, labels = np.arange(20.0).reshape(10, 2), np.arange(10)
    image, label = tf.train.slice_input_producer([images, labels], num_epochs=1)
    found = all_values([image, label])
    assert sorted(label for _, label in found) == list(range(10))
    assert all(image.tolist() == images[label].tolist() for image, label in found)


def test_batches_are_in_order_and_the_rest_is_dropped_or_kept() -> None:
    for keep, sizes in ((False, [3, 3]), (True, [3, 3, 1])):
        with tf.Graph().as_default():
            item = tf.train.range_input_producer(7, num_epochs=1, shuffle=False).dequeue()
            batch = tf.train.batch({"x": item, "y": item * 2}, 3, allow_smaller_final_batch=keep)
            found = all_values(batch)
        assert [len(value["x"]) for value in found] == sizes
        numbers = np.concatenate([value["x"] for value in found])
        assert numbers.tolist() == list(range(sum(sizes)))
        assert np.concatenate([value["y"] for value in found]).tolist() == (numbers * 2).tolist()


def test_batches_of_rows_by_several_threads() -> None:
    rows = tf.train.input_producer(np.arange(12).reshape(6, 2), num_epochs=5).dequeue()
    batch = tf.train.batch([tf.stack([rows, rows])], 4, num_threads=3, enqueue_many=True)
    found = np.concatenate(all_values(batch))
    assert sorted(found.tolist()) == sorted(np.arange(12).reshape(6, 2).tolist() * 10)


def test_padded_batches() -> None:
    size = tf.train.range_input_producer(5, num_epochs=1, shuffle=False).dequeue()
    batch = tf.train.batch([tf.range(size), size], 2, dynamic_pad=True, allow_smaller_final_batch=True)
    found = [(values.tolist(), sizes.tolist()) for values, sizes in all_values(batch)]
    assert found == [
        ([[0], [0]], [0, 1]),
        ([[0, 1, 0], [0, 1, 2]], [2, 3]),
        ([[0, 1, 2, 3]], [4]),
    ]


def test_examples_that_are_not_kept() -> None:
    item = tf.train.range_input_producer(10, num_epochs=1, shuffle=False).dequeue()
    one = tf.train.maybe_batch([item], tf.equal(item % 3, 0), 2)
    assert [value.tolist() for value in all_values(one)] == [[0, 3], [6, 9]]


def test_rows_that_are_not_kept() -> None:
    item = tf.train.range_input_producer(3, num_epochs=1, shuffle=False).dequeue()
    rows = item * 10 + tf.range(3)
    many = tf.train.maybe_batch([rows], tf.equal(rows % 2, 0), 5, enqueue_many=True)
    assert [value.tolist() for value in all_values(many)] == [[0, 2, 10, 12, 20]]


def test_joined_inputs_all_arrive() -> None:
    items = [tf.train.range_input_producer(8, num_epochs=1).dequeue() + 100 * i for i in range(3)]
    batch = tf.train.batch_join([[item] for item in items], 6)
    found = np.concatenate(all_values(batch))
    assert sorted(found.tolist()) == [100 * i + k for i in range(3) for k in range(8)]


def test_shuffled_batches_hold_every_example_once() -> None:
    item = tf.train.range_input_producer(60, num_epochs=1, shuffle=False).dequeue()
    batch = tf.train.shuffle_batch([item], 10, capacity=40, min_after_dequeue=20, seed=3)
    found = np.concatenate(all_values(batch)).tolist()
    assert sorted(found) == list(range(60))
    assert found != list(range(60))


def test_joined_inputs_are_shuffled() -> None:
    items = [tf.train.range_input_producer(20, num_epochs=1, shuffle=False).dequeue() for _ in range(2)]
    batch = tf.train.shuffle_batch_join([{"x": item} for item in items], 8, 30, 5)
    found = np.concatenate([value["x"] for value in all_values(batch)]).tolist()
    assert sorted(found) == sorted([*range(20), *range(20)])


def test_sparse_tensors_in_batches() -> None:
    i = tf.train.range_input_producer(tf.constant(4, tf.int64), num_epochs=1, shuffle=False).dequeue()
    tensor = tf.SparseTensor(tf.stack([[i]]), tf.stack([i * 10]), tf.stack([i + 1]))
    batch = tf.train.batch([tensor, i], 2)
    (first, numbers), (second, _) = all_values(batch)
    assert first.indices.tolist() == [[0, 0], [1, 1]]
    assert second.indices.tolist() == [[0, 2], [1, 3]]
    assert (first.values.tolist(), second.values.tolist()) == ([0, 10], [20, 30])
    assert (first.dense_shape.tolist(), second.dense_shape.tolist()) == ([2, 2], [2, 4])
    assert numbers.tolist() == [0, 1]


def test_rows_of_sparse_tensors_in_batches() -> None:
    tensor = tf.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [3, 2])
    limited = tf.SparseTensor(tensor.indices, tf.train.limit_epochs(tensor.values, 1), tensor.dense_shape)
    batch = tf.train.maybe_batch([limited], [True, False, True], 2, enqueue_many=True)
    (found,) = all_values(batch)
    assert found.indices.tolist() == [[0, 1], [1, 0]]
    assert found.values.tolist() == [1.0, 2.0]
    assert found.dense_shape.tolist() == [2, 2]


def test_summaries_tell_how_full_the_queues_are() -> None:
    item = tf.train.range_input_producer(5, capacity=8).dequeue()
    batch = tf.train.shuffle_batch([item], 2, capacity=12, min_after_dequeue=2)
    merged = tf.summary.merge_all()
    with running() as session:
        session.run(batch)
        summary = tf.Summary.FromString(session.run(merged))
    found = {value.tag: value.simple_value for value in summary.value}
    assert set(found) == {"input_producer/fraction_of_8_full", "shuffle_batch/fraction_over_2_of_10_full"}
    assert all(0 <= fraction <= 1 for fraction in found.values())


def test_files_found_once(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.bin"):
        (tmp_path / name).touch()
    names = tf.train.match_filenames_once(str(tmp_path / "*.txt"))
    queue = tf.train.string_input_producer(names, num_epochs=1, shuffle=False)
    assert [Path(name.decode()).name for name in all_values(queue.dequeue())] == ["a.txt", "b.txt"]


def test_an_error_in_the_pipeline_reaches_the_program() -> None:
    item = tf.train.range_input_producer(5, num_epochs=1, shuffle=False).dequeue()
    with tf.control_dependencies([tf.Assert(item < 3, ["too large", item])]):
        checked = tf.identity(item)
    batch = tf.train.batch([checked], 2)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        assert session.run(batch).tolist() == [0, 1]
        with pytest.raises(tf.errors.InvalidArgumentError, match="too large"):
            coord.join(threads)
        with pytest.raises((tf.errors.OutOfRangeError, tf.errors.CancelledError)):
            session.run(batch)
