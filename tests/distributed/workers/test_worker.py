"""A worker by itself: sessions, parts, steps and values of other tasks, without a server."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.distributed.workers.part_graphs import PartGraph, divide
from flowstone.distributed.workers.step_rendezvous import StepRendezvous
from flowstone.distributed.workers.worker import Wanted, Worker
from flowstone.framework import errors
from flowstone.runtime.plans.plan_options import PlanOptions
from flowstone.runtime.process.device import Device

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"


def device(task: str) -> Device:
    return Device(f"{task}/device:CPU:0", "CPU", torch.device("cpu"), 1 << 28)


class Nobody:
    """No other task: nothing is taken or comes."""

    def push(self, task: str, key: str, value: Any) -> bool:
        return False

    def expect(self, task: str, key: str, meeting: StepRendezvous) -> None:
        pass


@pytest.fixture
def worker() -> Worker:
    found = Worker(PS, [device(PS)], lambda step: Nobody())
    found.create_session("s", None, False, [device(WORKER)])  # type: ignore[list-item]
    return found


def part_of(worker: Worker, fetches: list[Any], feeds: list[Any] = [], targets: list[Any] = []) -> PartGraph:  # noqa: B006
    """The worker's part of a graph whose session is on the other task."""
    options = PlanOptions([device(WORKER), *worker.devices])
    parts, *_ = divide(fetches, targets, feeds, options, WORKER)
    return next(part for part in parts if part.task == PS)


def test_a_part_runs_with_its_feeds_and_keeps_state(worker: Worker) -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("kept", [2], initializer=tf.zeros_initializer())
        init, add = v.initializer, tf.assign_add(v, x)
    first = worker.register("s", part_of(worker, [], [], [init]).graph_def)
    second = worker.register("s", part_of(worker, [add], [x]).graph_def)
    assert worker.run("s", first, 1, []) == []
    for number, expected in ((2, [1.0, 2.0]), (3, [2.0, 4.0])):
        (found,) = worker.run("s", second, number, [torch.tensor([1.0, 2.0])])
        np.testing.assert_array_equal(found, expected)
        assert not worker.knows(number)  # nobody will ask it for anything


def test_a_step_runs_once(worker: Worker) -> None:
    with tf.device("/job:ps/task:0"):
        graph = worker.register("s", part_of(worker, [tf.constant(1.0) + 1.0]).graph_def)
    worker.run("s", graph, 5, [])
    with pytest.raises(errors.AbortedError, match="is over"):
        worker.run("s", graph, 5, [])
    worker.fail(6, errors.CancelledError(None, None, "the master gave up"))
    with pytest.raises(errors.AbortedError, match="the master gave up"):
        worker.run("s", graph, 6, [])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            torch.zeros(2, dtype=torch.float64),
            "float32, but the value fed to it is of type float64",
        ),
        (torch.zeros(3), r"has the shape \(2,\), but the value fed to it \[3\]"),
        ("text", "is of type float32, but the value fed to it is of type str"),
    ],
)
def test_feeds_are_checked(worker: Worker, value: Any, words: str) -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.device("/job:ps/task:0"):
        graph = worker.register("s", part_of(worker, [x + 1.0], [x]).graph_def)
    with pytest.raises(errors.InvalidArgumentError, match=words):
        worker.run("s", graph, 1, [value])
    with pytest.raises(errors.InvalidArgumentError, match="takes 1 feeds, but got 0"):
        worker.run("s", graph, 2, [])


def test_by_keys(worker: Worker) -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.device("/job:ps/task:0"):
        part = part_of(worker, [x + 1.0, x * 2.0], [x])
    graph = worker.register("s", part.graph_def)
    feeds = {part.feeds[0][0]: torch.ones(2)}
    keys = [key for key, _ in part.fetches][::-1]
    results, told = worker.run_by_keys("s", graph, 1, feeds, keys, Wanted(True, True))
    assert [value.tolist() for value, _ in results] == [[2.0, 2.0], [2.0, 2.0]]
    assert {dtype.name for _, dtype in results} == {"float32"}
    assert {node.node_name for node in told.step_stats.dev_stats[0].node_stats} >= {"add", "mul"}
    assert next(node.device for node in told.graphs[0].node) == f"{PS}/device:CPU:0"
    with pytest.raises(errors.InvalidArgumentError, match="has no feed or fetch no;such;key"):
        worker.run_by_keys("s", graph, 2, feeds, ["no;such;key"], Wanted())


def test_what_is_not_known(worker: Worker) -> None:
    with pytest.raises(errors.AbortedError, match=f'Possibly this worker \\("{PS}"\\) just restarted'):
        worker.register("other", part_of(worker, [], [], [ps_constant().op]).graph_def)
    with pytest.raises(errors.AbortedError, match="Graph handle is not found: 7"):
        worker.run("s", "7", 1, [])
    with pytest.raises(errors.AbortedError, match="Graph handle is not found"):
        worker.deregister("s", "7")
    with pytest.raises(errors.AbortedError, match="Graph handle is not found"):
        worker.explain("s", "7")
    with pytest.raises(errors.AlreadyExistsError, match="Session already exists: s"):
        worker.create_session("s", None, False)
    worker.delete_session("s")
    worker.delete_session("s")  # once more does nothing
    with pytest.raises(errors.AbortedError, match="Session handle is not found: s"):
        worker.run("s", "7", 1, [])


def ps_constant() -> Any:
    with tf.device("/job:ps/task:0"):
        return tf.get_variable(f"c{len(tf.get_default_graph().get_operations())}", [2])


def test_values_for_other_tasks_wait_here_until_they_are_asked_for(worker: Worker) -> None:
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("sent", [], initializer=tf.ones_initializer())
    worker.run("s", worker.register("s", part_of(worker, [], [], [v.initializer]).graph_def), 1, [])
    part = part_of(worker, [v + 1.0])
    graph = worker.register("s", part.graph_def)
    own, other = worker.devices[0], f"{WORKER}/device:CPU:0"
    key = f"{own.name};{own.incarnation:016x};{other};sent:0;0:0"
    answers: list[Any] = []
    worker.receive(2, key, lambda values, error=None: answers.append((values, error)))  # before it begins
    assert not answers
    worker.run("s", graph, 2, [])
    ((values, error),) = answers
    assert error is None and float(values[0]) == 1.0
    assert worker.knows(2)  # until the master says that the step is over
    worker.clean_up(2)
    assert not worker.knows(2)
    with pytest.raises(errors.AbortedError, match="is over"):
        worker.receive(2, key, lambda values, error=None: None)


def test_another_incarnation_is_noticed(worker: Worker) -> None:
    key = f"{worker.devices[0].name};{1:016x};{WORKER}/device:CPU:0;x:0;0:0"
    with pytest.raises(errors.AbortedError, match="different device incarnation: 1 vs"):
        worker.receive(1, key, lambda values, error=None: None)
    with pytest.raises(errors.InvalidArgumentError, match="Invalid rendezvous key"):
        worker.receive(1, "noise", lambda values, error=None: None)


def test_isolated_sessions_and_containers(worker: Worker) -> None:
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("shared", [], initializer=tf.ones_initializer())
        is_set = tf.is_variable_initialized(v)
    worker.create_session("own", None, True)
    for session in ("s", "own"):
        init = worker.register(session, part_of(worker, [], [], [v.initializer]).graph_def)
        asked = worker.register(session, part_of(worker, [is_set]).graph_def)
        number = 10 if session == "s" else 20
        assert not worker.run(session, asked, number, [])[0]  # also in the second: it shares nothing
        worker.run(session, init, number + 1, [])
        assert worker.run(session, asked, number + 2, [])[0]
    worker.reset([])
    again = worker.register("s", part_of(worker, [is_set]).graph_def)
    assert not worker.run("s", again, 30, [])[0]


def test_quick_parts(worker: Worker) -> None:
    x, large = tf.placeholder(tf.float32, [4]), tf.placeholder(tf.float32, [None])
    with tf.device("/job:ps/task:0"):
        quick = worker.register("s", part_of(worker, [x + 1.0], [x]).graph_def)
        slow = worker.register("s", part_of(worker, [large + 1.0], [large]).graph_def)
        turns = tf.while_loop(lambda i: i < 10.0, lambda i: i + 1.0, [x[0]])
        loop = worker.register("s", part_of(worker, [turns], [x]).graph_def)
    assert worker.is_quick("s", quick) and not worker.is_quick("s", slow)
    assert not worker.is_quick("s", loop)  # nobody knows how long it takes
    assert not worker.is_quick("s", "7") and not worker.is_quick("other", quick)


def test_the_end_ends_sessions_and_steps(worker: Worker) -> None:
    answers: list[Any] = []
    key = f"{worker.devices[0].name};{worker.devices[0].incarnation:016x};{WORKER}/device:CPU:0;x:0;0:0"
    worker.receive(9, key, lambda values, error=None: answers.append(error))
    worker.end()
    assert [type(error) for error in answers] == [errors.CancelledError]
    with pytest.raises(errors.AbortedError):
        worker.run("s", "1", 1, [])
