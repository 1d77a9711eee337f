"""Fractional pooling: the cuts, what is pooled between them, and the gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.ops.networks.fractional_pooling import random_sequence
from flowstone.ops.randomness.philox import State
from flowstone.ops.randomness.random_words import RandomWords

RANDOM = np.random.RandomState(4)
REDUCTIONS: dict[str, Callable[..., Any]] = {"max": np.max, "avg": np.mean}


def pool(kind: str) -> Callable[..., Any]:
    """The public function."""
    function: Callable[..., Any] = getattr(tf.nn, f"fractional_{kind}_pool")
    return function


def by_windows(x: np.ndarray, rows: Any, columns: Any, more: int, reduce: Callable[..., Any]) -> np.ndarray:
    """Pooling window by window."""
    pooled = [
        [reduce(x[:, a : b + more, c : d + more], axis=(1, 2)) for c, d in itertools.pairwise(columns)]
        for a, b in itertools.pairwise(rows)
    ]
    return np.transpose(pooled, (2, 0, 1, 3))


@pytest.mark.parametrize("pseudo_random", [False, True])
@pytest.mark.parametrize(("length", "count"), [(11, 7), (20, 11), (9, 9), (12, 4), (5, 1), (100, 64)])
def test_cuts_are_as_far_apart_as_the_ratio_says(length: int, count: int, pseudo_random: bool) -> None:
    seen = set()
    for seed in range(20):
        cuts = random_sequence(length, count, pseudo_random, RandomWords(State(seed, 1)))
        assert cuts[0] == 0 and cuts[-1] == length and len(cuts) == count + 1
        assert set(np.diff(cuts)) <= {length // count, -(-length // count)}
        seen.add(tuple(cuts))
    assert (len(seen) > 1) == bool(length % count)


@pytest.mark.parametrize(
    ("pseudo_random", "rows", "columns"),
    [
        (True, "12121211212121", "112111121112111121112111121"),
        (False, "21111222111221", "121111111111212111112112211"),
    ],
)
def test_cuts_are_those_of_tensorflow(pseudo_random: bool, rows: str, columns: str) -> None:
    """In every run, for the seeds 3 and 4."""
    x, ratios = np.zeros([1, 20, 33, 1], np.float32), [1.0, 1.41, 1.2, 1.0]
    with tf.Session() as session:
        cuts = tf.nn.fractional_max_pool(x, ratios, pseudo_random, deterministic=True, seed=3, seed2=4)[1:]
        for _ in range(2):
            found = ["".join(map(str, np.diff(each))) for each in session.run(cuts)]
            assert found == [rows, columns]


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_elements_between_cuts_are_pooled(kind: str, overlapping: bool) -> None:
    x = RANDOM.randn(2, 11, 9, 3)
    form = {"overlapping": overlapping, "deterministic": True, "seed": 3}
    with tf.Graph().as_default(), tf.Session() as session:
        pooled = pool(kind)(tf.placeholder_with_default(x, [None, 11, 9, 3]), [1.0, 1.5, 2.2, 1.0], **form)
        assert [each.shape.as_list() for each in pooled] == [[None, 7, 4, 3], [8], [5]]
        y, rows, columns = session.run(list(pooled))
        again = session.run(list(pooled))
    np.testing.assert_allclose(
        y, by_windows(x, rows, columns, int(overlapping), REDUCTIONS[kind]), rtol=1e-12
    )
    for one, other in zip((y, rows, columns), again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_means_of_integers_are_truncated() -> None:
    x = -3 * np.arange(16, dtype=np.int32).reshape(1, 4, 4, 1)
    with tf.Session() as session:
        y = session.run(tf.nn.fractional_avg_pool(x, [1, 2, 2, 1])[0])
    assert y.reshape(-1).tolist() == [-7, -13, -31, -37]


def test_runs_differ_unless_they_are_deterministic() -> None:
    x = np.zeros((1, 90, 80, 1), np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        free = tf.nn.fractional_max_pool(x, [1, 1.4, 1.7, 1])
        seeded = [tf.nn.fractional_max_pool(x, [1, 1.4, 1.7, 1], deterministic=True, seed=k) for k in (1, 2)]
        assert session.run(free[1]).tolist() != session.run(free[1]).tolist()
        assert session.run(seeded[0][1]).tolist() != session.run(seeded[1][1]).tolist()


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_gradients_are_difference_quotients(kind: str, overlapping: bool) -> None:
    value = RANDOM.permutation(70).reshape(1, 7, 5, 2) * 0.1
    with tf.Graph().as_default(), tf.Session():
        x = tf.constant(value)
        y, *_ = pool(kind)(x, [1, 1.5, 1.6, 1], overlapping=overlapping, deterministic=True, seed=1)
        shapes = ([1, 7, 5, 2], y, [1, 4, 3, 2])
        error = tf.test.compute_gradient_error(x, *shapes, x_init_value=value, delta=1e-3)
    assert error < 1e-8


@pytest.mark.parametrize(
    ("shape", "arguments", "error"),
    [
        ((1, 4, 4, 1), {"pooling_ratio": [1, 5, 2, 1]}, tf.errors.InvalidArgumentError),
        ((0, 4, 4, 1), {"pooling_ratio": [1, 2, 2, 1]}, tf.errors.InvalidArgumentError),
        ((4, 4, 1), {"pooling_ratio": [1, 2, 2, 1]}, tf.errors.InvalidArgumentError),
        ((1, 4, 4, 1), {"pooling_ratio": [1, 2, 2, 1], "seed": 3}, tf.errors.InvalidArgumentError),
        ((1, 4, 4, 2), {"pooling_ratio": [1, 2, 2, 2]}, tf.errors.UnimplementedError),
        ((1, 4, 4, 1), {"pooling_ratio": [1, 0.5, 2, 1]}, ValueError),
        ((1, 4, 4, 1), {"pooling_ratio": [1, 2, 2]}, ValueError),
    ],
)
def test_what_cannot_be_pooled_is_refused(shape: Any, arguments: dict[str, Any], error: type) -> None:
    x = tf.placeholder(tf.float32)
    with tf.Session() as session, pytest.raises(error):
        session.run(tf.nn.fractional_avg_pool(x, **arguments)[0], {x: np.zeros(shape, np.float32)})
