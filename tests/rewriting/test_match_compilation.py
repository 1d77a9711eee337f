"""What patterns are compiled to: closures over registers, which leave them as they were where they fail."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.framework.graphs.subgraph import PlanOutput, Subgraph
from flowstone.rewriting.match_compilation import SURROUNDINGS, Compiler, Surroundings, suits, types_of
from flowstone.rewriting.match_terms import Either, Number, Op, Term, Value
from flowstone.rewriting.simplification.partial_execution import prune


def value(name: str) -> Any:
    return tf.placeholder(tf.float32, [2], name=name)


def planned(*fetches: Any, targets: Any = ()) -> Subgraph:
    operations = tf.get_default_graph().get_operations()
    feeds = [op.outputs[0] for op in operations if op.type == "Placeholder"]
    return prune(list(fetches), list(targets), feeds)


class Attempt:
    """One attempt to match a term with the first fetch of a subgraph, before which `known` is captured."""

    def __init__(self, term: Term, subgraph: Subgraph, then: bool = True, **known: PlanOutput) -> None:
        compiler = Compiler()
        at = compiler.register()
        check = compiler.compiled(term, at, lambda held: then)
        self.held: list[Any] = [None] * (compiler.size + len(known))
        self.held[SURROUNDINGS] = Surroundings.of(subgraph)
        self.held[at] = subgraph.fetches[0]
        for name, x in known.items():
            self.held[compiler.capture(name)] = x
        self.matches = check(self.held)
        self.captures = {name: self.held[i] for name, i in compiler.captures.items()}
        self.nodes = [self.held[i] for i, _ in compiler.nodes]


def test_a_match_leaves_its_captures_in_registers() -> None:
    attempt = Attempt(
        Op("Sub", Op("Neg", Value("x")), Value("y"), node="root"), planned(-value("a") - value("b"))
    )
    assert attempt.matches
    assert {name: x.op.name for name, x in attempt.captures.items() if name != "root"} == {"x": "a", "y": "b"}
    assert attempt.captures["root"].type == "Sub"
    assert sorted(node.type for node in attempt.nodes) == ["Neg", "Sub"]


def test_a_failure_leaves_no_capture() -> None:
    subgraph = planned(-value("a") - value("b"))
    for attempt in (
        Attempt(Op("Sub", Op("Neg", Value("x")), Op("Exp", Value("y"))), subgraph),
        Attempt(Op("Sub", Op("Neg", Value("x")), Value("y")), subgraph, then=False),
    ):
        assert not attempt.matches
        assert set(attempt.captures.values()) == {None}
        assert set(attempt.nodes) == {None}


def test_another_way_is_tried_when_what_follows_fails() -> None:
    a, b = value("a"), value("b")
    term = Op("Mul", Value("x"), Op("Neg", Value("x")))  # -a * a: the first order captures another x
    assert Attempt(term, planned(-a * a)).captures["x"].op.name == "a"
    assert not Attempt(term, planned(-a * b)).matches
    either = Op("Sub", Either(Op("Neg", Value("x")), Value("x")), Value("x"))
    assert Attempt(either, planned(-a - a)).captures["x"].op.name == "a"
    negated = -b
    assert Attempt(either, planned(negated - negated)).captures["x"].op.type == "Neg"


def test_what_is_known_before_must_be_the_same() -> None:
    subgraph = planned(value("a") * value("b"))
    a, b = subgraph.fetches[0].op.inputs
    assert Attempt(Op("Mul", Value("x"), Value("y")), subgraph, x=b).captures["y"] is a
    assert not Attempt(Op("Mul", Value("x"), Value("y")), subgraph, x=subgraph.fetches[0]).matches


def test_types_that_a_term_says_at_once() -> None:
    negated = Op("Neg", Value())
    assert types_of(negated) == {"Neg"}
    assert types_of(Either(negated, Op("Exp|Log"))) == {"Neg", "Exp", "Log"}
    assert types_of(Either(negated, Value())) is None
    assert types_of(Number()) is None
    suit = suits(Op("Sub", negated, Value()))
    assert suit(planned(-value("a") - value("b")).fetches[0].op.inputs)
    assert not suit(planned(value("c") - value("d")).fetches[0].op.inputs)


def test_surroundings_tell_who_takes_an_output() -> None:
    a = value("a")
    negated = -a
    one = planned(negated * 2.0)
    around = Surroundings.of(one)
    x = one.fetches[0].op.inputs[0]
    assert around.is_alone(x)
    assert not around.is_alone(one.fetches[0])
    twice = planned(negated * negated)
    assert not Surroundings.of(twice).is_alone(twice.fetches[0].op.inputs[0])
    fetched = planned(negated * 2.0, negated)
    assert not Surroundings.of(fetched).is_alone(fetched.fetches[1])


def test_surroundings_are_closed_if_nobody_else_needs_what_is_inside() -> None:
    negated = -value("a")
    root = tf.exp(negated)
    with tf.control_dependencies([negated]):
        after = tf.identity(root)
    alone, waited = planned(root), planned(after)
    taken, target = planned(root, tf.log(negated)), planned(root, targets=[negated.op])
    for subgraph, closed in ((alone, True), (waited, False), (taken, False), (target, False)):
        nodes = {node.type: node for node in subgraph.nodes}
        around = Surroundings.of(subgraph)
        assert around.are_closed([nodes["Neg"]], [nodes["Exp"]]) is closed
    nodes = {node.type: node for node in taken.nodes}
    assert not Surroundings.of(taken).are_closed([nodes["Neg"]], [nodes["Exp"]], ["Sqrt"])
    assert not Surroundings.of(taken).are_closed([nodes["Exp"]], [])  # it is fetched
    unfetched = planned(root, targets=[tf.log(negated).op])
    nodes = {node.type: node for node in unfetched.nodes}
    assert Surroundings.of(unfetched).are_closed([nodes["Neg"]], [nodes["Exp"]], ["Log"])
