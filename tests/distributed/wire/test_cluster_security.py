"""Tokens and certificates: who is answered, who is refused, and what is said of secrets that are none."""

from __future__ import annotations

import json
import logging
import random
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import certificates
import numpy as np
import pytest

import clusters
import flowstone as tf
from flowstone.distributed.servers.server import TaskServer
from flowstone.distributed.wire import direct_connections
from flowstone.distributed.wire.cluster_security import OPEN, ClusterSecurity, cluster_security
from flowstone.distributed.wire.transport import Caller
from flowstone.framework import errors
from flowstone.framework.process import logging as log

STATUS = "/tensorflow.WorkerService/GetStatus"


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Sets the variables FLOWSTONE_CLUSTER_…, of which none is set at first."""

    def set_variables(**values: Any) -> None:
        for name in ("TOKEN", "SECRETS", "NAME"):
            if name in values:
                monkeypatch.setenv(f"FLOWSTONE_CLUSTER_{name}", str(values[name]))
            else:
                monkeypatch.delenv(f"FLOWSTONE_CLUSTER_{name}", raising=False)

    set_variables()
    return set_variables


@pytest.fixture
def by_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Unix sockets: direct connections go by TCP, as between hosts."""
    monkeypatch.setattr(direct_connections, "_has_abstract_names", lambda: False)


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@pytest.fixture
def lines() -> Iterator[list[str]]:
    handler = Lines()
    log.get_logger().addHandler(handler)
    yield handler.texts
    log.get_logger().removeHandler(handler)


def ignore(*_: Any) -> None:
    """What happens on a connection does not matter here."""


def run_over_tasks(cluster: clusters.Cluster) -> None:
    """A step over all tasks with small and large values, in messages from the client as well."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None])
        with tf.device("/job:ps/task:0"):
            y = x * 2.0
        with tf.device("/job:worker/task:1"):
            z = y + 1.0
        with clusters.by_messages(), tf.Session(cluster.target()) as session:
            for size in (3, 300_000):
                given = np.arange(size, dtype=np.float32)
                np.testing.assert_array_equal(session.run(z, {x: given}), given * 2 + 1)


# ---- what the environment says


def test_nothing_is_said(environment: Any) -> None:
    assert cluster_security() == OPEN and OPEN.admits(None) and not OPEN.asks_for_certificates


def test_the_variable_goes_before_the_file(environment: Any, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-the-file\n")
    environment(SECRETS=tmp_path)
    assert cluster_security().token == "from-the-file" and not cluster_security().has_tls
    environment(SECRETS=tmp_path, TOKEN=" from-the-variable ")
    assert cluster_security().token == "from-the-variable"
    environment(SECRETS=tmp_path, TOKEN="")
    assert cluster_security().token == ""


@pytest.mark.parametrize("token", ["two words", "ünicode", "x\ny", "t" * 5000])
def test_a_token_that_no_message_can_carry(environment: Any, token: str) -> None:
    environment(TOKEN=token)
    with pytest.raises(errors.InvalidArgumentError, match="token") as caught:
        cluster_security()
    assert token not in caught.value.message


def test_secrets_do_not_show_when_printed() -> None:
    assert "hidden" not in repr(ClusterSecurity("hidden", key=b"hidden"))


def test_folders_that_cannot_be_used(environment: Any, tmp_path: Path) -> None:
    environment(SECRETS=tmp_path / "nowhere")
    with pytest.raises(errors.InvalidArgumentError, match=r"is no folder: .*nowhere"):
        tf.Session("grpc://localhost:1").run(tf.constant(1))
    with pytest.raises(errors.InvalidArgumentError, match="is no folder"):
        TaskServer(clusters.server_def(clusters.cluster_of(ps=1), "ps", 0))
    secrets = certificates.write_secrets(tmp_path / "secrets")
    environment(SECRETS=secrets)
    assert cluster_security().asks_for_certificates
    (secrets / "tls.key").unlink()
    with pytest.raises(errors.InvalidArgumentError, match=r"needs ca.crt, tls.crt and tls.key together"):
        cluster_security()
    (secrets / "tls.key").write_text("no key")
    with pytest.raises(errors.InvalidArgumentError, match="cannot be used"):
        cluster_security()


def test_a_server_needs_a_certificate_of_its_own(environment: Any, tmp_path: Path) -> None:
    secrets = certificates.write_secrets(tmp_path / "secrets")
    environment(SECRETS=certificates.clients_secrets(tmp_path / "client", secrets))
    with pytest.raises(errors.InvalidArgumentError, match=r"needs its own tls.crt and tls.key"):
        TaskServer(clusters.server_def(clusters.cluster_of(ps=1), "ps", 0))


# ---- tokens


def test_a_cluster_with_a_token_refuses_who_has_none(environment: Any, lines: list[str]) -> None:
    environment(TOKEN="right")
    with clusters.running(ps=1, worker=2) as cluster:
        run_over_tasks(cluster)
        environment(TOKEN="wrong")
        with clusters.by_messages(), tf.Session(cluster.target()) as session:
            for _ in range(3):
                with pytest.raises(tf.errors.UnauthenticatedError, match="without this cluster's token"):
                    session.run(tf.constant(1.0))
        environment()
        with pytest.raises(tf.errors.UnauthenticatedError):
            tf.Session.reset(cluster.target())
        environment(TOKEN="right")
        run_over_tasks(cluster)
    refusals = [line for line in lines if "refused" in line]
    assert 1 <= len(refusals) <= 2  # of four requests, over as many connections as gRPC has made
    assert "right" not in "".join(lines)


@pytest.mark.parametrize(
    "method", [STATUS, "/tensorflow.MasterService/CreateSession", "/flowstone.Direct/Address", "/a/b"]
)
def test_every_method_is_refused_before_its_message_is_read(environment: Any, method: str) -> None:
    environment(TOKEN="right")
    with clusters.running(worker=1) as cluster:
        address = cluster.target().removeprefix("grpc://")
        for security in (OPEN, ClusterSecurity("righ"), ClusterSecurity("right2")):
            caller = Caller(address, security)
            with pytest.raises(errors.UnauthenticatedError, match=address):
                caller.call(method, b"x" * 5_000_000, 10.0)
            caller.close()
        assert Caller(address, ClusterSecurity("right")).call(STATUS, b"")


def test_a_task_with_another_token_is_named(environment: Any) -> None:
    addresses = clusters.cluster_of(ps=1, worker=1)
    one = TaskServer(clusters.server_def(addresses, "worker", 0), ClusterSecurity("one"))
    other = TaskServer(clusters.server_def(addresses, "ps", 0), ClusterSecurity("other"))
    try:
        one.start()
        other.start()
        with pytest.raises(errors.UnauthenticatedError, match=addresses["ps"][0]):
            tf.Session(one.target).run(tf.constant(1.0))
    finally:
        one.stop()
        other.stop()


# ---- certificates


@pytest.mark.parametrize("token", ["", "with-a-token"])
@pytest.mark.parametrize("names", ["DNS:localhost,IP:127.0.0.1", "DNS:tasks.example"])
@pytest.mark.usefixtures("by_tcp")
def test_a_cluster_with_certificates(environment: Any, tmp_path: Path, token: str, names: str) -> None:
    secrets = certificates.write_secrets(tmp_path / "secrets", token, names)
    environment(SECRETS=secrets, NAME="" if "localhost" in names else "tasks.example")
    with clusters.running(ps=1, worker=2) as cluster:
        run_over_tasks(cluster)
        connections = [
            neighbour._connection
            for server in cluster.servers.values()
            for neighbour in server._neighbours.values()
            if neighbour._connection is not None
        ]
        assert connections
        assert all(type(each._stream).__name__ == "TlsStream" for each in connections)


def test_clients_of_a_cluster_with_certificates(environment: Any, tmp_path: Path) -> None:
    """With a token a client needs only the authority; without one, a certificate of its own."""
    x = tf.constant(1.0)
    for token in ("token", ""):
        secrets = certificates.write_secrets(tmp_path / f"secrets{token}", token)
        client = certificates.clients_secrets(tmp_path / f"client{token}", secrets)
        environment(SECRETS=secrets)
        with clusters.running(worker=1) as cluster, clusters.by_messages():
            environment(SECRETS=client)
            if token:
                assert tf.Session(cluster.target()).run(x) == 1.0
            else:
                with pytest.raises(tf.errors.UnavailableError):
                    tf.Session(cluster.target()).run(x)
            environment(TOKEN=token)  # in plain text
            with pytest.raises(tf.errors.UnavailableError):
                tf.Session(cluster.target()).run(x)
            environment(SECRETS=certificates.write_secrets(tmp_path / f"stranger{token}", token))
            with pytest.raises(tf.errors.UnavailableError):
                tf.Session(cluster.target()).run(x)
            environment(SECRETS=secrets)
            assert tf.Session(cluster.target()).run(x) == 1.0


@pytest.mark.usefixtures("by_tcp")
def test_a_certificate_for_another_host_is_not_taken(tmp_path: Path, environment: Any) -> None:
    secrets = certificates.write_secrets(tmp_path / "secrets", names="DNS:elsewhere")
    environment(SECRETS=secrets)
    refused = pytest.raises(tf.errors.UnavailableError)
    with clusters.running(worker=1) as cluster, clusters.by_messages(), refused:
        tf.Session(cluster.target()).run(tf.constant(1.0))
    security = cluster_security()
    listener = direct_connections.DirectListener("127.0.0.1", ignore, ignore, security)
    listener.start()
    try:
        address = listener.address()
        connection = direct_connections.connect("a", "127.0.0.1", address, ignore, ignore, security)
        assert connection is None
        environment(SECRETS=secrets, NAME="elsewhere")
        named = cluster_security()
        assert direct_connections.connect("a", "127.0.0.1", address, ignore, ignore, named) is not None
        assert direct_connections.connect("a", "127.0.0.1", address, ignore, ignore) is None  # in plain text
    finally:
        listener.stop()


def test_noise_where_a_handshake_is_expected(tmp_path: Path, environment: Any) -> None:
    environment(SECRETS=certificates.write_secrets(tmp_path / "secrets"))
    noises = [b"\0" * 100, b"\x16\x03\x01\xff\xff" + b"x" * 70_000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
    choose = random.Random(0)
    noises += [b"\x16\x03\x01\x01\x00\x01" + choose.randbytes(400) for _ in range(10)]
    with clusters.running(worker=1) as cluster:
        address = cluster.target().removeprefix("grpc://")
        direct = cluster.servers["worker", 0]._direct
        for port in (int(address.rpartition(":")[2]), json.loads(direct.address())["port"]):
            for noise in noises:
                with socket.create_connection(("127.0.0.1", port), 10) as stream:
                    stream.sendall(noise)
        assert Caller(address, cluster_security()).call(STATUS, b"")
        connection = direct_connections.connect(
            "a", "127.0.0.1", direct.address(), ignore, ignore, cluster_security()
        )
        assert connection is not None
        connection.close()


# ---- who can reach a server


def listening(port: int) -> set[str]:
    """The addresses, in the system's own hexadecimal form, at which somebody listens to this port."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as rows:
            for row in rows:
                words = row.split()
                if words[1].endswith(f":{port:04X}") and words[3] == "0A":
                    found.add(words[1].partition(":")[0])
    return found


@pytest.mark.skipif(not Path("/proc/net/tcp6").exists(), reason="the system does not say who listens")
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.0.2", "[::1]", "", "somewhere"])
def test_loopback_addresses_listen_on_loopback_alone(environment: Any, host: str) -> None:
    (port,) = clusters.free_ports(1)
    server = TaskServer(clusters.server_def({"ps": [f"{host}:{port}"]}, "ps", 0))
    server.start()
    try:
        direct = {each.getsockname()[1] for each in server._direct._sockets.values() if each.family != 1}
        for each in (port, *direct):
            addresses = listening(each)
            assert addresses
            assert all(set(address) == {"0"} for address in addresses) == (host == "somewhere")
        if host not in ("", "somewhere"):
            assert Caller(server.target.removeprefix("grpc://")).call(STATUS, b"")
    finally:
        server.stop()
