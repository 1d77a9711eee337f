"""Where a call stands: what its nodes wait for, and the error that names it."""

from __future__ import annotations

import pytest

import flowstone as tf
from flowstone.framework.graphs.subgraph import PlanNode
from flowstone.rewriting.functions.call_sites import Expansion, Site, fail
from flowstone.rewriting.simplification.partial_execution import prune


def nodes() -> list[PlanNode]:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [], name="x")
        with tf.control_dependencies([tf.sin(x, name="waited")]):
            call = tf.exp(x, name="outer/call")
        return prune([call], [], [x]).nodes


def test_what_is_bound_by_nothing_waits_for_what_the_call_waits_for() -> None:
    pivot, waited, call = nodes()
    site = Site(call, None, ("f",))
    assert (site.prefix, site.binding(), site.callers) == ("outer/call", [waited], ("f",))
    site.controls.append(pivot)
    assert call.control_inputs == [waited], "the site's list is its own"
    assert Site(call, None, (), pivot).binding() == [waited, pivot]


def test_a_branch_waits_for_its_pivot_alone() -> None:
    pivot, _, call = nodes()
    site = Site(call, "library", ("f",)).branch(pivot, "then")
    assert (site.prefix, site.binding()) == ("outer/call/then", [pivot])
    assert (site.call, site.library, site.callers) == (call, "library", ("f",))


def test_an_error_names_the_call() -> None:
    *_, call = nodes()
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)no such.*node outer/call \(op Exp\)"):
        fail(call, "no such function")


def test_an_expansion_is_outputs_and_effects() -> None:
    pivot, _, call = nodes()
    expansion = Expansion(call.outputs, [pivot])
    assert expansion.outputs is call.outputs and expansion.effects == [pivot]
