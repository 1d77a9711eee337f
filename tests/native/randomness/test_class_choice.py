"""Random choices of classes by machine code, beside ATen's kernels: the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import flowstone as tf
from code_texts import shown_functions
from flowstone.framework import flags
from flowstone.native import offers
from flowstone.native.codegen import host
from flowstone.native.randomness import class_choice
from flowstone.ops.randomness import class_weights

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize("team", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_text_is_valid(monkeypatch, team, dtype) -> None:
    has = host.has
    monkeypatch.setattr(host, "has", lambda name: has(name) if "Sleef" in name else team)
    text = class_choice.class_choice_code(dtype, host.lanes() // 2)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == {"draw"}


def both(monkeypatch, logits, uniform):
    """What is chosen without machine code and with it; whether that chose."""
    called, call = [], class_choice.ClassChoice.__call__

    def watched(*given):
        called.append(call(*given) is not None)
        return call(*given)

    monkeypatch.setattr(class_choice.ClassChoice, "__call__", watched)
    found = []
    offers.offer_all()
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        found.append(class_weights.chosen_classes(logits, uniform))
    torch.testing.assert_close(*found)
    return found[1], called


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (3, 2), (5, 4), (7, 19), (400, 100), (20, 1000)])
@pytest.mark.parametrize("samples", [0, 1, 33])
def test_choices(monkeypatch, dtype, shape, samples) -> None:
    random = np.random.default_rng(shape[1])
    logits = torch.from_numpy(random.normal(0, 3, shape)).to(dtype)
    if shape[1] > 1:
        logits[::2, 1] = -INF
    uniform = torch.from_numpy(random.uniform(0, 1, (shape[0], samples)))
    assert both(monkeypatch, logits, uniform)[1] == [True]


def test_a_sum_itself_is_not_above(monkeypatch) -> None:
    logits = torch.zeros(3, 64)
    logits[1, ::3] = -INF  # sums that occur twice
    uniform = (torch.arange(64, dtype=torch.float64) / 64).repeat(3, 1)
    found, called = both(monkeypatch, logits, uniform)
    assert called == [True]
    assert found[0].tolist() == list(range(64)) and not (found[1] % 3 == 0).any()


@pytest.mark.parametrize("strange", [INF, NAN])
@pytest.mark.parametrize("place", [0, 5])  # among vectors, and after them
def test_logits_that_are_not_finite_are_never_chosen(monkeypatch, strange, place) -> None:
    logits, uniform = (
        torch.linspace(-1, 1, 6).repeat(2, 1),
        torch.linspace(0, 0.999, 99).double().repeat(2, 1),
    )
    logits[1, place] = strange
    found, called = both(monkeypatch, logits, uniform)
    assert called == [False]
    assert set(found[1].tolist()) == set(range(6)) - {place}


@pytest.mark.parametrize("name", ["Multinomial", "StatelessMultinomial"])
def test_ops_choose_the_same_with_it_and_without(monkeypatch, name) -> None:
    found, seeds = [], {"seed": [3, 4]} if name.startswith("Stateless") else {"seed": 3, "seed2": 4}
    logits = np.random.default_rng(1).normal(0, 2, (30, 50)).astype(np.float32)
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            fed = tf.placeholder(tf.float32, [30, 50])
            chosen = getattr(tf.raw_ops, name)(logits=fed, num_samples=9, **seeds)
            found.append(session.run(chosen, {fed: logits}))
    np.testing.assert_array_equal(*found)
    assert len(set(found[0].reshape(-1).tolist())) > 10
