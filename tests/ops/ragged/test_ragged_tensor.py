"""Ragged tensors: TensorFlow 1.15.5's values, shapes and errors; sessions, functions and loops."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from ragged_programs import ERRORS, PROGRAMS, plain

GOLDEN = Path(__file__).parents[2] / "golden"
EXPECTED = json.loads((GOLDEN / "ragged.json").read_text())
pytestmark = pytest.mark.usefixtures("graph")


def fits(known: Any, expected: str) -> bool:
    """Whether a static shape is the expected one, or knows sizes that this leaves open."""
    wanted = eval(expected, {"TensorShape": tf.TensorShape, "Dimension": tf.Dimension})
    if wanted.ndims is None or known.ndims != wanted.ndims:
        return bool(wanted.ndims is None)
    return all(want in (None, size) for want, size in zip(wanted.as_list(), known.as_list()))


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_shapes_are_those_of_tensorflow(name: str) -> None:
    results = PROGRAMS[name](tf)
    with tf.Session() as session:
        values = [plain(value) for value in session.run(results)]
    for i, (value, result, (expected, shape)) in enumerate(zip(values, results, EXPECTED["values"][name])):
        assert value == expected, (name, i)
        assert fits(result.shape, shape), (name, i, result.shape)
    assert len(results) == len(EXPECTED["values"][name])


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_tensorflow(name: str) -> None:
    with pytest.raises(Exception) as raised:
        ERRORS[name](tf)
    assert type(raised.value).__name__ == EXPECTED["errors"][name]


def test_what_a_row_has_backwards() -> None:
    # TensorFlow 1.15 gives empty rows here; later versions give these.
    with tf.Session() as session:
        assert session.run(tf.ragged.constant([[3, 1, 4], [], [5, 9]])[:, ::-1]).to_list() == [
            [4, 1, 3],
            [],
            [9, 5],
        ]


def test_sessions_feed_and_fetch_values() -> None:
    given = tf.ragged.placeholder(tf.float32, 2)
    value = tf.ragged.constant_value([[[1.0, 2.0], []], [], [[3.0]]], np.float32)
    with tf.Session() as session:
        for _ in range(2):
            found, total = session.run([given, tf.reduce_sum(given, axis=2)], {given: value})
        assert isinstance(found, tf.ragged.RaggedTensorValue)
        assert (found.to_list(), found.ragged_rank) == ([[[1, 2], []], [], [[3]]], 2)
        assert total.to_list() == [[3, 0], [], [3]]
        fetched = session.run({"a": given * 2.0}, {given: value})["a"]
        assert fetched.to_list() == [[[2, 4], []], [], [[6]]]
        with pytest.raises(TypeError, match="RaggedTensorValue"):
            session.run(given, {given: [[1.0]]})


def test_steps_check_rows() -> None:
    splits = tf.placeholder(tf.int64, [None])
    made = tf.RaggedTensor.from_row_splits([1, 2, 3], splits)
    summed = made + tf.ragged.constant([[1], [2, 3]])
    with tf.Session() as session:
        assert session.run(summed, {splits: [0, 1, 3]}).to_list() == [[2], [4, 6]]
        for wrong in ([1, 3], [0, 2, 1, 3], [0, 2]):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(made, {splits: wrong})
        with pytest.raises(tf.errors.InvalidArgumentError, match="identical ragged splits"):
            session.run(summed, {splits: [0, 2, 3]})


def test_gradients_and_embeddings() -> None:
    table = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    words = tf.ragged.constant([[0, 2], [], [1]])
    rows = tf.ragged.map_flat_values(tf.nn.embedding_lookup, table, words)
    means = tf.reduce_sum(rows, axis=1)
    gradient = tf.convert_to_tensor(tf.gradients(means * [1.0, 10.0], table)[0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(means).tolist() == [[6, 8], [0, 0], [3, 4]]
        assert session.run(gradient).tolist() == [[1, 10]] * 3


def test_functions_loops_and_structures_take_them() -> None:
    given = tf.ragged.constant([[1, 2], [3]])

    @tf.function
    def doubled(x: Any) -> Any:
        return x * 2, tf.reduce_sum(x, axis=1)

    looped = tf.while_loop(lambda i, _: i < 3, lambda i, x: [i + 1, x + 1], [0, given])
    chosen = tf.cond(tf.constant(True), lambda: given + 10, lambda: given)
    with tf.Session() as session:
        values = session.run([*doubled(given), looped[1], chosen])
    assert [plain(each) for each in values] == [[[2, 4], [6]], [3, 3], [[4, 5], [6]], [[11, 12], [13]]]
    assert tf.nest.flatten(given, expand_composites=True) == [given.flat_values, given.row_splits]


def test_specs_say_what_a_tensor_is() -> None:
    given = tf.ragged.constant([[[1, 2]], []], inner_shape=(2,))
    spec = tf.RaggedTensorSpec.from_value(given)
    assert spec == tf.RaggedTensorSpec([2, None, 2], tf.int32, 1)
    assert [each.shape.as_list() for each in spec._component_specs] == [[None, 2], [3]]
    assert spec._batch(4)._unbatch() == spec
    assert spec.value_type is tf.RaggedTensor
    assert isinstance(given, tf.RaggedTensor)


def test_the_first_ragged_tensor_of_a_program_has_all_methods() -> None:
    """Whichever function made it, and although nothing has asked for `tf.ragged`."""
    program = """
import flowstone as tf
rows = tf.strings.split(["a b", "c"], result_type="RaggedTensor")
with tf.Session() as session:
    print(session.run([rows.to_tensor(), tf.gather(rows, [1]).to_tensor(), (rows[:1] + "x").to_tensor()]))
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "".join(found.split()) == (
        "[array([[b'a',b'b'],[b'c',b'']],dtype=object),array([[b'c']],dtype=object),"
        "array([[b'ax',b'bx']],dtype=object)]"
    )


def test_gather_along_an_axis() -> None:
    """What TensorFlow 2.21 gives; 1.15 takes whole rows only."""
    with tf.Graph().as_default(), tf.Session() as session:
        rows = tf.ragged.constant([[1, 2, 3], [4, 5], [6]])
        deep = tf.ragged.constant([[[1, 2], [3]], [[4, 5, 6]], []])
        for params, axis, expected in (
            (rows, 1, [[1], [4], [6]]), (rows, -1, [[1], [4], [6]]), (rows, -2, [[1, 2, 3]]),
            (deep, 2, [[[1], [3]], [[4]], []]), (deep[:2], 1, [[[1, 2]], [[4, 5, 6]]]),
        ):  # fmt: skip
            found = session.run(tf.gather(params, [0], axis=axis))
            assert getattr(found, "to_list", getattr(found, "tolist", None))() == expected
        by_rows = tf.gather(rows, [[2], [1], [0]], batch_dims=1)
        assert session.run(by_rows).tolist() == [[3], [5], [6]]
        for index in (1, -1):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(tf.gather(rows, [index], axis=1))
        with pytest.raises(ValueError, match="axis 2"):
            tf.gather(rows, [0], axis=2)


def test_splits_of_unknown_rank_are_known_as_a_vector() -> None:
    """What is fed without a static shape, by functions that ask for the rank of a ragged tensor."""
    flat, splits = tf.placeholder(tf.float32), tf.placeholder(tf.int64)
    rows = tf.RaggedTensor.from_row_splits(flat, splits)
    fetches = {
        "rows": (rows, [[0.0], [1.0, 2.0]]),
        "concat": (tf.concat([rows, rows], 1), [[0.0, 0.0], [1.0, 2.0, 1.0, 2.0]]),
        "sum": (tf.reduce_sum(rows, 1), [0.0, 3.0]),
        "tile": (tf.tile(rows, [1, 2]), [[0.0, 0.0], [1.0, 2.0, 1.0, 2.0]]),
        "expand_dims": (tf.expand_dims(rows, 1), [[[0.0]], [[1.0, 2.0]]]),
        "stack": (tf.stack([rows, rows]), [[[0.0], [1.0, 2.0]]] * 2),
        "dense": (rows.to_tensor(), [[0.0, 0.0], [1.0, 2.0]]),
        "squares": (tf.square(rows), [[0.0], [1.0, 4.0]]),
        "cast": (tf.cast(rows, tf.int32), [[0], [1, 2]]),
    }
    assert rows.row_splits.shape.as_list() == [None] and rows.row_lengths().shape.as_list() == [None]
    fed = {flat: np.arange(3.0), splits: [0, 1, 3]}
    with tf.Session() as session:
        for name, (each, expected) in fetches.items():
            value = session.run(each, fed)
            assert (value.to_list() if isinstance(each, tf.RaggedTensor) else value.tolist()) == expected, (
                name
            )
