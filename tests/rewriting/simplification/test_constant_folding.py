"""What is computed once a plan, and what ops' own identities replace."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework.declarations.operation import F
from flowstone.rewriting.simplification.constant_folding import LARGEST_CONSTANT_BYTES, LARGEST_PRODUCT_BYTES


def folded(fetches, feeds=()):
    return ops(text(fetches, feeds, "fold_constants", "remove_unneeded"))


def test_what_takes_only_constants_is_one(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [2])
    y = x * (tf.exp(tf.constant([1.0, 2.0])) + tf.constant(3.0))
    assert folded([y], [x]) == ["_Arg", "Const", "Mul"]
    agree(monkeypatch, [y], {x: [1.0, 5.0]}, "fold_constants", fires=2)


@pytest.mark.parametrize("is_more", [False, True])
def test_a_convolution_of_constants_may_be_larger(is_more: bool) -> None:
    x = tf.placeholder(tf.float32, [])
    size = 2 * LARGEST_CONSTANT_BYTES // 4 if not is_more else LARGEST_PRODUCT_BYTES // 4 + 16
    images = tf.constant(np.ones([1, 1, size // 16, 1], np.float32))
    filters = tf.constant(np.ones([1, 1, 1, 16], np.float32))
    y = tf.nn.relu(tf.nn.conv2d(images, filters, [1, 1, 1, 1], "SAME"))
    assert ("Conv2D" in folded([tf.reduce_sum(y) + x], [x])) == is_more


def test_a_static_shape_is_known_without_its_input() -> None:
    x = tf.placeholder(tf.float32, [2, 3])
    assert folded([tf.shape(x)], [x])[1:] == ["Const"]
    unknown = tf.placeholder(tf.float32, [None, 3])
    assert folded([tf.shape(unknown)], [unknown])[1:] == ["Shape"]


def test_a_default_that_is_not_fed_is_known() -> None:
    x = tf.placeholder_with_default(tf.constant(2.0), [])
    assert folded([x + 1.0]) == ["Const"]
    assert folded([x + 1.0], [x]) == ["_Arg", "Const", "AddV2"]


@pytest.mark.parametrize(("elements", "kept"), [(0, False), (1, True)])
def test_a_plan_does_not_hold_large_values(elements, kept) -> None:
    size = LARGEST_CONSTANT_BYTES // 4 + elements
    assert ("Fill" in folded([tf.fill([size], 1.0)])) is kept


def test_random_numbers_and_variables_are_the_steps() -> None:
    v = tf.Variable([1.0])
    assert "RandomUniform" in folded([tf.random_uniform([2])])
    assert "Exp" in folded([tf.exp(v)])


def test_an_error_is_left_to_the_step() -> None:
    y = tf.constant(1) // tf.constant(0)
    assert "FloorDiv" in folded([y])
    with tf.Session() as s, pytest.raises(tf.errors.InvalidArgumentError, match="floordiv"):
        s.run(y)


def test_constants_wait_for_what_their_inputs_waited_for() -> None:
    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([tf.sin(x)]):
        one = tf.constant(1.0)
    lines = text([tf.exp(one)], [x], "fold_constants", "remove_unneeded")
    assert "Exp" not in ops(lines) and "^" in lines[-2]


IDENTITIES = {
    "sum": lambda x: x + 0.0,
    "product": lambda x: x * 1.0,
    "identity": tf.identity,
    "transpose": lambda x: tf.transpose(x, [0, 1]),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_identities(monkeypatch, name) -> None:
    x = tf.placeholder(tf.float32, [2, 3])
    y = tf.exp(IDENTITIES[name](x))
    assert ops(text([y], [x], "apply_identities", "remove_unneeded")) == ["_Arg", "Exp"]
    agree(monkeypatch, [y], {x: np.ones([2, 3])}, "apply_identities", fires=1)


def test_a_scalar_that_changes_nothing_goes_whatever_the_shape() -> None:
    x = tf.placeholder(tf.float32)
    y = tf.exp((0.0 + x) * 1.0 / 1.0)
    assert ops(text([y], [x], "apply_identities", "remove_unneeded")) == ["_Arg", "Exp"]
    numbers = tf.random_uniform(tf.shape(x))
    found = ops(text([numbers], [x], "fold_constants", "apply_identities", "remove_unneeded"))
    assert found == ["_Arg", "Shape", "RandomUniform"]


def test_an_identity_that_broadcasts_stays() -> None:
    x = tf.placeholder(tf.float32, [3])
    assert "AddV2" in ops(text([x + tf.zeros([2, 3])], [x], "fold_constants", "apply_identities"))


CHOICES = {
    "and": lambda b: tf.where(b & np.ones([2, 3], bool), [[1.0] * 3] * 2, [[2.0] * 3] * 2),
    "or": lambda b: tf.where(np.zeros([3], bool) | b, [[1.0] * 3] * 2, [[2.0] * 3] * 2),
    "first": lambda b: tf.where(np.ones([2, 3], bool), tf.cast(b, tf.float32), [[2.0] * 3] * 2),
    "second": lambda b: tf.where(np.zeros([2], bool), [[2.0] * 3] * 2, tf.cast(b, tf.float32)),
}


@pytest.mark.parametrize("name", CHOICES)
def test_truths_that_are_the_same_everywhere(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    b = tf.placeholder(tf.bool, [2, 3])
    y = tf.exp(CHOICES[name](b))
    lines = ops(text([y], [b], "fold_constants", "apply_identities", "remove_unneeded"))
    assert not {"LogicalAnd", "LogicalOr"} & set(lines)
    assert ("Select" in lines) == (name in ("and", "or"))
    agree(monkeypatch, [y], {b: [[True, False, True]] * 2}, "apply_identities", fires=1)


def test_truths_that_broadcast_stay() -> None:
    b = tf.placeholder(tf.bool, [3])
    assert "LogicalAnd" in ops(text([b & np.ones([2, 3], bool)], [b], "apply_identities"))
    mixed = tf.where(np.array([True, False, True]), tf.zeros([3]), tf.cast(b, tf.float32))
    assert "Select" in ops(text([mixed], [b], "apply_identities"))


@pytest.mark.parametrize(("reduce", "expected"), [(tf.reduce_sum, 1536), (tf.reduce_mean, 3)])
def test_reductions_of_one_number_need_no_elements(monkeypatch, reduce, expected) -> None:
    """Of what is too large to hold, and what follows from them."""
    x = tf.placeholder(tf.float32, [512, 512])
    total = reduce(3.0 * tf.ones_like(x) * 1.0, 1)
    y = tf.reduce_sum(tf.exp(x)) / tf.reduce_max(total + 1.0)
    lines = ops(text([y], [x], "fold_constants", "apply_identities", "remove_unneeded"))
    assert lines == ["_Arg", "Exp", "Const", "Sum", "Const", "RealDiv"]
    feed = {x: np.zeros([512, 512], "f")}
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(total, feed), np.full(512, expected))
    agree(monkeypatch, [y], feed, "apply_identities", fires=4)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_reductions_of_numbers_that_are_not_finite_are_the_steps(value) -> None:
    total = tf.reduce_sum(tf.fill([512, 512], np.float32(value)))
    assert "Sum" in ops(text([total], [], "fold_constants", "apply_identities"))


def _in_a_loop(effect, times=3) -> None:
    """Runs `effect(x)` in a loop, where x has a shape that only the feed tells."""
    x = tf.placeholder(tf.float32, [None, 2])
    _, y = tf.while_loop(lambda i, y: i < times, lambda i, y: (i + 1, effect(y)), [0, x])
    with tf.Session() as s:
        s.run(y, {x: np.zeros([3, 2], np.float32)})


@pytest.mark.parametrize("through", [lambda shape: shape, lambda shape: tf.fill(shape * 200, 1.0)])
def test_an_effect_on_a_loops_known_shape_stays_in_the_loop(through) -> None:
    seen = []

    def effect(y: tf.Tensor) -> tf.Tensor:
        told = tf.py_func(
            lambda value: seen.append(value) or np.float32(0), [through(tf.shape(y))], tf.float32
        )
        with tf.control_dependencies([told]):
            return tf.identity(y)

    _in_a_loop(effect)
    assert len(seen) == 3


def test_random_numbers_of_a_loops_known_shape_are_drawn_in_every_iteration() -> None:
    drawn = []

    def effect(y: tf.Tensor) -> tf.Tensor:
        noise = tf.random_uniform(tf.shape(y))
        seen = tf.py_func(lambda value: drawn.append(value.tobytes()) or value, [noise], tf.float32)
        return y + tf.reshape(seen, [-1, 2])

    _in_a_loop(effect)
    assert len(set(drawn)) == len(drawn) == 3


def test_dropout_in_a_loop_with_a_rate_of_the_step() -> None:
    x = tf.placeholder(tf.float32, [None, 64])
    keep = tf.placeholder_with_default(0.5, [])
    _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.nn.dropout(y, keep)), [0, x])
    slope = tf.gradients(y, x)[0]
    with tf.Session() as s:
        value, gradient = s.run([y, slope], {x: np.ones([64, 64], np.float32)})
    # One mask for all iterations would leave half of them.
    assert 0.06 < (value != 0).mean() < 0.2
    np.testing.assert_array_equal(value, gradient)


def test_what_a_loop_is_given_after_an_effect_comes_into_the_loop() -> None:
    """As in the body of a function whose call waits; for the lock, the loop runs unit by unit."""
    numbers, resource = [tf.constant([n], tf.int64) for n in (7, 0, 3)], F.MutexV2()
    with tf.control_dependencies([tf.py_func(lambda: np.int64(0), [], tf.int64)]):
        given, start, limit = [
            F.Enter(x, frame_name="loop", is_constant=x is not numbers[1]) for x in numbers
        ]
        mutex = F.Enter(resource, frame_name="loop", is_constant=True)
    i = F.Merge([start, start])[0]
    stays, goes = F.Switch(i, F.LoopCond(tf.reduce_all(i < limit)))
    with tf.control_dependencies([tf.identity(goes)]):
        lock = F.MutexLock(mutex)
    with tf.control_dependencies([F.ConsumeMutexLock(lock)]):
        turn = tf.identity(goes)
    i.op._update_input(1, F.NextIteration(turn + given - tf.constant([6], tf.int64)))
    with tf.Session() as session:
        assert session.run(F.Exit(stays)).tolist() == [3]
