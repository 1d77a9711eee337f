"""Clients of a server: the same with messages and without, and what each request carries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import clusters
import flowstone as tf
from flowstone.distributed.servers import session_client as clients
from flowstone.distributed.wire.tensor_codec import proto_of_value
from flowstone.framework import errors
from flowstone.framework.types import dtypes
from flowstone.io.proto import master_pb2

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"
pytestmark = pytest.mark.usefixtures("connection")


def client_of(cluster: clusters.Cluster) -> Any:
    return clients.session_client(cluster.target(), tf.get_default_graph(), None)


def numbers(values: list[Any]) -> list[Any]:
    return [np.asarray(value).tolist() for value in values]


def test_the_session_begins_with_the_first_request_and_gets_what_is_new(cluster: clusters.Cluster) -> None:
    client = client_of(cluster)
    x = tf.placeholder(tf.float32, [2], name="x")
    tf.add(x, 1.0, name="y")
    known = len(cluster.servers["worker", 0].master._sessions)
    assert numbers(client.run([("x:0", torch.ones(2), dtypes.float32)], ["y:0"], [])) == [[2.0, 2.0]]
    assert len(cluster.servers["worker", 0].master._sessions) == known + 1
    tf.multiply(x, 3.0, name="z")
    fed = [("x:0", torch.ones(2), dtypes.float32)]
    assert numbers(client.run(fed, ["z:0", "y:0"], [])) == [[3.0, 3.0], [2.0, 2.0]]
    client.close()
    client.close()
    assert len(cluster.servers["worker", 0].master._sessions) == known


class GrowingGraph(tf.Graph):
    """A graph that another thread adds to whenever somebody has asked for its version."""

    @property
    def version(self) -> int:
        found = super().version
        with self.as_default():
            tf.constant(1.0)
        return found


def test_what_another_thread_adds_meanwhile_is_sent_once(cluster: clusters.Cluster) -> None:
    with GrowingGraph().as_default():
        client = client_of(cluster)
        for i in range(4):
            assert numbers(client.run([], [tf.constant(float(i)).name], [])) == [i]
    client.close()


def test_options_and_metadata(cluster: clusters.Cluster) -> None:
    client = client_of(cluster)
    with tf.device("/job:ps/task:0"):
        y = tf.constant([1.0], name="a") * tf.placeholder_with_default([2.0], [1])
    metadata = tf.RunMetadata()
    options = tf.RunOptions(output_partition_graphs=True)
    client.run([], [y.name], [], options, metadata)
    assert len(metadata.partition_graphs) >= 1 and not metadata.step_stats.dev_stats
    client.run([], [y.name], [], tf.RunOptions(trace_level=3), metadata)
    assert metadata.step_stats.dev_stats and not metadata.partition_graphs
    client.run([], [y.name], [], None, metadata)
    assert not metadata.step_stats.dev_stats
    client.close()


def test_targets_and_partial_runs(cluster: clusters.Cluster) -> None:
    client = client_of(cluster)
    v = tf.get_variable("of_clients", [], initializer=tf.zeros_initializer())
    x = tf.placeholder(tf.float32, [], name="x")
    add = tf.assign_add(v, x, name="add")
    assert client.run([], [], [v.initializer.name]) == []
    handle = client.begin_partial_run(["x:0"], ["add:0"], [])
    given = torch.tensor(2.0)
    assert numbers(client.run([("x:0", given, dtypes.float32)], ["add:0"], [], partial_run=handle)) == [2.0]
    assert add.name == "add:0" and numbers(client.run([], [v.name], [])) == [2.0]
    client.close()


def test_devices(cluster: clusters.Cluster) -> None:
    tf.constant(1.0)
    client = client_of(cluster)
    assert len(client.list_devices()) == 3
    client.close()


def test_plans_and_placements_are_told(cluster: clusters.Cluster) -> None:
    x = tf.placeholder(tf.float32, [2, 2], name="x")
    with tf.device("/job:ps/task:0"):
        y = tf.matmul(x, x, name="y")
    tf.reduce_sum(y, name="z")
    client = client_of(cluster)
    plan = client.explain(["x:0"], ["z:0"], [])
    tasks = {each.task: (each.feeds, each.fetches) for each in plan.tasks}
    assert tasks == {PS: (["x:0"], []), WORKER: ([], ["z:0"])}
    (seen,) = plan.transfers
    assert (seen.tensor, seen.type, seen.size) == ("y:0", "float32[2,2]", 16)
    assert all(task.plan is not None and "def segment" in task.plan.code for task in plan.tasks)
    table, picture = client.explain_placement(["x:0"], ["z:0"], [], "")
    assert "makespan" in table and picture == b""
    with pytest.raises(errors.InvalidArgumentError, match="Tensor w:0, which is to be fetched"):
        client.explain([], ["w:0"], [])
    client.close()


def test_a_server_that_does_not_explain(cluster: clusters.Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    tf.constant(1.0, name="a")
    client = client_of(cluster)
    if isinstance(client, clients.SessionClient):
        monkeypatch.setattr(
            "flowstone.distributed.servers.explaining.EXPLAIN_STEP", "/tensorflow.MasterService/Tell"
        )
        with pytest.raises(errors.UnimplementedError):
            client.explain([], ["a:0"], [])
    client.close()


def test_reset_needs_a_server(cluster: clusters.Cluster) -> None:
    (port,) = clusters.free_ports(1)
    with pytest.raises(errors.UnavailableError):
        clients.reset_cluster(f"grpc://localhost:{port}", [])


@pytest.mark.parametrize("method", ["handle", "value", "deletion"])
def test_a_cluster_keeps_no_tensors_for_a_session(cluster: clusters.Cluster, method: str) -> None:
    """As in TensorFlow, with the node."""
    stored = tf.constant("stored;0;" + WORKER + "/device:CPU:0")
    if method == "handle":
        with tf.device("/job:ps/task:0"):
            used = tf.get_session_handle(tf.constant([1.0, 2.0]) * 2.0)
    elif method == "value":
        used = tf.raw_ops.GetSessionTensor(handle=stored, dtype=tf.float32)
    else:
        used = tf.raw_ops.DeleteSessionTensor(handle=stored)
    expected = pytest.raises(errors.FailedPreconditionError, match="called on null session state")
    with tf.Session(cluster.target()) as session, expected as caught:
        session.run(used)
    assert caught.value.op is (used if isinstance(used, tf.Operation) else used.op)


class Answers:
    """A server that answers steps with these tensors, and begins sessions."""

    def __init__(self, **values: Any) -> None:
        self.values, self.requests = values, list[tuple[str, bytes]]()

    def call(self, method: str, request: bytes, seconds: float | None = None) -> bytes:
        self.requests.append((method.rpartition("/")[2], request))
        if method.endswith("CreateSession"):
            return bytes(master_pb2.CreateSessionResponse(session_handle="s").SerializeToString())
        response = master_pb2.RunStepResponse()
        for name, value in self.values.items():
            response.tensor.add(name=name, tensor=proto_of_value(torch.tensor(value), dtypes.float32))
        return bytes(response.SerializeToString())

    def close(self) -> None:
        pass


def test_fetches_are_matched_by_name() -> None:
    """Servers of TensorFlow answer in the order of their parts."""
    client = clients.SessionClient("grpc://nobody:1", tf.get_default_graph(), None)
    client._caller = Answers(b=2.0, a=1.0)  # type: ignore[assignment]
    assert numbers(client.run([], ["a", "b", "a"], [])) == [1.0, 2.0, 1.0]
    with pytest.raises(errors.InternalError, match="no tensor c"):
        client.run([], ["a", "c"], [])


def test_graphs_travel_without_the_defaults_of_attributes() -> None:
    """So that servers of earlier versions, which do not know all attributes, read them."""
    client = clients.SessionClient("grpc://nobody:1", tf.get_default_graph(), None)
    answers = Answers()
    client._caller = answers  # type: ignore[assignment]
    x = tf.ones([2, 2])
    tf.matmul(x, x, transpose_a=True, name="product")
    client.run([], [], ["product"])
    request = master_pb2.CreateSessionRequest.FromString(answers.requests[0][1])
    (product,) = (node for node in request.graph_def.node if node.name == "product")
    assert sorted(product.attr) == ["T", "transpose_a"]


def test_a_server_of_tensorflow_gets_no_keep_alive_packets(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would end the connection; it is known by what it does not implement."""
    made: list[bool] = []

    class Server(Answers):
        def __init__(self, address: str, security: Any, is_quiet: bool = False) -> None:
            super().__init__(a=1.0)
            made.append(is_quiet)

        def call(self, method: str, request: bytes, seconds: float | None = None) -> bytes:
            if method.startswith("/flowstone."):
                raise errors.UnimplementedError(None, None, method)
            limits.append(seconds)
            return super().call(method, request, seconds)

    limits: list[float | None] = []
    monkeypatch.setattr(clients, "Caller", Server)
    client = clients.SessionClient("grpc://nobody:1", tf.get_default_graph(), None)
    client.run([], ["a"], [], tf.RunOptions(timeout_in_ms=500))
    assert made == [False, True]
    assert limits == [None, 1.5]  # such a server knows no limit of a step either
    client.close()
    limits.clear()
    config = tf.ConfigProto(operation_timeout_in_ms=3000)
    client = clients.SessionClient("grpc://nobody:1", tf.get_default_graph(), config)
    client.run([], ["a"], [])
    client.run([], ["a"], [], tf.RunOptions(timeout_in_ms=500))
    assert limits == [4.0, 4.0, 1.5]
    client.close()
