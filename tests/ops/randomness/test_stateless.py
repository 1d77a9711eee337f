"""Functions of random values by seeds: ranges, deviations, types, equality from step to step, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

RANDOM = tf.random


def run(*tensors: Any) -> Any:
    with tf.Session() as session:
        first = session.run(list(tensors))
        second = session.run(list(tensors))
    for one, other in zip(first, second):
        np.testing.assert_array_equal(one, other)
    return first


def test_ranges_and_deviations() -> None:
    uniform, normal, truncated = run(
        RANDOM.stateless_uniform([20000], [1, 2], -3.0, 5.0),
        RANDOM.stateless_normal([20000], [1, 2], mean=2.0, stddev=3.0),
        RANDOM.stateless_truncated_normal([20000], [1, 2], mean=2.0, stddev=3.0),
    )
    assert uniform.min() >= -3 and uniform.max() < 5
    assert abs(uniform.mean() - 1) < 0.05 and abs(normal.mean() - 2) < 0.1
    assert abs(normal.std() - 3) < 0.1
    assert np.abs(truncated - 2).max() <= 6 and abs(truncated.std() - 3 * 0.8796) < 0.1


@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (200, 300)])
@pytest.mark.parametrize("by_key", [False, True])
def test_numbers_do_not_depend_on_when_the_shape_is_known(shape: tuple[int, ...], by_key: bool) -> None:
    sizes, bound, raw = tf.placeholder(tf.int32, [len(shape)]), tf.placeholder(tf.int32, []), tf.raw_ops
    seed = [-5, 2**40]
    if by_key:
        key, counter = raw.StatelessRandomGetKeyCounter(seed=seed)
        given: dict[str, Any] = {"key": key, "counter": counter, "alg": 1}
    else:
        given = {"seed": seed}
    found: list[list[Any]] = [[], []]
    for to, size, high in ((found[0], np.array(shape, np.int32), 9), (found[1], sizes, bound)):
        for name in ("RandomUniform", "RandomNormal", "TruncatedNormal"):
            function = getattr(raw, f"Stateless{name}{'V2' if by_key else ''}")
            to += [function(shape=size, **given, dtype=kind) for kind in ("float16", "float32", "float64")]
        function = getattr(raw, f"StatelessRandomUniformInt{'V2' if by_key else ''}")
        to.append(function(shape=size, **given, minval=-3, maxval=high))
    with tf.Session() as session:
        known, fed = session.run(found, {sizes: shape, bound: 9})
    for one, other in zip(known, fed):
        assert one.shape == shape and one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", ["int32", "int64", "uint32", "uint64"])
def test_integers_of_the_whole_range(kind: str) -> None:
    (values,) = run(RANDOM.stateless_uniform([4000], [3, 4], None, None, dtype=kind))
    assert values.dtype == kind
    limits = np.iinfo(kind)
    assert abs(values.astype(float).mean() - (limits.max + limits.min) / 2) < 0.03 * float(limits.max)


def test_integers_of_a_range() -> None:
    values, others = run(
        RANDOM.stateless_uniform([2000], [3, 4], 5, 9, dtype=tf.int32),
        RANDOM.stateless_uniform([2000], [3, 5], 5, 9, dtype=tf.int32),
    )
    assert set(values) == {5, 6, 7, 8}
    assert not np.array_equal(values, others)


def test_a_seed_may_be_fed() -> None:
    seed = tf.placeholder(tf.int64, [2])
    values = RANDOM.stateless_normal([3], seed)
    with tf.Session() as session:
        one, other, again = (session.run(values, {seed: given}) for given in ([1, 2], [2, 1], [1, 2]))
    assert np.array_equal(one, again) and not np.array_equal(one, other)


def test_classes_by_their_probabilities() -> None:
    logits = np.log(np.array([[0.1, 0.2, 0.7], [0.5, 0.4, 0.1]], "f"))
    (classes,) = run(RANDOM.stateless_categorical(logits, 20000, [5, 6]))
    for row, expected in zip(classes, np.exp(logits)):
        np.testing.assert_allclose(np.bincount(row, minlength=3) / 20000, expected, atol=0.02)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="must be both None or not None"):
        RANDOM.stateless_uniform([2], [1, 2], 1, None, dtype=tf.int32)
    with pytest.raises(ValueError, match="invalid value"):
        RANDOM.stateless_uniform([2], [1, 2], dtype=tf.bool)
    shape = tf.placeholder(tf.int32, [1])
    values = RANDOM.stateless_normal(shape, [1, 2])
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="must be >= 0, got \\[-1\\]"),
    ):
        session.run(values, {shape: [-1]})
