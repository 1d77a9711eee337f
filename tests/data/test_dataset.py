"""Datasets against TensorFlow 1.15: elements, types, shapes and errors (`pipelines.py`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
import pipelines

D, E = tf.data.Dataset, tf.data.experimental
GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "data" / "pipelines.json").read_text())


def test_every_program_has_its_results() -> None:
    assert list(GOLDEN) == list(pipelines.PROGRAMS)


@pytest.mark.parametrize("name", pipelines.PROGRAMS)
def test_elements_are_tensorflows(name: str) -> None:
    assert pipelines.run(tf, name) == GOLDEN[name]


def test_how_a_dataset_prints() -> None:
    elements = {"a": [1, 2], "b": (np.zeros([2, 3], np.float32), ["x", "y"])}
    with tf.Graph().as_default():
        printed = repr(tf.data.Dataset.from_tensor_slices(elements).batch(2))
        lines = tf.data.TextLineDataset("no file")
    kind, _, said = printed.partition(" ")
    assert kind == "<DatasetV1Adapter"
    assert said == "shapes: {a: (?,), b: ((?, 3), (?,))}, types: {a: tf.int32, b: (tf.float32, tf.string)}>"
    assert repr(lines) == "<TextLineDatasetV1 shapes: (), types: tf.string>"


def test_what_is_no_function_of_elements_and_no_loop() -> None:
    """TensorFlow 1.15's classes."""
    with tf.Graph().as_default():
        numbers = D.range(3)
        for function in (lambda x: None, lambda x: (x, None), lambda x: {"a": x, "b": (x, None)}):
            with pytest.raises(TypeError, match="must return tensors, not None"):
                numbers.map(function)
        with pytest.raises(RuntimeError, match="make_one_shot_iterator"):
            list(numbers)


@pytest.mark.parametrize(
    ("shards", "index", "message"),
    [
        (3, 3, r"Index must be between 0 and 2 \(currently index = 3\)"),
        (3, -1, r"Index must be between 0 and 2 \(currently index = -1\)"),
        (0, 0, r"Number of shards must be greater than zero \(currently num_shards = 0\)"),
    ],
)
def test_shards_that_are_not_there(shards: int, index: int, message: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        element = tf.data.Dataset.range(10).shard(shards, index).make_one_shot_iterator().get_next()
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            session.run(element)


def test_batches_of_mapped_elements_are_nodes_that_tensorflow_1_15_knows() -> None:
    """Its MapAndBatchDataset takes other inputs than that of TensorFlow 1.4; by another name it has both."""
    batches = tf.data.experimental.map_and_batch(lambda i: i * 2, 3, num_parallel_batches=2)
    with tf.Graph().as_default() as graph:
        tf.data.Dataset.range(7).apply(batches).make_initializable_iterator()
        operation = graph.get_operation_by_name("MapAndBatchDataset")
    assert operation.type == "ExperimentalMapAndBatchDataset"


FAILURES: dict[str, tuple[Any, list[Any]]] = {
    "a source's, in its turn": (
        lambda: failing().map(lambda x: x + 1, num_parallel_calls=3),
        [1, 1, 2, "UnknownError"],
    ),
    "a source's, in batches": (
        lambda: failing().apply(E.map_and_batch(lambda x: x + 1, 2, num_parallel_batches=2)),
        [[1, 1], "UnknownError"],
    ),
    "a function's, with its batch": (
        lambda: D.range(8).apply(E.map_and_batch(lambda x: tf.check_numerics(1 / (x - 3), "oh"), 3)),
        [[-1 / 3, -0.5, -1.0], "InvalidArgumentError", [1 / 3, 0.25]],
    ),
    "with the remainder": (
        lambda: D.range(5).apply(
            E.map_and_batch(lambda x: tf.check_numerics(1 / (x - 3), "oh"), 3, drop_remainder=True)
        ),
        [[-1 / 3, -0.5, -1.0], "InvalidArgumentError"],
    ),
}


def failing() -> Any:
    return D.from_generator(lambda: (1 // (3 - i) for i in range(6)), tf.int64)


@pytest.mark.parametrize("name", FAILURES)
def test_errors_stand_where_their_elements_would(name: str) -> None:
    make, expected = FAILURES[name]
    found: list[Any] = []
    with tf.Graph().as_default(), tf.Session() as session:
        element = make().make_one_shot_iterator().get_next()
        while True:
            try:
                found.append(session.run(element).tolist())
            except tf.errors.OutOfRangeError:
                break
            except tf.errors.OpError as error:
                found.append(type(error).__name__)
    assert str(found) == str(expected)


def test_an_error_in_a_function_of_elements_names_the_line_that_made_the_node() -> None:
    def inverse(x: tf.Tensor) -> tf.Tensor:
        return tf.check_numerics(1.0 / tf.to_float(x), "oh")  # here

    line = inverse.__code__.co_firstlineno + 1
    with tf.Graph().as_default(), tf.Session() as session:
        inner = tf.data.Dataset.range(3).map(inverse)
        element = tf.data.Dataset.range(1).flat_map(lambda _: inner).make_one_shot_iterator().get_next()
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"defined at .*:{line}]") as raised:
            session.run(element)
    assert raised.value.op.name == "CheckNumerics"
    assert (__file__, line) in {frame[:2] for frame in raised.value.op.traceback}
