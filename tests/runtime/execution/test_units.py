"""Units: where a graph is cut, and what each is."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.framework.declarations.kernel import Environment
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.execution.units import cut, needs_units

pytestmark = pytest.mark.usefixtures("graph")


def units(fetches: Any, feeds: Any = (), **options: Any) -> Any:
    found, _ = cut(prune(fetches, [], list(feeds)), Environment(resources=ResourceStore()), **options)
    return found.units


def test_only_what_waits_needs_units() -> None:
    queue = tf.FIFOQueue(3, tf.float32, shapes=[[]])
    assert needs_units(prune([queue.dequeue()], [], []))
    assert not needs_units(prune([tf.exp(tf.constant(1.0))], [], []))


def test_what_does_not_wait_is_one_unit() -> None:
    x = tf.placeholder(tf.float32, [])
    assert len(units([tf.exp(tf.sin(x)) + tf.cos(x)], [x])) == 1


def test_a_graph_is_cut_at_what_waits() -> None:
    queue = tf.FIFOQueue(3, tf.float32, shapes=[[]])
    one = units([tf.exp(tf.sin(queue.dequeue()))])
    again = units([tf.exp(queue.dequeue()) + tf.sin(queue.dequeue())])
    assert len(again) > len(one) >= 2


def test_control_flow_is_the_executors_where_it_shall_be() -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.while_loop(lambda y: y < 9.0, lambda y: tf.exp(y), [x])
    assert len(units([y], [x], dynamic=True)) > len(units([y], [x])) == 1
