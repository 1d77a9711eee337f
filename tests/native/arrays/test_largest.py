"""The largest of rows: beside a stable sort, whatever is equal, infinite or no number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from code_texts import shown_functions
from flowstone.framework import flags
from flowstone.native.arrays import largest
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
TYPES = ["float16", "float32", "float64", "int32", "int64"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("lanes", [2, 8, 16])
@pytest.mark.parametrize("team", [False, True])
def test_the_text_is_valid_and_has_its_function(monkeypatch: Any, dtype: str, lanes: int, team: bool) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = largest.largest_code(dtype, lanes)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == set(largest.PLACES)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(1,), (7,), (3, 1), (3, 16), (2, 3, 17), (5, 100), (1, 3000), (90, 2500)])
@pytest.mark.parametrize("distinct", [2, 10, 1 << 20])
def test_largest_are_the_first_of_a_stable_sort(dtype: str, shape: Any, distinct: int) -> None:
    chance = torch.Generator().manual_seed(sum(shape))
    x = torch.randint(-distinct, distinct, shape, generator=chance).to(getattr(torch, dtype))
    if x.is_floating_point():
        flat = x.view(-1)
        flat[:: max(len(flat) // 5, 1)] = torch.nan
        flat[1 :: max(len(flat) // 4, 1)] = torch.inf
        flat[2 :: max(len(flat) // 3, 1)] = -0.0
    rows = x.transpose(0, -1).contiguous().transpose(0, -1)
    values, places = torch.sort(x, dim=-1, descending=True, stable=True)
    for count in {1, min(4, shape[-1]), min(32, shape[-1])}:
        found = largest.Largest(dtype)(rows, count)
        assert found is not None
        assert torch.equal(found[1], places[..., :count].int())
        assert torch.equal(found[0].nan_to_num(7), values[..., :count].nan_to_num(7))


def test_other_counts_are_left_to_others() -> None:
    find = largest.Largest("float32")
    assert find(torch.zeros(3, 50), 33) is None
    assert find(torch.zeros(3, 50), 0) is None
    assert find(torch.zeros(0, 50), 3) is None
    assert largest.largest(torch.bfloat16) is None


def test_steps_are_the_same_with_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    x, results = np.random.default_rng(0).integers(0, 50, size=(3, 4, 60)).astype("f"), []
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            fed = tf.placeholder(tf.float32, [None, 4, None])
            values, places = tf.nn.top_k(fed, 5)
            results.append(session.run([values, places, tf.gradients(values * values, fed)[0]], {fed: x}))
            with pytest.raises(tf.errors.InvalidArgumentError, match="at least k=5 columns"):
                session.run(values, {fed: x[:, :, :4]})
    for one, other in zip(*results):
        np.testing.assert_array_equal(one, other)
