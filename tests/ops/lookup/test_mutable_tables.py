"""Tables that change: dense ones, what outlives a step, and many threads.

TensorFlow's dense table takes the key for removed ones as an input, so that its programs are not these; the
expected values are what TensorFlow 2.21 gives.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.ops.lookup.mutable_tables import MutableDenseHashTable, MutableHashTable
from stepping import refused

pytestmark = pytest.mark.usefixtures("graph")


def numbers(values: Any) -> Any:
    return tf.placeholder_with_default(tf.constant(values, tf.int64), None)


def dense(**more: Any) -> MutableDenseHashTable:
    given = {"default_value": -9, "empty_key": 0, "deleted_key": -1, "initial_num_buckets": 8, **more}
    return MutableDenseHashTable(tf.int64, tf.int64, **given)


def pairs(session: Any, table: Any) -> dict[Any, Any]:
    """What an export of a dense table holds, but for empty buckets."""
    keys, values = session.run(table.export())
    return {tuple(k): tuple(v) for k, v in zip(keys.tolist(), values.tolist()) if any(k)}


def test_a_dense_table() -> None:
    table = dense()
    with tf.Session() as session:
        session.run(table.insert(numbers([5, 13, 21, 5]), numbers([1, 2, 3, 4])))
        assert session.run(table.lookup(numbers([5, 21, 7]))).tolist() == [4, 3, -9]
        assert session.run(table.lookup(numbers(5))) == 4
        assert session.run(table.size()) == 3
        keys, values = session.run(table.export())
        assert keys.shape == values.shape == (8, 1)
        assert pairs(session, table) == {(5,): (4,), (13,): (2,), (21,): (3,)}
        session.run(table.erase(tf.constant([13, 99], tf.int64)))
        assert session.run(table.size()) == 2
        many = numbers([1, 2, 3, 4, 6, 7, 8, 9])
        session.run(table.insert_or_assign(many, many))
        assert session.run(table.size()) == 10
        assert session.run(table.export())[0].shape == (16, 1)
        assert session.run(table.lookup(many)).tolist() == [1, 2, 3, 4, 6, 7, 8, 9]


def test_what_a_dense_table_refuses() -> None:
    table, invalid = dense(), tf.errors.InvalidArgumentError
    with tf.Session() as session:
        for fetch, message in (
            (table.lookup(numbers([[5, 6]])), "Expected key shape [1] got [1,2]"),
            (table.insert(numbers([[5, 6]]), numbers([[5, 6]])), "Expected key shape [1] got [1,2]"),
            (table.insert(numbers([3, 0]), numbers([1, 1])), "Using the empty_key as a table key"),
            (table.insert(numbers([-1]), numbers([1])), "Using the deleted_key as a table key"),
            (table.lookup(numbers([0])), "Using the empty_key as a table key"),
            (table.lookup(numbers(-1)), "Using the deleted_key as a table key"),
            (table.insert(numbers([1]), numbers([1, 2])), "Expected shape [1] for value, got [2]"),
            (dense(deleted_key=0).size(), "Empty and deleted keys cannot be equal"),
            (dense(deleted_key=[1, 2]).size(), "must have same shape, got shapes: [] and [2]"),
            (dense(initial_num_buckets=12).size(), "at least 4 and a power of 2, got: 12"),
            (dense(initial_num_buckets=0).size(), "at least 4 and a power of 2, got: 0"),
        ):
            refused(session, fetch, invalid, message)
        for load in (0.0, 1.0):
            handle = F.MutableDenseHashTableV2(numbers(0), value_dtype=tf.int64, max_load_factor=load)
            size = F.LookupTableSizeV2(handle)
            refused(session, size, invalid, f"max_load_factor must be between 0 and 1, got: {load:g}")
    with pytest.raises(ValueError, match="deleted_key must be a constant"):
        dense(deleted_key=tf.placeholder(tf.int64, []))


def test_keys_and_values_that_are_vectors() -> None:
    table = dense(default_value=[0, 9], empty_key=[0, 0], deleted_key=[-1, 2], initial_num_buckets=4)
    keys = tf.constant([[1, 2], [3, 4]], tf.int64)
    assert table.lookup(keys).shape.as_list() == [2, 2]
    with tf.Session() as session:
        session.run(table.insert(keys, tf.constant([[5, 6], [7, 8]], tf.int64)))
        assert session.run(table.lookup(numbers([[3, 4], [1, 3]]))).tolist() == [[7, 8], [0, 9]]
        assert pairs(session, table) == {(1, 2): (5, 6), (3, 4): (7, 8)}
        for fetch, message in (
            (table.lookup(numbers([1, 2])), "Expected key shape [2,2] got [2]"),
            (table.lookup(numbers([[[1, 2]]])), "Expected key shape [1,2] got [1,1,2]"),
            (
                table.lookup(numbers([[1, 2, 3]])),
                "Input key shape [1,3] must end with the table's key shape [2]",
            ),
            (table.insert(numbers([[0, 0]]), numbers([[0, 0]])), "Using the empty_key"),
        ):
            refused(session, fetch, tf.errors.InvalidArgumentError, message)
        session.run(table.remove(tf.constant([[1, 2]], tf.int64)))
        assert pairs(session, table) == {(3, 4): (7, 8)}
        none = tf.zeros([0, 2], tf.int64)
        session.run(table.insert(none, none))
        assert session.run(table.lookup(none)).shape == (0, 2)


def test_words_and_references() -> None:
    table = MutableDenseHashTable(tf.string, tf.int64, 0, empty_key="", initial_num_buckets=4)
    reference = F.MutableDenseHashTable("", value_dtype=tf.int64, shared_name="ref")
    with tf.Session() as session:
        session.run(table.insert(["a", "b"], [1, 2]))
        assert session.run(table.lookup(["b", "q"])).tolist() == [2, 0]
        assert sorted(session.run(table.export())[0].ravel().tolist()) == [b"", b"", b"a", b"b"]
        assert session.run(F.LookupTableSize(reference)) == 0
        session.run(F.LookupTableInsert(reference, ["x"], numbers([4])))
        assert session.run(F.LookupTableFind(reference, ["x"], numbers(0))).tolist() == [4]


def test_shapes_are_known() -> None:
    table = MutableHashTable(tf.string, tf.float32, [0.0, 1.0])
    assert table.lookup(["a", "b"]).shape.as_list() == [2, 2]
    assert table.lookup(tf.placeholder(tf.string)).shape.ndims is None
    assert [x.shape.as_list() for x in table.export()] == [[None], [None, 2]]
    assert [x.shape.as_list() for x in dense().export()] == [[None, 1], [None, 1]]
    with pytest.raises(ValueError, match="Shapes must be equal rank"):
        table.insert(["a"], [1.0])
    with pytest.raises(ValueError, match="anonymous"):
        MutableHashTable(tf.string, tf.float32, 0.0, experimental_is_anonymous=True)


def test_a_table_lives_as_long_as_its_session() -> None:
    table = MutableHashTable(tf.string, tf.int64, -1)
    with tf.Session() as session:
        session.run(table.insert(["a"], [1]))
        assert session.run(table.size()) == 1
        assert session.run(table.size()) == 1
    with tf.Session() as session:
        assert session.run(table.size()) == 0


def test_insertions_come_before_what_depends_on_them() -> None:
    table = MutableHashTable(tf.string, tf.int64, -1)
    with tf.control_dependencies([table.insert(["a"], [1])]):
        first = table.lookup(["a"])
    with tf.control_dependencies([first]), tf.control_dependencies([table.insert(["a"], [2])]):
        second = table.lookup(["a"])
    with tf.Session() as session:
        assert [x.tolist() for x in session.run([first, second])] == [[1], [2]]


def test_many_threads() -> None:
    table = MutableHashTable(tf.int64, tf.int64, -1)
    keys = tf.placeholder(tf.int64, [None])
    insert, found = table.insert(keys, keys * 2), table.lookup(keys)
    with tf.Session() as session:

        def work(start: int) -> None:
            for i in range(20):
                mine = np.arange(50) + 1000 * start + 50 * i
                session.run(insert, {keys: mine})
                wrong.extend(session.run(found, {keys: mine}) - 2 * mine)

        wrong: list[Any] = []
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(wrong) == 4000 and not any(wrong)
        assert session.run(table.size()) == 4000


def test_a_counter_in_a_loop() -> None:
    table = MutableHashTable(tf.string, tf.int64, 0)
    key = tf.constant(["n"])

    def add_one(i: Any) -> Any:
        with tf.control_dependencies([i]):
            old = table.lookup(key)
        with tf.control_dependencies([table.insert(key, old + 1)]):
            return i + 1

    with tf.Session() as session:
        session.run(tf.while_loop(lambda i: i < 7, add_one, [0], parallel_iterations=1))
        assert session.run(table.lookup(key)).tolist() == [7]
