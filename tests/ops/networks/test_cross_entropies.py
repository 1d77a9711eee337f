"""Cross entropies over many classes: losses and gradients, with and without the logits' memory for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = [pytest.mark.both_ways, pytest.mark.usefixtures("graph")]
RNG = np.random.default_rng(3)
ROWS, CLASSES = 7, 50
LABELS = RNG.integers(0, CLASSES, ROWS)


@pytest.fixture(autouse=True)
def small_is_large(set_profile: Any) -> None:
    """Memory counts for the few logits of these tests, too."""
    set_profile(core_cache=1)


def expected(logits: Any, labels: Any) -> tuple[Any, Any]:
    """Losses and gradients of their sum, in double precision; `labels` are distributions."""
    z = np.float64(logits)
    z = z - z.max(1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(1, keepdims=True))
    return -np.where(labels > 0, labels * log_p, 0).sum(1), np.exp(log_p) * labels.sum(
        1, keepdims=True
    ) - labels


def program(sparse: bool, dtype: Any, keeps_logits: bool) -> tuple[list[Any], Any, Any]:
    """Fetches (losses, their gradient, perhaps the logits), the fed logits and the labels.

    The logits of the losses are made in the step, so their memory is its own.
    """
    x = tf.placeholder(dtype, [None, CLASSES])
    logits = -x
    if sparse:
        y = tf.placeholder(tf.int32, [None])
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    else:
        y = tf.placeholder(dtype, [None, CLASSES])
        loss = tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits)
    fetches = [loss, tf.gradients(loss, logits)[0]]
    return fetches + [logits] * keeps_logits, x, y


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("keeps_logits", [True, False])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_losses_and_gradients(sparse: bool, keeps_logits: bool, dtype: Any) -> None:
    fetches, x, y = program(sparse, dtype, keeps_logits)
    z = RNG.normal(size=[ROWS, CLASSES]).astype(dtype.as_numpy_dtype) * 5
    onehot = np.eye(CLASSES)[LABELS]
    labels = onehot if sparse else np.float64(RNG.dirichlet(np.ones(CLASSES), ROWS))
    with tf.Session() as session:
        feed = {x: -z, y: LABELS if sparse else labels}
        loss, gradient, *logits = session.run(fetches, feed)
    tolerance = 1e-5 if dtype == tf.float32 else 1e-12
    for value, right in zip((loss, gradient), expected(z, labels)):
        np.testing.assert_allclose(value, right, rtol=tolerance, atol=tolerance)
    for value in logits:
        np.testing.assert_array_equal(value, z)


@pytest.mark.by_aten
@pytest.mark.parametrize("sparse", [True, False])
def test_the_logits_memory_is_used_where_nobody_else_wants_them(sparse: bool) -> None:
    names = []
    for keeps_logits in (False, True):
        fetches, x, y = program(sparse, tf.float32, keeps_logits)
        feed = {x: np.zeros([ROWS, CLASSES], "f"), y: LABELS if sparse else np.zeros([ROWS, CLASSES], "f")}
        with tf.Session() as session:
            names.append("in_place" in session.explain(fetches, feed).split("def segment")[1])
    assert names == [True, False]


@pytest.mark.by_aten
def test_few_logits_keep_their_memory(set_profile: Any) -> None:
    set_profile(core_cache=4 << 20)
    fetches, x, y = program(True, tf.float32, False)
    feed = {x: np.zeros([ROWS, CLASSES], "f"), y: LABELS}
    with tf.Session() as session:
        assert "in_place" not in session.explain(fetches, feed).split("def segment")[1]


@pytest.mark.parametrize("keeps_logits", [True, False])
@pytest.mark.parametrize("shift", [0, 1e4])
def test_labels_of_vanishing_probability_keep_their_losses(keeps_logits: bool, shift: float) -> None:
    fetches, x, y = program(True, tf.float32, keeps_logits)
    z = np.zeros([ROWS, CLASSES], "f") + shift
    for row, depth in enumerate((0, 50, 81, 95, 104, 2000, np.inf)):
        z[row, LABELS[row]] -= depth
    with tf.Session() as session:
        loss, gradient = session.run(fetches, {x: -z, y: LABELS})[:2]
    with np.errstate(invalid="ignore"):
        right, right_gradient = expected(z, np.eye(CLASSES)[LABELS])
    np.testing.assert_allclose(loss, right, rtol=1e-5)
    np.testing.assert_allclose(gradient, right_gradient, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("keeps_logits", [True, False])
def test_a_row_that_is_not_a_number_leaves_the_others(keeps_logits: bool) -> None:
    fetches, x, y = program(True, tf.float32, keeps_logits)
    z = RNG.normal(size=[ROWS, CLASSES]).astype("f")
    z[1, 4], z[2, LABELS[2]] = np.nan, -200
    with tf.Session() as session:
        loss, gradient = session.run(fetches, {x: -z, y: LABELS})[:2]
    assert np.isnan(loss[1]) and np.isnan(gradient[1]).all()
    others = [0, *range(2, ROWS)]
    right, right_gradient = expected(z[others], np.eye(CLASSES)[LABELS[others]])
    np.testing.assert_allclose(loss[others], right, rtol=1e-5)
    np.testing.assert_allclose(gradient[others], right_gradient, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("keeps_logits", [True, False])
@pytest.mark.parametrize("wrong", [-1, CLASSES])
def test_labels_out_of_range_are_refused(keeps_logits: bool, wrong: int) -> None:
    fetches, x, y = program(True, tf.float32, keeps_logits)
    labels = LABELS.copy()
    labels[3] = wrong
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=f"value of {wrong} "):
        session.run(fetches, {x: np.zeros([ROWS, CLASSES], "f"), y: labels})


def test_labels_that_are_the_logits_reshaped() -> None:
    x = tf.placeholder(tf.float32, [ROWS, CLASSES])
    logits = x * 2.0
    loss = tf.nn.softmax_cross_entropy_with_logits(labels=tf.reshape(logits, [ROWS, CLASSES]), logits=logits)
    z = RNG.random([ROWS, CLASSES]).astype("f")
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(loss, {x: z}), expected(2 * z, 2 * z)[0], rtol=1e-5)


def test_no_rows_have_no_losses() -> None:
    x, y = tf.placeholder(tf.float32, [None, CLASSES]), tf.placeholder(tf.int64, [None])
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x + 1.0)
    with tf.Session() as session:
        results = session.run([loss, tf.gradients(loss, x)[0]], {x: np.zeros([0, CLASSES]), y: []})
    assert [value.shape for value in results] == [(0,), (0, CLASSES)]


def test_logits_whose_memory_is_transposed() -> None:
    x, y = tf.placeholder(tf.float32, [CLASSES, ROWS]), tf.placeholder(tf.int64, [ROWS])
    scaled = x * 3.0
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tf.transpose(scaled))
    z = RNG.normal(size=[CLASSES, ROWS]).astype("f")
    with tf.Session() as session:
        loss, gradient = session.run([loss, tf.gradients(loss, x)[0]], {x: z, y: LABELS})
    right, right_gradient = expected(3 * z.T, np.eye(CLASSES)[LABELS])
    np.testing.assert_allclose(loss, right, rtol=1e-5)
    np.testing.assert_allclose(gradient, 3 * right_gradient.T, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, -2, 2, -1])
@pytest.mark.parametrize("shape", [[2, 3, 4], None])
def test_classes_along_any_dimension(axis: int, shape: list[int] | None) -> None:
    """Also where the rank is not known before the step."""
    values = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    labels = np.abs(np.roll(values, 1, axis))
    x, y = tf.placeholder(tf.float32, shape), tf.placeholder(tf.float32, shape)
    cost = tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=x, axis=axis)
    logarithms = values - np.log(np.exp(values).sum(axis, keepdims=True))
    with tf.Session() as session:
        found = session.run(cost, {x: values, y: labels})
    np.testing.assert_allclose(found, -(labels * logarithms).sum(axis), rtol=2e-5)


@pytest.mark.parametrize("axis", [3, -4])
def test_classes_along_no_dimension(axis: int) -> None:
    x, unknown = tf.zeros([2, 3, 4]), tf.placeholder(tf.float32)
    with pytest.raises(ValueError, match="must be in the range"):
        tf.nn.softmax_cross_entropy_with_logits_v2(labels=x, logits=x, axis=axis)
    cost = tf.nn.softmax_cross_entropy_with_logits_v2(labels=unknown, logits=unknown, axis=axis)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(cost, {unknown: np.zeros((2, 3, 4))})
