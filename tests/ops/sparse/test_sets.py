"""`tf.sets` on dense and sparse operands, against Python's sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.ops.sparse import index_rows, set_operations

OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[[set, set], set]]] = {
    "intersection": (tf.sets.set_intersection, set.intersection),
    "union": (tf.sets.set_union, set.union),
    "a-b": (tf.sets.set_difference, set.difference),
    "b-a": (lambda a, b: tf.sets.set_difference(a, b, aminusb=False), lambda a, b: b - a),
}


@pytest.fixture(autouse=True, params=[True, False], ids=["few", "many"])
def few(request, monkeypatch) -> None:
    """Few elements are handled by Python, many by NumPy and ATen."""
    if not request.param:
        monkeypatch.setattr(set_operations, "FEW", -1)
        monkeypatch.setattr(index_rows, "_FEW", -1)


def as_sparse(array: np.ndarray) -> tf.SparseTensor:
    places = np.argwhere(array >= 0)
    return tf.SparseTensor(places, array[array >= 0], array.shape)


def rows_of(array: np.ndarray) -> list[set]:
    """The sets of a matrix, negative elements left out."""
    return [{int(x) for x in row if x >= 0} for row in array]


def check(result: Any, expected: list[set]) -> None:
    """The sparse tensor holds these sets, in order."""
    with tf.Session() as session:
        indices, values, shape = session.run(result)
    assert shape.tolist() == [len(expected), max(map(len, expected))]
    assert values.tolist() == [x for row in expected for x in sorted(row)]
    assert indices.tolist() == [[i, j] for i, row in enumerate(expected) for j in range(len(row))]


@pytest.mark.parametrize("kind", OPERATIONS)
@pytest.mark.parametrize("operands", ["dense", "mixed", "sparse dense", "sparse"])
@pytest.mark.parametrize("apart", [1, 10**6])
def test_sets_are_pythons(kind: str, operands: str, apart: int) -> None:
    random = np.random.RandomState(0)
    a, b = random.randint(0, 9, (20, 6)) * apart, random.randint(0, 9, (20, 4)) * apart
    most = 6 * apart
    function, reference = OPERATIONS[kind]
    with tf.Graph().as_default():
        first: Any = as_sparse(np.where(a < most, a, -1)) if operands.startswith("sparse") else tf.constant(a)
        is_sparse = operands in ("mixed", "sparse")
        second: Any = as_sparse(np.where(b < most, b, -1)) if is_sparse else tf.constant(b)
        if operands.startswith("sparse"):
            a = np.where(a < most, a, -1)
        if is_sparse:
            b = np.where(b < most, b, -1)
        check(function(first, second), [reference(*pair) for pair in zip(rows_of(a), rows_of(b))])


def test_sizes_count_different_elements() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        value = tf.SparseTensorValue([[0, 0], [0, 1], [0, 2], [2, 0]], ["a", "b", "a", "a"], [3, 3])
        size = tf.sets.set_size(value)
        assert size.dtype is tf.int32
        assert session.run(size).tolist() == [2, 0, 1]


def test_nodes_are_named_as_in_tensorflow() -> None:
    with tf.Graph().as_default() as graph:
        tf.sets.set_union([[1]], [[2]])
        tf.sets.set_difference(tf.SparseTensor([[0, 0]], [1], [1, 1]), [[2]])
        kinds = [(op.name, op.type) for op in graph.get_operations() if op.type != "Const"]
        constants = [op.name for op in graph.get_operations() if op.type == "Const"]
    assert kinds == [
        ("DenseToDenseSetOperation", "DenseToDenseSetOperation"),
        ("DenseToSparseSetOperation", "DenseToSparseSetOperation"),
    ]
    assert constants[:2] == ["a", "b"]


def test_types_are_checked() -> None:
    with tf.Graph().as_default():
        with pytest.raises(TypeError, match="SparseTensor"):
            tf.sets.set_size([[1]])
        with pytest.raises(TypeError, match="match"):
            tf.sets.set_union([[1]], tf.constant([[1]], tf.int64))
        with pytest.raises(TypeError, match="float32"):
            tf.sets.set_union([[1.0]], [[1.0]])


def test_a_shape_that_no_memory_holds_is_refused() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        size = tf.sets.set_size(tf.SparseTensor([[0, 0]], [1], [2**60, 2]))
        with pytest.raises(tf.errors.ResourceExhaustedError):
            session.run(size)


def test_values_far_apart_keep_their_order() -> None:
    wide = [[-(2**63), 2**63 - 1, 0, 0]] * 3
    with tf.Graph().as_default(), tf.Session() as session:
        union = tf.sets.union(tf.constant(wide, tf.int64), tf.constant([[1]] * 3, tf.int64))
        assert session.run(union.values).tolist() == [-(2**63), 0, 1, 2**63 - 1] * 3


def test_another_name_is_the_same_function() -> None:
    assert tf.sets.size is tf.sets.set_size
    assert tf.sets.difference is tf.sets.set_difference
    assert tf.sets.intersection is tf.sets.set_intersection
