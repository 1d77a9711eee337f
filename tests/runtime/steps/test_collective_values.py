"""What collective operations give, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from flowstone.ops.collectives.offers import BROADCAST, EXCHANGE, GATHER, REDUCE, SCATTER, Offer
from flowstone.runtime.steps.collective_values import results_of

MERGES = {"sum": np.sum, "product": np.prod, "min": np.min, "max": np.max}


def offers(kind: str, values: list[Any], **fields: Any) -> list[Offer]:
    return [
        Offer(
            kind, 1, len(values), 1, f"/cpu:{i}", "n", "float32", tuple(np.shape(value)),
            value=None if value is None else torch.from_numpy(value),
            **{name: each[i] if isinstance(each, list) else each for name, each in fields.items()},
        )
        for i, value in enumerate(values)
    ]  # fmt: skip


def values(count: int, *shape: int, dtype: Any = np.float32) -> list[Any]:
    chance = np.random.RandomState(count)
    return [(chance.randn(*shape) * 10).astype(dtype) for _ in range(count)]


@pytest.mark.parametrize("merge", MERGES)
@pytest.mark.parametrize("is_mean", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_reductions(merge: str, is_mean: bool, dtype: Any) -> None:
    given = values(3, 4, 5, dtype=dtype)
    expected = MERGES[merge](np.stack(given), axis=0)
    if is_mean:
        expected = np.trunc(expected / 3) if np.issubdtype(dtype, np.integer) else expected / 3
    results = results_of(offers(REDUCE, given, merge=merge, is_mean=is_mean))
    for result in results:
        assert result.numpy().dtype == dtype
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5)
    assert len({result.data_ptr() for result in results}) == 3


@pytest.mark.parametrize("count", [1, 2, 5])
def test_inputs_stay_as_they_are(count: int) -> None:
    given = values(count, 6)
    before = [value.copy() for value in given]
    for result in results_of(offers(REDUCE, given, merge="sum")):
        result.zero_()
    for value, old in zip(given, before):
        np.testing.assert_array_equal(value, old)


def test_gathers() -> None:
    given = values(3, 2, 4)
    for result in results_of(offers(GATHER, given)):
        np.testing.assert_array_equal(result.numpy(), np.concatenate(given))


def test_broadcasts() -> None:
    (value,) = values(1, 3)
    results = results_of(offers(BROADCAST, [None, value, None], is_source=[False, True, False]))
    for result in results:
        np.testing.assert_array_equal(result.numpy(), value)
        result.add_(1)
    np.testing.assert_array_equal(value, values(1, 3)[0])


def test_scattered_sums() -> None:
    given = values(2, 4, 3)
    results = results_of(offers(SCATTER, given, merge="sum"))
    np.testing.assert_allclose(torch.cat(results).numpy(), given[0] + given[1], rtol=1e-6)


def test_exchanges() -> None:
    given = values(2, 4, 3)
    first, second = results_of(offers(EXCHANGE, given))
    np.testing.assert_array_equal(first.numpy(), np.concatenate([given[0][:2], given[1][:2]]))
    np.testing.assert_array_equal(second.numpy(), np.concatenate([given[0][2:], given[1][2:]]))
