"""Maps of sparse tensors give back what was put in, as one tensor of a higher rank, as TensorFlow does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F

ONE = ([[0, 0], [1, 2]], [1.0, 2.0], [3, 4])
OTHER = ([[2, 3]], [5.0], [5, 2])
VECTOR = ([[0]], [1.0], [3])


class Map:
    """A map in a session of its own."""

    def __init__(self, dtype: Any = tf.float32) -> None:
        self.parts = (tf.placeholder(tf.int64), tf.placeholder(dtype), tf.placeholder(tf.int64))
        self.handles = tf.placeholder(tf.int64)
        self.add_op = F.AddSparseToTensorsMap(*self.parts, shared_name="m")
        self.add_many_op = F.AddManySparseToTensorsMap(*self.parts, shared_name="m")
        self.take_op = F.TakeManySparseFromTensorsMap(self.handles, dtype=dtype, shared_name="m")
        self.session = tf.Session()

    def add(self, parts: Any) -> int:
        return int(self.session.run(self.add_op, dict(zip(self.parts, parts))))

    def add_many(self, parts: Any) -> list[int]:
        return self.session.run(self.add_many_op, dict(zip(self.parts, parts))).tolist()

    def take(self, handles: Any) -> tuple[Any, Any, Any]:
        return tuple(x.tolist() for x in self.session.run(self.take_op, {self.handles: handles}))


@pytest.fixture
def sparse_map() -> Map:
    with tf.Graph().as_default():
        yield Map()


def test_static_shapes(sparse_map: Map) -> None:
    assert sparse_map.add_op.shape.as_list() == []
    assert sparse_map.add_many_op.shape.as_list() == [None]
    assert [x.shape.as_list() for x in sparse_map.take_op] == [[None, None], [None], [None]]


def test_tensors_come_back_as_rows(sparse_map: Map) -> None:
    assert [sparse_map.add(ONE), sparse_map.add(OTHER)] == [0, 1]
    taken = sparse_map.take([0, 1])
    assert taken == ([[0, 0, 0], [0, 1, 2], [1, 2, 3]], [1.0, 2.0, 5.0], [2, 5, 4])


def test_rows_of_one_tensor(sparse_map: Map) -> None:
    assert sparse_map.add_many(([[0, 0], [0, 1], [2, 2]], [1.0, 2.0, 3.0], [3, 4])) == [0, 1, 2]
    assert sparse_map.take([2, 1, 0]) == ([[0, 2], [2, 0], [2, 1]], [3.0, 1.0, 2.0], [3, 4])
    cube = ([[0, 0, 1], [1, 1, 0]], [1.0, 2.0], [2, 4, 5])
    assert sparse_map.take(sparse_map.add_many(cube)) == cube
    assert sparse_map.add_many((np.zeros((0, 2)), [], [0, 4])) == []


def test_a_tensor_without_elements(sparse_map: Map) -> None:
    number = sparse_map.add((np.zeros((0, 2)), [], [3, 4]))
    assert sparse_map.take([number]) == ([], [], [1, 3, 4])


def test_text() -> None:
    with tf.Graph().as_default():
        sparse_map = Map(tf.string)
        number = sparse_map.add(([[0], [2]], ["a", "b"], [3]))
        assert sparse_map.take([number]) == ([[0, 0], [0, 2]], [b"a", b"b"], [1, 3])


def test_what_is_put_in_is_a_copy(sparse_map: Map) -> None:
    values = np.float32([1, 2])
    number = sparse_map.add((ONE[0], values, ONE[2]))
    values[:] = 7
    assert sparse_map.take([number])[1] == [1.0, 2.0]


def test_the_name_of_the_node_is_the_name_of_the_map() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        added = F.AddSparseToTensorsMap(*ONE, name="own")
        with tf.control_dependencies([added]):
            _, values, _ = F.TakeManySparseFromTensorsMap([0], dtype=tf.float32, shared_name="own")
        assert session.run(values).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("handles", [[0, 0], [1]])
def test_a_tensor_can_be_taken_once(sparse_map: Map, handles: list[int]) -> None:
    sparse_map.add(ONE)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Unable to find SparseTensor: \d in map: m"):
        sparse_map.take(handles)


@pytest.mark.parametrize(
    ("handles", "message"),
    [
        (0, r"sparse_handles should be a vector but received shape \[\]"),
        ([], "Must have at least 1 serialized SparseTensor"),
        ([0, 1], r"rank prior to SparseTensor\[1\] was: 3 but rank of SparseTensor\[1\] is: 2"),
    ],
)
def test_wrong_handles(sparse_map: Map, handles: Any, message: str) -> None:
    sparse_map.add(ONE)
    sparse_map.add(VECTOR)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        sparse_map.take(handles)


def test_another_type_is_refused(sparse_map: Map) -> None:
    sparse_map.add(ONE)
    values = F.TakeManySparseFromTensorsMap([0], dtype=tf.int32, shared_name="m")[1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Requested SparseTensor of type int32"):
        sparse_map.session.run(values)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([0, 1], [1.0, 2.0], [3, 4]), r"Input indices should be a matrix but received shape \[2\]"),
        (([[0, 0]], [1.0, 2.0], [3, 4]), r"must match\. \(indices = 1, values = 2\)"),
        (([[0, 0]], [1.0], [3]), "Number of dimensions must match second dimension of indices"),
        (([[0, 0]], [1.0], [-3, 4]), "Dimension -3 must be >= 0"),
    ],
)
def test_parts_that_do_not_fit(sparse_map: Map, parts: Any, message: str) -> None:
    for add in (sparse_map.add, sparse_map.add_many):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            add(parts)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (VECTOR, "Rank of input SparseTensor should be > 1, but saw rank: 1"),
        (([[9, 0]], [1.0], [3, 4]), r"indices\[0\] = \[9,0\] is out of bounds: need 0 <= index < \[3,4\]"),
        (([[2, 0], [0, 1]], [1.0, 2.0], [3, 4]), r"indices\[1\] = \[0,1\] is out of order"),
    ],
)
def test_rows_that_cannot_be_told(sparse_map: Map, parts: Any, message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        sparse_map.add_many(parts)


def test_wrong_static_ranks() -> None:
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="Shape must be rank 2 but is rank 1"):
            F.AddSparseToTensorsMap([0], [1.0], [3])
        with pytest.raises(ValueError, match="Shape must be rank 1 but is rank 2"):
            F.AddManySparseToTensorsMap([[0, 0]], [1.0], [[3]])
        with pytest.raises(ValueError, match="Shape must be rank 1 but is rank 2"):
            F.TakeManySparseFromTensorsMap([[0]], dtype=tf.float32)
