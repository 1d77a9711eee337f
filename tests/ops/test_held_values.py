"""Values that something else still holds: no operation in place writes into them.

What is put into a stack, an array, a list, a queue, a staging area, a barrier, an accumulator or a map is
taken twice where it can be, or looked at where it came from; what was taken first is overwritten in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.ops.queues.staging_areas import MapStagingArea, StagingArea

pytestmark = pytest.mark.usefixtures("graph")

X = np.arange(12, dtype="f").reshape(3, 4)


class Holder(NamedTuple):
    """What fills it (run before each step, may be none), what is taken first, and what takes it again."""

    filling: list[Any]
    first: Any
    again: Callable[[], Any]


def computed() -> Any:
    """A value of the step's own."""
    return tf.placeholder_with_default(tf.constant(X), [3, 4]) * 1.0


def variable() -> Any:
    return tf.get_variable("v", initializer=X)


def stack() -> Holder:
    handle = F.StackV2(tf.constant(-1), elem_type=tf.float32)
    pushed = F.StackPushV2(handle, F.StackPushV2(handle, computed()))
    with tf.control_dependencies([pushed]):
        first = F.StackPopV2(handle, elem_type=tf.float32)
    return Holder([], first, lambda: F.StackPopV2(handle, elem_type=tf.float32))


def array() -> Holder:
    x = computed()
    filled = tf.TensorArray(tf.float32, 2, clear_after_read=False).write(0, x).write(1, x)
    return Holder([], filled.read(0), lambda: filled.read(1))


def array_of_rows() -> Holder:
    filled = tf.TensorArray(tf.float32, 3, clear_after_read=False).unstack(computed())
    return Holder([], filled.stack(), filled.stack)


def array_of_one() -> Holder:
    filled = tf.TensorArray(tf.float32, 1, clear_after_read=False).unstack(computed()[None])
    return Holder([], filled.gather([0]), lambda: filled.read(0))


def joined_array() -> Holder:
    filled = tf.TensorArray(tf.float32, 1, clear_after_read=False, infer_shape=False).write(0, computed())
    return Holder([], filled.concat(), filled.concat)


def tensor_list() -> Holder:
    empty = F.EmptyTensorList([3, 4], tf.constant(-1), element_dtype=tf.float32)
    one = F.TensorListPushBack(empty, computed())

    def pop() -> Any:
        return F.TensorListPopBack(one, [3, 4], element_dtype=tf.float32)[1]

    return Holder([], pop(), pop)


def list_of_rows() -> Holder:
    rows = F.TensorListFromTensor(computed(), [4])

    def whole() -> Any:
        return F.TensorListStack(rows, [4], element_dtype=tf.float32)

    return Holder([], whole(), whole)


def queue() -> Holder:
    made = tf.FIFOQueue(4, [tf.float32], [[3, 4]])
    x = computed()
    return Holder([tf.group(made.enqueue([x]), made.enqueue([x]))], made.dequeue(), made.dequeue)


def queue_of_rows() -> Holder:
    made, v = tf.FIFOQueue(6, [tf.float32], [[4]]), variable()
    filling = tf.group(made.enqueue_many([v]), made.enqueue_many([v]))
    return Holder([filling], made.dequeue_many(3), lambda: made.dequeue_many(3))


def staging_area() -> Holder:
    area = StagingArea([tf.float32], shapes=[[3, 4]])
    return Holder([area.put([computed()])], only(area.peek(0)), lambda: only(area.get()))


def staging_map() -> Holder:
    area, key = MapStagingArea([tf.float32], shapes=[[3, 4]]), tf.constant(1, tf.int64)
    return Holder([area.put(key, [computed()], [0])], only(area.peek(key)), lambda: only(area.get(key)))


def accumulator() -> Holder:
    made, v = tf.ConditionalAccumulator(tf.float32, shape=[3, 4]), variable()
    return Holder([made.apply_grad(v, 10)], made.take_grad(1), v.value)


def barrier() -> Holder:
    made, v = F.Barrier(component_types=[tf.float32], shapes=[[4]]), variable()
    filling = F.BarrierInsertMany(made, tf.constant([b"a", b"b", b"c"]), v, component_index=0)
    taken = F.BarrierTakeMany(made, 3, component_types=[tf.float32])
    return Holder([filling], only(taken[2]), v.value)


def sparse_map() -> Holder:
    values = tf.reshape(variable(), [12])
    places = tf.constant(np.arange(12).reshape(12, 1))
    handle = F.AddSparseToTensorsMap(places, values, np.array([12]), shared_name="m")
    taken = F.TakeManySparseFromTensorsMap(tf.reshape(handle, [1]), dtype=tf.float32, shared_name="m")
    return Holder([], tf.reshape(taken[1], [3, 4]), lambda: tf.reshape(values, [3, 4]))


def python_function() -> Holder:
    held = X.copy()
    first = tf.py_func(lambda: held, [], tf.float32)
    first.set_shape([3, 4])
    return Holder([], first, lambda: tf.py_func(held.copy, [], tf.float32))


def only(values: Any) -> Any:
    """The one component, after a key or not."""
    while isinstance(values, (list, tuple)):
        values = values[-1]
    return values


HOLDERS = (
    stack, array, array_of_rows, array_of_one, joined_array, tensor_list, list_of_rows, queue, queue_of_rows,
    staging_area, staging_map, accumulator, barrier, sparse_map, python_function,
)  # fmt: skip


@pytest.mark.parametrize("make", HOLDERS)
def test_what_is_still_held_stays(make: Callable[[], Holder]) -> None:
    holder = make()
    spoiled = tf.exp(tf.negative(tf.square(holder.first / 4.0 + 1.0)))  # nowhere too small for a float32
    with tf.control_dependencies([spoiled]):
        again = tf.reshape(holder.again(), [3, 4]) + 0.0
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            for op in holder.filling:
                session.run(op)
            values = session.run([spoiled, again])
            np.testing.assert_allclose(values[0].reshape(3, 4), np.exp(-((X / 4 + 1) ** 2)), rtol=1e-6)
            np.testing.assert_array_equal(values[1], X)


@pytest.mark.parametrize("make", [staging_area, staging_map])
def test_what_was_peeked_at_and_kept_stays(make: Callable[[], Holder]) -> None:
    holder = make()
    kept = tf.FIFOQueue(2, [tf.float32], [[3, 4]])
    keep, spoiled = kept.enqueue([holder.first]), tf.exp(tf.negative(holder.again()))
    with tf.Session() as session:
        for op in (*holder.filling, keep, spoiled):
            session.run(op)
        np.testing.assert_array_equal(session.run(kept.dequeue()), X)
