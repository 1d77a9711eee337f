"""The graph where a region became one node, before and after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from three_ways import assert_equal_three_ways, programs


def test_the_graph_of_a_branch_before_and_after() -> None:
    x = tf.placeholder(tf.float32, [3], name="x")
    p = tf.placeholder(tf.bool, [], name="p")
    y = tf.cond(p, lambda: x * 2.0, lambda: x + 1.0, name="c") - x
    _, text, log = programs([y], [x, p])
    assert text.splitlines() == [
        "%0 = _Arg() index=0 : float32[3]  # x",
        "%1 = _Arg() index=1 : bool[]  # p",
        "%2 = _Program(%1, %0) Tout=[tf.float32] operations='Mul+AddV2+Set+Set+Sub' : float32[3]  # sub",
        "return %2",
    ]
    assert log == [("join_programs", "sub", "12 nodes, 0 loops and 1 merges of branches as machine code")]


def _path_gradients() -> list[np.ndarray]:
    """A conditional random field's normaliser, with its gradients: both loops take one constant's values."""
    with tf.Graph().as_default(), tf.Session() as session:
        random = np.random.RandomState(0)
        scale = tf.Variable(np.float32(1.5))
        moves = tf.Variable(random.randn(9, 9).astype(np.float32))
        scores = tf.placeholder(tf.float32, [None, 25, 9])
        lengths = tf.placeholder(tf.int32, [None])
        scaled = tf.transpose(scores * scale, [1, 0, 2])
        mask = tf.transpose(tf.sequence_mask(lengths, 25, tf.float32))

        def step(i: tf.Tensor, sums: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            new = tf.reduce_logsumexp(sums[:, :, None] + moves[None], 1) + scaled[i]
            return i + 1, mask[i][:, None] * new + (1 - mask[i][:, None]) * sums

        _, last = tf.while_loop(lambda i, _: i < 25, step, [tf.constant(1), scaled[0]])
        loss = tf.reduce_mean(tf.reduce_logsumexp(last, 1))
        session.run(tf.global_variables_initializer())
        return session.run(
            [loss, *tf.gradients(loss, [moves, scale])],
            {scores: random.randn(16, 25, 9), lengths: np.arange(8, 24)},
        )


def test_who_waits_for_a_constant_does_not_wait_for_the_program_that_takes_it_in() -> None:
    by_code = _path_gradients()
    with flags.without_machine_code():
        by_nodes = _path_gradients()
    for some, others in zip(by_code, by_nodes, strict=True):
        np.testing.assert_allclose(some, others, rtol=1e-5, atol=1e-6)


def averaged(loss: Any) -> list[tf.Operation]:
    return [tf.train.ExponentialMovingAverage(0.9).apply([loss])]


def normalised(loss: Any) -> list[tf.Operation]:
    return tf.get_collection(tf.GraphKeys.UPDATE_OPS)


def recurrent_loss() -> tuple[Any, dict[Any, Any]]:
    tf.set_random_seed(1)
    x = tf.placeholder(tf.float32, [3, 4, 5])
    h = tf.layers.batch_normalization(x, training=True)
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(6), h, dtype=tf.float32)
    last = tf.layers.batch_normalization(outputs[:, -1], training=True)
    feed = {x: np.random.default_rng(1).standard_normal([3, 4, 5]).astype("f")}
    return tf.reduce_mean(tf.square(last - 1.0)), feed


@pytest.mark.parametrize("waited_for", [averaged, normalised])
def test_gradients_that_wait_for_what_they_cannot_tell(
    waited_for: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loops of a recurrent network and of its gradients are one program, which reads old averages."""
    with tf.Graph().as_default():
        loss, feed = recurrent_loss()
        with tf.control_dependencies(waited_for(loss)):
            train = tf.train.AdamOptimizer(0.1).minimize(loss)
        assert_equal_three_ways(monkeypatch, [train, loss], feed, tf.global_variables_initializer())


def test_a_check_of_a_constant_that_a_program_has_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient of a check is checked: here it is one."""
    with tf.Graph().as_default():
        loss, feed = recurrent_loss()
        loss = tf.check_numerics(loss, "no number")
        train = tf.train.AdamOptimizer(0.1).minimize(loss)
        assert_equal_three_ways(monkeypatch, [train, loss], feed, tf.global_variables_initializer())
