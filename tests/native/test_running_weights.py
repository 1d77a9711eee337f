"""Running weights of classes by machine code, beside ATen's kernels: the same bits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import flowstone as tf
from code_texts import shown_functions
from flowstone.framework import flags
from flowstone.native import host, running_weights
from flowstone.ops.randomness import class_weights

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize("team", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_text_is_valid(monkeypatch, team, dtype) -> None:
    has = host.has
    monkeypatch.setattr(host, "has", lambda name: has(name) if "Sleef" in name else team)
    text = running_weights.running_weights_code(dtype, 4)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == {"weigh"}


def both(monkeypatch, logits):
    found = []
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        found.append(class_weights.running_weights(logits))
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (3, 2), (5, 4), (7, 19), (400, 100)])
def test_sums(monkeypatch, dtype, shape) -> None:
    logits = torch.from_numpy(np.random.default_rng(shape[1]).normal(0, 9, shape)).to(dtype)
    if shape[1] > 1:
        logits[::2, 1] = -INF
    native = running_weights.running_weights(dtype)
    assert native is not None and native(logits) is not None
    plain, fast = both(monkeypatch, logits)
    torch.testing.assert_close(fast, plain, rtol=0, atol=0)


@pytest.mark.parametrize("strange", [INF, NAN, -INF])
@pytest.mark.parametrize("place", [0, 5])  # among vectors, and after them
def test_logits_that_are_not_finite_have_no_weight(monkeypatch, strange, place) -> None:
    logits = torch.linspace(-1, 1, 6).repeat(2, 1)
    logits[1, place] = strange
    plain, fast = both(monkeypatch, logits)
    torch.testing.assert_close(fast, plain, rtol=0, atol=0)
    weights = fast.diff(dim=1, prepend=torch.zeros(2, 1, dtype=torch.float64))
    assert weights[1, place] == 0 and weights[1].amax() == 1 and (weights[0] > 0).all()


@pytest.mark.parametrize("name", ["Multinomial", "StatelessMultinomial"])
def test_choices_are_the_same_with_it_and_without(monkeypatch, name) -> None:
    found, seeds = [], {"seed": [3, 4]} if name.startswith("Stateless") else {"seed": 3, "seed2": 4}
    logits = np.random.default_rng(1).normal(0, 2, (30, 50)).astype(np.float32)
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            fed = tf.placeholder(tf.float32, [30, 50])
            found.append(
                session.run(getattr(tf.raw_ops, name)(logits=fed, num_samples=9, **seeds), {fed: logits})
            )
    np.testing.assert_array_equal(*found)
    assert len(set(found[0].reshape(-1).tolist())) > 10
