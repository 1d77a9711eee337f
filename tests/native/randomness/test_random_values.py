"""Random numbers by machine code are those that ATen computes, whatever the counter, the key and the size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.native import offers
from flowstone.native.codegen import host
from flowstone.native.randomness import random_values
from flowstone.ops.randomness import philox
from flowstone.ops.randomness.philox import State

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")

CPU = torch.device("cpu")
STATES = [
    State(0, 0),
    State(0x123456789ABCDEF0, 7),
    State((1 << 64) - 1, (1 << 128) - 3),
    State(0xFEDCBA9876543210, (1 << 64) - 5),
    State(1 << 63, 1 << 63),
]
DRAWS = {"uniform": philox.uniform, "normal": philox.normal, "truncated": philox.truncated_normal}


def units_apart(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest difference in units in the last place."""
    if found.dtype is torch.bfloat16:
        found, expected = found.float(), expected.float()
    a, b = found.numpy(), expected.numpy()
    return float((np.abs(a - b) / np.spacing(np.abs(b))).max(initial=0))


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("how", DRAWS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("count", [0, 1, 4, 7, 1024, 4099])
def test_numbers_are_aten_s(monkeypatch, state, how, dtype, count) -> None:
    monkeypatch.setattr(philox, "random_values", random_values.random_values)
    found = DRAWS[how](state, count, dtype, CPU)
    fixed = DRAWS[how].of([count], dtype, CPU)(state)
    monkeypatch.setattr(philox, "random_values", lambda how, dtype: None)
    expected = DRAWS[how](state, count, dtype, CPU)
    assert torch.equal(found, fixed)
    assert found.dtype is dtype
    assert units_apart(found, expected) <= (0 if how == "uniform" else 3)
    if how == "truncated":
        assert (found.abs() <= 2 if dtype.itemsize == 2 else found.abs() < 2).all()


def test_few_normal_numbers_differ_from_aten_s(monkeypatch) -> None:
    monkeypatch.setattr(philox, "random_values", random_values.random_values)
    found = philox.normal(STATES[1], [100, 1000], torch.float32, CPU)
    monkeypatch.setattr(philox, "random_values", lambda how, dtype: None)
    expected = philox.normal(STATES[1], [100, 1000], torch.float32, CPU)
    assert found.shape == (100, 1000)
    assert (found != expected).float().mean() < 1e-3
    assert units_apart(found, expected) <= 1


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", [torch.int32, torch.int64, torch.uint32, torch.uint64])
@pytest.mark.parametrize(
    ("low", "width"),
    [(0, 1), (0, 6), (-5, 105), (3, (1 << 31) + 1), (-(1 << 31), (1 << 32) - 1), (0, (1 << 31) - 1)],
)
def test_integers_are_aten_s(monkeypatch, state, kind, low, width) -> None:
    low = max(low, torch.iinfo(kind).min)
    high = min(low + width, torch.iinfo(kind).max)
    monkeypatch.setattr(philox, "random_values", random_values.random_values)
    found = philox.integers_between(state, [13, 7], low, high, kind, CPU)
    fixed = philox.integers_of([13, 7], low, high, kind, CPU)(state)
    monkeypatch.setattr(philox, "random_values", lambda how, dtype: None)
    expected = philox.integers_between(state, [13, 7], low, high, kind, CPU)
    assert found.dtype is expected.dtype is kind
    assert fixed.tolist() == found.tolist() == expected.tolist()


@pytest.mark.parametrize("width", [2, 3, 5, 641, (1 << 16) + 1, (1 << 31) - 1, 6700417, (1 << 32) - 3])
def test_rests_of_many_words(monkeypatch, width: int) -> None:
    monkeypatch.setattr(philox, "random_values", random_values.random_values)
    found = philox.integers_between(STATES[1], 100_000, 0, width, torch.uint32, CPU)
    words = philox.words(STATES[1], 100_000, CPU)
    assert torch.equal(found.long(), words % width)


def test_the_widest_integers(monkeypatch) -> None:
    low, high = -(1 << 63), (1 << 63) - 1
    monkeypatch.setattr(philox, "random_values", random_values.random_values)
    found = philox.integers_between(STATES[1], 50, low, high, torch.int64, CPU)
    monkeypatch.setattr(philox, "random_values", lambda how, dtype: None)
    assert torch.equal(found, philox.integers_between(STATES[1], 50, low, high, torch.int64, CPU))


@pytest.mark.parametrize("how", DRAWS)
def test_a_team_draws_the_same(monkeypatch, how) -> None:
    given = STATES[3], 300_001, torch.float32, CPU
    monkeypatch.setattr(philox, "random_values", random_values.random_values)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    alone = DRAWS[how](*given)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert torch.equal(DRAWS[how](*given), alone)


@pytest.mark.parametrize("name", random_values.NAMES)
def test_code_made_quickly_is_replaced(monkeypatch, tmp_path, name) -> None:
    """It draws what the best draws, which is awaited only by who draws much."""
    monkeypatch.setattr(flags, "CACHE", str(tmp_path))
    monkeypatch.setattr(flags, "NATIVE", 1)
    later = []
    monkeypatch.setattr(random_values.making, "later", later.append)
    monkeypatch.setattr(random_values, "_SOME", 1500)
    filling = random_values._Filling(name, 20)
    found, expected = torch.zeros(2, 1001, dtype=torch.int64)
    filling(5, 7, found, 0, 1001)
    assert [each.is_quick for each in filling._modules] == [True] and not later  # few are drawn
    filling(5, 7, found, 0, 1001)
    later.pop()()
    filling(5, 7, expected, 0, 1001)
    assert [each.is_quick for each in filling._modules] == [True, False] and not later
    assert torch.equal(found, expected) and found.any()
    much = random_values._Filling(name, 20)
    monkeypatch.setattr(random_values, "_MANY", 1000)
    much(5, 7, found, 0, 1001)
    assert [each.is_quick for each in much._modules] == [False] and not later
    assert torch.equal(found, expected)


def test_kernels_are_offered_it(monkeypatch) -> None:
    offers.offer_all()
    assert philox.random_values("normal", torch.float32) is not None
    assert philox.random_values("normal", torch.float16) is None
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert philox.random_values("normal", torch.float32) is None


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("count", [0, 1, 2, 32, 33, 34, 1000])
def test_permutations_are_python_s(monkeypatch, state, count) -> None:
    monkeypatch.setattr(philox, "random_values", random_values.random_values)
    found = philox.permutation(state, count)
    monkeypatch.setattr(philox, "random_values", lambda how, dtype: None)
    expected = philox.permutation(state, count)
    assert found.dtype is expected.dtype is torch.int64
    assert found.tolist() == expected.tolist()
    assert sorted(found.tolist()) == list(range(count))


@pytest.mark.parametrize("shape", [[], [1], [0], [2, 0, 3], [2, 3]], ids=str)
@pytest.mark.parametrize(
    "draw",
    [
        lambda shape: tf.random_uniform(shape, seed=3),
        lambda shape: tf.random_uniform(shape, dtype=tf.float64, seed=3),
        lambda shape: tf.random_uniform(shape, maxval=9, dtype=tf.int32, seed=3),
        lambda shape: tf.random_normal(shape, seed=3),
        lambda shape: tf.truncated_normal(shape, seed=3),
    ],
    ids=["uniform", "doubles", "integers", "normal", "truncated"],
)
def test_seeded_numbers_of_every_rank(draw: Any, shape: list[int]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        numbers = draw(shape)
        found = [session.run(numbers) for _ in range(3)]
        fed = tf.placeholder(tf.int32, [None])
        of_fed_shape = draw(fed)
        again = [session.run(of_fed_shape, {fed: shape}) for _ in range(3)]
    for first, second in zip(found, again):
        assert first.shape == tuple(shape)
        np.testing.assert_array_equal(first, second)
