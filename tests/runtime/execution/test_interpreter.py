"""Node-by-node execution: values, dead values, references, and how results are compared."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.framework.declarations.kernel import Environment
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.execution.executor import DEAD
from flowstone.runtime.execution.interpreter import disagreement, interpret

pytestmark = pytest.mark.usefixtures("graph")


def run(fetches: Any, feeds: Any, *values: Any) -> list[Any]:
    environment = Environment(resources=ResourceStore())
    with torch.inference_mode():
        return interpret(prune(fetches, [], feeds), environment, [torch.tensor(v) for v in values])


def test_every_fetch_is_computed_from_the_feeds() -> None:
    x = tf.placeholder(tf.float32, [2])
    total, same = run([tf.reduce_sum(x * 2.0), x], [x], [1.0, 2.0])
    assert total.item() == 6 and same.tolist() == [1, 2]


@pytest.mark.parametrize(("taken", "expected"), [(True, 4.0), (False, -2.0)])
def test_values_of_the_other_branch_are_dead(taken: bool, expected: float) -> None:
    x, p = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, [])
    found = []

    def kept(y: Any) -> Any:
        found.append(y)
        return y

    y = tf.cond(p, lambda: kept(x * 2.0), lambda: kept(-x))
    result, on, off = run([y, *found], [x, p], 2.0, taken)
    assert result.item() == expected
    assert (on is DEAD, off is DEAD) == (not taken, taken)


def test_death_goes_along_control_edges() -> None:
    x, p = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, [])
    found = []

    def branch() -> Any:
        with tf.control_dependencies([x * 2.0]):
            found.append(tf.constant(1.0))
        return found[0]

    tf.cond(p, branch, lambda: x)
    assert run(found, [x, p], 1.0, False) == [DEAD]


def test_a_reference_is_fetched_as_its_buffer() -> None:
    v = tf.Variable(tf.constant([1.0, 2.0]))
    environment = Environment(resources=ResourceStore())
    with torch.inference_mode():
        interpret(prune([], [v.initializer], []), environment, [])
        (value,) = interpret(prune([v._ref()], [], []), environment, [])
    assert value.tolist() == [1, 2]


DIFFERENT = {
    "value": ([1.0], [1.1]),
    "shape": ([1.0], [[1.0]]),
    "integer": ([1], [2]),
    "not a number": ([float("nan")], [1.0]),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_differences_are_told(name: str) -> None:
    a, b = (torch.tensor(x) for x in DIFFERENT[name])
    same = torch.zeros(1)
    assert disagreement([same, a], [same, b]).startswith("fetch 1: the segment computed")
    assert disagreement([same, a], [same, a.clone()]) is None


def test_rounding_is_no_difference() -> None:
    assert disagreement([torch.tensor([1.0])], [torch.tensor([1.0 + 1e-6])]) is None
    assert disagreement([torch.tensor([1.0])], [torch.tensor([1.0 + 1e-6])], tolerance=1e-8) is not None
