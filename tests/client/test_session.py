"""Sessions: running, planning once, errors of the right class, life and threads."""

from __future__ import annotations

import collections
import threading
from pathlib import Path

import numpy as np
import pytest

import flowstone as tf
from flowstone.client import runners

pytestmark = pytest.mark.usefixtures("graph")


def test_fetches_come_back_in_the_form_they_were_asked_in():
    a, b = tf.constant(1.0, name="a"), tf.constant([1, 2], name="b")
    Point = collections.namedtuple("Point", ["x", "y"])
    with tf.Session() as session:
        single = session.run(a)
        assert single == 1.0 and isinstance(single, np.float32)
        assert session.run([a, a]) == [1.0, 1.0]
        point, nothing, mapping = session.run((Point(a, [b]), a.op, {"k": "a:0", "m": {"n": b}}))
        assert isinstance(point, Point) and point.x == 1.0 and nothing is None
        np.testing.assert_array_equal(point.y[0], [1, 2])
        assert mapping["k"] == 1.0 and mapping["m"]["n"].dtype == np.int32
        assert session.run([]) == [] and session.run(()) == ()
        assert session.run(collections.OrderedDict([("z", a), ("y", b)])).popitem(last=False) == ("z", 1.0)


def test_a_list_and_a_tuple_of_the_same_fetches_are_told_apart():
    a = tf.constant(1.0)
    Pair = collections.namedtuple("Pair", ["x", "y"])
    with tf.Session() as session:
        for _ in range(2):
            assert type(session.run([a, a])) is list
            assert type(session.run((a, a))) is tuple
            assert type(session.run(Pair(a, a))) is Pair


def test_feeds_by_tensor_and_name_anywhere_in_the_graph():
    x = tf.placeholder(tf.float32, [None], name="x")
    y = x * 2.0
    z = y + 1.0
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(z, {x: [1, 2]}), [3, 5])
        np.testing.assert_array_equal(session.run(z, {"x:0": np.float32([0])}), [1])
        np.testing.assert_array_equal(session.run(z, {y: [10.0]}), [11])
        np.testing.assert_array_equal(session.run(y, {y: [10.0]}), [10])


def test_a_fed_intermediate_spares_what_computes_it():
    x = tf.placeholder(tf.float32, [2])
    checked = tf.check_numerics(x, "not a number")
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(checked * 1.0, {checked: [np.nan, 1.0]}), [np.nan, 1.0])


@pytest.mark.parametrize(
    ("fetch", "error"),
    [
        (None, TypeError),
        (7, TypeError),
        (object(), TypeError),
        ("missing:0", ValueError),
        ("missing", ValueError),
        ("c:9", ValueError),
        ([None], TypeError),
        ({"a": 3}, TypeError),
    ],
)
def test_bad_fetches(fetch, error):
    tf.constant(1.0, name="c")
    with tf.Session() as session:
        with pytest.raises(error):
            session.run(fetch)
        assert session.run("c:0") == 1.0


def test_a_fetch_of_another_graph_is_a_value_error():
    tf.constant(1)
    with tf.Graph().as_default():
        other = tf.constant(2)
    with tf.Session() as session, pytest.raises(ValueError, match="is not an element of this graph"):
        session.run(other)


def test_bad_feeds_leave_the_session_usable():
    x = tf.placeholder(tf.float32, [2, None], name="x")
    i = tf.placeholder(tf.int32, [], name="i")
    s = tf.placeholder(tf.string, [], name="s")
    with tf.Session() as session:
        assert session.run(x, {x: [[1], [2]]}).shape == (2, 1)
        with pytest.raises(ValueError, match=r"of shape \(3,\) for Tensor 'x:0', .* '\(2, \?\)'"):
            session.run(x, {x: [1, 2, 3]})
        with pytest.raises(ValueError, match="Cannot feed value of shape"):
            session.run(x, {x: np.zeros((3, 1), np.float32)})
        with pytest.raises(ValueError):
            session.run(x, {x: [["a"], ["b"]]})
        with pytest.raises(TypeError, match=r"cannot be a tf.Tensor"):
            session.run(x, {x: x})
        with pytest.raises(TypeError, match="Cannot interpret feed_dict key as Tensor"):
            session.run(x, {"y:0": 1})
        with pytest.raises(TypeError, match="Cannot interpret feed_dict key as Tensor"):
            session.run(x, {3: 1})
        with pytest.raises(TypeError, match="not compatible"):
            session.run(i, {i: 2**40})
        with pytest.raises(TypeError):
            session.run(x, [x])
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="You must feed a value for placeholder tensor 'x'"
        ):
            session.run(x + 1.0)
        assert session.run(s, {s: "text"}) == "text"
        assert session.run(i, {i: np.int64(3)}) == 3
        assert session.run(x, {x: np.arange(4).reshape(2, 2)[:, ::-1]}).tolist() == [[1, 0], [3, 2]]


def test_fetched_arrays_are_the_users_own():
    x = tf.placeholder(tf.float32, [2])
    v = tf.Variable([1.0, 2.0])
    c = tf.constant([5.0, 6.0])
    fed = np.float32([3, 4])
    with tf.Session() as session:
        session.run(v.initializer)
        for fetch in (tf.identity(x), x, v, v + 0.0, c, tf.reshape(c, [2, 1]), tf.reshape(v, [1, 2])):
            before = session.run(fetch, {x: fed}).copy()
            session.run(fetch, {x: fed})[...] = -1
            np.testing.assert_array_equal(session.run(fetch, {x: fed}), before)
        np.testing.assert_array_equal(fed, [3, 4])
        y = x * 2.0
        first, second = session.run([y, tf.reshape(y, [2, 1])], {x: fed})
        first[...] = 0
        np.testing.assert_array_equal(second, [[6], [8]])


def test_a_variable_keeps_its_value_when_the_fed_array_changes():
    x = tf.placeholder(tf.float32, [2])
    v = tf.Variable(tf.zeros([2]))
    array = np.float32([1, 2])
    with tf.Session() as session:
        session.run(tf.assign(v, x), {x: array})
        array[:] = 9
        np.testing.assert_array_equal(session.run(v), [1, 2])


def test_nodes_added_after_a_run_leave_earlier_plans_valid():
    x = tf.placeholder(tf.float32, [])
    y = x + 1.0
    with tf.Session() as session:
        assert session.run(y, {x: 1}) == 2
        plans = dict(session.planner.plans)
        z = y * 3.0
        assert session.run(z, {x: 1}) == 6
        assert session.run(y, {x: 2}) == 3
        assert all(session.planner.plans[key] is plan for key, plan in plans.items())


def test_closed_empty_and_foreign_sessions():
    with pytest.raises(RuntimeError, match="empty"):
        tf.Session().run("x")
    a = tf.constant(1)
    session = tf.Session()
    call = session.make_callable(a)
    assert session.run(a) == call() == 1
    session.close()
    for attempt in (lambda: session.run(a), call, lambda: session.run([a])):
        with pytest.raises(RuntimeError, match="closed Session"):
            attempt()
    session.close()
    with pytest.raises(TypeError):
        tf.Session(graph=3)
    with pytest.raises(TypeError):
        tf.Session(target=3)
    with pytest.raises(TypeError):
        tf.Session(config={"a": 1})
    with pytest.raises(tf.errors.NotFoundError):
        tf.Session("nowhere://host")


def test_default_sessions_and_eval():
    a = tf.constant(4)
    with pytest.raises(ValueError, match="session"):
        a.eval()
    with tf.Session() as session:
        assert tf.get_default_session() is session and a.eval() == 4
        a.op.run()
    assert tf.get_default_session() is None
    session = tf.Session()
    with session.as_default():
        assert a.eval() == 4
    assert session.run(a) == 4  # as_default does not close
    with tf.Graph().as_default():
        tf.constant(1)
        with tf.Session(), pytest.raises(ValueError, match="another graph"):
            a.eval()
    interactive = tf.InteractiveSession()
    assert a.eval() == 4
    interactive.close()
    assert tf.get_default_session() is None


def test_targets_isolate_or_share_state():
    v = tf.Variable(1.0, name="v")
    alone, other = tf.Session(), tf.Session()
    alone.run(v.initializer)
    with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value v"):
        other.run(v)
    first, second = tf.Session("local"), tf.Session("local")
    first.run(v.assign(7.0))
    assert second.run(v) == 7.0
    with tf.Graph().as_default():
        same_name = tf.Variable(0.0, name="v")
        with tf.Session("local") as third:
            assert third.run(same_name) == 7.0
    tf.Session.reset("local")
    for session in (first, second):
        with pytest.raises(tf.errors.CancelledError):
            session.run(v)
    with pytest.raises(tf.errors.FailedPreconditionError):
        tf.Session("local").run(v)
    assert alone.run(v) == 1.0


def test_reset_drops_only_the_named_containers():
    with tf.container("left"):
        left = tf.Variable(1.0, name="left_variable")
    with tf.container("right"):
        right = tf.Variable(2.0, name="right_variable")
    session = tf.Session("local")
    session.run([left.initializer, right.initializer])
    tf.Session.reset("local", ["left"])
    session = tf.Session("local")
    assert session.run(right) == 2.0
    with pytest.raises(tf.errors.FailedPreconditionError):
        session.run(left)
    tf.Session.reset("local")


def test_callables_take_feeds_in_order_and_options():
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    difference = x - y
    with tf.Session() as session:
        call = session.make_callable(difference, [x, y])
        assert call(5, 3) == 2.0 and call(np.float32(1), 1) == 0.0
        assert session.make_callable([difference, x], ["x" if False else x, y])(2, 1) == [1.0, 2.0]
        with_options = session.make_callable(difference, [x, y], accept_options=True)
        assert with_options(2, 1) == 1.0
        assert with_options(2, 1, options=tf.RunOptions(timeout_in_ms=10000)) == 1.0
        with pytest.raises(TypeError):
            session.make_callable(difference, x)


def test_a_time_limit_ends_a_step_and_spares_the_session():
    import time

    x = tf.placeholder(tf.float32, [])
    slow = tf.py_func(lambda v: (time.sleep(0.05), v)[1], [x], tf.float32)
    after = slow + 1.0
    with tf.Session() as session:
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(after, {x: 1.0}, options=tf.RunOptions(timeout_in_ms=10))
        assert session.run(after, {x: 1.0}, options=tf.RunOptions(timeout_in_ms=60000)) == 2.0
        assert session.run(after, {x: 1.0}) == 2.0
    config = tf.ConfigProto(operation_timeout_in_ms=10)
    with tf.Session(config=config) as session, pytest.raises(tf.errors.DeadlineExceededError):
        session.run(after, {x: 1.0})


def test_runs_with_a_time_limit_are_compiled_once(monkeypatch):
    made = []
    compile_one = runners.compiled_runner
    monkeypatch.setattr(runners, "compiled_runner", lambda *a, **k: made.append(a) or compile_one(*a, **k))
    x = tf.placeholder(tf.float32, [None])
    with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=60_000)) as session:
        for n in (1, 2, 3):
            assert session.run([x], {x: [n] * n})[0].tolist() == [n] * n
            assert session.run({"x": x}, {x: [n]}, options=tf.RunOptions())["x"] == n
    assert len(made) == 2


def test_a_run_time_error_names_node_op_shapes_and_the_users_line():
    x = tf.placeholder(tf.float32, name="x")
    y = tf.add(x, tf.constant([1.0, 2.0]), name="sum_of_both")  # the line that the error must name
    own_lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    line = next(i for i, text in enumerate(own_lines, 1) if "must name" in text and "tf.add" in text)
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(y, {x: [1, 2, 3]})
        text = str(caught.value)
        assert "sum_of_both" in text and "Add" in text and "float32[3]" in text and "float32[2]" in text
        assert f"{__file__}:{line}" in text
        assert caught.value.op is y.op and caught.value.node_def.name == "sum_of_both"
        assert caught.value.error_code == tf.errors.INVALID_ARGUMENT
        np.testing.assert_array_equal(session.run(y, {x: [1, 2]}), [2, 4])


def test_a_cycle_is_an_error_that_names_it():
    a = tf.identity(tf.constant(1.0), name="first")
    b = tf.identity(a, name="second")
    a.op._update_input(0, b)
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"cycle.*first.*second"):
            session.run(b)
        assert session.run(tf.constant(3)) == 3


def test_a_device_that_does_not_exist():
    with tf.device("/gpu:7"):
        a = tf.constant(1.0, name="pinned")
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match=r"pinned.*device:GPU:7"),
    ):
        session.run(a)
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        assert session.run(a) == 1.0


def test_many_threads_run_and_build_at_once():
    x = tf.placeholder(tf.float32, [])
    graph = tf.get_default_graph()
    counter = tf.Variable(0)
    add = tf.assign_add(counter, 1, use_locking=True)
    failures: list[BaseException] = []
    with tf.Session() as session:
        session.run(counter.initializer)

        def work(number: int) -> None:
            try:
                with graph.as_default():
                    mine = x * float(number)
                for i in range(50):
                    assert session.run(mine, {x: i}) == i * number
                    session.run(add)
            except BaseException as error:  # handed to the main thread
                failures.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert session.run(counter) == 400
        names = [op.name for op in graph.get_operations()]
        assert len(names) == len(set(names))


def test_a_finalized_graph_runs_but_does_not_grow():
    a = tf.constant(1) + 1
    tf.get_default_graph().finalize()
    with tf.Session() as session:
        assert session.run(a) == 2
    with pytest.raises(RuntimeError, match="finalized"):
        tf.constant(1)


def test_a_failing_step_leaves_a_prefix_of_its_updates():
    v = tf.Variable(0)
    bad = tf.py_func(lambda: 1 // 0, [], tf.int64)
    with tf.control_dependencies([tf.assign(v, 5)]):
        failing = tf.identity(bad)
    with tf.Session() as session:
        session.run(v.initializer)
        for _ in range(20):
            with pytest.raises(tf.errors.OpError):
                session.run(failing)
        assert session.run(v) in (0, 5)


def test_explain_shows_rewrites_graph_and_code():
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.identity(x + (tf.constant(1.0) + tf.constant(2.0)), name="y")
    with tf.Session() as session:
        text = session.explain(y, [x])
    assert "all inputs are constant" in text and "def segment(step, a0):" in text and "AddV2(%0" in text


def test_nested_fetches_and_sparse_feeds_are_prepared_once(monkeypatch):
    made = []
    compile_one = runners.compiled_runner
    noted = lambda *args, **more: made.append(1) or compile_one(*args, **more)  # noqa: E731
    monkeypatch.setattr(runners, "compiled_runner", noted)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        ids = tf.sparse_placeholder(tf.int64)
        y, total = x * 2.0, tf.reduce_sum(x)
        value = tf.SparseTensorValue(np.array([[0, 0]]), np.array([7]), np.array([1, 1]))
        for feed in ([1.0, 2.0], [3.0, 4.0]):
            fetched = session.run({"y": y, "others": [total, (y, ids)]}, {x: feed, ids: value})
            assert fetched["y"].tolist() == fetched["others"][1][0].tolist() == [2 * feed[0], 2 * feed[1]]
            assert fetched["others"][0] == sum(feed)
            assert fetched["others"][1][1].values.tolist() == [7]
        assert session.run([[total], y, ids], {x: [1.0], ids: value})[0] == [1.0]  # the same in another form
        other_order = session.run(((y,), total, ids), {x: [5.0, 5.0], ids: value})
        assert other_order[0][0].tolist() == [10.0, 10.0] and other_order[1] == 10.0
    assert len(made) == 3  # one for each form
