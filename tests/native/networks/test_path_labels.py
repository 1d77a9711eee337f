"""The most probable labels of time steps by machine code, beside ATen's kernels: the same."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from code_texts import shown_functions
from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.native.networks import path_labels

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize("team", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_text_is_valid(monkeypatch, team, dtype) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = path_labels.path_labels_code(dtype, 8)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == {"decode"}


def decoded(monkeypatch, logits, lengths, merge, blank=-1):
    """What an op gives without machine code and with it; whether that decoded."""
    found, called, call = [], [], path_labels.PathLabels.__call__

    def watched(*given):
        called.append(call(*given) is not None)
        return call(*given)

    monkeypatch.setattr(path_labels.PathLabels, "__call__", watched)
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            fed = tf.placeholder(logits.dtype, logits.shape), tf.placeholder(tf.int32, [len(lengths)])
            values = tf.raw_ops.CTCGreedyDecoder(
                inputs=fed[0], sequence_length=fed[1], merge_repeated=merge, blank_index=blank
            )
            found.append(session.run(list(values), dict(zip(fed, (logits, lengths)))))
    for plain, fast in zip(found[0][:3], found[1][:3]):
        assert plain.dtype == fast.dtype
        np.testing.assert_array_equal(fast, plain)
    unit = np.finfo(logits.dtype).eps
    np.testing.assert_allclose(found[1][3], found[0][3], rtol=16 * unit, atol=16 * unit)
    return called, found[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("blank", [-1, 0, 2])
@pytest.mark.parametrize("shape", [(1, 1, 3), (7, 5, 4), (50, 250, 20), (4, 3, 67)])
def test_labels(monkeypatch, dtype, merge, blank, shape) -> None:
    random = np.random.default_rng(shape[0])
    logits = random.integers(-4, 4, shape).astype(dtype)  # of equal ones the first counts
    logits[0, 0, :2] = -INF
    lengths = random.integers(0, shape[0] + 1, shape[1]).astype(np.int32)
    assert decoded(monkeypatch, logits, lengths, merge, blank)[0] == [True]


@pytest.mark.parametrize("place", [0, 3])
def test_logits_that_are_no_numbers_are_left_to_the_other_kernel(monkeypatch, place) -> None:
    logits = np.random.default_rng(1).normal(size=(6, 3, 4))
    logits[2, 1, place] = NAN
    assert decoded(monkeypatch, logits, [6, 6, 6], True)[0] == [False]
    monkeypatch.undo()
    assert decoded(monkeypatch, logits, [6, 2, 6], True)[0] == [True]  # of steps that are not looked at


def test_scores_are_exact_sums() -> None:
    """In float64, of which the score is the nearest number."""
    logits = np.full((1000, 1, 2), 0.1, np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        score = tf.nn.ctc_greedy_decoder(logits, [1000])[1]
        np.testing.assert_allclose(session.run(score), [[-1000 * np.float64(np.float32(0.1))]], rtol=6e-8)
