"""Conditionals of one device as blocks of code: steps run only the taken branch."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.ops.control.control_flow import merge, switch
from flowstone.runtime.code.conditional_blocks import truth

pytestmark = pytest.mark.usefixtures("graph")


def test_a_constant_predicate_decides_before_the_step():
    x = tf.placeholder(tf.float32, [])
    y = tf.cond(tf.constant(False), lambda: tf.exp(x), lambda: tf.sin(x))
    session = tf.Session()
    code = session.explain(y, [x]).partition("def segment")[2]
    assert "exp(" not in code and "if" not in code
    assert session.run(y, {x: 1.0}) == pytest.approx(np.sin(1.0))


def test_only_the_taken_branch_has_effects():
    p = tf.placeholder(tf.bool, [])
    calls = []

    def note(word):
        return tf.py_func(lambda: calls.append(word) or np.int32(len(word)), [], tf.int32)

    y = tf.cond(p, lambda: note("yes"), lambda: note("no"))
    session = tf.Session()
    assert session.run(y, {p: True}) == 3 and session.run(y, {p: False}) == 2
    assert calls == ["yes", "no"]


def test_constants_and_constant_expressions_of_branches_are_chosen():
    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.constant(1.0) + tf.constant(2.0), lambda: tf.constant(5.0))
    z = tf.cond(p, lambda: [tf.constant(1), tf.constant(7)], lambda: [tf.constant(2), tf.constant(7)])
    session = tf.Session()
    assert session.run([y, *z], {p: True}) == [3.0, 1, 7]
    assert session.run([y, *z], {p: False}) == [5.0, 2, 7]


def test_equal_values_of_both_branches_may_share_a_node():
    x, p = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.exp(x) * 2.0, lambda: tf.exp(x) * 3.0)
    session = tf.Session()
    for taken, factor in ((True, 2), (False, 3)):
        np.testing.assert_allclose(session.run(y, {x: [0, 1], p: taken}), factor * np.exp([0, 1]), rtol=1e-6)


def test_hand_built_switch_and_merge():
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [2])
    on_false, on_true = switch(x, p)
    y, index = merge([on_true * 2.0, on_false])
    session = tf.Session()
    np.testing.assert_array_equal(session.run(y, {p: True, x: [1, 2]}), [2, 4])
    np.testing.assert_array_equal(session.run(y, {p: False, x: [1, 2]}), [1, 2])
    assert session.run(index, {p: True, x: [1, 2]}) == 0 and session.run(index, {p: False, x: [1, 2]}) == 1


def test_fetching_a_dead_value_is_an_error_and_leaves_the_session_usable():
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
    on_false, _ = switch(x, p)
    session = tf.Session()
    with pytest.raises(tf.errors.InvalidArgumentError, match="Retval does not have value"):
        session.run(on_false, {p: True, x: 1.0})
    with pytest.raises(tf.errors.InvalidArgumentError, match="Retval does not have value"):
        session.run(tf.identity(on_false), {p: True, x: 1.0})
    assert session.run(on_false, {p: False, x: 1.0}) == 1.0


def test_a_merge_of_dead_values_is_dead_and_impossible_conditions_are_never_run():
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
    on_false, on_true = switch(x, p)
    never = on_false + on_true
    y, _ = merge([never, on_true])
    session = tf.Session()
    assert session.run(y, {p: True, x: 3.0}) == 3.0
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(y, {p: False, x: 3.0})


def test_several_switches_on_one_predicate_agree():
    p = tf.placeholder(tf.bool, [])
    values = [tf.placeholder(tf.float32, []) for _ in range(3)]
    pairs = [switch(value, p) for value in values]
    y, _ = merge([pairs[0][0] - pairs[1][0], pairs[1][1] * pairs[2][1]])
    session = tf.Session()
    feeds = dict(zip(values, (2.0, 3.0, 4.0)))
    assert session.run(y, {**feeds, p: True}) == 12.0 and session.run(y, {**feeds, p: False}) == -1.0


def test_control_edges_carry_death():
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
    on_false, on_true = switch(x, p)
    pivot = tf.identity(on_true)
    with tf.control_dependencies([pivot]):
        one = tf.constant(1.0)
    y, _ = merge([one, on_false])
    session = tf.Session()
    assert session.run(y, {p: True, x: 9.0}) == 1.0 and session.run(y, {p: False, x: 9.0}) == 9.0


@pytest.mark.parametrize("count", [1, 2, 100])
def test_chains(count):
    x = tf.placeholder(tf.float32, [])
    y = x
    for _ in range(count):
        y = tf.cond(y > 0.0, lambda y=y: y - 2.0, lambda y=y: y + 5.0)
    expected = 7.0
    for _ in range(count):
        expected = expected - 2.0 if expected > 0 else expected + 5.0
    (gradient,) = tf.gradients(y, x)
    assert tf.Session().run([y, gradient], {x: 7.0}) == [expected, 1.0]


@pytest.mark.parametrize("depth", [2, 59, 61, 120])
def test_deep_nesting(depth):
    x, predicates = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, [depth])
    parts = tf.unstack(predicates)

    def build(i):
        return x * 2.0 if i == depth else tf.cond(parts[i], lambda: build(i + 1) + 1.0, lambda: x * float(i))

    y = build(0)
    session = tf.Session()
    choices = np.ones(depth, bool)
    assert session.run(y, {x: 3.0, predicates: choices}) == 6.0 + depth
    choices[depth // 2 :] = False
    assert session.run(y, {x: 3.0, predicates: choices}) == 3.0 * (depth // 2) + depth // 2


@pytest.mark.by_aten
def test_released_values_on_both_branches():
    x, p = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.exp(tf.sin(x)), lambda: tf.cos(x))
    z = tf.exp(y) + y
    session = tf.Session()
    text = session.explain(z, [x, p])
    for taken in (True, False, True):
        inner = np.exp(np.sin([1, 2])) if taken else np.cos([1, 2])
        np.testing.assert_allclose(session.run(z, {x: [1, 2], p: taken}), np.exp(inner) + inner, rtol=1e-6)
    assert text.count("del ") >= 4


def test_imported_graphs_branch(graph):
    x, p = tf.placeholder(tf.float32, [], name="x"), tf.placeholder(tf.bool, [], name="p")
    tf.identity(tf.cond(p, lambda: x * 2.0, lambda: tf.constant(3.0)), name="y")
    definition = graph.as_graph_def()
    with tf.Graph().as_default():
        from flowstone.framework.graphs.import_graph import import_graph_def

        x, p, y = import_graph_def(definition, return_elements=["x:0", "p:0", "y:0"], name="")
        (gradient,) = tf.gradients(y, x)
        session = tf.Session()
        assert session.run([y, gradient], {x: 4.0, p: True}) == [8.0, 2.0]
        assert session.run([y, gradient], {x: 4.0, p: False}) == [3.0, 0.0]


@pytest.mark.parametrize("kind", [False, True])
def test_updates_on_the_taken_branch_only(kind):
    p = tf.placeholder(tf.bool, [])
    v = tf.Variable([1.0, 2.0], use_resource=kind)
    update = tf.cond(p, lambda: tf.assign_add(v, [10.0, 10.0]), lambda: v.read_value())
    session = tf.Session()
    session.run(v.initializer)
    np.testing.assert_array_equal(session.run(update, {p: False}), [1, 2])
    np.testing.assert_array_equal(session.run(update, {p: True}), [11, 12])
    np.testing.assert_array_equal(session.run(v), [11, 12])


def test_a_predicate_is_read_when_its_node_runs():
    v = tf.Variable(True, use_resource=True)
    with tf.control_dependencies([v.assign(False)]):
        after = v.read_value()
    y = tf.cond(after, lambda: tf.constant(1), lambda: tf.constant(2))
    session = tf.Session()
    session.run(v.initializer)
    assert session.run(y) == 2


@pytest.mark.parametrize("value", [[True], [True, False], [], [[False]]])
def test_a_predicate_that_is_no_scalar_fails_in_the_step(value):
    p, x = tf.placeholder(tf.bool), tf.placeholder(tf.float32)
    known = tf.placeholder_with_default(tf.constant(value, tf.bool), None)
    session = tf.Session()
    for chosen in (p, known):
        y = tf.cond(chosen, lambda: x * 2.0, lambda: tf.exp(x))
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be a scalar"):
            session.run(y, {x: 1.0, p: np.array(value, bool)})
    assert session.run(y, {x: 1.0, known: True}) == 2.0


@pytest.mark.parametrize("shape", [[1], [0], [1, 1], [2]])
def test_only_a_scalar_is_a_predicate(shape: list[int]) -> None:
    words = str(shape).replace(" ", "")
    with pytest.raises(tf.errors.InvalidArgumentError, match=re.escape(f"it has shape {words}")):
        truth(torch.ones(shape, dtype=torch.bool))
    assert truth(torch.tensor(True)) and not truth(torch.tensor(False)) and truth(True)
