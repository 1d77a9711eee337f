"""What analyses find is kept until a pass changes the graph; one that forgets to say so is named."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.graphs.subgraph import PlanNode, StaleAnalysisError, Subgraph
from flowstone.lowering.passes import EVERY
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.analyses.frames import Frames, order_by_frames
from flowstone.rewriting.analyses.state_access import StateAccess
from flowstone.rewriting.loop_effects import LoopEffects
from flowstone.rewriting.memory.memory_schedule import arrange
from flowstone.rewriting.passes import Pass, run_passes
from flowstone.rewriting.patterns import (
    Replacement,
    in_order,
    remove_unneeded,
    rewrite,
    substitute,
    substitute_in_order,
)
from flowstone.rewriting.simplification.control_edges import drop_waits
from flowstone.rewriting.simplification.partial_execution import prune

ANALYSES = (Subgraph.consumers, Liveness, Frames, StateAccess)


@pytest.fixture(autouse=True)
def unchecked(monkeypatch: Any) -> None:
    """Analyses are compared where a test says so."""
    monkeypatch.setattr(flags, "CHECK", 0)


def chain() -> Subgraph:
    """x, y = -x, z = exp(y) after idle = exp(x), unused = y + y."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2], name="x")
        y = tf.negative(x, name="y")
        with tf.control_dependencies([tf.exp(x, name="idle")]):
            z = tf.exp(y, name="z")
        subgraph = prune([z, tf.add(y, y, name="unused")], [], [x])
    del subgraph.fetches[1]
    return subgraph


def branches_in_a_loop() -> Subgraph:
    """A loop with a conditional in it, a conditional outside, and a variable that is changed."""
    with tf.Graph().as_default():
        p = tf.placeholder(tf.bool, [], name="p")
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        loop = tf.while_loop(
            lambda i: i < 10.0,
            lambda i: i + tf.cond(i > 2.0, lambda: tf.exp(i) * 1.0, lambda: 1.0),
            [w + 1.0],
        )
        with tf.control_dependencies([loop]):
            changed = w.assign_add(1.0)
        return prune([tf.cond(p, lambda: loop * 2.0, lambda: loop)], [changed.op], [p])


def known(subgraph: Subgraph) -> list[Any]:
    """What all analyses find, by which to see whether they have been asked again."""
    return [subgraph.consumers(), *[subgraph.analysis(each) for each in ANALYSES[1:]]]


def are_kept(subgraph: Subgraph, before: list[Any]) -> bool:
    kept = [new is old for new, old in zip(known(subgraph), before)]
    assert all(kept) or not any(kept)
    return kept[0]


def named(subgraph: Subgraph, name: str) -> PlanNode:
    return next(node for node in subgraph.nodes if node.name == name)


# ---- changes


def test_a_rule_that_finds_nothing_keeps_them() -> None:
    subgraph = chain()
    before = known(subgraph)
    rewrite(subgraph, "nothing", lambda node: None)
    assert are_kept(subgraph, before)


def test_a_replacement_invalidates() -> None:
    subgraph = chain()
    before = known(subgraph)
    x, y = named(subgraph, "x"), named(subgraph, "y")
    rewrite(subgraph, "skip", lambda n: Replacement([x.outputs[0]], "as it is") if n is y else None)
    assert not are_kept(subgraph, before)
    consumers = [node.name for node in subgraph.consumers()[x.outputs[0]]]
    assert sorted(consumers) == ["idle", "unused", "unused", "z"]


def test_a_rule_asks_about_the_graph_as_it_is_by_then(monkeypatch: Any) -> None:
    monkeypatch.setattr(flags, "CHECK", 1)
    subgraph = chain()
    x, y = named(subgraph, "x"), named(subgraph, "y")
    seen = []

    def rule(node: PlanNode) -> Replacement | None:
        seen.append(len(subgraph.consumers()[x.outputs[0]]))
        return Replacement([x.outputs[0]], "as it is") if node is y else None

    rewrite(subgraph, "skip", rule)
    assert seen[0] == 2 and seen[-1] == 5  # y itself, and who took it: once, and twice


def test_substitution_invalidates() -> None:
    subgraph = chain()
    before = known(subgraph)
    x, y = named(subgraph, "x"), named(subgraph, "y")
    substitute(subgraph, {y: []}, {y.outputs[0]: x.outputs[0]}, {y: [x]})
    assert not are_kept(subgraph, before) and y.outputs[0] not in subgraph.consumers()


def test_substitution_of_nothing_keeps_them() -> None:
    subgraph = chain()
    before = known(subgraph)
    substitute(subgraph, {}, {})
    assert are_kept(subgraph, before)


def test_a_substitution_that_is_taken_back_leaves_what_was() -> None:
    with tf.Graph().as_default():
        w = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
        early, other = tf.exp(w, name="early"), tf.exp(tf.ones([2]), name="other")
        with tf.control_dependencies([early]):
            changed = w.assign_add(other)
        subgraph = prune([early], [changed.op], [])
    before, text = known(subgraph), str(subgraph)
    read, old = named(subgraph, "early"), named(subgraph, "other")
    new = subgraph.new_node(old.declaration, list(old.inputs), old.attributes, old)

    def read_late() -> None:
        subgraph.targets[0].control_inputs = []
        subgraph.nodes = [node for node in subgraph.nodes if node is not read] + [read]
        known(subgraph)

    replaced = {old.outputs[0]: new.outputs[0]}
    assert not substitute_in_order(subgraph, {old: [new]}, replaced, {}, read_late)
    assert str(subgraph) == text and known(subgraph) == before


def test_what_is_not_needed_goes_or_nothing_changes() -> None:
    subgraph = chain()
    before = known(subgraph)
    remove_unneeded(subgraph)
    assert subgraph.consumers() is not before[0] and "unused" not in str(subgraph)
    before = known(subgraph)
    remove_unneeded(subgraph)
    assert are_kept(subgraph, before)


def counted(x: Any, times: Any, body: Any) -> Any:
    """The result of a loop that does `body` to x some times."""
    return tf.while_loop(lambda i, _: i < times, lambda i, y: (i + 1, body(y)), [0, x])[1]


def nested(x: Any, inner: Any) -> Any:
    """A loop in a loop; of what the inner one takes, only `inner` of the outer one's values is its own."""
    return counted(x, 3, lambda y: y + counted(tf.constant(1.0), 2, lambda z: z * inner(y)))


UNNEEDED = {
    "values": lambda x, p: tf.exp(tf.sin(x)),
    "a loop": lambda x, p: counted(x, 3, tf.exp),
    "a conditional": lambda x, p: tf.cond(p, lambda: tf.exp(x), lambda: x),
    "a conditional in a loop": lambda x, p: counted(x, 3, lambda y: tf.cond(p, lambda: y * 2.0, lambda: y)),
    "loops in loops": lambda x, p: nested(x, lambda y: y),
    "a loop's gradient": lambda x, p: tf.gradients(counted(x, 3, tf.exp), x)[0],
}
NEEDED = {**UNNEEDED, "a loop with numbers": lambda x, p: nested(x, lambda y: tf.random_uniform([]))}


@pytest.mark.parametrize("unneeded", UNNEEDED)
@pytest.mark.parametrize("needed", NEEDED)
def test_what_is_known_of_the_rest_outlasts_what_is_not_needed(needed: str, unneeded: str) -> None:
    """And is what would be found anew."""
    with tf.Graph().as_default():
        x, p = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, [])
        idle = UNNEEDED[unneeded](x, p)
        with tf.control_dependencies([tf.sin(idle)]):
            waiting = tf.exp(x)
        kept = NEEDED[needed](x, p)
        subgraph = prune([waiting + kept, idle], [], [x, p])
    del subgraph.fetches[1]
    subgraph.analysis(LoopEffects)
    known(subgraph)
    size = len(subgraph.nodes)
    remove_unneeded(subgraph)
    assert len(subgraph.nodes) < size
    subgraph.check_analyses()


def test_a_loop_is_nowhere_once_what_showed_where_it_was_is_gone() -> None:
    """The inner loop takes a value of the outer one, which only an Enter says, that nothing needs."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        outer = counted(x, 3, lambda y: y + counted(tf.constant(1.0), 2, lambda z: z + tf.minimum(y, 0.0)))
        subgraph = prune([outer], [], [x])
    minimum = next(node for node in subgraph.nodes if node.type == "Minimum")
    add = next(node for node in subgraph.nodes if minimum.outputs[0] in node.inputs)
    add.inputs[list(add.inputs).index(minimum.outputs[0])] = next(
        y for y in add.inputs if y is not minimum.outputs[0]
    )
    subgraph.invalidate()
    subgraph.analysis(LoopEffects)
    known(subgraph)
    remove_unneeded(subgraph)
    assert minimum not in subgraph.nodes
    subgraph.check_analyses()


def test_control_edges_that_go_invalidate() -> None:
    subgraph = chain()
    remove_unneeded(subgraph)
    y, z = named(subgraph, "y"), named(subgraph, "z")
    z.control_inputs = [y]  # which it takes
    subgraph.invalidate()
    before = known(subgraph)
    drop_waits(subgraph)
    assert not z.control_inputs and not are_kept(subgraph, before)


def test_another_order_invalidates() -> None:
    subgraph = chain()
    before = known(subgraph)
    arrange(subgraph, in_order(subgraph.nodes[::-1]))
    assert not are_kept(subgraph, before)


def test_the_order_by_frames_is_made_once() -> None:
    subgraph = branches_in_a_loop()
    order_by_frames(subgraph)
    before = known(subgraph)
    assert order_by_frames(subgraph) is before[2] and are_kept(subgraph, before)


# ---- passes


def forgetful(subgraph: Subgraph) -> None:
    """A pass that changes an edge and does not say so."""
    subgraph.consumers()
    named(subgraph, "z").inputs[0] = named(subgraph, "x").outputs[0]


def asking(subgraph: Subgraph) -> None:
    """A pass that itself asks what it has made stale."""
    forgetful(subgraph)
    subgraph.consumers()


def careful(subgraph: Subgraph) -> None:
    """The same pass as it should be."""
    forgetful(subgraph)
    subgraph.invalidate()


def test_a_pass_that_forgets_is_named(monkeypatch: Any) -> None:
    monkeypatch.setattr(flags, "CHECK", 1)
    with pytest.raises(StaleAnalysisError, match=r"_consumers is stale after forgetful"):
        run_passes(chain(), [Pass(forgetful, "")])
    with pytest.raises(StaleAnalysisError, match=r"in asking: _consumers is stale"):
        run_passes(chain(), [Pass(asking, "")])
    run_passes(chain(), [Pass(careful, "")])


def test_all_passes_say_what_they_change(monkeypatch: Any) -> None:
    monkeypatch.setattr(flags, "CHECK", 1)
    for build in (chain, branches_in_a_loop):
        subgraph = build()
        for each in EVERY:
            known(subgraph)
            run_passes(subgraph, [each])
        assert subgraph.log, build


# ---- results


@pytest.mark.parametrize("analysis", ANALYSES[1:])
def test_results_compare_by_what_they_say(analysis: Any) -> None:
    subgraph = branches_in_a_loop()
    found = analysis(subgraph)
    assert found == analysis(subgraph) and found is not analysis(subgraph)
    assert found != analysis(Subgraph(subgraph.nodes[:-1], [], [], [])) or analysis is StateAccess
    assert found != analysis(Subgraph(subgraph.nodes[:3], [], [], []))


def test_who_adds_nodes_takes_a_copy() -> None:
    subgraph = branches_in_a_loop()
    liveness, frames = subgraph.analysis(Liveness), subgraph.analysis(Frames)
    like = next(node for node in subgraph.nodes if frames.of[node] is not None and node.type == "Switch")
    new = subgraph.new_node(like.declaration, like.inputs, like.attributes, like)
    alive, framed = liveness.copy(), frames.copy()
    alive.add(new)
    framed.of[new] = framed.frame_of(new)
    assert alive.node(new) == liveness.node(like) and framed.of[new] is frames.of[like]
    assert new not in frames.of and liveness == Liveness(subgraph) != alive
    assert frames == Frames(subgraph) != framed
