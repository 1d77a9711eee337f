"""Conditional random fields against TensorFlow 1.15's values, and against a search of all sequences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.contrib import recurrent_programs
from tests.contrib.crf.crf_programs import PROGRAMS, SCORES, TRANSITIONS

import flowstone as tf

crf = tf.contrib.crf


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_tensorflow(name: str) -> None:
    recurrent_programs.check(tf, "crf", name, PROGRAMS[name])


def score_of(tags: tuple[int, ...]) -> float:
    unary = sum(SCORES[0, time, tag] for time, tag in enumerate(tags))
    return float(unary + sum(TRANSITIONS[tags[i], tags[i + 1]] for i in range(4)))


def test_decoding_finds_the_best_of_all_sequences() -> None:
    best = max(itertools.product(range(3), repeat=5), key=score_of)
    path, score = crf.viterbi_decode(SCORES[0], TRANSITIONS)
    assert tuple(path) == best
    assert score == pytest.approx(score_of(best), rel=1e-5)
    decoded, best_score = crf.crf_decode(tf.constant(SCORES[:1]), tf.constant(TRANSITIONS), tf.constant([5]))
    with tf.Session() as session:
        tags, found = session.run([decoded, best_score])
    assert tuple(tags[0]) == best
    assert found[0] == pytest.approx(score, rel=1e-5)


def test_the_cells_are_steps_of_the_algorithms() -> None:
    forward, decoding = crf.CrfForwardRnnCell(TRANSITIONS), crf.CrfDecodeForwardRnnCell(TRANSITIONS)
    backward = crf.CrfDecodeBackwardRnnCell(3)
    assert (forward.state_size, decoding.output_size, backward.state_size) == (3, 3, 1)
    first, second = tf.constant(SCORES[:, 0]), tf.constant(SCORES[:, 1])
    alphas, _ = forward(second, first)
    before, best = decoding(second, first)
    tag, _ = backward(before, tf.constant([[0], [1], [2], [0]]))
    sums = SCORES[:, 0, :, None] + TRANSITIONS
    with tf.Session() as session:
        got = session.run([alphas, before, best, tag])
    np.testing.assert_allclose(got[0], SCORES[:, 1] + np.log(np.exp(sums).sum(1)), rtol=1e-5)
    assert (got[1] == sums.argmax(1)).all()
    np.testing.assert_allclose(got[2], SCORES[:, 1] + sums.max(1), rtol=1e-5)
    assert (got[3][:, 0] == sums.argmax(1)[range(4), [0, 1, 2, 0]]).all()
