"""`tf.sparse.cross` and `cross_hashed`, with TensorFlow's own hashes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import flowstone as tf
from sparse_values import node_names, run

pytestmark = pytest.mark.usefixtures("graph")

PLACES, SIZES = [[0, 0], [1, 0]], [2, 1]


def words() -> tf.SparseTensor:
    return tf.SparseTensor(PLACES, ["a", "b"], SIZES)


def test_crosses_as_text() -> None:
    numbers = tf.constant([[1, 2], [3, -4]])
    value = run(tf.sparse.cross([words(), numbers]))
    assert value.values.tolist() == [b"a_X_1", b"a_X_2", b"b_X_3", b"b_X_-4"]
    assert value.indices.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert value.dense_shape.tolist() == [2, 2]
    letters = tf.constant([["x"], ["y"]])
    assert run(tf.sparse.cross([words(), letters])).values.tolist() == [b"a_X_x", b"b_X_y"]
    assert run(tf.sparse.cross([words(), numbers], separator="-")).values.tolist()[0] == b"a-1"


def test_hashes_are_tensorflows() -> None:
    found = run(tf.sparse.cross_hashed([words(), tf.constant([[1, 2], [3, 4]])]))
    assert found.values.tolist() == [
        2928842892298887678,
        7560904255693475987,
        9204035953345268157,
        5665986376437707883,
    ]
    letters = tf.constant([["x"], ["y"]])
    assert run(tf.sparse.cross_hashed([words(), letters], 10, hash_key=5)).values.tolist() == [8, 5]


def test_many_inputs_of_many_elements() -> None:
    random = np.random.RandomState(0)
    counts = random.randint(0, 4, (3, 50))
    inputs = []
    for column in counts:
        places = [[i, j] for i, count in enumerate(column) for j in range(count)]
        inputs.append(tf.SparseTensor(places, [b"%d/%d" % (i, j) for i, j in places], [50, 4]))
    expected = [
        b"_X_".join(b"%d/%d" % (i, j) for j in places)
        for i in range(50)
        for places in itertools.product(*[range(count) for count in counts[:, i]])
    ]
    assert run(tf.sparse.cross(inputs)).values.tolist() == expected


def test_arguments_are_checked() -> None:
    with pytest.raises(TypeError, match="list"):
        tf.sparse.cross(words())
    with pytest.raises(TypeError, match="Tensor"):
        tf.sparse.cross(["a"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Expected batch size 2 got 3"):
        run(tf.sparse.cross([words(), tf.constant([["x"]] * 3)]))


def test_more_crosses_than_memory_holds_are_refused() -> None:
    wide = tf.zeros([1, 4000], tf.int64)
    with pytest.raises(tf.errors.ResourceExhaustedError):
        run(tf.sparse.cross_hashed([wide] * 20))
    with pytest.raises(tf.errors.ResourceExhaustedError):
        run(tf.sparse.cross([tf.SparseTensor([[0, 0]], ["a"], [2**62, 1])]))


def test_nodes_are_named_as_in_tensorflow() -> None:
    sparse = words()
    assert node_names(lambda: tf.sparse.cross([sparse, sparse])) == ["SparseCross"]
    assert node_names(lambda: tf.sparse.cross_hashed([sparse], name="q")) == ["q"]
