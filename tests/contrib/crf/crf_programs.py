"""Programs of `tf.contrib.crf`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_random = np.random.RandomState(0)
SCORES = _random.randn(4, 5, 3).astype("f")
TAGS = _random.randint(0, 3, (4, 5)).astype("i")
LENGTHS = np.array([5, 3, 1, 0], "i")
TRANSITIONS = _random.randn(3, 3).astype("f")
ALLOWED = _random.rand(4, 5, 3) > 0.3


def likelihood(tf: Any) -> Any:
    found, transitions = tf.contrib.crf.crf_log_likelihood(
        tf.constant(SCORES), tf.constant(TAGS), tf.constant(LENGTHS)
    )
    return "gradients", (tf.reduce_sum(found), [found, transitions])


def one_step(tf: Any) -> Any:
    crf, scores = tf.contrib.crf, tf.constant(SCORES[:, :1])
    lengths = tf.minimum(tf.constant(LENGTHS), 1)
    found, transitions = crf.crf_log_likelihood(scores, tf.constant(TAGS[:, :1]), lengths)
    several = crf.crf_multitag_sequence_score(scores, ALLOWED[:, :1], lengths, transitions)
    return [found, several, list(crf.crf_decode(scores, transitions, tf.constant([1, 1, 1, 1])))]


def parts(tf: Any) -> Any:
    crf, scores, tags = tf.contrib.crf, tf.constant(SCORES), tf.constant(TAGS)
    lengths, transitions = tf.constant(LENGTHS), tf.constant(TRANSITIONS)
    unknown = tf.placeholder_with_default(SCORES, [None, None, 3])
    unknown_tags = tf.placeholder_with_default(TAGS, [None, None])
    whole = tf.constant([5, 3, 1, 2])
    return [
        crf.crf_sequence_score(scores, tags, lengths, transitions),
        crf.crf_unary_score(tags, lengths, scores),
        crf.crf_binary_score(tags, lengths, transitions),
        crf.crf_log_norm(scores, lengths, transitions),
        crf.crf_multitag_sequence_score(scores, ALLOWED, lengths, transitions),
        list(crf.crf_decode(scores, transitions, whole)),
        list(crf.crf_decode(unknown, transitions, tf.cast(whole, tf.int64))),
        crf.crf_log_norm(unknown, lengths, transitions),
        crf.crf_sequence_score(unknown, unknown_tags, lengths, transitions),
    ]


PROGRAMS: dict[str, Callable[[Any], Any]] = {"likelihood": likelihood, "one step": one_step, "parts": parts}
