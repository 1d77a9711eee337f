"""When nodes are alive: conditions are simplified, and found for the nodes of conditionals."""

from __future__ import annotations

import itertools

import numpy as np

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


def test_conditions_that_share_terms_mean_both():
    """Conjunctions against the truth table, of conditions that agree in no, some and all of their terms."""
    random = np.random.default_rng(0)
    for _ in range(60):
        a, b = (_random_condition(random) for _ in range(2))
        shared = _random_condition(random)
        for x, y in ((a, b), (join(a, shared), join(b, shared)), (a, a)):
            found = conjunction(x, y)
            for values in itertools.product((False, True), repeat=4):
                assert _holds(found, values) == (_holds(x, values) and _holds(y, values))
            assert not any(term < other for term in found for other in found)


def _random_condition(random):
    """A join of three conjunctions over the predicates 0 to 3."""
    condition = FALSE
    for _ in range(3):
        term = TRUE
        for predicate in random.choice(4, random.integers(1, 4), replace=False):
            term = conjunction(term, literal(int(predicate), bool(random.integers(2))))
        condition = join(condition, term)
    return condition


def _holds(condition, values):
    return any(all(values[predicate] == wanted for predicate, wanted in term) for term in condition)


def test_large_conditions_that_agree_stay_as_they_are():
    many = frozenset(frozenset([(f"a{i}", True), (f"b{j}", True)]) for i in range(30) for j in range(30))
    assert conjunction(many, many | {frozenset([("c", True)])}) == many


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
