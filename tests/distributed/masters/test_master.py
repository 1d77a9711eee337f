"""Masters: sessions, graphs that grow, names that are not there, callables, waiting for tasks."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import numpy as np
import pytest
import torch

import clusters
import flowstone as tf
from flowstone.distributed.masters.master import Master, MasterSession
from flowstone.distributed.masters.own_servers import masters
from flowstone.distributed.servers.server import TaskServer
from flowstone.framework import errors
from flowstone.framework.types.tensor_proto import messages

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"
OTHER = "/job:worker/replica:0/task:1"


@pytest.fixture
def master(cluster: clusters.Cluster) -> Master:
    return masters[cluster.target()]


def session_of(master: Master, config: Any = None) -> MasterSession:
    return master.create_session(tf.get_default_graph().as_graph_def(), config)


def values(session: MasterSession, feeds: Any, fetches: list[str], targets: Any = ()) -> list[Any]:
    return [np.asarray(x).tolist() for x in session.run(session.step(feeds, fetches, targets)[0])]


def test_a_graph_grows(master: Master) -> None:
    tf.constant(2.0, name="a")
    session = session_of(master)
    assert session.version == 1 and values(session, [], ["a:0"]) == [2.0]
    with tf.Graph().as_default() as more:
        tf.constant(3.0, name="b")
    assert session.extend(more.as_graph_def(), 1) == 2
    assert values(session, [], ["b", "a:0"]) == [3.0, 2.0]
    with pytest.raises(errors.AbortedError, match="Expected version 2, but the request is for version 1"):
        session.extend(more.as_graph_def(), 1)
    with pytest.raises(errors.InvalidArgumentError):
        session.extend(more.as_graph_def(), 2)  # b is there
    master.close_session(session.handle)


def test_names_that_the_graph_does_not_have(master: Master) -> None:
    x = tf.placeholder(tf.float32, [], name="x")
    tf.add(x, 1.0, name="y")
    session = session_of(master)
    with pytest.raises(errors.InvalidArgumentError, match="Tensor z:0, which is to be fetched"):
        session.step([], ["z:0"], ())
    with pytest.raises(errors.InvalidArgumentError, match="Tensor z:0, which is to be fed"):
        session.step([("z:0", torch.tensor(1.0))], ["y:0"], ())
    with pytest.raises(errors.NotFoundError, match="Some target nodes not found: z"):
        session.step([], [], ["z"])
    with pytest.raises(errors.InvalidArgumentError, match="fed twice"):
        session.step([("x:0", torch.tensor(1.0)), ("x", torch.tensor(1.0))], ["y:0"], ())
    with pytest.raises(errors.InvalidArgumentError, match="Must specify at least one target"):
        session.step([], [], ())
    assert values(session, [("x:0", torch.tensor(1.0))], ["y:0"]) == [2.0]


def test_one_plan_serves_all_steps_of_a_kind(master: Master, cluster: clusters.Cluster) -> None:
    x = tf.placeholder(tf.float32, [], name="x")
    with tf.device("/job:ps/task:0"):
        tf.add(x, 1.0, name="y")
    session = session_of(master)
    for i in range(3):
        assert values(session, [("x:0", torch.tensor(float(i)))], ["y:0"]) == [i + 1.0]
    assert len(session._plans) == 1
    registered = cluster.servers["ps", 0]._worker._sessions[session.handle].graphs
    assert len(registered) == 1


def test_sessions_that_are_not_known(master: Master) -> None:
    tf.constant(1.0)
    session = session_of(master)
    master.close_session(session.handle)
    for ask in (master.session, master.close_session):
        with pytest.raises(errors.AbortedError, match="Possibly, this master has restarted"):
            ask(session.handle)
    with pytest.raises(errors.OpError):
        session.run(session.step([], ["Const:0"], ())[0])


def test_callables_have_numbers_of_their_own(master: Master) -> None:
    tf.constant(1.0, name="a")
    session = session_of(master)
    made = messages("config_pb2").CallableOptions
    first, second = (master.add_callable(session, made(fetch=[name])) for name in ("a:0", "a"))
    assert first != second
    assert session.callables[first].fetches == ("a:0",) and session.callables[second].fetches == ("a",)


def test_a_session_that_waits_for_a_task_is_given_up() -> None:
    addresses = clusters.cluster_of(ps=1, worker=1)
    server = TaskServer(clusters.server_def(addresses, "worker", 0))
    server.start()
    given_up, found = threading.Event(), []

    def create() -> None:
        try:
            server.master.create_session(tf.Graph().as_graph_def(), None, given_up)
        except errors.OpError as error:
            found.append(error)

    thread = threading.Thread(target=create)
    thread.start()
    time.sleep(0.1)
    assert not found
    given_up.set()
    thread.join(20)
    server.stop()
    assert isinstance(found[0], errors.CancelledError) and PS in found[0].message


def test_a_session_waits_for_a_task_no_longer_than_its_time_limit() -> None:
    """Neither for one that is not there, nor for one that accepts and never answers."""
    addresses = clusters.cluster_of(ps=1, worker=2)
    host, port = addresses["worker"][1].split(":")
    server = TaskServer(clusters.server_def(addresses, "worker", 0))
    server.start()
    config = tf.ConfigProto(operation_timeout_in_ms=400)
    with socket.create_server((host, int(port))):
        for missing, filters in ((PS, ["/job:ps", "/task:0"]), (OTHER, ["/job:worker"])):
            config.device_filters[:] = filters
            with pytest.raises(errors.DeadlineExceededError, match=missing):
                server.master.create_session(tf.Graph().as_graph_def(), config)
    server.stop()


def test_a_graph_that_is_none_begins_no_session(master: Master, cluster: clusters.Cluster) -> None:
    tf.constant(1.0, name="a")
    message = tf.get_default_graph().as_graph_def()
    message.node[0].input.append("not_there")
    before = dict(master._sessions)
    with pytest.raises(errors.InvalidArgumentError):
        master.create_session(message, None)
    assert master._sessions == before


def test_placements_are_logged_with_job_and_task(master: Master, capfd: Any) -> None:
    with tf.device("/job:ps/task:0"):
        a = tf.constant([1.0, 2.0], name="a") + 1.0
    tf.reduce_sum(a, name="b")
    session = session_of(master, tf.ConfigProto(log_device_placement=True))
    for _ in range(2):
        values(session, [], ["b:0"])
    lines = [line for line in capfd.readouterr().err.splitlines() if "/device:" in line]
    assert lines.count(f"b: (Sum): {WORKER}/device:CPU:0") == 1
    assert not any(line.startswith("a:") and PS not in line for line in lines)
    silent = session_of(master, tf.ConfigProto())
    values(silent, [], ["b:0"])
    assert "/device:" not in capfd.readouterr().err


def test_measured_steps_tell_costs_and_links(master: Master) -> None:
    x = tf.placeholder(tf.float32, [300, 300], name="x")
    with tf.device("/job:ps/task:0"):
        a = tf.matmul(x, x, name="a")
    tf.matmul(a, a, name="b")
    config = tf.ConfigProto()
    config.graph_options.build_cost_model = 2
    session = session_of(master, config)
    for i in range(4):
        step = session.step([("x:0", torch.ones(300, 300))], ["b:0"], ())[0]
        session.run(step)
        assert (step.described is not None) == (i % 2 == 1)
    assert step.described is not None
    costs = {(node.name, node.device): node for node in step.described.costs.node}
    for name, task in (("a", PS), ("b", WORKER)):
        node = costs[name, f"{task}/device:CPU:0"]
        assert node.compute_cost > 0 and not node.inaccurate
        assert node.output_info[0].size == 300 * 300 * 4
    model = session._options.costs
    assert model is not None
    assert model.links.link(f"{PS}/device:CPU:0", f"{WORKER}/device:CPU:0") is not None
    assert model.links.link(f"{WORKER}/device:CPU:0", f"{PS}/device:CPU:0") is None  # feeds are no transfers
    table, picture = session.explain_placement(["x:0"], ["b:0"], [])
    assert f"{PS}/device:CPU:0" in table and "2 transfers of 720000 bytes" in table and not picture
