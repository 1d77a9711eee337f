"""Random programs spread at random over one to four tasks: values, state, control flow and errors are those
of one process."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import server_processes
from spread_programs import OnTasks, control_flow, spread
from tests.runtime import test_placements_agree as trained
from tests.runtime.test_random_programs import evaluate, program, start

import clusters
import flowstone as tf
from compare_state_programs import Flowstone, computed, difference_that_counts
from flowstone.framework import flags
from flowstone.lowering.passes import LOWERING
from state_patterns import program as state_program

TASKS = ["/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1", "/job:worker/task:2"]
STATEFUL = [seed for seed in range(130) if all(s.form != "reference" for s in state_program(seed).states)]
LOCAL = tf.ConfigProto(operation_timeout_in_ms=60_000)
OWN = tf.ConfigProto(operation_timeout_in_ms=60_000, isolate_session_state=True)


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with clusters.running(ps=1, worker=3) as cluster:
        yield cluster.target()


@pytest.fixture(scope="module")
def processes() -> Iterator[str]:
    with server_processes.running(ps=1, worker=3) as cluster:
        yield cluster.target()


def check_control_flow(target: str, seed: int) -> None:
    rng = random.Random(seed)
    statements = program(rng, 3, rng.randint(2, 7), 3, queues=seed % 3 == 0)
    tasks = TASKS[: 1 + seed % 4]
    feeds = [tf.placeholder(tf.int32, [3]) for _ in range(3)]
    result = control_flow(statements, feeds, lambda number: tasks[number % len(tasks)])
    with tf.Session(target, config=OWN) as session, np.errstate(over="ignore"):
        for _ in range(2):
            given = start(rng)
            found = session.run(result, dict(zip(feeds, given)))
            np.testing.assert_array_equal(found, evaluate(statements, given))


# The last four once ended in a step that waited for ever: a loop without results on the task of its control.
@pytest.mark.parametrize("seed", [*range(36), 263, 310, 354, 365])
def test_branches_loops_and_queues(target: str, seed: int) -> None:
    check_control_flow(target, seed)


@pytest.mark.parametrize("seed", range(100, 108))
def test_branches_loops_and_queues_over_processes(processes: str, seed: int) -> None:
    check_control_flow(processes, seed)


def check_state(target: str, seed: int) -> None:
    wanted, tasks = state_program(seed), TASKS[: 1 + seed % 4]

    def on_tasks(each: Any) -> Any:
        return computed(OnTasks(target, tasks, seed), spread(each, tasks, seed), None)

    def in_one_process(each: Any) -> Any:
        return Flowstone()(each)

    found, expected = on_tasks(wanted), in_one_process(wanted)
    words = difference_that_counts(wanted, found, expected, on_tasks, in_one_process)
    assert not words, f"{words}\n{wanted}"


@pytest.mark.parametrize("seed", STATEFUL)
def test_variables_queues_and_partial_runs(target: str, seed: int) -> None:
    check_state(target, seed)


@pytest.mark.parametrize("seed", STATEFUL[:6])
def test_variables_queues_and_partial_runs_over_processes(processes: str, seed: int) -> None:
    check_state(processes, seed)


class OnSomeTask:
    """Gives each piece of a training graph a task, or none if there are 0."""

    def __init__(self, seed: int, tasks: int) -> None:
        self._rng, self._tasks = random.Random(seed), tasks

    def __call__(self) -> Any:
        chosen = self._rng.randrange(4)  # drawn for any number of tasks, so that programs are equal
        return tf.device(TASKS[chosen % self._tasks] if self._tasks else None)


def trained_values(target: str, seed: int, tasks: int) -> list[Any]:
    """The fetched values of some training steps, and the variables after them."""
    rng = np.random.RandomState(seed)
    with tf.Graph().as_default():
        tf.set_random_seed(seed)
        feeds, train, fetches, variables = trained.build(seed, tasks, seed % 2)
        with tf.Session(target, config=OWN if target else LOCAL) as session:
            session.run(tf.global_variables_initializer())
            found = []
            for _ in range(trained.STEPS):
                values = [rng.randn(*x.shape.as_list()).astype(np.float32) for x in feeds]
                found += session.run([train, *fetches], dict(zip(feeds, values)))[1:]
            return found + session.run(variables)


@pytest.mark.by_aten  # clusters end where parts do
@pytest.mark.parametrize("seed", range(12))
def test_training_gives_the_same_bits(target: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trained, "Somewhere", OnSomeTask)
    fused = {each.name for each in LOWERING}  # it changes the order of sums where it applies
    monkeypatch.setattr(flags, "DISABLED_PASSES", flags.DISABLED_PASSES | fused)
    expected = trained_values("", seed, 0)
    found = trained_values(target, seed, 2 + seed % 3)
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        np.testing.assert_array_equal(a, b)


def failure(target: str, statements: Sequence[Any], tasks: Sequence[str], seed: int) -> tuple[Any, ...]:
    """How a step with one failing node ends: the error's class and node, and the state after it."""
    rng = random.Random(seed)
    with tf.Graph().as_default():
        feeds = [tf.placeholder(tf.int32, [3]) for _ in range(3)]
        index = tf.placeholder(tf.int32, [])
        result = control_flow(statements, feeds, lambda number: tasks[number % len(tasks)])
        with tf.device(rng.choice(tasks)):
            count = tf.Variable(0, use_resource=True, name=f"count_{seed}")
        with tf.device(rng.choice(tasks)):
            wrong = tf.gather(result, tf.Print(index, [index], summarize=1), name="wrong")
        with tf.control_dependencies([wrong]), tf.device(rng.choice(tasks)):
            counted = count.assign_add(wrong * 0 + 1)
        with tf.Session(target, config=OWN if target else LOCAL) as session:
            session.run(count.initializer)
            given = dict(zip(feeds, start(rng)))
            session.run(counted, {**given, index: 2})
            with pytest.raises(tf.errors.OpError) as caught:
                session.run(counted, {**given, index: 7})
            session.run(counted, {**given, index: 0})  # nothing of the failure is left
            return type(caught.value), caught.value.op and caught.value.op.name, session.run(count)


@pytest.mark.parametrize("seed", range(12))
def test_errors(target: str, seed: int) -> None:
    rng = random.Random(seed)
    statements = program(rng, 3, rng.randint(2, 5), 2, queues=False)
    found = failure(target, statements, TASKS[: 1 + seed % 4], seed)
    assert found == failure("", statements, [""], seed)
    assert found == (tf.errors.InvalidArgumentError, "wrong", 2)
