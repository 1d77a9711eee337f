"""The graph where a region became one node, before and after."""

from __future__ import annotations

import numpy as np

import flowstone as tf
from flowstone.framework import flags
from three_ways import programs


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
