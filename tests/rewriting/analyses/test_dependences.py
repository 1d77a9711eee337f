"""What FLOWSTONE_CHECK=1 finds: passes that move reads of state, lose a contribution or add one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import Subgraph
from flowstone.lowering.passes import EVERY
from flowstone.rewriting import passes
from flowstone.rewriting.analyses.dependences import dependences
from flowstone.rewriting.simplification.partial_execution import prune


def program(fetches: tuple[str, ...] = ("z",)) -> Subgraph:
    """A product, an assignment to its matrix, and a sum of three terms after that."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, 2], name="x")
        u = tf.placeholder(tf.float32, [2, 2], name="u")
        w = tf.get_variable("w", initializer=tf.constant(np.ones((2, 2), np.float32)))
        y = tf.matmul(x, w, name="y")
        with tf.control_dependencies([y]):
            a = tf.assign(w, x, name="a")
        with tf.control_dependencies([a]):
            tf.add_n([y, u, tf.square(x)], name="z")
        graph = tf.get_default_graph()
        return prune([graph.get_tensor_by_name(f"{name}:0") for name in fetches], [], [x, u])


def checked(monkeypatch: Any, function: Callable[[Subgraph], None], *fetches: str, **facts: bool) -> None:
    """Runs this pass alone, with the check. `fetches`: what is fetched beside the sum."""
    monkeypatch.setattr(flags, "CHECK", 1)
    passes.run_passes(program(("z", *fetches)), (passes.Pass(function, "for the test", **facts),), ())


def named(subgraph: Subgraph, name: str) -> Any:
    return next(node for node in subgraph.nodes if node.name == name)


def test_results_depend_on_feeds_and_versions() -> None:
    found = dependences(program()).of
    terms = {("term", "y"), ("term", "Square")}
    assert found["fetch", 0] == {("feed", 0), ("feed", 1), (("", "w"), (0, None))} | terms
    assert found["change", ("", "w"), 0] == {("feed", 0), (("", "w"), (0, None))}


def test_what_a_conditional_has_instead_of_a_variable_counts() -> None:
    x = tf.placeholder(tf.float32, [], name="x")
    v = tf.Variable(1.0, use_resource=False)
    chosen = tf.cond(tf.placeholder(tf.bool, [], name="p"), lambda: x, lambda: v)
    changed = tf.assign_sub(v, chosen)
    subgraph = prune([], [changed.op], [x, chosen.graph.get_tensor_by_name("p:0")])
    (found,) = dependences(subgraph).of.values()
    assert ("feed", 0) in found


def test_a_read_that_moves_past_an_assignment(monkeypatch: Any) -> None:
    def move(subgraph: Subgraph) -> None:
        y, a = named(subgraph, "y"), named(subgraph, "a")
        a.control_inputs = []
        subgraph.nodes.remove(y)
        subgraph.nodes.insert(subgraph.nodes.index(a) + 1, y)

    with pytest.raises(
        AssertionError, match=r"fetch 0 does not depend on .*w.*version .0.* any more after move"
    ):
        checked(monkeypatch, move)


def test_a_contribution_that_is_lost(monkeypatch: Any) -> None:
    def lose(subgraph: Subgraph) -> None:
        z = named(subgraph, "z")
        z.inputs[:] = [z.inputs[0], z.inputs[0], z.inputs[2]]

    with pytest.raises(
        AssertionError, match=r"fetch 0 does not depend on feed \(version 1\) any more after lose"
    ):
        checked(monkeypatch, lose)
    checked(monkeypatch, lose, loses=True)  # which may find that something does not matter


def test_a_term_that_is_lost_though_the_others_depend_on_the_same(monkeypatch: Any) -> None:
    def lose(subgraph: Subgraph) -> None:
        z = named(subgraph, "z")
        z.inputs[:] = [z.inputs[0], z.inputs[1], z.inputs[0]]

    def replace(subgraph: Subgraph) -> None:
        z, square = named(subgraph, "z"), named(subgraph, "Square")
        x = square.inputs[0]
        product = subgraph.new_node(registry["Mul"], [x, x], {"T": tf.float32}, square, name="product")
        subgraph.nodes.insert(subgraph.nodes.index(square), product)
        z.inputs[2] = product.outputs[0]

    with pytest.raises(
        AssertionError, match="fetch 0 does not depend on the term Square any more after lose"
    ):
        checked(monkeypatch, lose, "Square")
    checked(monkeypatch, replace)  # the new node stands for it


def test_a_contribution_that_comes_from_nowhere(monkeypatch: Any) -> None:
    def add(subgraph: Subgraph) -> None:
        a = named(subgraph, "a")
        a.inputs[1] = subgraph.feeds[1]

    with pytest.raises(AssertionError, match=r"change 0 of .*w.* depends on feed \(version 1\) after add"):
        checked(monkeypatch, add, loses=True)


def test_an_assignment_that_is_dropped(monkeypatch: Any) -> None:
    def drop(subgraph: Subgraph) -> None:
        a = named(subgraph, "a")
        subgraph.nodes.remove(a)
        for node in subgraph.nodes:
            node.control_inputs = []

    with pytest.raises(AssertionError, match=r"fetch 0 does not depend on .*w.* any more after drop"):
        checked(monkeypatch, drop)


def test_nothing_is_found_in_the_real_passes(monkeypatch: Any) -> None:
    monkeypatch.setattr(flags, "CHECK", 1)
    passes.run_passes(program(), EVERY)
