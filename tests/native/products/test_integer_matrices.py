"""Products of int32 matrices by machine code are ATen's, whatever the sizes and the order in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from code_texts import shown_functions
from flowstone.framework import flags
from flowstone.framework.machine import number_code
from flowstone.native import offers
from flowstone.native.codegen import host
from flowstone.native.products import integer_matrices

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")


@pytest.mark.parametrize("lanes", [2, 8, 16])
@pytest.mark.parametrize("team", [False, True])
def test_the_text_is_valid_and_has_its_function(monkeypatch: Any, lanes: int, team: bool) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = integer_matrices.integer_matrices_code(lanes)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == set(integer_matrices.PLACES)


@pytest.mark.parametrize(
    "sizes",
    [(6, 171, 16), (7, 1100, 33), (64, 64, 64), (290, 35, 180), (23, 600, 130), (1, 300, 300), (300, 300, 1)],
)
def test_products_wrap_around_as_those_of_aten(sizes: tuple[int, int, int]) -> None:
    rows, inner, columns = sizes
    chance = torch.Generator().manual_seed(sum(sizes))
    limits = torch.iinfo(torch.int32)
    a, b = (
        torch.randint(limits.min, limits.max, shape, dtype=torch.int32, generator=chance)
        for shape in ((rows, inner), (inner, columns))
    )
    multiply = integer_matrices.IntegerMatrices()
    for x in (a, a.t().contiguous().t(), torch.cat([a, a], 1)[:, :inner]):
        for y in (b, b.t().contiguous().t(), torch.cat([b, b], 1)[:, columns:]):
            assert torch.equal(multiply(x, y), torch.mm(a, b))


def test_empty_matrices_and_sizes_that_do_not_fit() -> None:
    multiply = integer_matrices.IntegerMatrices()
    assert (
        multiply(torch.ones(3, 0, dtype=torch.int32), torch.ones(0, 4, dtype=torch.int32)).tolist()
        == [[0] * 4] * 3
    )
    with pytest.raises(RuntimeError):
        multiply(torch.ones(60, 50, dtype=torch.int32), torch.ones(60, 50, dtype=torch.int32))


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_steps_are_the_same_with_and_without(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    chance = np.random.default_rng(0)
    x, y = (chance.integers(0, 2**31, shape).astype(dtype) for shape in ((90, 70), (70, 50)))
    found = []
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            a, b, turned = (tf.placeholder(dtype, shape) for shape in ((90, 70), (70, 50), [None, None]))
            results = [tf.matmul(a, b), tf.matmul(b, a, True, True), tf.matmul(turned, b)]
            found.append(session.run(results, {a: x, b: y, turned: x}))
    for plain, fast in zip(*found):
        np.testing.assert_array_equal(fast, plain)
    np.testing.assert_array_equal(found[0][0], x @ y)


def test_kernels_are_offered_it_where_there_is_a_native_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    offers.offer_all()
    monkeypatch.setattr(flags, "NATIVE", 2)
    assert isinstance(number_code.integer_matrices(), integer_matrices.IntegerMatrices)
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert number_code.integer_matrices() is None
