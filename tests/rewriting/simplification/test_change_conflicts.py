"""Who may tell the order of changes: graph text before and after, and steps whose results show it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flowstone as tf
from agreement import agree, text


def waits(fetches: list[Any], feeds: list[Any], targets: list[Any]) -> list[str]:
    """The nodes that still wait for anything after the pass."""
    lines = text(fetches, feeds, "apply_identities", "drop_waits", "remove_unneeded", targets=targets)
    return [line for line in lines if "^" in line]


def normalised(x: Any) -> Any:
    h = tf.layers.batch_normalization(tf.layers.dense(x, 4), training=True)
    return tf.reduce_mean(tf.square(h - 1.0))


def test_gradients_do_not_wait_for_moving_averages() -> None:
    x = tf.placeholder(tf.float32, [5, 3])
    loss = normalised(x)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        gradients = tf.gradients(loss, tf.trainable_variables())
    train = [tf.assign_sub(v, g) for v, g in zip(tf.trainable_variables(), gradients)]
    lines = waits([loss], [x], [each.op for each in train])
    assert not any("AssignSub" in line.split("#")[0] and "^" in line and "Moving" in line for line in lines)


def changed_first(make: Callable[[Any, Any], Any]) -> list[str]:
    """What waits, if what `make` makes of a number and a variable waits for the variable's change."""
    x = tf.placeholder(tf.float32, [2])
    v = tf.Variable([1.0, 2.0])
    with tf.control_dependencies([v.assign_add([1.0, 1.0]).op]):
        y = tf.exp(x)
    made = make(y, v)
    return waits([made], [x], [])


CAN_TELL: dict[str, Callable[[Any, Any], Any]] = {
    "it reads the variable": lambda y, v: v + y,
    "it changes the variable": lambda y, v: v.assign_add(y),
    "it prints": lambda y, v: tf.Print(y, [y]),
    "it calls a function": lambda y, v: tf.py_func(lambda a: a, [y], tf.float32),
    "it draws a number": lambda y, v: tf.random_uniform([], seed=1) * y,
}


@pytest.mark.parametrize("kind", CAN_TELL)
def test_waits_that_can_be_told(kind: str) -> None:
    if kind == "it draws a number":  # by what the shape of the numbers waits for
        assert changed_first(lambda y, v: tf.random_uniform(tf.cast(y, tf.int32), seed=1))
    else:
        assert changed_first(CAN_TELL[kind])


def test_waits_that_cannot() -> None:
    other = tf.Variable([0.0, 0.0])
    assert not changed_first(lambda y, v: tf.square(y))
    assert not changed_first(lambda y, v: other.assign_add(y))
    assert not changed_first(lambda y, v: other + y)


def test_checks_stay_before_changes() -> None:
    x = tf.placeholder(tf.float32, [2])
    v = tf.Variable([1.0, 2.0])
    with tf.control_dependencies([tf.Assert(x[0] > 0, ["negative"])]):
        y = tf.exp(x)
    change = v.assign_add(y)
    with tf.Session() as session:
        session.run(v.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match="negative"):
            session.run(change, {x: [-1.0, 1.0]})
        assert session.run(v).tolist() == [1.0, 2.0]


def test_a_read_before_a_change_is_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for a read of a variable may change it later."""
    x = tf.placeholder(tf.float32, [2])
    v, kept = tf.Variable([1.0, 2.0]), tf.Variable([0.0, 0.0])
    with tf.control_dependencies([kept.assign(v * 2.0).op]):
        y = tf.exp(x)
    change = v.assign_add(y)
    assert waits([change], [x], [])
    setup = tf.global_variables_initializer()
    agree(monkeypatch, [change, kept], {x: [0.0, 0.0]}, "drop_waits", fires=0, setup=setup)


def test_queues_are_waited_for() -> None:
    queue = tf.FIFOQueue(3, tf.float32, [[]])
    total = tf.Variable(0.0)
    with tf.control_dependencies([queue.enqueue(1.0)]):
        y = tf.exp(tf.placeholder_with_default(0.0, []))
    assert any("^" in line for line in waits([total.assign_add(y)], [], []))


def test_what_comes_after_the_end_of_a_dataset_does_not_come() -> None:
    element = tf.data.Dataset.range(2).make_initializable_iterator()
    value = element.get_next()
    with tf.control_dependencies([value]):
        y = tf.exp(tf.placeholder_with_default(0.0, []))
    count = tf.Variable(0.0)
    change = count.assign_add(y)
    assert any("^" in line for line in waits([change], [], []))
    with tf.Session() as session:
        session.run([count.initializer, element.initializer])
        session.run([change, change])
        session.run(change)
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(change)
        assert session.run(count) == 2.0


def test_in_a_loop_waits_say_in_which_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    count = tf.Variable(0.0)

    def body(i: Any, total: Any) -> Any:
        with tf.control_dependencies([tf.assign_add(count, 1.0)]):
            return i + 1, total + tf.exp(tf.to_float(i))

    _, total = tf.while_loop(lambda i, total: i < 3, body, [0, 0.0])
    with tf.control_dependencies([total]):
        after = tf.identity(count.value())
    setup = tf.global_variables_initializer()
    log = agree(monkeypatch, [total, after], {}, "drop_waits", fires=4, setup=setup)
    assert "AddV2(%13:1, %5, ^%16)" in log and "Identity: 1 of its" not in log
