"""Decoders, attention and beam search against TensorFlow 1.15's names and values, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from tests.contrib import recurrent_programs
from tests.contrib.seq2seq.decoding_programs import PROGRAMS

import flowstone as tf

seq2seq = tf.contrib.seq2seq


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_tensorflow(name: str) -> None:
    recurrent_programs.check(tf, "seq2seq", name, PROGRAMS[name])


def test_sampled_ids_have_their_probabilities_and_end_at_the_end_token() -> None:
    table = tf.constant(np.eye(4, dtype="f"))
    helper = seq2seq.SampleEmbeddingHelper(table, tf.fill([400], 1), 3, softmax_temperature=0.5, seed=1)
    finished, inputs = helper.initialize()
    logits = tf.log(tf.constant([[0.1, 0.4, 0.2, 0.3]] * 400))
    ids = helper.sample(time=0, outputs=logits, state=())
    next_finished, next_inputs, _ = helper.next_inputs(0, logits, (), ids)
    with tf.Session() as session:
        got = session.run([finished, inputs, ids, next_finished, next_inputs])
    assert not got[0].any()
    assert (got[1] == np.eye(4)[1]).all()
    shares = np.bincount(got[2], minlength=4) / 400
    np.testing.assert_allclose(shares, np.array([1, 16, 4, 9]) / 30, atol=0.08)  # squares: temperature 1/2
    assert (got[3] == (got[2] == 3)).all()
    assert (got[4] == np.eye(4)[got[2]]).all()


def test_scheduled_embeddings_replace_some_inputs() -> None:
    inputs, table = tf.zeros([50, 2, 3]), tf.ones([4, 3])
    helper = seq2seq.ScheduledEmbeddingTrainingHelper(
        inputs, tf.fill([50], 2), table, 0.5, seed=1, scheduling_seed=2
    )
    ids = helper.sample(0, tf.zeros([50, 4]), ())
    _, following, _ = helper.next_inputs(0, tf.zeros([50, 4]), (), ids)
    with tf.Session() as session:
        drawn, read = session.run([ids, following])
    assert 10 < (drawn >= 0).sum() < 40
    assert (read == np.where(drawn >= 0, 1.0, 0.0)[:, None]).all()


def test_noise_of_monotonic_attention_changes_its_choices() -> None:
    memory = tf.ones([2, 5, 3])
    noisy = seq2seq.LuongMonotonicAttention(3, memory, sigmoid_noise=1.0, sigmoid_noise_seed=3)
    alignments, state = noisy(tf.ones([2, 3]), noisy.initial_state(2, tf.float32))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first, second = session.run(alignments), session.run(state)
    assert (first != second).any()
    assert (first.sum(1) <= 1.0001).all()


def test_an_alignment_history_of_known_batch_stays_an_array() -> None:
    cell = tf.contrib.rnn.GRUCell(4)
    decoder = seq2seq.BeamSearchDecoder(cell, tf.eye(5), tf.constant([1, 1, 1]), 2, tf.zeros([9, 4]), 3)
    array = tf.TensorArray(tf.float32, size=2, element_shape=[9, 5]).unstack(tf.zeros([2, 9, 5]))
    parents = tf.zeros([2, 3, 3], tf.int32)
    assert decoder._maybe_sort_array_beams(array, parents, tf.fill([3, 3], 2)) is array


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: seq2seq.dynamic_decode(tf), TypeError, "Decoder"),
        (lambda: seq2seq.TrainingHelper(tf.zeros([2, 3, 4]), 3), ValueError, "vector"),
        (lambda: seq2seq.GreedyEmbeddingHelper(tf.eye(3), 1, 2), ValueError, "start_tokens must be a vector"),
        (
            lambda: seq2seq.GreedyEmbeddingHelper(tf.eye(3), [1], [2]),
            ValueError,
            "end_token must be a scalar",
        ),
        (
            lambda: seq2seq.AttentionWrapper(tf.contrib.rnn.GRUCell(2), "memory"),
            TypeError,
            "AttentionMechanism",
        ),
        (lambda: seq2seq.monotonic_attention([[0.5]], [[0.5]], "fast"), ValueError, "mode"),
        (
            lambda: seq2seq.sequence_loss(tf.zeros([2, 3]), tf.zeros([2, 3]), tf.zeros([2, 3])),
            ValueError,
            "Logits",
        ),
        (lambda: seq2seq.tile_batch(tf.placeholder(tf.float32), 2), ValueError, "rank"),
    ],
)
def test_refuses(make, error: type[Exception], words: str) -> None:
    with tf.Graph().as_default(), pytest.raises(error, match=words):
        make()


def test_a_parent_that_is_no_beam_fails() -> None:
    ids = np.ones([2, 1, 2], "i")
    beams = seq2seq.gather_tree(ids, np.full([2, 1, 2], 5, "i"), [2], 3)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="parent_ids"):
        session.run(beams)


def test_another_batch_than_the_memory_fails() -> None:
    cell = seq2seq.AttentionWrapper(tf.contrib.rnn.GRUCell(2), seq2seq.LuongAttention(2, tf.zeros([2, 3, 4])))
    batch = tf.placeholder(tf.int32, [])
    state = cell.zero_state(batch, tf.float32)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="Non-matching batch"):
        session.run(state.cell_state, {batch: 3})


@pytest.mark.parametrize("scope", [None, "mine"])
def test_names_of_what_a_decoder_gives(scope: str | None) -> None:
    with tf.Graph().as_default(), tf.variable_scope("outer"):
        cell = tf.nn.rnn_cell.GRUCell(3)
        helper = seq2seq.TrainingHelper(tf.ones([2, 3, 2]), [3, 2])
        decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(2, tf.float32))
        outputs, _, lengths = seq2seq.dynamic_decode(decoder, scope=scope, unused=1)
    prefix = f"outer/{scope or 'decoder'}"
    assert outputs.rnn_output.op.name == f"{prefix}/transpose"  # as in TensorFlow 1.15
    assert lengths.op.name.startswith(f"{prefix}/while/Exit")
    assert cell.variables[0].op.name == f"{prefix}/gru_cell/gates/kernel"
