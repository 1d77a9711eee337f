"""Awaiting: an asynchronous kernel inside a segment, on the thread that runs the step.

If a step has a single asynchronous kernel, and everything that does not need its results has run before it,
the thread has nothing else to do while the kernel waits. `wait_last` orders a subgraph so; generated code
then calls

    v3, v4 = awaited(dequeue, step, Queue, n)

which returns at once if the kernel need not wait.
"""

from __future__ import annotations

import time
from _thread import allocate_lock
from collections.abc import Callable
from typing import Any

from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.partition.send_receive import HOST_ENDS, SENDS
from flowstone.rewriting.analyses.branches import ALIVE_AT_TIMES, SWITCHES
from flowstone.rewriting.analyses.frames import ENTERS
from flowstone.runtime.steps.step import Step, deadline_error


def awaited(start: Callable[..., None], step: Step, *inputs: Any) -> Any:
    """The outputs of an asynchronous kernel; raises its error, or the error that ended the step before."""
    report: list[Any] = []
    reported = allocate_lock()
    reported.acquire()

    def done(outputs: Any, error: BaseException | None = None) -> None:
        report.append((outputs, error))
        reported.release()

    start(step, done, *inputs)
    if not report:
        _wait(step, reported)
    outputs, error = report[0]
    if error is not None:
        raise step.error or error
    return outputs


def _wait(step: Step, reported: Any) -> None:
    turn = step.turn
    if turn is not None:
        turn.release()
    try:
        if step.deadline is None:
            reported.acquire()
        elif not reported.acquire(timeout=max(0.0, step.deadline - time.monotonic())):
            step.cancel(deadline_error())
            reported.acquire()
    except BaseException as error:  # an interrupt of the waiting thread
        step.cancel(error if isinstance(error, Exception) else None)
        raise
    finally:
        if turn is not None:
            turn.acquire()


def wait_last(subgraph: Subgraph) -> bool:
    """Orders the nodes for one segment and returns True if they can be one: there is at most one kernel that
    waits, it runs once, and can run after all nodes that do not depend on it. Sends do not wait."""
    waiting = [
        node
        for node in subgraph.nodes
        if node.declaration.asynchronous and node.declaration.role not in SENDS
    ]
    if len(waiting) > 1 or any(node.type in SWITCHES or node.type in ENTERS for node in subgraph.nodes):
        return False
    if any(
        node.declaration.role in HOST_ENDS or ALIVE_AT_TIMES in node.attributes for node in subgraph.nodes
    ):
        return False
    dependent: set[PlanNode] = set(waiting)
    for node in subgraph.nodes:
        sources = node.sources()
        if any(source in dependent for source in sources):
            dependent.add(node)
    subgraph.nodes = sorted(subgraph.nodes, key=dependent.__contains__)
    return True
