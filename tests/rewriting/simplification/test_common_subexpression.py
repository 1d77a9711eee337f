"""Common subexpressions: which nodes become one, and which must not."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.ops.control.control_flow import merge, switch
from flowstone.rewriting.analyses.branches import TRUE, Liveness
from flowstone.rewriting.invariants import check
from flowstone.rewriting.simplification.common_subexpression import share_predicates
from flowstone.rewriting.simplification.partial_execution import prune

NAME = "merge_common_subexpressions"


def merged(fetches, feeds=()):
    return ops(text(fetches, feeds, NAME, "remove_unneeded"))


def test_equal_nodes_become_one(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [3])
    fetches = [tf.exp(tf.negative(x)) + 1.0, tf.exp(tf.negative(x)) * 2.0]
    kinds = merged(fetches, [x])
    assert kinds.count("Exp") == kinds.count("Neg") == 1
    agree(monkeypatch, fetches, {x: np.ones(3)}, NAME, fires=2)


def test_only_commutative_operands_may_be_exchanged() -> None:
    x, y = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [3])
    assert merged([x * y, y * x], [x, y]).count("Mul") == 1
    assert merged([x - y, y - x], [x, y]).count("Sub") == 2


def test_attributes_and_controls_tell_nodes_apart() -> None:
    x = tf.placeholder(tf.float32, [3, 3])
    assert merged([tf.matmul(x, x), tf.matmul(x, x, transpose_a=True)], [x]).count("MatMul") == 2
    with tf.control_dependencies([tf.sin(x)]):
        later = tf.exp(x)
    assert merged([tf.exp(x), later], [x]).count("Exp") == 2


def test_random_numbers_and_feeds_stay() -> None:
    assert merged([tf.random_normal([2]), tf.random_normal([2])]).count("RandomStandardNormal") == 2
    x, y = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [3])
    assert merged([tf.exp(x), tf.exp(y)], [x, y]) == ["_Arg", "_Arg", "Exp", "Exp"]


@pytest.mark.parametrize(("size", "left"), [(1024, 1), (1025, 2)])
def test_large_constants_are_not_compared(size, left) -> None:
    x = tf.placeholder(tf.float32, [])
    fetches = [tf.constant(np.arange(size, dtype="f")) * x for _ in range(2)]
    assert merged(fetches, [x]).count("Const") == left


def test_of_constants_the_type_and_shape_count() -> None:
    x = tf.placeholder(tf.float32, [])
    fetches = [tf.constant(np.float32([[0.0, 0.0]])) * x, tf.constant(np.float32([0.0, 0.0])) * x]
    assert merged(fetches, [x]).count("Const") == 2


@pytest.mark.parametrize("use_resource", [False, True])
def test_reads_become_one_where_nothing_changes_in_between(monkeypatch, use_resource) -> None:
    v = tf.get_variable("v", initializer=np.float32([1, 2]), use_resource=use_resource)
    first = tf.exp(v.read_value())
    with tf.control_dependencies([first]):
        change = tf.assign_add(v, [1.0, 1.0])
    with tf.control_dependencies([change]):
        last = tf.exp(v.read_value())
    assert merged([first, last]).count("Exp") == 2
    assert merged([tf.exp(v.read_value()), tf.exp(v.read_value())]).count("Exp") == 1
    agree(monkeypatch, [first, last], {}, NAME, fires=0, setup=v.initializer)


def _selected(x, number, kept):
    """One of three values of x, as preprocessing programs choose among their variants."""
    cases = [tf.sqrt(switch(x, tf.equal(number, i))[1] + kept[i]) for i in range(3)]
    return merge(cases)[0]


def test_equal_predicates_are_asked_once() -> None:
    """What one chooses and another chooses by the same number is alive together."""
    x = tf.placeholder(tf.float32, [2])
    number, kept = tf.random_uniform([], maxval=3, dtype=tf.int32, seed=4), [1.0, 2.0, 3.0]
    y = _selected(x, number, kept) + _selected(x, number, kept)
    subgraph = prune([y], [], [x])
    assert len(Liveness(subgraph).predicates) == 6
    share_predicates(subgraph)
    check(subgraph)
    liveness = Liveness(subgraph)
    assert len(liveness.predicates) == len(liveness.output(subgraph.fetches[0])) == 3
    with tf.Session() as s:
        found = s.run([y, number], {x: [1.0, 6.0]})
    np.testing.assert_allclose(found[0], 2 * np.sqrt([1 + kept[found[1]], 6 + kept[found[1]]]), rtol=1e-6)


def test_predicates_of_changing_references_stay() -> None:
    p, x = tf.Variable(True, name="p"), tf.placeholder(tf.float32, [])
    first = tf.cond(tf.logical_not(p), lambda: x + 1.0, lambda: x)
    with tf.control_dependencies([first]), tf.control_dependencies([p.assign(False)]):
        second = tf.cond(tf.logical_not(p), lambda: x + 1.0, lambda: x)
    with tf.Session() as s:
        s.run(p.initializer)
        assert s.run([first, second], {x: 1.0}) == [1.0, 2.0]


def test_ten_variants_in_a_row_are_planned() -> None:
    """Numbers drawn inside one conditional and used in an equal one: conditions do not multiply."""
    x, number = tf.placeholder(tf.float32, []), tf.random_uniform([10], seed=5)
    drawn, results = {}, []
    for _ in range(2):
        y = x
        for i in range(10):
            y = tf.cond(number[i] > 0.5, partial(tf.identity, y), partial(_with_drawn, drawn, i, y))
        results.append(y)
    subgraph = prune(results, [], [x])
    share_predicates(subgraph)
    assert [Liveness(subgraph).output(fetch) for fetch in subgraph.fetches] == [TRUE, TRUE]
    with tf.Session() as s:
        a, b = s.run(results, {x: 1.0})
        assert a == b != 1.0


def _with_drawn(drawn, i, y):
    if i not in drawn:
        drawn[i] = tf.random_uniform([], seed=i)
    return y * drawn[i]
