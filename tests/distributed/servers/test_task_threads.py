"""Tasks of one host divide its cores."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

import clusters
import flowstone as tf
from flowstone.distributed.servers.server import TaskServer
from flowstone.distributed.servers.task_threads import share_of_cores

PS, FIRST, SECOND = (
    f"/job:{job}/replica:0/task:{task}" for job, task in (("ps", 0), ("worker", 0), ("worker", 1))
)


@pytest.mark.parametrize(
    ("addresses", "cores", "expected"),
    [
        ({FIRST: "h:1"}, 8, 0),
        ({FIRST: "h:1", PS: "h:2"}, 8, 0),
        ({FIRST: "h:1", SECOND: "h:2", PS: "h:3"}, 9, 4),
        ({FIRST: "h:1", SECOND: "other:1", PS: "h:3"}, 8, 0),
        ({FIRST: "h:1", SECOND: "h:2"}, 1, 1),
        ({FIRST: "localhost:1", SECOND: "127.0.0.1:2"}, 8, 4),
        ({FIRST: "[::1]:1", SECOND: ":2"}, 8, 4),
        ({FIRST: "10.0.0.1:1", SECOND: "10.0.0.2:1"}, 8, 0),
    ],
)
def test_the_share(addresses: dict[str, str], cores: int, expected: int) -> None:
    assert share_of_cores(addresses, FIRST, cores) == expected


@pytest.fixture
def four_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """torch has four threads, and nobody has said how many there are to be."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield monkeypatch
    torch.set_num_threads(before)


def threads_of_a_step(target: str, config: tf.ConfigProto | None = None) -> int:
    with tf.Graph().as_default(), tf.Session(target, config=config) as session:
        found = tf.py_func(lambda: np.int64(torch.get_num_threads()), [], tf.int64, stateful=True)
        return int(session.run(found))


def test_steps_have_their_share_unless_it_is_said_otherwise(four_cores: pytest.MonkeyPatch) -> None:
    with clusters.running(worker=2, ps=1) as cluster:
        assert threads_of_a_step(cluster.target()) == 2
        assert threads_of_a_step(cluster.target(), tf.ConfigProto(intra_op_parallelism_threads=3)) == 3
    assert torch.get_num_threads() == 4
    with clusters.running(worker=1, ps=1) as cluster:
        assert threads_of_a_step(cluster.target()) == 4


def test_a_servers_config_and_the_environment_go_before_the_share(four_cores: pytest.MonkeyPatch) -> None:
    config = tf.ConfigProto(intra_op_parallelism_threads=3)
    addresses = clusters.cluster_of(worker=2)
    others = tf.ConfigProto(device_filters=["/job:worker/task:0"])
    server = TaskServer(clusters.server_def(addresses, "worker", 0, config))
    server.start()
    assert threads_of_a_step(server.target, others) == 3
    server.stop()
    four_cores.setenv("OMP_NUM_THREADS", "4")
    server = TaskServer(clusters.server_def(addresses, "worker", 0))
    server.start()
    assert threads_of_a_step(server.target, others) == 4
    server.stop()
