"""Iterators: initialisers, handles, state that is saved, waits that end."""

from __future__ import annotations

import gc
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
import pipelines
from flowstone.framework import errors
from flowstone.ops.datasets import parallel_mapping

pytestmark = pytest.mark.usefixtures("graph")

D = tf.data.Dataset


def rest(session: Any, element: Any, most: int = 100) -> list[Any]:
    found: list[Any] = []
    try:
        while len(found) < most:
            found.append(session.run(element))
    except errors.OpError as error:
        if not isinstance(error, errors.OutOfRangeError):
            found.append(type(error).__name__)
    return found


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "flowstone dataset"]


def wait_for_no_workers() -> None:
    deadline = time.monotonic() + 10
    while workers() and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    assert not workers()


# ---- kinds


def test_initialisers_begin_anew_with_what_is_fed() -> None:
    end = tf.placeholder(tf.int64, [])
    iterator = D.range(end).make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        with pytest.raises(errors.FailedPreconditionError, match="has not been initialized"):
            session.run(element)
        for number in (3, 2):
            session.run(iterator.initializer, {end: number})
            assert rest(session, element) == list(range(number))
        with pytest.raises(errors.OutOfRangeError, match="End of sequence"):
            session.run(element)


def test_one_iterator_for_several_datasets() -> None:
    iterator = tf.data.Iterator.from_structure((tf.int64, tf.string), ([], [None]))
    first = iterator.make_initializer(D.range(2).map(lambda x: (x, ["a", "b"])))
    second = iterator.make_initializer(D.range(1).map(lambda x: (x + 7, ["c"])))
    number, text = iterator.get_next()
    assert number.shape.as_list() == [] and text.shape.as_list() == [None]
    with tf.Session() as session:
        session.run(first)
        assert session.run(number) == 0
        session.run(second)
        assert session.run([number, text])[0] == 7
        session.run(first)
        assert [each[0] for each in rest(session, [number, text])] == [0, 1]


def test_datasets_that_do_not_fit_an_iterator() -> None:
    iterator = tf.data.Iterator.from_structure(tf.int64, [])
    with pytest.raises(TypeError, match="Expected output types"):
        iterator.make_initializer(D.from_tensors(1.0))
    with pytest.raises(TypeError, match="Expected output shapes"):
        iterator.make_initializer(D.range(3).batch(2))
    with pytest.raises(ValueError, match="does not have an initializer"):
        _ = iterator.initializer


def test_handles_choose_among_iterators() -> None:
    first, second = D.range(3).make_one_shot_iterator(), D.range(10, 13).make_initializable_iterator()
    handle = tf.placeholder(tf.string, [])
    element = tf.data.Iterator.from_string_handle(handle, tf.int64, []).get_next()
    with tf.Session() as session:
        session.run(second.initializer)
        handles = session.run([first.string_handle(), second.string_handle()])
        found = [session.run(element, {handle: handles[i]}) for i in (0, 1, 1, 0, 1, 0)]
        assert found == [0, 10, 11, 1, 12, 2]
        with pytest.raises(errors.InvalidArgumentError, match="no iterator with the handle"):
            session.run(element, {handle: "?"})
    wrong = tf.data.Iterator.from_string_handle(handle, tf.float32, []).get_next()
    with tf.Session() as session:
        text = session.run(first.string_handle())
        with pytest.raises(errors.InvalidArgumentError, match="types"):
            session.run(wrong, {handle: text})


def test_sessions_of_one_target_share_an_iterator_by_name() -> None:
    iterator = D.range(4).make_initializable_iterator(shared_name="shared by two")
    element = iterator.get_next()
    with tf.Session("local") as one, tf.Session("local") as two:
        one.run(iterator.initializer)
        assert [one.run(element), two.run(element), one.run(element)] == [0, 1, 2]
    tf.Session.reset("local")


def test_one_element_a_step() -> None:
    element = D.range(5).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run([element + 1, element * 10, element]) == [1, 0, 0]
        assert session.run(element) == 1


def test_one_shot_iterators_refuse_state() -> None:
    variable = tf.Variable(3, dtype=tf.int64)
    with pytest.raises(ValueError, match=r"Cannot capture a stateful node.*Variable"):
        D.range(variable).make_one_shot_iterator()
    with pytest.raises(ValueError, match="Cannot capture a placeholder"):
        D.range(tf.placeholder(tf.int64, [])).make_one_shot_iterator()


def test_one_shot_iterators_look_for_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    element = D.list_files(str(tmp_path / "*.txt")).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run(element) == str(tmp_path / "a.txt").encode()


def test_maps_read_tables() -> None:
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64)), -1
    )
    iterator = D.from_tensor_slices(["b", "c", "a"]).map(table.lookup).make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        session.run(iterator.initializer)
        assert rest(session, element) == [2, -1, 1]


def test_elements_of_batches() -> None:
    batches = D.range(5).map(lambda x: (x, -x)).batch(2)
    element = batches.unbatch().make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert rest(session, element) == [(x, -x) for x in range(5)]
    with pytest.raises(ValueError, match="scalar"):
        D.range(5).unbatch()


def test_tables_are_initialised_without_the_iterators() -> None:
    size = tf.placeholder(tf.int64, [])
    iterator = D.range(size).make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        session.run(iterator.initializer, {size: 2})
        assert rest(session, element) == [0, 1]


def test_elements_are_not_overwritten() -> None:
    """A step computes in place only in memory that is its own."""
    iterator = D.from_tensors(np.ones([4], np.float32)).repeat(3).make_one_shot_iterator()
    x = iterator.get_next()
    result = tf.nn.relu(-(x + 1)) - 2
    with tf.Session() as session:
        assert [each.tolist() for each in rest(session, result)] == [[-2.0] * 4] * 3


def test_training_takes_elements() -> None:
    """A dataset feeds a step that updates variables."""
    inputs = np.linspace(-1, 1, 32, dtype=np.float32)
    dataset = D.from_tensor_slices((inputs, 3 * inputs + 1)).shuffle(32, 1).repeat().batch(8).prefetch(2)
    x, y = dataset.make_one_shot_iterator().get_next()
    w, b = tf.Variable(0.0), tf.Variable(0.0)
    train = tf.train.GradientDescentOptimizer(0.3).minimize(tf.reduce_mean(tf.square(w * x + b - y)))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(200):
            session.run(train)
        assert np.allclose(session.run([w, b]), [3, 1], atol=1e-3)
    wait_for_no_workers()


# ---- state


@pytest.mark.parametrize("name", [name for name in pipelines.PROGRAMS if not name.startswith("generator")])
def test_iteration_goes_on_where_it_was_saved(name: str) -> None:
    try:
        dataset = pipelines.PROGRAMS[name](tf)
        iterator = dataset.make_initializable_iterator()
    except (TypeError, ValueError):
        return  # refused when it is built
    element = iterator.get_next()
    handle = iterator._iterator_resource
    saved = tf.raw_ops.SerializeIterator(resource_handle=handle)
    fed = tf.placeholder(tf.variant, [None])
    restore = tf.raw_ops.DeserializeIterator(resource_handle=handle, serialized=fed)
    with tf.Session() as session:
        try:
            session.run(iterator.initializer)
        except errors.OpError:
            return  # refused when it begins
        states, everything = [], []
        for _ in range(8):
            states.append(session.run(saved))
            everything.append(rest(session, element, most=1))
        everything.append(rest(session, element, most=10))
        for place, state in enumerate(states):
            session.run(restore, {fed: state})
            again = [rest(session, element, most=1) for _ in range(8 - place)]
            again.append(rest(session, element, most=10))
            if any("Error" in str(part) for part in everything):
                continue  # what is fetched ahead of an error is not computed again
            assert str(again) == str(everything[place:])


# ---- waits


def test_a_wait_ends_with_the_steps_time() -> None:
    queue = tf.FIFOQueue(1, tf.int32, [])
    element = D.range(1).map(lambda x: x + tf.cast(queue.dequeue(), tf.int64)).prefetch(1)
    iterator = element.make_initializable_iterator()
    value = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        with pytest.raises(errors.DeadlineExceededError):
            session.run(value, options=tf.RunOptions(timeout_in_ms=100))
        session.run(queue.enqueue(5))
        assert session.run(value) == 5


def test_a_wait_ends_with_the_session() -> None:
    queue = tf.FIFOQueue(1, tf.int32, [])
    iterator = D.range(1).map(lambda x: queue.dequeue(), num_parallel_calls=2).make_initializable_iterator()
    value = iterator.get_next()
    session = tf.Session()
    session.run(iterator.initializer)
    threading.Timer(0.1, session.close).start()
    with pytest.raises(errors.CancelledError):
        session.run(value)
    wait_for_no_workers()


def test_threads_end_with_the_session_or_without_anybody() -> None:
    iterator = D.range(1000).map(lambda x: x, num_parallel_calls=2).prefetch(4).make_initializable_iterator()
    value = iterator.get_next()
    session = tf.Session()
    session.run(iterator.initializer)
    assert session.run(value) == 0 and workers()
    session.run(iterator.initializer)
    assert session.run(value) == 0
    session.close()
    wait_for_no_workers()
    session = tf.Session()
    session.run(iterator.initializer)
    assert session.run(value) == 0 and workers()
    del session
    wait_for_no_workers()


def test_elements_are_fetched_ahead() -> None:
    reached = threading.Event()
    asked = []

    def note(x: Any) -> Any:
        asked.append(int(x))
        if int(x) == 3:
            reached.set()
        return x

    dataset = D.range(100).map(lambda x: tf.py_func(note, [x], tf.int64)).prefetch(3)
    value = dataset.make_initializable_iterator()
    element = value.get_next()
    with tf.Session() as session:
        session.run(value.initializer)
        time.sleep(0.05)
        assert not asked  # nothing is fetched before the first is asked for
        assert session.run(element) == 0
        assert reached.wait(10)
        time.sleep(0.05)
        assert asked == [0, 1, 2, 3]


def test_calls_run_at_once() -> None:
    both = threading.Barrier(2, timeout=10)

    def meet(x: Any) -> Any:
        both.wait()
        return x

    dataset = D.range(4).map(lambda x: tf.py_func(meet, [x], tf.int64), num_parallel_calls=2)
    element = dataset.make_initializable_iterator()
    value = element.get_next()
    with tf.Session() as session:
        session.run(element.initializer)
        assert rest(session, value) == [0, 1, 2, 3]


def test_errors_name_the_node_and_the_iterator_goes_on() -> None:
    dataset = D.range(4).map(lambda x: tf.gather([10, 20, 30], 3 - x))
    value = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        with pytest.raises(errors.InvalidArgumentError, match=r"\[\[node .*Gather"):
            session.run(value)
        assert rest(session, value) == [30, 20, 10]


def test_workers_take_turns_only_for_short_calls() -> None:
    pace = parallel_mapping._Pace()
    pace.note_source(1e-6)
    for _ in range(40):
        assert not (pace.takes_turns and pace.together == 1)
        pace.note(2e-5)
    assert pace.takes_turns and pace.together > 8
    pace.note_source(1.0)
    assert pace.together == 1  # else what has come would wait for what has not
    for _ in range(100):
        pace.note_source(1e-6)
        pace.note(0.01)
    assert not pace.takes_turns and pace.together == 1


def test_a_list_of_no_files_is_an_error(tmp_path: Path) -> None:
    for pattern in (str(tmp_path / "*"), [str(tmp_path / "a*"), str(tmp_path / "b*")]):
        iterator = D.list_files(pattern).make_initializable_iterator()
        words = f"No files matched pattern: {tmp_path!s}"
        with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=words):
            session.run(iterator.initializer)


def test_a_scalar_has_no_slices() -> None:
    with pytest.raises(ValueError, match="scalar"):
        D.from_tensor_slices(({"a": [1, 2]}, 3))
