"""How a master reaches workers: by calls and by messages, with the same answers."""

from __future__ import annotations

import itertools
import queue
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import clusters
import flowstone as tf
from flowstone.distributed.links.neighbours import Neighbour
from flowstone.distributed.links.worker_links import Described, RemoteLink, described_by
from flowstone.distributed.workers.part_graphs import divide
from flowstone.distributed.workers.worker import Description, Wanted
from flowstone.framework import errors
from flowstone.framework.types import dtypes
from flowstone.framework.types.tensor_proto import messages
from flowstone.io.proto import worker_pb2
from flowstone.runtime.plans.plan_options import PlanOptions

NUMBERS = itertools.count(1 << 50)  # of steps
PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"


@pytest.fixture(params=[WORKER, PS], ids=["own", "other"])
def task(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["direct", "gRPC"])
def link(
    task: str, cluster: clusters.Cluster, request: pytest.FixtureRequest, monkeypatch: Any
) -> Iterator[Any]:
    found = cluster.servers["worker", 0].master._links[task]
    if request.param == "gRPC" and isinstance(found, RemoteLink):
        monkeypatch.setattr(found._neighbour, "direct", lambda: None)
    found.create_session(worker_pb2.CreateWorkerSessionRequest(session_handle="links"))
    yield found
    found.delete_session("links")


def ran(link: Any, task: str, fetch: Any, feeds: list[Any], given: list[Any], described: Any = None) -> Any:
    """What a part on the task gives, or its error."""
    (part,), *_ = divide([fetch], [], feeds, PlanOptions(link.devices(10.0)), task)
    graph = link.register("links", part)
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    values = [(value, dtypes.float32) for value in given]
    number = next(NUMBERS)
    link.run("links", graph, number, part, values, lambda *answer: answers.put(answer), described)
    found = answers.get(timeout=20)
    link.clean_up(number)
    return found, graph, part


def test_a_task_that_is_not_there_is_named() -> None:
    (address,) = clusters.cluster_of(ps=1)["ps"]
    absent = RemoteLink(Neighbour(PS, address, WORKER, lambda task: None))
    with pytest.raises(errors.UnavailableError, match=f"From {PS}:\n"):
        absent.create_session(worker_pb2.CreateWorkerSessionRequest(session_handle="links"))


def test_devices_are_those_of_the_task(link: Any, task: str) -> None:
    assert [device.name for device in link.devices(10.0)] == [f"{task}/device:CPU:0"]


def test_a_part_is_registered_and_runs(link: Any, task: str) -> None:
    x = tf.placeholder(tf.float32, [2])
    (values, error), graph, _ = ran(link, task, x + 1.0, [x], [torch.ones(2)])
    assert error is None
    np.testing.assert_array_equal(values[0], [2.0, 2.0])
    told = link.explain("links", graph)
    assert told is not None and "def segment" in told.code and "AddV2" in told.graph


def test_failures_come_with_class_and_node(link: Any, task: str) -> None:
    x = tf.placeholder(tf.float32, [None])
    y = tf.reshape(x, [2, 2], name="wrong")
    (values, error), _, _ = ran(link, task, y, [x], [torch.ones(3)])
    assert values is None and isinstance(error, errors.InvalidArgumentError)
    assert (getattr(error.op, "name", "") or error.node_name) == "wrong"


def test_what_is_told_of_a_step(link: Any, task: str) -> None:
    x = tf.placeholder(tf.float32, [2])
    described = Described(Wanted(True, False))
    (_, error), _, _ = ran(link, task, tf.exp(x, name="e"), [x], [torch.ones(2)], described)
    assert error is None
    metadata = messages("config_pb2").RunMetadata()
    described.write(metadata)
    assert "e" in {node.node_name for each in metadata.step_stats.dev_stats for node in each.node_stats}
    assert not metadata.partition_graphs and len(described.graphs()) == 1


def test_sessions_and_parts_that_are_not_known(link: Any, task: str) -> None:
    with pytest.raises(errors.AbortedError, match="Graph handle is not found"):
        link.explain("links", "12")
    x = tf.placeholder(tf.float32, [2])
    _, _, part = ran(link, task, x + 1.0, [x], [torch.ones(2)])
    with pytest.raises(errors.AbortedError, match="Session handle is not found: nobody"):
        link.register("nobody", part)


def test_containers_are_dropped(link: Any, task: str) -> None:
    with tf.device(task):
        v = tf.get_variable(f"links_{len(task)}", [], initializer=tf.ones_initializer())
        value = tf.assign(v, 3.0)
    assert ran(link, task, value, [], [])[0][1] is None
    link.reset([])
    (_, error), _, _ = ran(link, task, v + 0.0, [], [])
    assert isinstance(error, errors.FailedPreconditionError)


def test_clocks_are_set_to_the_masters() -> None:
    stats = messages("step_stats_pb2").StepStats()
    stats.dev_stats.add(device="d").node_stats.add(all_start_nanos=5_000_000, scheduled_nanos=4_000_000)
    described = Described(Wanted(True))
    described.add(Description(stats), clock_offset_ns=1_000_000)
    (node,) = described.step_stats().dev_stats[0].node_stats
    assert (node.all_start_nanos, node.scheduled_nanos) == (4_000_000, 3_000_000)
    assert (node.all_start_micros, node.scheduled_micros) == (4000, 3000)


def test_run_options_that_ask_for_nothing() -> None:
    assert described_by(tf.RunOptions(timeout_in_ms=5)) is None
    described = described_by(tf.RunOptions(output_partition_graphs=True))
    assert described is not None and described.wanted == Wanted(False, True)
