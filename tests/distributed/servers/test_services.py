"""The services of a server as bytes: what TensorFlow's clients ask, and what is no request."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clusters
from flowstone.distributed.wire.tensor_codec import value_of_proto
from flowstone.distributed.wire.transport import Caller
from flowstone.framework import errors
from flowstone.io.proto import master_pb2, worker_pb2

GOLDEN = Path(__file__).parents[2] / "golden" / "distributed"


def caller(cluster: clusters.Cluster) -> Caller:
    return Caller(cluster.target().removeprefix("grpc://"))


@pytest.mark.parametrize("version", ["1.15", "2.21"])
def test_requests_of_tensorflows_clients(cluster: clusters.Cluster, version: str) -> None:
    """Each is answered with the values that TensorFlow's own server answers."""
    calls = json.loads((GOLDEN / f"client_{version}.json").read_text(encoding="utf-8"))
    connection, handles = caller(cluster), {"session_handle": "", "partial_run_handle": ""}
    compared = version_of_graph = 0
    for call in calls:
        name = call["method"].rpartition("/")[2]
        request = getattr(master_pb2, f"{name}Request").FromString(base64.b64decode(call["request"]))
        expected = getattr(master_pb2, f"{name}Response").FromString(base64.b64decode(call["response"]))
        for field, handle in handles.items():
            if getattr(request, field, ""):
                setattr(request, field, handle)
        if name == "ExtendSession":
            request.current_graph_version = version_of_graph
        answer = connection.call(call["method"], request.SerializeToString())
        response = getattr(master_pb2, f"{name}Response").FromString(answer)
        for field in handles:
            handles[field] = getattr(response, field, "") or handles[field]
        version_of_graph = getattr(response, "graph_version", version_of_graph)
        if name == "RunStep":
            assert [each.name for each in response.tensor] == [each.name for each in expected.tensor]
            for ours, theirs in zip(response.tensor, expected.tensor):
                assert ours.tensor.dtype == theirs.tensor.dtype
                np.testing.assert_array_equal(value_of_proto(ours.tensor), value_of_proto(theirs.tensor))
                compared += 1
    assert compared >= 8


METHODS = [
    *[("MasterService", name) for name in (
        "CreateSession", "ExtendSession", "RunStep", "CloseSession", "ListDevices", "Reset", "MakeCallable",
        "RunCallable", "ReleaseCallable", "PartialRunSetup",
    )],
    *[("WorkerService", name) for name in (
        "GetStatus", "CreateWorkerSession", "DeleteWorkerSession", "RegisterGraph", "DeregisterGraph",
        "RunGraph", "CleanupGraph", "RecvTensor", "Logging", "Tracing",
    )],
]  # fmt: skip


@pytest.mark.parametrize(("service", "method"), METHODS)
def test_noise_is_answered_with_an_error_or_nothing(
    cluster: clusters.Cluster, service: str, method: str
) -> None:
    choose, connection = random.Random(method), caller(cluster)
    for _ in range(20):
        noise = choose.randbytes(choose.randrange(1, 60))
        try:
            connection.call(f"/tensorflow.{service}/{method}", noise, 10.0)
        except errors.OpError as error:
            assert not isinstance(error, (errors.InternalError, errors.UnknownError)), error.message
    assert connection.call("/tensorflow.WorkerService/GetStatus", b"")  # it is still there


def test_methods_that_are_none(cluster: clusters.Cluster) -> None:
    with pytest.raises(errors.UnimplementedError):
        caller(cluster).call("/tensorflow.MasterService/Nothing", b"")


def create(connection: Caller) -> Any:
    answer = connection.call("/tensorflow.MasterService/CreateSession", b"")
    return master_pb2.CreateSessionResponse.FromString(answer)


def test_sessions_and_graphs_that_are_not_known(cluster: clusters.Cluster) -> None:
    connection = caller(cluster)
    run = master_pb2.RunStepRequest(session_handle="nobody", fetch=["x:0"]).SerializeToString()
    with pytest.raises(errors.AbortedError, match="Session nobody is not found"):
        connection.call("/tensorflow.MasterService/RunStep", run)
    session = create(connection)
    run = master_pb2.RunStepRequest(session_handle=session.session_handle, fetch=["x:0"]).SerializeToString()
    with pytest.raises(
        errors.InvalidArgumentError, match="Tensor x:0, which is to be fetched, was not found"
    ):
        connection.call("/tensorflow.MasterService/RunStep", run)
    run = master_pb2.RunStepRequest(session_handle=session.session_handle, target=["x"]).SerializeToString()
    with pytest.raises(errors.NotFoundError, match="target nodes not found: x"):
        connection.call("/tensorflow.MasterService/RunStep", run)
    graph = worker_pb2.RunGraphRequest(session_handle=session.session_handle, graph_handle="3")
    with pytest.raises(errors.AbortedError, match="Graph handle is not found: 3"):
        connection.call("/tensorflow.WorkerService/RunGraph", graph.SerializeToString())
    graph = worker_pb2.RunGraphRequest(session_handle="nobody", graph_handle="3")
    with pytest.raises(errors.AbortedError, match="just restarted"):
        connection.call("/tensorflow.WorkerService/RunGraph", graph.SerializeToString())


def test_malformed_graphs(cluster: clusters.Cluster) -> None:
    connection = caller(cluster)
    session = create(connection)
    request = master_pb2.ExtendSessionRequest(
        session_handle=session.session_handle, current_graph_version=session.graph_version
    )
    request.graph_def.node.add(name="a", op="Identity", input=["nothing"])
    request.graph_def.node[0].attr["T"].type = 1
    with pytest.raises(errors.InvalidArgumentError, match="Unknown input node 'nothing'"):
        connection.call("/tensorflow.MasterService/ExtendSession", request.SerializeToString())
    request.current_graph_version = 7
    with pytest.raises(errors.AbortedError, match="Expected version 1, but the request is for version 7"):
        connection.call("/tensorflow.MasterService/ExtendSession", request.SerializeToString())


def test_a_key_of_another_incarnation_or_of_none(cluster: clusters.Cluster) -> None:
    connection = caller(cluster)
    for key, message in (
        ("nonsense", "Invalid rendezvous key"),
        (
            "/job:worker/replica:0/task:0/device:CPU:0;00000000000000aa;b;c;0:0",
            "different device incarnation",
        ),
    ):
        request = worker_pb2.RecvTensorRequest(step_id=1, rendezvous_key=key).SerializeToString()
        with pytest.raises((errors.InvalidArgumentError, errors.AbortedError), match=message):
            connection.call("/tensorflow.WorkerService/RecvTensor", request, 10.0)
