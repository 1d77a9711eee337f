"""Requests for explanations, as bytes: what is none is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import clusters
import flowstone as tf
from flowstone.distributed.cluster_plans import ClusterPlan, Placed, TaskPlan, Transfer, WorkerPlan
from flowstone.distributed.links.neighbours import EXPLAIN_PART
from flowstone.distributed.servers.explaining import EXPLAIN_PLACEMENT, EXPLAIN_STEP
from flowstone.distributed.wire.transport import Caller
from flowstone.framework import errors

LOG = [("fold", "a", "known: before")]
PLAN = ClusterPlan(
    LOG,
    "%0 = Const()",
    [Placed("a", "Const", "/job:ps/replica:0/task:0/device:CPU:0")],
    [
        TaskPlan("/job:ps/replica:0/task:0", 3, ["x:0"], [], WorkerPlan("zen", LOG, "graph", "code")),
        TaskPlan("/job:w/replica:0/task:0", 1, [], ["a:0", "b:1", "c:0", "d:0"], None),
    ],
    [
        Transfer("a:0", "float32[2]", 8, "/job:ps/replica:0/task:0", "/job:w/replica:0/task:0", False),
        Transfer("b/ran:0", "float32[]", 4, "/job:ps/replica:0/task:0", "/job:w/replica:0/task:0", True),
    ],
)


@pytest.fixture
def caller(cluster: clusters.Cluster) -> Iterator[Caller]:
    found = Caller(cluster.target().removeprefix("grpc://"))
    yield found
    found.close()


def test_a_plan_comes_out_as_it_went_in() -> None:
    assert ClusterPlan.from_bytes(PLAN.to_bytes()) == PLAN


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"log": 1}', b"\xff", b'{"log": [["a"]]}'])
def test_bytes_that_are_no_plan(data: bytes) -> None:
    with pytest.raises(errors.DataLossError, match="no plan of a cluster"):
        ClusterPlan.from_bytes(data)


def test_as_text() -> None:
    text = PLAN.text()
    assert "a, b:1, c, … (1 more)" in text
    assert "transfers between tasks: 1\n" in text
    assert "and for order alone 1: /job:ps/replica:0/task:0 to /job:w/replica:0/task:0" in text
    assert "its worker does not tell what it made of its part" in text
    assert "kernels by the profile zen\nfold: a: known: before\n\ngraph\n\ncode" in text


@pytest.mark.parametrize("method", [EXPLAIN_STEP, EXPLAIN_PLACEMENT, EXPLAIN_PART])
@pytest.mark.parametrize(
    "request_bytes",
    [
        b"", b"\x00\xff", b"[1]", b"{}", b"[" * 100_000, b'{"session_handle": 1, "graph_handle": "g"}',
        b'{"session_handle": "s", "picture": "", "feeds": "x", "fetches": [], "targets": []}',
        b'{"session_handle": "s", "picture": "", "feeds": [], "fetches": [{}], "targets": []}',
    ],
)  # fmt: skip
def test_noise_is_refused(caller: Caller, method: str, request_bytes: bytes) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="The request for an explanation is malformed"):
        caller.call(method, request_bytes)


def test_sessions_pictures_and_parts_that_there_are_not(caller: Caller) -> None:
    told = {"session_handle": "none", "graph_handle": "g", "feeds": [], "fetches": [], "targets": []}
    for method in (EXPLAIN_STEP, EXPLAIN_PART):
        with pytest.raises(errors.AbortedError, match="not found"):
            caller.call(method, json.dumps(told).encode())
    with pytest.raises(errors.InvalidArgumentError, match="no pictures of format 'exe'"):
        caller.call(EXPLAIN_PLACEMENT, json.dumps({**told, "picture": "exe"}).encode())


def test_loops_over_tasks_are_explained(cluster: clusters.Cluster) -> None:
    x = tf.placeholder(tf.float32, [2], name="x")

    def body(i: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        with tf.device("/job:ps/task:0"):
            return i + 1, y * 2.0

    _, y = tf.while_loop(lambda i, _: i < 3, body, [tf.constant(0), x])
    with tf.Session(cluster.target()) as session:
        assert "transfers between tasks: " in session.explain(y, [x])
