"""Random ops: their distributions, and sequences that seeds repeat in every session."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.ops.randomness import random as subject

COUNT = 20000


def draw(make, *, graph_seed=None, runs=1, feed=None):
    """The values of `make()` in a new graph and session, one a run."""
    with tf.Graph().as_default() as graph:
        if graph_seed is not None:
            subject.set_random_seed(graph_seed)
        tensor = make()
        with tf.Session(graph=graph) as session:
            return [np.asarray(session.run(tensor, feed)) for _ in range(runs)]


def test_seed_pairs_are_tensorflows() -> None:
    """The attributes that graph and op seeds give, zero and large ones included."""
    expected = {
        (None, None): (None, None),
        (None, 5): (87654321, 5),
        (None, 2**31 - 1): (87654321, 0),
        (0, 0): (0, 2147483647),
        (7, None): (7, 0),
        (7, -1): (7, 2147483646),
        (-3, 5): (2147483644, 5),
        (2**31, 2**31 + 5): (1, 6),
    }
    for (graph_seed, op_seed), pair in expected.items():
        with tf.Graph().as_default():
            if graph_seed is not None:
                subject.set_random_seed(graph_seed)
            assert subject.get_seed(op_seed) == pair


def test_ops_of_a_seeded_graph_get_numbers() -> None:
    """Each op without a seed of its own gets the number of nodes before it, as in TensorFlow 1.15."""
    with tf.Graph().as_default() as graph:
        subject.set_random_seed(7)
        for _ in range(3):
            subject.random_uniform([2])
        seeds = [op.attributes["seed2"] for op in graph.get_operations() if "seed2" in op.attributes]
    assert seeds == [3, 10, 17]


def test_seeded_sequences_repeat_in_new_sessions_and_differ_by_op() -> None:
    """Equal seeds repeat the sequence; within one it goes on; two ops differ."""

    def pair():
        return F.Pack([subject.random_normal([3]), subject.random_normal([3])])

    first, second = (draw(pair, graph_seed=3, runs=2) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first[0][0], first[0][1])


def test_sequences_go_on_across_plans_of_a_session() -> None:
    """Fetching an op in another way does not start it again."""
    with tf.Graph().as_default() as graph:
        x = subject.random_uniform([4], seed=1)
        y = F.Mul(x, 2.0)
        with tf.Session(graph=graph) as session:
            first = session.run(x)
            assert not np.array_equal(session.run(y), first * 2)


def test_unseeded_sequences_differ_between_sessions() -> None:
    """Without seeds nothing repeats."""
    first, second = (draw(lambda: subject.random_uniform([8])) for _ in range(2))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    ("make", "mean", "deviation", "low", "high"),
    [
        (lambda: subject.random_uniform([COUNT], -1.0, 3.0, seed=1), 1.0, 4 / 12**0.5, -1.0, 3.0),
        (lambda: subject.random_normal([COUNT], 2.0, 0.5, seed=1), 2.0, 0.5, -np.inf, np.inf),
        (lambda: subject.truncated_normal([COUNT], 1.0, 2.0, seed=1), 1.0, 2 * 0.8796, -3.0, 5.0),
        (lambda: subject.random_gamma([COUNT], 4.0, 2.0, seed=1), 2.0, 1.0, 0.0, np.inf),
        (lambda: subject.random_poisson(9.0, [COUNT], seed=1), 9.0, 3.0, 0.0, np.inf),
        (
            lambda: F.ParameterizedTruncatedNormal([COUNT], 0.0, 1.0, 3.0, 100.0, seed=1, dtype=tf.float32),
            3.2831,
            0.2661,
            3.0,
            100.0,
        ),
    ],
    ids=["uniform", "normal", "truncated", "gamma", "poisson", "tail"],
)
def test_moments_and_ranges(make, mean, deviation, low, high) -> None:
    """Mean and standard deviation within five standard errors or so, all values in range."""
    (values,) = draw(make)
    assert values.dtype == np.float32
    assert abs(values.mean() - mean) < 5 * deviation / COUNT**0.5
    assert abs(values.std() / deviation - 1) < 0.05
    assert values.min() >= low and values.max() <= high


def test_integers_cover_their_range_evenly() -> None:
    """minval is drawn, maxval is not, each about equally often."""
    (values,) = draw(lambda: subject.random_uniform([COUNT], -2, 3, tf.int32, seed=1))
    numbers, counts = np.unique(values, return_counts=True)
    assert numbers.tolist() == [-2, -1, 0, 1, 2]
    assert counts.min() > COUNT / 5 * 0.9


def test_multinomial_draws_by_the_log_probabilities() -> None:
    """Frequencies are the softmax; minus infinity is never drawn."""
    logits = np.log(np.float32([[0.1, 0.6, 0.3], [0.5, 1e-30, 0.5]]))
    logits[1, 1] = -np.inf
    (values,) = draw(lambda: tf.multinomial(logits, COUNT, seed=1))
    found = [np.bincount(row, minlength=3) / COUNT for row in values]
    np.testing.assert_allclose(found, [[0.1, 0.6, 0.3], [0.5, 0, 0.5]], atol=0.02)


def test_shuffle_permutes_rows_and_crop_cuts_a_window() -> None:
    """The rows stay whole; a crop is a contiguous part."""
    rows = np.arange(40).reshape(20, 2)
    (shuffled,) = draw(lambda: tf.random_shuffle(rows, seed=1))
    assert not np.array_equal(shuffled, rows)
    np.testing.assert_array_equal(shuffled[np.argsort(shuffled[:, 0])], rows)
    for part in draw(lambda: tf.random_crop(np.arange(20).reshape(4, 5), [2, 3], seed=2), runs=5):
        np.testing.assert_array_equal(part - part[0, 0], [[0, 1, 2], [5, 6, 7]])


def test_names_are_tensorflows() -> None:
    """The generated nodes of the composed functions."""
    with tf.Graph().as_default() as graph:
        subject.random_uniform([2], -1, 2.0)
        names = [operation.name for operation in graph.get_operations()]
    assert names == [
        "random_uniform/" + n for n in ("shape", "min", "max", "RandomUniform", "sub", "mul")
    ] + ["random_uniform"]


def test_unfit_types_are_refused() -> None:
    """Integers need a bound; strings are no numbers."""
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="Must specify maxval"):
            subject.random_uniform([2], dtype=tf.int32)
        with pytest.raises(ValueError, match="invalid value"):
            subject.random_uniform([2], dtype=tf.string)
