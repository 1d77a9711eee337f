"""Integers that stand for a number, one by one and in tensors."""

from __future__ import annotations

import random

import pytest
import torch

from flowstone.framework.types import dtypes
from flowstone.ops.quantization.ranges import Levels, to_floats, to_integers

LOWS = (0.0, -1.0, -1e-30, -7.3, 12.5, -4e4, 1e38, -1e38)


@pytest.mark.parametrize("new", [dtypes.qint32, dtypes.quint8, dtypes.qint16])
@pytest.mark.parametrize("old", [dtypes.qint8, dtypes.quint8, dtypes.qint16, dtypes.quint16, dtypes.qint32])
def test_one_number_is_converted_as_tensors_are(old: dtypes.DType, new: dtypes.DType) -> None:
    draw = random.Random(old.name + new.name)
    for low in LOWS:
        for width in (0.0, 1.0, 1e6, *[draw.uniform(0, 9) for _ in range(20)]):
            least = draw.choice(LOWS[:6])
            first = Levels(old, low, low + width)
            for second in (
                Levels(new, least, least + width),
                Levels(new, -width, width),
                Levels(new, 1.0, 1.0),
            ):
                number = to_floats(torch.tensor(first.lowest), first)
                assert float(number) == pytest.approx(first.low_steps, rel=1e-6, abs=1e-38)
                for each in (float(number), draw.uniform(-9, 9)):
                    expected = int(to_integers(torch.tensor(each, dtype=torch.float32), second))
                    assert second.nearest(each) == expected
