"""Copies of whole arrays, and checks that a plan does once."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.ops.arrays.arrays import whole_copy


@pytest.mark.parametrize("large", [0, 1 << 30])
@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.float16, torch.float64, torch.complex64, torch.complex128]
)
def test_whole_copies(set_profile: Any, dtype: torch.dtype, large: int) -> None:
    """Of any layout, and of what is a view with other signs."""
    set_profile(large_results=large)
    x = (torch.randn(37, 1003) * 50).to(dtype)
    for some in (x, x[:0], x[3, 5], x.t(), x[:, 1:], x.conj(), x.conj().imag if x.is_complex() else x[1]):
        found = whole_copy(some)
        assert (found.is_contiguous() and found.data_ptr() != some.data_ptr()) or not some.numel()
        assert found.shape == some.shape and torch.equal(found, some)


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("op", ["TensorScatterMax", "TensorScatterMin", "TensorScatterAdd"])
def test_few_rows_are_scattered_in_their_order(op: str, is_known: bool) -> None:
    """One or more, to one place or to several; NaN stays, and places that are not there are refused."""
    table = torch.arange(12.0).view(4, 3).numpy()
    for places in ([1], [2, 2], [3, 0, 3], [1, 2, 3, 1]):
        rows = torch.randn(len(places), 3).mul_(9).numpy()
        rows[0, 1] = float("nan")
        expected = torch.from_numpy(table.copy())
        function = {"x": torch.maximum, "n": torch.minimum, "d": torch.add}[op[-1]]
        for place, row in zip(places, torch.from_numpy(rows)):
            expected[place] = function(expected[place], row)
        with tf.Graph().as_default(), tf.Session() as session:
            indices = tf.placeholder(tf.int32, [len(places), 1] if is_known else None)
            y = getattr(F, op)(tf.constant(table), indices, tf.constant(rows))
            found = torch.from_numpy(session.run(y, {indices: [[place] for place in places]}))
            torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
            for wrong in (-1, 4):
                with pytest.raises(tf.errors.InvalidArgumentError):
                    session.run(y, {indices: [*[[place] for place in places[1:]], [wrong]]})
