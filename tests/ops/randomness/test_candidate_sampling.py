"""Candidate samplers: what they draw, how often it is expected, seeds, what they learn, files of weights."""

from __future__ import annotations

import pathlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.operation import registry
from flowstone.ops.randomness import class_distributions as distributions
from flowstone.ops.randomness.op_seeds import SeededSequence

COUNT = 40000
TRUE = np.int64([[0], [7], [19]])


def draw(make: Callable[[], Any], runs: int = 1) -> list[list[np.ndarray]]:
    """The three values of `make()` in a new graph and session, for each run."""
    with tf.Graph().as_default(), tf.Session() as session:
        sample = make()
        return [session.run(list(sample)) for _ in range(runs)]


def zipf(size: int) -> np.ndarray:
    ids = np.arange(size)
    return np.log((ids + 2) / (ids + 1)) / np.log(size + 1)


def drawn(distribution: Any, seed: int, count: int = COUNT) -> np.ndarray:
    """The classes of `count` draws."""
    words = np.random.default_rng(seed).integers(0, 1 << 32, (1, count * distribution.words), np.uint64)
    return distribution.classes(words)[0]


# ---- distributions


@pytest.mark.parametrize(
    ("distribution", "expected"),
    [
        (distributions.Uniform(20), np.full(20, 0.05)),
        (distributions.LogUniform(20), zipf(20)),
        (distributions.Weighted(np.arange(20)), np.arange(20) / 190),
        (distributions.Learned(20), np.full(20, 0.05)),
    ],
    ids=["uniform", "log uniform", "weighted", "learned"],
)
def test_draws_follow_the_probabilities(distribution: Any, expected: np.ndarray) -> None:
    """Frequencies within five standard errors; the probabilities are the formula's and sum to one."""
    np.testing.assert_allclose(distribution.probabilities(torch.arange(20)), expected, rtol=1e-12)
    draws = drawn(distribution, 1)
    assert draws.dtype == np.int64 and draws.shape == (COUNT,)
    frequencies = np.bincount(draws, minlength=20) / COUNT
    assert len(frequencies) == 20
    assert (np.abs(frequencies - expected) <= 5 * np.sqrt(expected * (1 - expected) / COUNT)).all()


@pytest.mark.parametrize("size", [1, 2, 3, 10, 1000])
def test_learned_distributions_count_what_they_saw(size: int) -> None:
    """Also where the rows of counts are not full."""
    learned = distributions.Learned(size)
    seen = torch.arange(size).repeat_interleave(3)[: 2 * size]
    learned.add(seen)
    counts = 1 + np.bincount(seen.numpy(), minlength=size)
    np.testing.assert_allclose(learned.probabilities(torch.arange(size)), counts / counts.sum(), rtol=1e-12)
    found = np.bincount(drawn(learned, 2), minlength=size) / COUNT
    expected = counts / counts.sum()
    assert len(found) == size
    assert (np.abs(found - expected) <= 6 * np.sqrt(expected * (1 - expected) / COUNT)).all()


def test_words_that_fit_no_place_are_left_out() -> None:
    """The next word decides; so it is for the places of weights, too, whose draws take two words."""
    weighted, n = distributions.Weighted(np.array([1.0, 2.0, 3.0])), (1 << 32) % 3
    words = np.random.default_rng(3).integers(0, 1 << 32, (4, 40), np.uint64)
    words[0, 7] = words[2, [0, 1, 3, 39]] = words[3] = 0
    assert n == 1
    for call, found in zip(words, weighted.classes(words.copy())):
        left, expected = iter(call.tolist()), []
        for height in left:
            place = next((word % 3 for word in left if word), None)
            if place is not None:
                fraction = (height & 0x7FFFFF) / (1 << 23)
                expected.append(place if fraction < [0.5, 1, 1][place] else 2)
        assert [k for k in found if k != distributions.NONE] == expected
    learned = distributions.Learned(3).classes(np.uint64([[0, 1, 5, 0, 7]]))
    assert learned.tolist() == [[distributions.NONE, 1, 2, distributions.NONE, 1]]


class Scripted:
    """Draws what each call's first words say."""

    size, is_fixed, words, probabilities = 10, True, 1, None

    def __init__(self, *calls: list[int]) -> None:
        self.calls = calls

    def classes(self, words: np.ndarray) -> np.ndarray:
        rows = [call + [5] * words.shape[1] for call in self.calls]
        return np.array([row[: words.shape[1]] for row in rows[: len(words)]] * len(words))[: len(words)]


def test_different_classes_come_in_the_order_of_their_first_draw() -> None:
    """Without repetitions and what is no class; tries end with the last one's first draw."""
    script = Scripted([3, 3, 1, -1, 3, 1, 1, 1, 1, -1, 0, 3, 2, 9, 9, 9, 9, 9])
    chosen, tries, _ = distributions.Draws(script, SeededSequence(1, 2), 4, True).next()
    assert chosen.tolist() == [3, 1, 0, 2]
    assert tries == 11
    chosen, tries, _ = distributions.Draws(script, SeededSequence(1, 2), 4, False).next()
    assert chosen.tolist() == [3, 3, 1, 3]
    assert tries == 4


def test_calls_whose_draws_are_made_at_once_draw_what_each_does_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples = []
    for calls in (1, 3, 16):
        monkeypatch.setattr(distributions, "_CALLS", calls)
        draws = distributions.Draws(distributions.LogUniform(40), SeededSequence(1, 4), 30, True)
        samples.append([(chosen.tolist(), tries) for chosen, tries, _ in (draws.next() for _ in range(40))])
    assert samples[0] == samples[1] == samples[2]
    assert len({tuple(chosen) for chosen, _ in samples[0]}) == 40


@pytest.mark.parametrize(("size", "unique"), [(300, True), (300, False), (40, True)])
def test_what_is_expected_of_samples_is_known_with_them(size: int, unique: bool) -> None:
    """To the bit what it is of each alone; some samples have no class twice."""
    expected_of, table = distributions.expectation(distributions.Uniform(size))
    draws = distributions.Draws(distributions.Uniform(size), SeededSequence(1, 4), 11, unique, table)
    once = set()
    for chosen, tries, expected in (draws.next() for _ in range(60)):
        assert expected is not None and torch.equal(expected, expected_of(chosen, 11, tries))
        once.add(tries == 11)
    assert once == ({True, False} if unique else {True})


@pytest.mark.parametrize("size", [1, 50, (1 << 20) + 1])
@pytest.mark.parametrize(("count", "tries"), [(5, 5), (5, 9)])
def test_expected_counts_with_and_without_a_table(size: int, count: int, tries: int) -> None:
    """p count where every draw counted, else 1 - (1 - p) ** tries."""
    ids = np.unique(np.linspace(0, size - 1, 7).astype(np.int64))
    with np.errstate(divide="ignore"):
        p = zipf(size)[ids]
        expected = p * count if tries == count else -np.expm1(tries * np.log1p(-p))
    expected_of, _ = distributions.expectation(distributions.LogUniform(size))
    got = expected_of(torch.from_numpy(ids), count, tries)
    assert got.dtype is torch.float32
    np.testing.assert_allclose(got, expected, rtol=1e-6)


# ---- ops


@pytest.mark.parametrize(
    ("sampler", "probabilities"),
    [
        (tf.nn.uniform_candidate_sampler, np.full(20, 0.05)),
        (tf.nn.log_uniform_candidate_sampler, zipf(20)),
        (tf.nn.learned_unigram_candidate_sampler, np.full(20, 0.05)),
    ],
)
def test_expected_counts_of_independent_draws(sampler: Any, probabilities: np.ndarray) -> None:
    """p times the number of draws."""
    ((sampled, true_counts, sampled_counts),) = draw(lambda: sampler(TRUE, 1, 4, False, 20, seed=1))
    assert (sampled.dtype, true_counts.dtype, sampled_counts.dtype) == (np.int64, np.float32, np.float32)
    np.testing.assert_allclose(true_counts, 4 * probabilities[TRUE], rtol=1e-5)
    np.testing.assert_allclose(sampled_counts, 4 * probabilities[sampled], rtol=1e-5)


@pytest.mark.parametrize("sampler", [tf.nn.uniform_candidate_sampler, tf.nn.log_uniform_candidate_sampler])
def test_unique_samples(sampler: Any) -> None:
    """All differ; the expected counts are 1 - (1 - p) ** tries for one whole number of tries."""
    probabilities = zipf(20) if sampler is tf.nn.log_uniform_candidate_sampler else np.full(20, 0.05)
    for sampled, true_counts, sampled_counts in draw(lambda: sampler(TRUE, 1, 12, True, 20, seed=1), runs=20):
        assert len(set(sampled.tolist())) == 12
        tries = np.log1p(-np.float64(true_counts[1, 0])) / np.log1p(-probabilities[7])
        assert abs(tries - round(tries)) < 0.01
        assert round(tries) >= 12
        if round(tries) > 12:
            expected = 1 - (1 - probabilities[sampled]) ** round(tries)
            np.testing.assert_allclose(sampled_counts, expected, rtol=1e-3)


def test_expected_counts_are_how_often_classes_are_in_unique_samples() -> None:
    """Averaged over many steps, inclusion and expectation agree.

    Not for class 0: where the first six draws differ, its count is 6 p > 1, as TensorFlow has it.
    """
    runs = draw(
        lambda: tf.nn.log_uniform_candidate_sampler(np.arange(20)[:, None], 1, 6, True, 20, seed=4), 3000
    )
    included = np.mean([np.bincount(sampled, minlength=20) for sampled, _, _ in runs], 0)
    expected = np.mean([counts[:, 0] for _, counts, _ in runs], 0)
    np.testing.assert_allclose(included[1:], expected[1:], atol=0.03)


def test_a_sample_of_everything() -> None:
    ((sampled, _, _),) = draw(lambda: tf.nn.log_uniform_candidate_sampler(TRUE, 1, 500, True, 500, seed=1))
    assert sorted(sampled.tolist()) == list(range(500))


def test_seeds_repeat_the_sequence_in_every_session() -> None:
    """Steps differ, sessions do not; without seeds they do."""

    def make(seed: int | None) -> Callable[[], Any]:
        return lambda: tf.nn.log_uniform_candidate_sampler(TRUE, 1, 30, True, 5000, seed=seed)

    first, second = draw(make(5), runs=2), draw(make(5), runs=2)
    assert [sampled.tolist() for sampled, _, _ in first] == [sampled.tolist() for sampled, _, _ in second]
    assert first[0][0].tolist() != first[1][0].tolist()
    assert draw(make(6))[0][0].tolist() != first[0][0].tolist()
    assert draw(make(None))[0][0].tolist() != draw(make(None))[0][0].tolist()


@pytest.mark.parametrize("op", ["LearnedUnigramCandidateSampler", "ThreadUnsafeUnigramCandidateSampler"])
def test_unigrams_are_learned_from_step_to_step(op: str) -> None:
    """A step sees the classes of those before it; another session begins anew."""
    classes = np.int64([[3], [3], [4]])

    def make() -> Any:
        return registry[op](classes, num_true=1, num_sampled=2, unique=False, range_max=10)

    for _ in range(2):
        first, second, third = draw(make, runs=3)
        np.testing.assert_allclose(first[1][:, 0], [2 / 10] * 3, rtol=1e-6)
        np.testing.assert_allclose(second[1][:, 0], [2 * 3 / 13, 2 * 3 / 13, 2 * 2 / 13], rtol=1e-6)
        np.testing.assert_allclose(third[1][:, 0], [2 * 5 / 16, 2 * 5 / 16, 2 * 3 / 16], rtol=1e-6)


def test_weights_with_distortion_and_reserved_ids() -> None:
    """Reserved classes have probability 0 and are never drawn."""
    weights = {"unigrams": [1.0, 4.0, 9.0, 16.0], "distortion": 0.5, "num_reserved_ids": 1}

    def make() -> Any:
        return tf.nn.fixed_unigram_candidate_sampler([[0], [1], [4]], 1, 8, False, 5, **weights)

    runs = draw(make, runs=50)
    np.testing.assert_allclose(runs[0][1][:, 0], [0, 0.8, 3.2], rtol=1e-6)
    assert set(np.concatenate([sampled for sampled, _, _ in runs]).tolist()) == {1, 2, 3, 4}


def test_weights_from_a_file(tmp_path: pathlib.Path) -> None:
    """The last column counts; empty lines do not; bad lines and missing files are errors."""
    path = tmp_path / "words.csv"
    path.write_text('the,10\n"a,b",20\n\n30\n')

    def make() -> Any:
        return tf.nn.fixed_unigram_candidate_sampler([[0], [1], [2]], 1, 1, False, 3, vocab_file=str(path))

    ((_, counts, _),) = draw(make)
    np.testing.assert_allclose(counts[:, 0], [1 / 6, 2 / 6, 3 / 6], rtol=1e-6)
    path.write_text("the 10\n")
    with pytest.raises(tf.errors.InvalidArgumentError, match="Wrong vocabulary format at line: the 10"):
        draw(make)
    path.unlink()
    with pytest.raises(tf.errors.NotFoundError):
        draw(make)


def test_more_different_classes_than_have_weight() -> None:
    """An error, where drawing on would never end."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="too small"):
        draw(lambda: tf.nn.fixed_unigram_candidate_sampler([[0]], 1, 3, True, 3, unigrams=[1.0, 0.0, 1.0]))


@pytest.mark.parametrize("weights", [[0.0, 0.0], [1.0, -1.0]])
def test_impossible_weights(weights: list[float]) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="positive"):
        draw(lambda: tf.nn.fixed_unigram_candidate_sampler([[0]], 1, 1, False, 2, unigrams=weights))


def test_errors_name_the_class_out_of_range() -> None:
    message = r"out of range \[0, 20\), received 25"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        draw(lambda: tf.nn.uniform_candidate_sampler([[3], [25]], 1, 4, True, 20))


def test_many_threads_may_sample_and_learn() -> None:
    """Steps at the same time: nothing that was seen is lost."""
    with tf.Graph().as_default(), tf.Session() as session:
        sampled, true_counts, _ = tf.nn.learned_unigram_candidate_sampler(TRUE, 1, 4, False, 20)
        shapes: list[tuple[int, ...]] = []
        step = session.make_callable(sampled)
        threads = [
            threading.Thread(target=lambda: shapes.extend(step().shape for _ in range(50))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        counts = session.run(true_counts)
    assert shapes == [(4,)] * 200
    np.testing.assert_allclose(counts[:, 0], [4 * 201 / 620] * 3, rtol=1e-6)
