"""Positions of iterators in checkpoints: by a Saver, and by the hook of an Estimator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
import pipelines
from flowstone.ops.datasets.iterator_states import decode_state, encode_state

E = tf.data.experimental


def _pipeline() -> tuple[tf.data.Iterator, Any]:
    dataset = tf.data.Dataset.range(20).shuffle(5, seed=3).repeat(2).map(lambda x: x * 10).batch(3)
    iterator = dataset.prefetch(2).make_initializable_iterator()
    return iterator, iterator.get_next()


def _rest(session: tf.Session, element: Any, most: int = 100) -> list[Any]:
    found: list[Any] = []
    while len(found) < most:
        try:
            found.append(session.run(element).tolist())
        except tf.errors.OutOfRangeError:
            break
    return found


@pytest.mark.parametrize("done", [0, 3, 8])
def test_a_pass_goes_on_from_a_checkpoint(tmp_path: Path, done: int) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        iterator, element = _pipeline()
        tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, E.make_saveable_from_iterator(iterator))
        saver = tf.train.Saver()
        session.run(iterator.initializer)
        _rest(session, element, done)
        path = saver.save(session, str(tmp_path / "model"))
        expected = _rest(session, element)
        saver.restore(session, path)
        assert _rest(session, element) == expected
    with tf.Graph().as_default(), tf.Session() as session:  # another program
        iterator, element = _pipeline()
        saver = tf.train.Saver([E.make_saveable_from_iterator(iterator)])
        with pytest.raises(tf.errors.FailedPreconditionError, match="has not been initialized"):
            saver.restore(session, path)
        session.run(iterator.initializer)
        saver.restore(session, path)
        assert _rest(session, element) == expected


def test_a_pass_goes_on_with_what_its_parts_kept(tmp_path: Path) -> None:
    counted: list[int] = []

    def note(number: int) -> int:
        counted.append(number)
        return number

    def part(number: Any) -> Any:
        noted = tf.data.Dataset.range(2).map(lambda i: tf.py_func(note, [number * 10 + i], tf.int64))
        return noted.cache().repeat(2)

    def pipeline() -> tuple[Any, Any, Any]:
        iterator = tf.data.Dataset.range(2).flat_map(part).repeat(2).make_initializable_iterator()
        return iterator, iterator.get_next(), tf.train.Saver([E.make_saveable_from_iterator(iterator)])

    with tf.Graph().as_default(), tf.Session() as session:
        iterator, element, saver = pipeline()
        session.run(iterator.initializer)
        assert _rest(session, element, 9) == [0, 1, 0, 1, 10, 11, 10, 11, 0]
        path = saver.save(session, str(tmp_path / "model"))
    assert counted == [0, 1, 10, 11]  # once each
    with tf.Graph().as_default(), tf.Session() as session:
        iterator, element, saver = pipeline()
        session.run(iterator.initializer)
        saver.restore(session, path)
        assert _rest(session, element) == [1, 0, 1, 10, 11, 10, 11]
    assert counted == [0, 1, 10, 11]


@pytest.mark.parametrize("name", [name for name in pipelines.PROGRAMS if not name.startswith("generator")])
def test_states_of_passes_as_bytes(name: str) -> None:
    try:
        iterator = pipelines.PROGRAMS[name](tf).make_initializable_iterator()
    except (TypeError, ValueError):
        return  # refused when it is built
    handle, element = iterator._iterator_resource, iterator.get_next()
    saved = tf.raw_ops.SerializeIterator(resource_handle=handle)
    fed = tf.placeholder(tf.variant, [None])
    restore = tf.raw_ops.DeserializeIterator(resource_handle=handle, serialized=fed)
    with tf.Session() as session:
        try:
            session.run(iterator.initializer)
            session.run(element)
            state = session.run(saved)
            expected = str([session.run(element) for _ in range(2)])
        except tf.errors.OpError:
            return  # shorter, or an error of its own
        boxes = np.empty(1, object)
        try:
            boxes[0] = bytes(state[0])
        except tf.errors.UnimplementedError as error:
            assert "cannot be saved: it holds a" in str(error)  # a dataset in a window
            return
        session.run(restore, {fed: boxes})
        assert str([session.run(element) for _ in range(2)]) == expected


def test_damaged_bytes_are_refused() -> None:
    state = ({"a": [1, None, 2.5, b"\xff", "text", True]}, {(1, 2): ()})
    assert decode_state(encode_state(state)) == state
    for data in (b"", b"{", b"\xff", b'{"q": 1}', b'{"v": "AAAA"}', b'{"t": 3}', b'{"d": [[1]]}'):
        with pytest.raises(tf.errors.DataLossError, match="not the state of an iterator"):
            decode_state(data)


def test_an_estimators_input_goes_on_where_training_stopped(tmp_path: Path) -> None:
    def input_fn() -> tf.data.Dataset:
        return tf.data.Dataset.range(10).map(lambda x: ({"x": x}, x)).repeat()

    seen: list[int] = []

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        weight = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        note = tf.py_func(lambda x: seen.append(int(x)), [features["x"]], [])
        with tf.control_dependencies([note]):
            step = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        return tf.estimator.EstimatorSpec(mode, loss=weight * 0.0 + 1.0, train_op=step)

    for _ in range(2):
        config = tf.estimator.RunConfig(save_checkpoints_steps=2)
        estimator = tf.estimator.Estimator(model_fn, str(tmp_path), config)
        estimator.train(input_fn, steps=4, hooks=[E.CheckpointInputPipelineHook(estimator)])
    assert seen == list(range(8))
    kept = sorted(int(path.stem.split("-")[1]) for path in tmp_path.glob("input.ckpt-*.index"))
    assert kept == [0, 2, 4, 5, 7, 8]  # those of TensorFlow 1.15
    assert (tmp_path / "checkpoint_input").exists()
