"""When nodes are alive: conditions are simplified, and found for the nodes of conditionals."""

from __future__ import annotations

import itertools

import flowstone as tf
from flowstone.rewriting.analyses.branches import FALSE, TRUE, Liveness, conjunction, join, literal
from flowstone.rewriting.simplification.partial_execution import prune

P, Q = literal("p", True), literal("q", True)
NOT_P, NOT_Q = literal("p", False), literal("q", False)


def test_conditions_are_simplified():
    assert conjunction(P, NOT_P) == FALSE
    assert join(P, NOT_P) == TRUE
    assert conjunction(TRUE, P) == conjunction(P, TRUE) == P
    assert join(conjunction(P, Q), conjunction(P, NOT_Q)) == P  # resolution
    assert join(P, conjunction(P, Q)) == P  # absorption
    four = [conjunction(a, b) for a, b in itertools.product((P, NOT_P), (Q, NOT_Q))]
    assert join(join(four[0], four[1]), join(four[2], four[3])) == TRUE


def liveness_of(fetch, feeds):
    subgraph = prune([fetch], [], feeds)
    return Liveness(subgraph), subgraph


def test_a_graph_without_switch_is_alive():
    x = tf.placeholder(tf.float32, [])
    liveness, subgraph = liveness_of(tf.negative(x), [x])
    assert liveness.trivial and liveness.node(subgraph.nodes[-1]) == TRUE and not liveness.predicates


def test_nested_conditionals_ask_only_the_fed_predicates():
    x, p, q = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, []), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.cond(tf.logical_not(q), lambda: tf.exp(x), lambda: tf.sin(x)), lambda: x)
    liveness, subgraph = liveness_of(y, [x, p, q])
    assert {predicate.name for predicate in liveness.predicates} == {p.name, q.name}
    (exp,) = (node for node in subgraph.nodes if node.type == "Exp")
    (term,) = liveness.node(exp)
    assert {(predicate.name, wanted) for predicate, wanted in term} == {(p.name, True), (q.name, False)}
    assert liveness.output(subgraph.fetches[0]) == TRUE
