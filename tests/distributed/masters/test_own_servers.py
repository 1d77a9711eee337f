"""Servers of this process are found by their targets, from when they start until they stop."""

from __future__ import annotations

import clusters
import flowstone as tf
from flowstone.distributed.masters.own_servers import masters
from flowstone.distributed.servers.server import TaskServer
from flowstone.distributed.servers.session_client import OwnServerClient, SessionClient, session_client


def test_from_start_to_stop() -> None:
    server = TaskServer(clusters.server_def(clusters.cluster_of(worker=1), "worker", 0))
    assert server.target not in masters
    server.start()
    assert masters[server.target] is server.master
    server.stop()
    assert server.target not in masters


def test_sessions_use_messages_for_other_servers_alone() -> None:
    graph = tf.Graph()
    with clusters.running(worker=1) as cluster:
        assert isinstance(session_client(cluster.target(), graph, None), OwnServerClient)
        with clusters.by_messages():
            assert isinstance(session_client(cluster.target(), graph, None), SessionClient)
    assert isinstance(session_client(cluster.target(), graph, None), SessionClient)
