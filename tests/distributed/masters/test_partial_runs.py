"""Steps in several calls, as a master keeps them."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

import clusters
import flowstone as tf
from flowstone.distributed.masters.master import MasterSession
from flowstone.distributed.masters.own_servers import masters
from flowstone.framework import errors


@pytest.fixture
def session(cluster: clusters.Cluster) -> MasterSession:
    """Of a graph whose values cross all tasks."""
    x, y = (tf.placeholder(tf.float32, [], name=name) for name in "xy")
    with tf.device("/job:ps/task:0"):
        a = tf.add(x, 1.0, name="a")
    with tf.device("/job:worker/task:1"):
        tf.multiply(a, y, name="b")
        tf.gather([1.0, 2.0], tf.cast(y, tf.int32), name="wrong")
    return masters[cluster.target()].create_session(tf.get_default_graph().as_graph_def(), None)


def numbers(found: list[tuple[object, object]]) -> list[float]:
    return [float(np.asarray(value)) for value, _ in found]


def test_feeds_and_fetches_come_one_by_one(session: MasterSession) -> None:
    handle = session.begin_partial_run(["x:0", "y:0"], ["a:0", "b:0"], [])
    assert numbers(session.continue_partial_run(handle, [("x:0", torch.tensor(2.0))], ["a:0"])) == [3.0]
    assert numbers(session.continue_partial_run(handle, [("y:0", torch.tensor(5.0))], ["b:0"])) == [15.0]
    with pytest.raises(errors.InvalidArgumentError, match="Must run PartialRunSetup"):
        session.continue_partial_run(handle, [], ["b:0"])


def test_a_fetch_may_come_long_after_all_parts_have_ended(
    session: MasterSession, cluster: clusters.Cluster
) -> None:
    handle = session.begin_partial_run(["x:0", "y:0"], ["a:0", "b:0"], [])
    given = [("x:0", torch.tensor(2.0)), ("y:0", torch.tensor(5.0))]
    assert numbers(session.continue_partial_run(handle, given, ["a:0"])) == [3.0]
    deadline = time.monotonic() + 10
    while session._running and time.monotonic() < deadline:
        time.sleep(0.005)
    assert not session._running  # all parts have ended
    assert numbers(session.continue_partial_run(handle, [], ["b:0"])) == [15.0]
    steps = cluster.servers["worker", 0]._worker._steps
    deadline = time.monotonic() + 10
    while len(steps) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert not len(steps)  # and then nothing is kept


def test_what_was_not_announced(session: MasterSession) -> None:
    handle = session.begin_partial_run(["x:0"], ["a:0"], [])
    with pytest.raises(errors.InvalidArgumentError, match="The feed y:0 was not specified"):
        session.continue_partial_run(handle, [("y:0", torch.tensor(1.0))], [])
    with pytest.raises(errors.InvalidArgumentError, match="The fetch b:0 was not specified"):
        session.continue_partial_run(handle, [], ["b:0"])
    with pytest.raises(errors.InvalidArgumentError, match="can't be computed"):
        session.continue_partial_run(handle, [], ["a:0"])
    assert numbers(session.continue_partial_run(handle, [("x:0", torch.tensor(1.0))], ["a:0"])) == [2.0]


def test_the_failure_of_the_step(session: MasterSession) -> None:
    handle = session.begin_partial_run(["x:0", "y:0"], ["a:0", "wrong:0"], [])
    assert numbers(session.continue_partial_run(handle, [("x:0", torch.tensor(1.0))], ["a:0"])) == [2.0]
    with pytest.raises(errors.InvalidArgumentError, match="From /job:worker/replica:0/task:1:\n"):
        session.continue_partial_run(handle, [("y:0", torch.tensor(9.0))], ["wrong:0"])
    with pytest.raises(errors.InvalidArgumentError, match="Must run PartialRunSetup"):
        session.continue_partial_run(handle, [], [])


def test_closing_the_session_ends_it(session: MasterSession, cluster: clusters.Cluster) -> None:
    handle = session.begin_partial_run(["x:0", "y:0"], ["b:0"], [])
    masters[cluster.target()].close_session(session.handle)
    given = [("x:0", torch.tensor(1.0)), ("y:0", torch.tensor(1.0))]
    with pytest.raises(errors.OpError):
        session.continue_partial_run(handle, given, ["b:0"])
