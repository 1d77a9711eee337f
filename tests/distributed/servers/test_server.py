"""Sessions on a cluster: values, state, errors and the ends of steps."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import clusters
import flowstone as tf
from flowstone.distributed.servers.server import TaskServer

pytestmark = pytest.mark.usefixtures("connection")


def in_thread(function: Any) -> tuple[threading.Thread, list[Any]]:
    """Calls the function on a thread; the list gets its result or exception."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(function())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, results


def test_a_graph_spreads_over_tasks(cluster: clusters.Cluster) -> None:
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(np.arange(6, dtype=np.float32).reshape(2, 3), name="spread_v")
        w = tf.Variable(3.0, name="spread_w")
    x = tf.placeholder(tf.float32, [3, None])
    with tf.device("/job:worker/task:1"):
        y = tf.matmul(v, x) * w
    update = v.assign_add(tf.ones([2, 3]))
    with tf.Session(cluster.target()) as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run(y, {x: np.eye(3)}), 3 * np.arange(6.0).reshape(2, 3))
        session.run(update)
        first, second = session.run([y, w], {x: np.ones((3, 1))})
        np.testing.assert_array_equal(first, [[18.0], [45.0]])
        assert second == 3.0


@pytest.mark.parametrize(
    "value",
    [
        np.float32(1.5), np.arange(4, dtype=np.int64), np.array([True, False]), np.zeros((0, 3), np.float64),
        np.array([b"a", b"", "ü".encode()], object), np.array([1 + 2j], np.complex64), np.uint8([255]),
        np.float16([0.5]),
    ],
)  # fmt: skip
def test_values_of_every_type_cross_tasks(cluster: clusters.Cluster, value: Any) -> None:
    given = tf.constant(value)
    x = tf.placeholder(given.dtype, given.shape)
    with tf.device("/job:worker/task:1"):
        moved = tf.identity(x)
    with tf.device("/job:ps/task:0"):
        back = tf.identity(moved)
    with tf.Session(cluster.target()) as session:
        np.testing.assert_array_equal(session.run(back, {x: value}), value)


def test_a_graph_may_grow_between_steps(cluster: clusters.Cluster) -> None:
    with tf.Session(cluster.target()) as session:
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(2.0, name="growing")
        session.run(v.initializer)
        doubled = v * 2.0
        assert session.run(doubled) == 4.0
        assert session.run(tf.gradients(doubled * doubled, v)[0]) == 16.0


def test_loops_and_conditionals_over_tasks(cluster: clusters.Cluster) -> None:
    n = tf.placeholder(tf.int32, [])

    def body(i: Any, total: Any) -> Any:
        with tf.device("/job:worker/task:1"):
            more = total + tf.cast(i, tf.float32)
        with tf.device("/job:ps/task:0"):
            return i + 1, more * 1.0

    _, total = tf.while_loop(lambda i, _: i < n, body, [tf.constant(0), tf.constant(0.0)])
    with tf.device("/job:worker/task:1"):
        chosen = tf.cond(n > 3, lambda: total * 2.0, lambda: total - 1.0)
    with tf.Session(cluster.target()) as session:
        for count in (0, 1, 3, 10):
            plain = float(sum(range(count)))
            assert session.run([total, chosen], {n: count}) == [plain, plain * 2 if count > 3 else plain - 1]


def test_state_is_shared_by_the_sessions_of_a_cluster(cluster: clusters.Cluster) -> None:
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("shared_by_sessions", [], initializer=tf.zeros_initializer())
    add = v.assign_add(1.0)
    with tf.Session(cluster.target("worker", 0)) as session:
        session.run(v.initializer)
        session.run(add)
    with tf.Session(cluster.target("worker", 1)) as session:
        assert session.run(add) == 2.0
    isolated = tf.ConfigProto(isolate_session_state=True)
    with tf.Session(cluster.target("worker", 1), config=isolated) as session:
        assert not session.run(tf.is_variable_initialized(v))


def test_nodes_without_a_device_run_on_the_task_of_the_session(
    cluster: clusters.Cluster, request: pytest.FixtureRequest
) -> None:
    v = tf.get_variable(f"at_home_{len(request.node.name)}", [], initializer=tf.ones_initializer())
    for task in range(2):
        with tf.Session(cluster.target("worker", task)) as session:
            assert not session.run(tf.is_variable_initialized(v))
            session.run(v.initializer)
            assert session.run(v) == 1.0


def test_the_devices_of_all_tasks_are_listed(cluster: clusters.Cluster) -> None:
    tf.constant(0)
    with tf.Session(cluster.target()) as session:
        names = [device.name for device in session.list_devices()]
    tasks = [("worker", 0), ("ps", 0), ("worker", 1)]
    assert names == [f"/job:{job}/replica:0/task:{task}/device:CPU:0" for job, task in tasks]


def test_device_filters_leave_tasks_out(cluster: clusters.Cluster) -> None:
    config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:0"])
    with tf.device("/job:worker/task:1"):
        x = tf.constant(1.0) + 1.0
    with tf.Session(cluster.target(), config=config) as session:
        assert len(session.list_devices()) == 2
        with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot assign a device for operation"):
            session.run(x)


def test_an_error_names_the_node_and_the_users_line(cluster: clusters.Cluster) -> None:
    x = tf.placeholder(tf.float32, [None])
    with tf.device("/job:worker/task:1"):
        bad = tf.reshape(x, [2, 2], name="bad_reshape")
    with tf.Session(cluster.target()) as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="a tensor with 3 values") as caught:
            session.run(bad, {x: [1.0, 2.0, 3.0]})
        assert caught.value.op is bad.op and "test_server.py" in caught.value.message
        assert session.run(bad, {x: np.ones(4)}).shape == (2, 2)


def test_an_uninitialised_variable_is_named(cluster: clusters.Cluster) -> None:
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("never_initialised", [2])
    with tf.device("/job:worker/task:1"):
        y = v + 1.0
    expected = pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value never_initialised")
    with tf.Session(cluster.target()) as session, expected:
        session.run(y)


def test_the_first_failure_ends_the_step_on_all_tasks(cluster: clusters.Cluster) -> None:
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(1, tf.float32, shapes=[[]], shared_name="never_filled")
        taken = queue.dequeue()
    x = tf.placeholder(tf.float32, [None])
    with tf.device("/job:worker/task:1"):
        bad = tf.reshape(x, [5])
    with tf.Session(cluster.target()) as session:
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run([taken, bad], {x: [1.0]})
        session.run(queue.enqueue(4.0))  # nothing was left that takes it
        assert session.run(taken) == 4.0


def test_a_queue_joins_sessions_on_different_tasks(cluster: clusters.Cluster) -> None:
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(10, tf.float32, shapes=[[]], shared_name="between_sessions")
    taken, given = queue.dequeue(), tf.placeholder(tf.float32, [])
    put = queue.enqueue(given)
    with tf.Session(cluster.target("worker", 0)) as one, tf.Session(cluster.target("worker", 1)) as other:
        thread, results = in_thread(lambda: other.run(taken))
        time.sleep(0.05)
        one.run(put, {given: 7.0})
        thread.join(10)
        assert results == [7.0]


def test_a_time_limit_ends_the_step_everywhere(cluster: clusters.Cluster) -> None:
    with tf.device("/job:ps/task:0"):
        taken = tf.FIFOQueue(1, tf.float32, shapes=[[]], shared_name="time_limit").dequeue()
    with tf.device("/job:worker/task:1"):
        y = taken + 1.0
    with tf.Session(cluster.target()) as session:
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(y, options=tf.RunOptions(timeout_in_ms=100))
        assert session.run(tf.constant(1)) == 1


def test_a_time_limit_ends_a_loop_on_another_task(cluster: clusters.Cluster) -> None:
    """The loop's thread ends as well, though nothing in it waits; and the task answers meanwhile."""
    given = tf.placeholder(tf.int32, [])
    with tf.device("/job:worker/task:1"):
        endless = tf.while_loop(lambda i: i >= 0, lambda i: (i + 1) % 1000, [given])
        other = given + 1
    worker = cluster.servers["worker", 1]._worker
    with tf.Session(cluster.target()) as session:
        before = len(worker._steps)
        limit = tf.RunOptions(timeout_in_ms=500)
        thread, results = in_thread(lambda: session.run(endless, {given: 0}, options=limit))
        assert session.run(other, {given: 1}) == 2
        thread.join(60)
        assert isinstance(results[0], tf.errors.DeadlineExceededError), results
        deadline = time.monotonic() + 10
        while len(worker._steps) > before and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(worker._steps) == before


def test_closing_a_session_ends_its_steps(cluster: clusters.Cluster) -> None:
    with tf.device("/job:ps/task:0"):
        taken = tf.FIFOQueue(1, tf.float32, shapes=[[]], shared_name="closing").dequeue()
    session = tf.Session(cluster.target())
    session.run(tf.constant(0))
    thread, results = in_thread(lambda: session.run(taken))
    time.sleep(0.1)
    session.close()
    thread.join(10)
    assert isinstance(results[0], tf.errors.CancelledError)
    with pytest.raises(RuntimeError, match="closed Session"):
        session.run(taken)


def test_reset_drops_containers_and_ends_sessions(cluster: clusters.Cluster) -> None:
    with tf.device("/job:ps/task:0"), tf.container("box"):
        v = tf.get_variable("boxed", [], initializer=tf.ones_initializer())
    session = tf.Session(cluster.target())
    session.run(v.initializer)
    tf.Session.reset(cluster.target(), ["box"])
    with pytest.raises(tf.errors.AbortedError, match="is not found"):
        session.run(v)
    with tf.Session(cluster.target()) as session:
        assert not session.run(tf.is_variable_initialized(v))


def test_a_callable_runs_steps(cluster: clusters.Cluster) -> None:
    x = tf.placeholder(tf.float32, [2])
    with tf.device("/job:worker/task:1"):
        y = x * 2.0
    with tf.Session(cluster.target()) as session:
        call = session.make_callable(y, [x])
        np.testing.assert_array_equal(call([1.0, 2.0]), [2.0, 4.0])


def test_a_step_in_several_calls(cluster: clusters.Cluster) -> None:
    a, b = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [2])
    with tf.device("/job:worker/task:1"):
        doubled = a * 2.0
    with tf.device("/job:ps/task:0"):
        total = doubled + b
    with tf.Session(cluster.target()) as session:
        handle = session.partial_run_setup([doubled, total], [a, b])
        given = np.float32([1.0, 2.0])
        np.testing.assert_array_equal(session.partial_run(handle, doubled, {a: given}), [2.0, 4.0])
        with pytest.raises(tf.errors.InvalidArgumentError, match="has already been fed"):
            session.partial_run(handle, total, {a: given})
        with pytest.raises(tf.errors.InvalidArgumentError, match="can't be computed"):
            session.partial_run(handle, total)
        np.testing.assert_array_equal(session.partial_run(handle, total, {b: [10.0, 10.0]}), [12.0, 14.0])
        with pytest.raises(tf.errors.InvalidArgumentError, match="partial runs"):
            session.partial_run(handle, total)


def test_a_python_function_runs_in_the_process_that_has_it(cluster: clusters.Cluster) -> None:
    y = tf.py_func(lambda x: x + 1, [tf.constant(1)], tf.int32)
    with tf.Session(cluster.target()) as session:
        assert session.run(y) == 2


def test_results_do_not_change_with_the_state(cluster: clusters.Cluster) -> None:
    v = tf.get_variable("changing", [3], initializer=tf.zeros_initializer())
    add = v.assign_add(tf.ones([3]))
    with tf.Session(cluster.target()) as session:
        session.run(v.initializer)
        before = session.run(v)
        session.run(add)
        np.testing.assert_array_equal(before, np.zeros(3))


def test_many_threads_run_steps_at_once(cluster: clusters.Cluster) -> None:
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("counted", [], initializer=tf.zeros_initializer())
        add = tf.assign_add(v, 1.0, use_locking=True)
    with tf.device("/job:worker/task:1"):
        seen = add + 0.0
    with tf.Session(cluster.target()) as session:
        session.run(v.initializer)
        session.run(seen)
        threads = [in_thread(lambda: [session.run(seen) for _ in range(20)]) for _ in range(8)]
        for thread, results in threads:
            thread.join(30)
            assert len(results[0]) == 20
        assert session.run(v) == 161.0


def test_nobody_listens() -> None:
    (port,) = clusters.free_ports(1)
    x = tf.constant(1.0)
    begin = time.monotonic()
    with pytest.raises(tf.errors.UnavailableError):
        tf.Session(f"grpc://localhost:{port}").run(x)
    assert time.monotonic() - begin < 10.0


def test_a_port_in_use_and_unknown_tasks() -> None:
    addresses = clusters.cluster_of(ps=1, worker=1)
    server = TaskServer(clusters.server_def(addresses, "ps", 0))
    try:
        with pytest.raises(tf.errors.UnknownError, match="port in use"):
            TaskServer(clusters.server_def(addresses, "ps", 0))
        with pytest.raises(
            tf.errors.InternalError, match=r'Job "chief" was not defined in cluster, which has ps'
        ):
            TaskServer(clusters.server_def(addresses, "chief", 0))
        with pytest.raises(tf.errors.InvalidArgumentError, match='Task 3 was not defined in job "ps"'):
            TaskServer(clusters.server_def(addresses, "ps", 3))
    finally:
        server.stop()


def test_a_task_that_begins_anew_is_noticed() -> None:
    with clusters.running(ps=1, worker=1) as cluster:
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("lost", [], initializer=tf.ones_initializer())
        with tf.device("/job:worker/task:0"):
            y = v + 1.0
        with tf.Session(cluster.target()) as session:
            session.run(v.initializer)
            assert session.run(y) == 2.0
            cluster.stop("ps", 0)
            with pytest.raises((tf.errors.UnavailableError, tf.errors.AbortedError)):
                session.run(y)
            cluster.restart("ps", 0)
            with pytest.raises((tf.errors.UnavailableError, tf.errors.AbortedError)):
                session.run(y)
        with tf.Session(cluster.target()) as session:
            session.run(v.initializer)
            assert session.run(y) == 2.0


def test_a_session_waits_for_tasks_that_come_later() -> None:
    addresses = clusters.cluster_of(ps=1, worker=1)
    with tf.device("/job:ps/task:0"):
        x = tf.constant(1.0) + 1.0
    worker = TaskServer(clusters.server_def(addresses, "worker", 0))
    worker.start()
    session = tf.Session(worker.target)
    thread, results = in_thread(lambda: session.run(x))
    time.sleep(0.3)
    assert not results
    ps = TaskServer(clusters.server_def(addresses, "ps", 0))
    ps.start()
    thread.join(20)
    assert results == [2.0]
    session.close()
    worker.stop()
    ps.stop()


def test_a_trace_has_the_nodes_of_all_tasks(cluster: clusters.Cluster) -> None:
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("traced", [8, 8], initializer=tf.ones_initializer())
    with tf.device("/job:worker/task:1"):
        y = tf.matmul(v, v, name="traced_product")
    with tf.Session(cluster.target()) as session:
        session.run(v.initializer)
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
        before = time.time()
        result = session.run(y, options=options, run_metadata=metadata)
        np.testing.assert_array_equal(result, np.full((8, 8), 8.0))
        nodes = {
            (device.device, node.node_name): node
            for device in metadata.step_stats.dev_stats
            for node in device.node_stats
        }
        product = nodes["/job:worker/replica:0/task:1/device:CPU:0", "traced_product"]
        assert abs(product.all_start_micros / 1e6 - before) < 10.0
        assert any(device.startswith("/job:ps") for device, _ in nodes)
        placed = {node.name: node.device for graph in metadata.partition_graphs for node in graph.node}
        assert placed["traced_product"] == "/job:worker/replica:0/task:1/device:CPU:0"
        session.run(y, run_metadata=metadata)
        assert not metadata.step_stats.dev_stats


def test_the_only_task_of_a_job_needs_no_index():
    addresses = clusters.cluster_of(worker=1, ps=2)
    server = tf.train.Server(addresses, job_name="worker", start=False)
    assert (server.server_def.job_name, server.server_def.task_index) == ("worker", 0)
    with pytest.raises(ValueError, match="explicit `task_index`"):
        tf.train.Server(addresses, job_name="ps", start=False)
