"""Bodies of loops that stay in Python: what is joined, and the same values as by kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.lowering.programs import straight_regions
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "-")
_BEAMS, _WORDS, _UNITS = 3, 11, 4


def _decoder(start: Any) -> list[Any]:
    """Beam search: the words so far grow."""
    chance = np.random.default_rng(0)
    table, out, mixed = (
        tf.constant(chance.normal(size=size).astype("f"))
        for size in ((_WORDS, _UNITS), (_UNITS, _WORDS), (2 * _UNITS, _UNITS))
    )

    def body(i: Any, words: Any, scores: Any, state: Any) -> Any:
        x = tf.concat([tf.gather(table, words[:, -1]), state], 1)
        state = tf.tanh(tf.matmul(x, mixed))
        every = tf.nn.log_softmax(tf.matmul(state, out)) + scores[:, None]
        scores, places = tf.nn.top_k(tf.reshape(every, [-1]), _BEAMS)
        beams = tf.reshape(places // _WORDS, [_BEAMS, 1])
        words = tf.concat([tf.gather_nd(words, beams), (places % _WORDS)[:, None]], 1)
        return i + 1, words, scores, tf.gather_nd(state, beams)

    shapes = [tf.TensorShape(each) for each in ([], [_BEAMS, None], [_BEAMS], [_BEAMS, _UNITS])]
    begin = [0, tf.zeros([_BEAMS, 1], tf.int32), tf.constant([0.0, -1.0, -2.0]), start]
    return tf.while_loop(lambda i, *_: i < 7, body, begin, shape_invariants=shapes)[1:]


def _steps(fetches: Any, feed: Any, native: int, monkeypatch: Any) -> tuple[list[Any], str]:
    monkeypatch.setattr(flags, "NATIVE", native)
    with tf.Session() as session:
        values = [session.run(fetches, feed) for _ in range(3)]
        for one, other in zip(values[0], values[-1]):
            np.testing.assert_array_equal(one, other)
        return values[-1], str(session.explain(fetches, feed))


def test_a_decoder_whose_words_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    start = tf.placeholder(tf.float32, [_BEAMS, _UNITS])
    fetches, feed = _decoder(start), {start: np.random.default_rng(1).normal(size=(_BEAMS, _UNITS))}
    (plain, _), (found, plan) = (_steps(fetches, feed, native, monkeypatch) for native in (0, 2))
    assert plan.count("join_straight_programs: ") == 2
    np.testing.assert_array_equal(plain[0], found[0])
    for one, other in zip(plain[1:], found[1:]):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    _same_bits_apart(fetches, feed, found, monkeypatch)


def _same_bits_apart(fetches: Any, feed: Any, found: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is joined has the bits that its nodes have one by one."""
    monkeypatch.setattr(straight_regions, "exact_in_bodies", lambda *_: set())
    apart, plan = _steps(fetches, feed, 2, monkeypatch)
    assert "join_straight_programs: " not in plan
    for one, other in zip(apart, found):
        np.testing.assert_array_equal(one, other)


def test_counters_stay_numbers_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    start = tf.placeholder(tf.float32, [_BEAMS, _UNITS])
    _, plan = _steps(_decoder(start), {start: np.ones((_BEAMS, _UNITS))}, 2, monkeypatch)
    assert " < 7)" in plan


def test_an_index_out_of_range_is_the_error_of_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    x, grown = tf.placeholder(tf.float32, [4, 2]), tf.zeros([1])

    def body(i: Any, x: Any, grown: Any) -> Any:
        places = tf.cast(x[:, 0], tf.int32)[:, None]
        x = tf.gather_nd(x, places, name="picked") * 2.0
        x = tf.reverse(tf.concat([x[1:], x[:1]], 0), [1])
        return i + 1, x, tf.concat([grown, x[0]], 0)

    shapes = [tf.TensorShape(each) for each in ([], [4, 2], [None])]
    found = tf.while_loop(lambda i, *_: i < 4, body, [0, x, grown], shape_invariants=shapes)[1:]
    good, bad = np.zeros([4, 2]), np.ones([4, 2])
    for native in (0, 2):
        values, _ = _steps(found, {x: good}, native, monkeypatch)
        assert not values[0].any()
        with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="picked"):
            session.run(found, {x: bad * 5})


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.parametrize("seed", range(8))
def test_random_bodies(seed: int, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations drawn at random, with a branch, an inner loop, and gradients of some."""
    chance = np.random.default_rng(seed)
    x = tf.placeholder(dtype, [3, 4])
    choices = [
        lambda a, b: tf.tanh(a) * b, lambda a, b: tf.concat([a[:, 2:], b[:, :2]], 1),
        lambda a, b: tf.matmul(a, b, transpose_b=True)[:, :1] + a, lambda a, b: tf.nn.softmax(a - b),
        lambda a, b: a / (1.0 + tf.reduce_sum(b * b, 1, keepdims=True)), lambda a, b: tf.reverse(a, [0]) - b,
        lambda a, b: tf.cond(tf.reduce_sum(a) > 0.1234, lambda: a * 0.5, lambda: b + 0.1),
        lambda a, b: tf.while_loop(lambda j, *_: j < 2, lambda j, c: (j + 1, tf.sin(c + b)), [0, a])[1],
    ]  # fmt: skip
    drawn = chance.integers(0, len(choices), size=14)

    def body(i: Any, a: Any, b: Any, grown: Any) -> Any:
        for kind in drawn:
            a, b = b, choices[kind](a, b)
        return i + 1, a, b, tf.concat([grown, a], 0)

    shapes = [tf.TensorShape(each) for each in ([], [3, 4], [3, 4], [None, 4])]
    begin = [0, x, tf.cos(x), tf.zeros([1, 4], dtype)]
    found = tf.while_loop(lambda i, *_: i < 5, body, begin, shape_invariants=shapes)[1:]
    found = [*found, tf.gradients(found[2], x)[0]] if seed % 2 else list(found)
    feed = {x: chance.normal(size=(3, 4))}
    (plain, _), (compiled, _) = (_steps(found, feed, native, monkeypatch) for native in (0, 2))
    if dtype is tf.float64:  # in float32 some of these bodies make differences large
        for one, other in zip(plain, compiled):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
    _same_bits_apart(found, feed, compiled, monkeypatch)
