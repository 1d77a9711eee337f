"""Conditionals that are decided before the step: graph text, effects, errors, and equal results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework.declarations.operation import F

NAME = "remove_dead_branches"
VALUES = np.array([1.0, -2.0, 3.0], "f")


def argument(*dims: int) -> Any:
    return tf.placeholder(tf.float32, list(dims) or [3], name="x")


@pytest.mark.parametrize("taken", [True, False])
def test_only_the_branch_that_is_taken_stays(monkeypatch, taken) -> None:
    x = argument()
    y = tf.cond(tf.constant(taken), lambda: tf.sin(x), lambda: tf.exp(x))
    before = ops(text([y], [x], "fold_constants"))
    assert "Switch" in before and "Merge" in before and {"Sin", "Exp"} <= set(before)
    after = ops(text([y], [x], "fold_constants", NAME, "apply_identities", "remove_unneeded"))
    assert after == ["_Arg", "Sin" if taken else "Exp"]
    gradient = tf.gradients(y, x)[0]
    assert "is never alive" in agree(monkeypatch, [y, gradient], {x: VALUES}, NAME, fires=6 if taken else 7)


def test_a_default_that_is_not_fed_decides(monkeypatch) -> None:
    x = argument()
    is_training = tf.placeholder_with_default(False, [], name="is_training")
    y = tf.cond(tf.logical_not(is_training), lambda: x * 2.0, lambda: tf.exp(x))
    log = agree(monkeypatch, [y], {x: VALUES}, NAME, fires=1)
    assert "is_training: is its default, since it is not fed" in log and "Switch(" not in log
    fed = agree(monkeypatch, [y], {x: VALUES, is_training: True}, NAME, fires=0)
    assert "Switch(" in fed and "is never alive" not in fed


def test_effects_of_the_other_branch_go(monkeypatch) -> None:
    x = argument()
    v = tf.Variable([1.0, 1.0, 1.0], use_resource=True)
    y = tf.cond(tf.constant(False), lambda: v.assign_add(x).read_value(), lambda: tf.identity(x))
    with tf.control_dependencies([y]):
        after = v.read_value()
    log = agree(monkeypatch, [y, after], {x: VALUES}, NAME, fires=3, setup=tf.global_variables_initializer())
    assert "AssignAddVariableOp" not in log.split("\n\n")[1]


def test_reference_variables_pass_through(monkeypatch) -> None:
    v = tf.Variable([1.0, 1.0, 1.0], use_resource=False)
    x = argument()
    y = tf.cond(tf.constant(True), lambda: tf.assign_add(v, x), lambda: tf.assign(v, x))
    agree(monkeypatch, [y], {x: VALUES}, NAME, fires=1, setup=tf.global_variables_initializer())
    assert "RefSwitch" not in str(text([y], [x], "fold_constants", NAME))


def test_conditionals_in_conditionals(monkeypatch) -> None:
    x, p = argument(), tf.placeholder(tf.bool, [])
    known = tf.constant(True)

    def nested() -> Any:
        return tf.cond(known, lambda: tf.cond(p, lambda: tf.sin(x), lambda: x), lambda: tf.exp(x))

    y = tf.cond(p, nested, lambda: tf.cond(known, lambda: tf.cos(x), lambda: tf.tan(x)))
    gradient = tf.gradients(y, x)[0]
    for value in (True, False):
        log = agree(monkeypatch, [y, gradient], {x: VALUES, p: value}, NAME, fires=15)
    kinds = log.split("\n\n")[1]
    assert "Switch(" in kinds and "Exp(" not in kinds and "Tan(" not in kinds


def test_one_decision_decides_the_next() -> None:
    x = argument()
    inner = tf.cond(tf.constant(True), lambda: tf.constant(2), lambda: tf.size(x))
    y = tf.cond(tf.less(inner, 3), lambda: tf.sin(x), lambda: tf.exp(x))
    assert ops(text([y], [x], "fold_constants", NAME, "apply_identities", "remove_unneeded")) == [
        "_Arg", "Sin",
    ]  # fmt: skip


def test_several_cases(monkeypatch) -> None:
    x, p = argument(), tf.placeholder(tf.bool, [])
    cases = [(tf.constant(False), lambda: tf.sin(x)), (p, lambda: tf.cos(x))]
    y = tf.case(cases, default=lambda: tf.exp(x))
    for value in (True, False):
        log = agree(monkeypatch, [y], {x: VALUES, p: value}, NAME, fires=1)
        assert "Sin(" not in log.split("\n\n")[1]


def test_in_loops_what_is_drawn_is_drawn_each_time() -> None:
    known = tf.constant(True)

    def body(i: Any, a: Any) -> Any:
        drawn = tf.cond(known, lambda: tf.random_uniform([]), lambda: 0.0)
        return i + 1, tf.concat([a, [drawn]], 0)

    shapes = [tf.TensorShape([]), tf.TensorShape([None])]
    _, drawn = tf.while_loop(lambda i, _: i < 4, body, [0, tf.zeros([0])], shape_invariants=shapes)
    with tf.Session() as s:
        assert len(set(s.run(drawn).tolist())) == 4
        assert NAME in s.explain([drawn])


def test_gradients_of_loops_with_decided_conditionals(monkeypatch) -> None:
    x = argument()
    known = tf.constant(False)
    _, y = tf.while_loop(
        lambda i, _: i < 3, lambda i, a: (i + 1, tf.cond(known, lambda: a * a, lambda: tf.sin(a) * x)), [0, x]
    )
    agree(monkeypatch, [y, tf.gradients(y, x)[0]], {x: VALUES}, NAME, fires=6)


def test_which_input_came_is_known(monkeypatch) -> None:
    x, p = argument(), tf.placeholder(tf.bool, [])
    off, on = F.Switch(x, tf.constant(True))
    value, index = F.Merge([off, on])
    assert "1" in str(text([index], [x], "fold_constants", NAME)[-2])
    agree(monkeypatch, [value, index], {x: VALUES}, NAME, fires=0)
    other_off, other_on = F.Switch(x, p)
    value, index = F.Merge([off, tf.exp(other_off), tf.sin(other_on)])
    for fetches in ([value], [value, index]):
        for decided in (True, False):
            agree(monkeypatch, fetches, {x: VALUES, p: decided}, NAME, fires=0)


def test_a_fetch_that_has_no_value_is_still_an_error() -> None:
    x = argument()
    off, on = F.Switch(x, tf.constant(True))
    with tf.Session() as s:
        np.testing.assert_array_equal(s.run(on, {x: VALUES}), VALUES)
        with pytest.raises(tf.errors.InvalidArgumentError):
            s.run([off, on], {x: VALUES})


@pytest.mark.parametrize("moves", [True, False])
@pytest.mark.parametrize("as_target", [True, False])
def test_a_branch_that_changes_a_variable_is_waited_for(moves, as_target) -> None:
    """The value of the conditional is the variable's buffer, and its Merge may be what is run."""
    x = argument()
    v = tf.Variable([1.0, 1.0, 1.0], use_resource=False)
    moved = tf.cond(tf.constant(moves), lambda: tf.assign_sub(v, 0.5 * x), lambda: v)
    with tf.control_dependencies([moved.op]):
        waiting = tf.no_op()
    lines = text([], [x], "fold_constants", NAME, targets=[moved.op if as_target else waiting])
    assert ("AssignSub" in ops(lines)) == moves
    assert "Merge" not in ops(lines)
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(moved.op if as_target else waiting, {x: VALUES})
        np.testing.assert_array_equal(session.run(v), 1 - 0.5 * VALUES if moves else [1, 1, 1])
