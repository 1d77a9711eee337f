"""Seeds of ops, and the sequences that they begin: on a CPU TensorFlow 1.15.5's own, run by run.

`golden/random_sequences.json` has, for each op of `OPS`, the last ten numbers of three runs in one session.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.machine import machine_code
from flowstone.ops.randomness import op_seeds, philox
from flowstone.ops.randomness.op_seeds import SeededSequence, first_state, fresh_seed

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "random_sequences.json").read_text())
TRUE = np.int64([[1], [2]])
MANY = 30_000_000
WEIGHTS = [5, 1, 1, 8, 2, 2, 9, 1, 4, 0.5, 3, 3, 7]
LOGITS = [[0.0, 1.0, 2.0, 0.5], [1.0, 1.0, 1.0, 1.0], [2.0, 0.0, 1.0, 1.0]]
OPS: dict[str, Any] = {
    "uniform float32": lambda: tf.random_uniform([3], seed=1),
    "uniform float64": lambda: tf.random_uniform([5], dtype=tf.float64, seed=2),
    "normal float32": lambda: tf.random_normal([7], seed=3),
    "normal float64": lambda: tf.random_normal([3], dtype=tf.float64, seed=4),
    "truncated float32": lambda: tf.truncated_normal([40], seed=5),
    "truncated float64": lambda: tf.truncated_normal([3], dtype=tf.float64, seed=6),
    "int32": lambda: tf.random_uniform([5], 0, 100, tf.int32, seed=7),
    "int64": lambda: tf.random_uniform([3], -5, 100, tf.int64, seed=8),
    "uniform float16": lambda: tf.random_uniform([5], dtype=tf.float16, seed=9),
    "normal float16": lambda: tf.random_normal([5], dtype=tf.float16, seed=10),
    "truncated float16": lambda: tf.truncated_normal([5], dtype=tf.float16, seed=17),
    "uniform bfloat16": lambda: tf.random_uniform([5], dtype=tf.bfloat16, seed=18),
    "many": lambda: tf.random_uniform([1003], seed=11),
    "multinomial": lambda: tf.multinomial(LOGITS, 3, seed=12),
    "many multinomial": lambda: tf.multinomial(LOGITS, 50, seed=22),
    "shuffle": lambda: tf.random_shuffle(tf.range(6), seed=13),
    "shuffle five": lambda: tf.random_shuffle(tf.range(5), seed=13),
    "shuffle rows": lambda: tf.random_shuffle(tf.reshape(tf.range(6), [3, 2]), seed=14),
    "glorot": lambda: tf.glorot_uniform_initializer(seed=3)([3, 2]),
    "orthogonal": lambda: tf.orthogonal_initializer(seed=4)([3, 2]),
    "dropout": lambda: tf.nn.dropout(tf.ones([12]), 0.5, seed=2),
    "gamma": lambda: tf.random_gamma([2], [0.3, 1.0, 2.5, 40.0, 0.0], seed=23),
    "gamma float16": lambda: tf.random_gamma([3], [0.3, 2.5], dtype=tf.float16, seed=24),
    "gamma float64": lambda: tf.random_gamma([3], [0.3, 2.5], 2.0, tf.float64, seed=25),
    "poisson": lambda: tf.random_poisson([0.1, 3.0, 9.9, 10.0, 77.0], [2], seed=26),
    "crop": lambda: tf.random_crop(tf.range(20), [3], seed=5),
    "uniform classes": lambda: tf.nn.uniform_candidate_sampler(TRUE, 1, 9, True, 50, seed=5)[0],
    "uniform of many": lambda: tf.nn.uniform_candidate_sampler(TRUE, 1, 30, False, 3 << 60, seed=5)[0],
    "log uniform": lambda: tf.nn.log_uniform_candidate_sampler(TRUE, 1, 9, True, 5000, seed=6)[0],
    "log uniform with repetitions": lambda: tf.nn.log_uniform_candidate_sampler(
        TRUE, 1, 9, False, 40, seed=6
    )[0],
    "learned": lambda: tf.nn.learned_unigram_candidate_sampler(TRUE, 1, 9, False, 20, seed=7)[0],
    "learned, many": lambda: tf.nn.learned_unigram_candidate_sampler(TRUE, 1, 140, False, 30_000_000, seed=5)[
        0
    ],
    "weights": lambda: tf.nn.fixed_unigram_candidate_sampler(TRUE, 1, 9, True, 13, unigrams=WEIGHTS, seed=8)[
        0
    ],
    "distorted weights": lambda: tf.nn.fixed_unigram_candidate_sampler(
        TRUE, 1, 60, False, 15, distortion=0.75, num_reserved_ids=2, unigrams=WEIGHTS, seed=9
    )[0],
    "all classes": lambda: tf.nn.log_uniform_candidate_sampler(TRUE, 1, 60, True, 60, seed=10)[0],
}


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("has_code", [True, False])
def test_sequences_are_those_of_tensorflow(
    name: str, has_code: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_code:
        slots = machine_code.random_words, machine_code.random_values, machine_code.rejection_values
        for slot in slots:
            monkeypatch.setattr(slot, "_ask", None)
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        tf.set_random_seed(5)
        value = OPS[name]()
        tolerance = 1e-7 if name == "orthogonal" else 0  # processors factor matrices in other orders
        for _ in range(2):  # each session begins anew
            with tf.Session() as session:
                for expected in GOLDEN[name]:
                    found = np.asarray(session.run(value)).astype(np.float64).ravel()[-10:]
                    np.testing.assert_allclose(found, expected, rtol=4e-7, atol=tolerance)


def test_every_golden_sequence_has_an_op() -> None:
    assert set(GOLDEN) == set(OPS)


def test_seeds_without_a_seed_of_the_ops_own() -> None:
    with tf.Graph().as_default():
        assert tf.get_seed(None) == (None, None)
        assert tf.get_seed(3) == (87654321, 3)
        tf.set_random_seed(7)
        tf.Variable(tf.truncated_normal([784, 10], stddev=0.1))
        tf.random_uniform([2], seed=9)
        tf.get_variable("g", [3, 3])
        operations = tf.get_default_graph().get_operations()
        seeds = [op.get_attr("seed2") for op in operations if "seed2" in op.node_def.attr]
        assert seeds == [3, 9, 19]
        assert tf.get_seed(5) == (7, 5)


UNSEEDED: dict[str, Any] = {
    "uniform": lambda: tf.random_uniform([2000], dtype=tf.float64),
    "uniform float32": lambda: tf.random_uniform([2000]),
    "uniform float16": lambda: tf.random_uniform([2000], dtype=tf.float16),
    "uniform of a fed shape": lambda: tf.random_uniform(tf.placeholder_with_default([2000], [1])),
    "normal": lambda: tf.random_normal([2000]),
    "truncated": lambda: tf.truncated_normal([2000]),
    "int32": lambda: tf.random_uniform([2000], -50, 51, tf.int32),
    "int64": lambda: tf.random_uniform([2000], -50, 51, tf.int64),
    "multinomial": lambda: tf.multinomial(np.zeros([1, 101], np.float32), 2000),
    "shuffle": lambda: tf.random_shuffle(tf.range(2000)),
    "gamma": lambda: tf.random_gamma([2000], 2.5),
    "poisson": lambda: tf.random_poisson([9.0], [2000]),
    "dropout": lambda: tf.nn.dropout(tf.ones([2000]), 0.5),
}
MOMENTS = {  # of the values: their mean and deviation
    "uniform": (0.5, 12**-0.5),
    "normal": (0, 1),
    "truncated": (0, 0.8796),
    "int": (0, (101**2 / 12) ** 0.5),
    "multinomial": (50, (101**2 / 12) ** 0.5),
    "shuffle": (999.5, 2000 / 12**0.5),
    "gamma": (2.5, 2.5**0.5),
    "poisson": (9, 3),
    "dropout": (1, 1),
}


@pytest.mark.parametrize("tier", [0, 1])
@pytest.mark.parametrize("name", UNSEEDED)
def test_without_seeds_all_numbers_differ(name: str, tier: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", tier)
    mean, deviation = MOMENTS[next(each for each in MOMENTS if name.startswith(each))]
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        nodes, found = [UNSEEDED[name](), UNSEEDED[name]()], []
        for _ in range(2):
            with tf.Session() as session:
                for _ in range(2):
                    found += session.run(nodes)
    drawn = np.array(found).reshape(8, -1).astype(np.float64)
    assert len(np.unique(drawn, axis=0)) == 8  # of two sessions, two runs and two nodes
    assert abs(drawn.mean() - mean) < 8 * deviation / drawn.size**0.5  # eight deviations of the mean
    assert 0.9 < drawn.std() / deviation < 1.1


@pytest.mark.parametrize("tier", [0, 1])
def test_plans_share_what_chance_begins(tier: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code draws one sequence, and a generator another, whatever the plan."""
    monkeypatch.setattr(flags, "NATIVE", tier)
    monkeypatch.setattr(op_seeds, "_random_bytes", lambda count: b"\x05" * count)
    fresh, count = fresh_seed(), 6
    generator = torch.Generator().manual_seed(fresh)
    with tf.Graph().as_default(), tf.device("/cpu:0"), tf.Session() as session:
        size = tf.placeholder_with_default([count], [1])
        numbers = tf.random_uniform(size)
        runs = [
            (numbers, {}),
            ([numbers * 2, numbers], {}),
            (numbers, {size: [count]}),
            (tf.exp(numbers), {}),
        ]
        for i, (fetches, feeds) in enumerate([*runs, *runs]):
            found = session.run([numbers, fetches], feeds)[0]
            state = first_state(fresh, fresh).skipped(i * count * 256)
            expected = philox.uniform(state, count, torch.float32, torch.device("cpu"))
            if not tier:
                expected = torch.rand(count, generator=generator)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("tier", [0, 1])
def test_threads_draw_different_numbers(tier: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", tier)
    drawn: list[float] = []
    with tf.Graph().as_default(), tf.device("/cpu:0"), tf.Session() as session:
        numbers = tf.random_uniform([3], dtype=tf.float64)

        def run() -> None:
            for _ in range(100):
                drawn.extend(session.run(numbers))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(drawn)) == len(drawn) == 1200


def test_threads_share_a_sequence() -> None:
    sequence, taken = SeededSequence(5, 1), []

    def take() -> None:
        for _ in range(200):
            taken.append(sequence.take(3).counter)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [(1 << 64) + 768 * i for i in range(800)]


def test_negative_seeds() -> None:
    state = SeededSequence(-1, -2).take(1)
    assert (state.key, state.counter >> 64) == (2**64 - 1, 2**64 - 2)
    assert philox.uniform(state, 5, torch.float32, torch.device("cpu")).shape == (5,)
