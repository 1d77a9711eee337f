"""Values that leave a task are those of the moment of the Send, whichever way they go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import clusters
import flowstone as tf
from flowstone.distributed.links import neighbours
from flowstone.distributed.workers.step_rendezvous import StepRendezvous

PS, WORKER = "/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0"


class Others:
    """The other tasks, which take values or ask for them."""

    def __init__(self, takes: bool) -> None:
        self.takes = takes
        self.pushed: list[tuple[str, str, Any]] = []

    def push(self, task: str, key: str, value: Any) -> bool:
        if self.takes:
            self.pushed.append((task, key, value.clone()))
        return self.takes

    def expect(self, task: str, key: str, meeting: StepRendezvous) -> None:
        raise AssertionError("nothing comes")


@pytest.mark.parametrize("takes", [True, False])
@pytest.mark.parametrize("asked", ["before", "after"])
def test_a_value_is_pushed_or_copied(takes: bool, asked: str) -> None:
    others = Others(takes)
    meeting = StepRendezvous("/job:ps/replica:0/task:0", {PS: 7}, others)
    key = f"{PS};0000000000000007;{WORKER};x;0:0"
    received: list[Any] = []

    def done(values: Any, error: Any = None) -> None:
        assert error is None
        received.append(values[0])

    state = torch.ones(3)
    if asked == "before":
        meeting.answer(key, done)
    meeting.send((("x", PS, WORKER), ()), state)
    state.zero_()
    if asked == "after" and not takes:
        meeting.answer(key, done)
    if takes and asked == "after":
        assert [each[:2] for each in others.pushed] == [("/job:worker/replica:0/task:0", key)]
        received = [each[2] for each in others.pushed]
    assert [each.tolist() for each in received] == [[1.0, 1.0, 1.0]]


@pytest.fixture(params=["direct connections", "gRPC alone"])
def tasks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[clusters.Cluster]:
    if request.param == "gRPC alone":
        monkeypatch.setattr(neighbours, "connect", lambda *_: None)
    with clusters.running(ps=1, worker=1) as found:
        yield found


@pytest.mark.parametrize("size", [4, 200_000])
@pytest.mark.parametrize("use_resource", [False, True])
def test_what_is_read_before_a_change_arrives_as_it_was(
    tasks: clusters.Cluster, size: int, use_resource: bool
) -> None:
    with tf.device("/job:ps/task:0"):
        initial = tf.zeros([size])
        v = tf.get_variable("v", initializer=initial, use_resource=use_resource)
        before = v.read_value()
        with tf.control_dependencies([before]):
            change = v.assign_add(tf.ones([size]))
        with tf.control_dependencies([change]):
            after = v.read_value()
    with tf.device("/job:worker/task:0"):
        seen = tf.stack([tf.reduce_min(before), tf.reduce_max(before), tf.reduce_min(after)])
    with tf.Session(tasks.target()) as session:
        session.run(v.initializer)
        for step in range(20):
            np.testing.assert_array_equal(session.run(seen), [step, step, step + 1])


def test_values_that_a_worker_keeps_do_not_change_with_what_was_sent(tasks: clusters.Cluster) -> None:
    """A copy on another task stays what it was, while the sender's memory is used again."""
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", initializer=tf.zeros([300_000]))
        add = v.assign_add(tf.ones([300_000]))
    with tf.device("/job:worker/task:0"):
        copies = [tf.get_variable(f"copy_{i}", initializer=tf.zeros([300_000])) for i in range(4)]
        copy = [each.assign(v) for each in copies]
        sums = tf.stack([tf.reduce_mean(each) for each in copies])
    with tf.Session(tasks.target()) as session:
        session.run(tf.global_variables_initializer())
        for i in range(4):
            session.run(add)
            session.run(copy[i].op)
        for _ in range(6):
            session.run([add, copy[3].op])
        np.testing.assert_array_equal(session.run(sums)[:3], [1.0, 2.0, 3.0])
        session.run(copies[0].assign_add(tf.ones([300_000])).op)
        np.testing.assert_array_equal(session.run(sums)[:3], [2.0, 2.0, 3.0])
        assert session.run(tf.reduce_max(v)) == 10.0
