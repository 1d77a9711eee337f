"""The command `flowstone server`: one task of a cluster, started as a user would."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import certificates
import pytest

import flowstone as tf
import forked
from clusters import free_ports
from flowstone.tools.command_line import build_parser


def started(*arguments: str) -> forked.Process:
    variables = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    return forked.Process(["server", *arguments], environment=variables)


def test_servers_serve_until_a_signal() -> None:
    (port,) = free_ports(1)
    named = started("--cluster", f"ps=localhost:{port}", "--job", "ps", "--task", "0")
    alone = started()
    for server, task, by in ((named, "/job:ps", signal.SIGTERM), (alone, "/job:local", signal.SIGINT)):
        line = server.stdout.readline().split()
        assert line[2:4] == [f"{task}/task:0", "at"]
        with tf.Graph().as_default(), tf.Session(line[4]) as session:
            v = tf.Variable([1.0, 2.0])
            session.run(v.initializer)
            assert session.run(v * 2.0).tolist() == [2.0, 4.0]
        server.send_signal(by)
        assert server.wait(30) == 0
        server.stdout.close()


def test_a_step_that_never_ends_does_not_keep_the_server() -> None:
    server = started()
    target = server.stdout.readline().split()[4]
    begun = tf.Graph()
    with begun.as_default():
        is_begun = tf.Variable(0.0, name="is_begun")
        with tf.control_dependencies([is_begun.assign(1.0)]):
            start = tf.constant(0)
        endless = tf.while_loop(lambda i: i >= 0, lambda i: (i + 1) % 1000, [start])

    def run(errors: list[tf.errors.OpError]) -> None:
        with tf.Session(target, graph=begun) as session:
            session.run(is_begun.initializer)
            try:
                session.run(endless)
            except tf.errors.OpError as error:
                errors.append(error)

    errors: list[tf.errors.OpError] = []
    client = threading.Thread(target=run, args=(errors,))
    client.start()
    with tf.Session(target, graph=begun) as session:
        deadline = time.monotonic() + 60
        while not (session.run(tf.is_variable_initialized(is_begun)) and session.run(is_begun)):
            assert time.monotonic() < deadline
    server.send_signal(signal.SIGTERM)
    assert server.wait(30) == 0
    client.join(60)
    assert [type(error) for error in errors] == [tf.errors.UnavailableError]
    server.stdout.close()


def test_a_server_with_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions need the token, and the authority where there are certificates."""
    secrets = certificates.write_secrets(tmp_path / "secrets", "the-token")
    server = started("--secrets", str(secrets))
    try:
        target = server.stdout.readline().split()[4]
        monkeypatch.setenv("FLOWSTONE_CLUSTER_TOKEN", "the-token")
        with pytest.raises(tf.errors.UnavailableError):
            tf.Session(target).run(tf.constant(1))
        client = certificates.clients_secrets(tmp_path / "client", secrets)
        monkeypatch.setenv("FLOWSTONE_CLUSTER_SECRETS", str(client))
        assert tf.Session(target).run(tf.constant(1)) == 1
        monkeypatch.setenv("FLOWSTONE_CLUSTER_TOKEN", "another")
        with pytest.raises(tf.errors.UnauthenticatedError, match="without this cluster's token"):
            tf.Session(target).run(tf.constant(1))
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)
        server.stdout.close()


@pytest.mark.parametrize(
    ("arguments", "tf_config", "words"),
    [
        (["--job", "ps"], "", "need --cluster, or TF_CONFIG"),
        (["--cluster", "ps=a:1"], "", "say with --job which job of the cluster this is: ps"),
        (
            ["--cluster", "ps=a:1", "--job", "worker"],
            "",
            r"no task worker/0; its jobs with their tasks: ps (1)",
        ),
        (["--cluster", "ps=a:1", "--job", "ps", "--task", "2"], "", "no task ps/2"),
        (["--cluster", "ps"], "", "write JOB=HOST:PORT"),
        (["--secrets", "/dev/null/nowhere"], "", "FLOWSTONE_CLUSTER_SECRETS is no folder: /dev/null/nowhere"),
        ([], "{", "TF_CONFIG must be JSON"),
        (
            [],
            '{"cluster": {"chief": ["a:1"]}, "task": {"type": "evaluator", "index": 0}}',
            "it has no server",
        ),
        (["--cluster", "ps=localhost:1234", "--job", "ps", "--protocol", "smoke"], "", "'smoke'"),
    ],
)
def test_servers_that_cannot_begin(
    arguments: list[str],
    tf_config: str,
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TF_CONFIG", tf_config)
    monkeypatch.setenv("FLOWSTONE_CLUSTER_SECRETS", "")
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    options = build_parser().parse_args(["server", *arguments])
    assert options.execute(options) == 2
    assert words in capsys.readouterr().err
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
