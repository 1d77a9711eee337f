"""The random programs of other tests, with each op on a random task of a cluster.

`control_flow` builds those of `tests/runtime/test_random_programs.py` (branches, loops, queues), `OnTasks`
stands for `flowstone` in `tests/rewriting/state_programs.py` (variables, queues, gradients, feeds of inner
values, partial runs).
"""

from __future__ import annotations

import dataclasses
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "rewriting"))

from tests.runtime.test_random_programs import ARITHMETIC

import flowstone as tf
from state_programs import Body, Program, Statement

Place = Callable[[int], str]


def control_flow(statements: Sequence[Any], values: Sequence[Any], place: Place) -> Any:
    """The last value of the statements; ``place(number)`` is the device of a statement's number of one."""
    values = list(values)
    for kind, device, *rest in statements:
        with tf.device(place(device)):
            if kind == "op":
                name, (a, b, _) = rest
                values.append(ARITHMETIC[name][0](values[a], values[b]))
            elif kind == "cond":
                (a, _, _), branches = rest
                odd = tf.equal(tf.floormod(tf.reduce_sum(values[a]), 2), 1)
                ways = [lambda b=b: control_flow(b, values, place) for b in (branches[1], branches[0])]
                values.append(tf.cond(odd, *ways))
            elif kind == "loop":
                values.append(_loop(rest, values, place))
            else:
                queue = tf.FIFOQueue(10, [tf.int32], [[3]])
                with tf.control_dependencies([queue.enqueue(values[rest[0][0]])]):
                    values.append(tf.identity(queue.dequeue()))
    return values[-1]


def _loop(rest: Sequence[Any], values: list[Any], place: Place) -> Any:
    (a, b, _), count, parallel, body = rest

    def step(i: Any, first: Any, second: Any) -> Any:
        return i + 1, control_flow(body, [*values, first, second], place), first

    start = [tf.constant(0), values[a], values[b]]
    _, first, second = tf.while_loop(
        lambda i, first, second: i < count, step, start, parallel_iterations=parallel
    )
    return first + second


class OnTasks:
    """`flowstone`, whose sessions are on the server `target`, and whose variables and queues are on random
    ones of `tasks`."""

    def __init__(self, target: str, tasks: Sequence[str], seed: int) -> None:
        self._target, self._tasks, self._rng = target, tasks, random.Random(seed)

    def __getattr__(self, name: str) -> Any:
        return getattr(tf, name)

    def Session(self, config: Any = None) -> Any:
        """A session whose state is its own."""
        own = tf.ConfigProto(isolate_session_state=True, operation_timeout_in_ms=60_000)
        return tf.Session(self._target, config=own)

    def get_variable(self, *arguments: Any, **options: Any) -> Any:
        """A variable on some task."""
        with tf.device(self._rng.choice(self._tasks)):
            return tf.get_variable(*arguments, **options)

    def FIFOQueue(self, *arguments: Any, **options: Any) -> Any:
        """A queue on some task."""
        with tf.device(self._rng.choice(self._tasks)):
            return tf.FIFOQueue(*arguments, **options)


def spread(program: Program, tasks: Sequence[str], seed: int) -> Program:
    """The program with each statement on some task. Its variables are resources: of a reference, tasks would
    have copies that are made at any time."""
    rng = random.Random(seed)

    def placed(statement: Statement) -> Statement:
        bodies = tuple(
            dataclasses.replace(body, statements=tuple(map(placed, body.statements)))
            for body in statement.bodies
        )
        return dataclasses.replace(statement, device=rng.choice(tasks), bodies=bodies)

    assert all(isinstance(body, Body) for each in program.statements for body in each.bodies)
    return dataclasses.replace(of_resources(program), statements=tuple(map(placed, program.statements)))


def of_resources(program: Program) -> Program:
    """The program with resource variables alone."""
    states = tuple(
        dataclasses.replace(state, form="resource") if state.form == "reference" else state
        for state in program.states
    )
    return dataclasses.replace(program, states=states)
