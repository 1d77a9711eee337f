"""Models over lists of inputs against TensorFlow 1.15's names and values, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from tests.contrib import recurrent_programs
from tests.contrib.legacy_seq2seq.list_programs import PROGRAMS

import flowstone as tf

legacy = tf.contrib.legacy_seq2seq


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_tensorflow(name: str) -> None:
    recurrent_programs.check(tf, "legacy_seq2seq", name, PROGRAMS[name])


def test_decoders_feed_their_own_outputs() -> None:
    cell = tf.contrib.rnn.BasicRNNCell(3)
    inputs = [tf.ones([1, 3]), tf.zeros([1, 3]), tf.zeros([1, 3])]
    outputs, _ = legacy.rnn_decoder(inputs, tf.zeros([1, 3]), cell, loop_function=lambda last, i: last + i)
    plain, _ = legacy.rnn_decoder(
        [inputs[0], outputs[0] + 1, outputs[1] + 2],
        tf.zeros([1, 3]),
        cell,
        scope=tf.VariableScope(True, "rnn_decoder"),
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(*session.run([outputs, plain]), rtol=1e-6)


def test_losses_of_examples_and_of_the_batch() -> None:
    logits = [tf.constant([[0.0, 0.0], [0.0, 10.0]])] * 2
    targets, weights = [tf.constant([0, 1])] * 2, [tf.constant([1.0, 1.0]), tf.constant([1.0, 0.0])]
    found = [
        legacy.sequence_loss_by_example(logits, targets, weights),
        legacy.sequence_loss_by_example(logits, targets, weights, average_across_timesteps=False),
        legacy.sequence_loss(logits, targets, weights),
        legacy.sequence_loss(
            logits, targets, weights, softmax_loss_function=lambda labels, logits: tf.cast(labels, tf.float32)
        ),
    ]
    with tf.Session() as session:
        got = session.run(found)
    np.testing.assert_allclose(got[0], [np.log(2), 0], atol=1e-4)
    np.testing.assert_allclose(got[1], [2 * np.log(2), 0], atol=1e-4)
    np.testing.assert_allclose(got[2], np.log(2) / 2, atol=1e-4)
    np.testing.assert_allclose(got[3], 0.5, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: legacy.sequence_loss_by_example([1], [], []), "Lengths"),
        (lambda: legacy.model_with_buckets([1], [1], [1], [1], [(2, 2)], None), "encoder_inputs"),
        (
            lambda: legacy.attention_decoder([], 0, tf.zeros([1, 2, 3]), tf.contrib.rnn.GRUCell(2)),
            "at least 1 input",
        ),
        (
            lambda: legacy.attention_decoder(
                [1], 0, tf.zeros([1, 2, 3]), tf.contrib.rnn.GRUCell(2), num_heads=0
            ),
            "less than 1 heads",
        ),
        (
            lambda: legacy.embedding_attention_decoder(
                [tf.constant([1])],
                0,
                tf.zeros([1, 2, 3]),
                tf.contrib.rnn.GRUCell(2),
                5,
                2,
                output_projection=(tf.zeros([2, 3]), tf.zeros([3])),
            ),
            "compatible",
        ),
    ],
)
def test_refuses(make, words: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=words):
        make()
