"""A program of units: results, waiting, deadlines, failures, and what a failure leaves behind."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.framework.declarations.kernel import Environment
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.execution.unit_program import UnitProgram
from flowstone.runtime.steps.step import Step

pytestmark = pytest.mark.usefixtures("graph")


class Programs:
    """Programs over the same resources, each compiled and run by hand."""

    def __init__(self) -> None:
        self.environment = Environment(resources=ResourceStore())

    def compiled(self, fetches: Any, targets: Any = (), feeds: Any = ()) -> UnitProgram:
        return UnitProgram.compiled(prune(list(fetches), list(targets), list(feeds)), self.environment)

    def run(self, program: UnitProgram, *feeds: float, step: Step | None = None) -> list[Any]:
        with torch.inference_mode():
            return [x.tolist() for x in program.function(step or Step(), *map(torch.tensor, feeds))]


def queue() -> Any:
    return tf.FIFOQueue(3, [tf.float32], shapes=[[]], shared_name="q")


def test_values_wait_for_what_gives_them() -> None:
    programs, q, x = Programs(), queue(), tf.placeholder(tf.float32, [])
    taken = programs.compiled([q.dequeue() * 2.0])
    put = programs.compiled([], [q.enqueue(x)], [x])
    results: list[Any] = []
    waiting = threading.Thread(target=lambda: results.append(programs.run(taken)))
    waiting.start()
    assert not results
    programs.run(put, 3.0)
    waiting.join(10)
    assert results == [[6.0]]


def test_the_order_of_fetches_is_the_programs() -> None:
    programs, q, x = Programs(), queue(), tf.placeholder(tf.float32, [])
    programs.run(programs.compiled([], [q.enqueue_many([[5.0, 7.0]])]))
    y = q.dequeue()
    assert programs.run(programs.compiled([y + x, x, -y], [], [x]), 1.0) == [6, 1, -5]


def test_a_deadline_ends_the_wait_and_the_queue_stays_usable() -> None:
    programs, q = Programs(), queue()
    taken = programs.compiled([q.dequeue()])
    with pytest.raises(tf.errors.DeadlineExceededError):
        programs.run(taken, step=Step(timeout_ms=50))
    programs.run(programs.compiled([], [q.enqueue(4.0)]))
    assert programs.run(taken) == [4.0]  # nobody else has taken it


def test_the_first_failure_ends_what_waits() -> None:
    programs, x = Programs(), tf.placeholder(tf.float32, [])
    q = queue()
    checked = tf.check_numerics(x, "bad value", name="checked")
    program = programs.compiled([q.dequeue(), checked], [], [x])
    with pytest.raises(tf.errors.InvalidArgumentError, match="bad value"):
        programs.run(program, float("nan"))
    programs.run(programs.compiled([], [q.enqueue(4.0)]))
    assert programs.run(program, 1.0) == [4.0, 1.0]


def test_a_cancelled_step_raises_what_cancelled_it() -> None:
    programs = Programs()
    program, step = programs.compiled([queue().dequeue()]), Step()
    timer = threading.Timer(0.05, lambda: step.cancel(tf.errors.CancelledError(None, None, "closed")))
    timer.start()
    with pytest.raises(tf.errors.CancelledError):
        programs.run(program, step=step)
    timer.join()


def test_the_source_shows_units_in_order_and_errors_name_their_own_nodes() -> None:
    programs = Programs()
    program = programs.compiled([tf.exp(queue().dequeue())])
    assert program.source.count("# ") >= 2
    assert "exp" in program.source
    assert program.node_at(1) is None
    assert program.arguments_at(1) == []


def test_fetched_references_are_values() -> None:
    programs = Programs()
    v = tf.Variable(2.0)
    q = queue()
    programs.run(programs.compiled([], [v.initializer]))
    programs.run(programs.compiled([], [q.enqueue(1.0)]))
    program = programs.compiled([v._ref(), q.dequeue()])
    assert program.references == (0,)
    assert programs.run(program) == [2.0, 1.0]
