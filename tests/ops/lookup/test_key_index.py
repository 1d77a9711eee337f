"""Indexes against a dictionary, with keys that collide and keys that come back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flowstone.framework import flags
from flowstone.native import offers
from flowstone.ops.lookup.key_index import NumberIndex, ObjectIndex


@pytest.mark.parametrize("spread", [1, 64, 2**32, 2**60])
@pytest.mark.parametrize("seed", range(3))
def test_numbers(seed: int, spread: int) -> None:
    random = np.random.RandomState(seed)
    index, expected, rows = NumberIndex(), {}, 0
    for _ in range(60):
        keys = random.randint(-40, 40, random.randint(0, 60)) * spread
        if random.rand() < 0.6:
            given = index.add(keys).tolist()
            for key, row in zip(keys.tolist(), given):
                if key not in expected:
                    expected[key] = rows
                    rows += 1
                assert row == expected[key]
        else:
            gone = [expected.pop(key) for key in set(keys.tolist()) if key in expected]
            assert sorted(index.remove(keys).tolist()) == sorted(gone)
        asked = random.randint(-50, 50, 100) * spread
        assert index.find(asked).tolist() == [expected.get(key, -1) for key in asked.tolist()]


def test_objects() -> None:
    index = ObjectIndex()
    assert index.add([b"a", (b"b", 1), b"a"]).tolist() == [0, 1, 0]
    assert index.find([]).tolist() == [] and index.find([b"x"]).tolist() == [-1]
    assert index.remove([b"a", b"a", b"x"]).tolist() == [0]
    assert index.add([b"a", b"c"]).tolist() == [2, 3]
    assert index.find([b"a", b"x", (b"b", 1)]).tolist() == [2, -1, 1]


@pytest.mark.parametrize("native", [2, 0])
def test_many_bytes(native: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by machine code once the index was asked for as many keys as it has."""
    offers.offer_all()
    monkeypatch.setattr(flags, "NATIVE", native)
    index = ObjectIndex()
    keys = [b"key %d" % i for i in range(100)]
    asked = [b"key 7", b"", *[b"key %d" % i for i in range(140, 60, -1)]]
    expected = [7, -1, *[-1] * 41, *range(99, 60, -1)]
    assert index.add(keys).tolist() == list(range(100))
    for _ in range(3):
        assert index.find(asked).tolist() == expected
    assert (index._texts is not None) == (native > 0)
    assert index.remove(keys[80:]).tolist() == list(range(80, 100))
    assert index.add(keys[90:]).tolist() == list(range(100, 110))
    for _ in range(4):
        assert index.find(keys[25:]).tolist() == [*range(25, 80), *[-1] * 10, *range(100, 110)]
    assert index.find([*keys[25:], ("no", "bytes")]).tolist()[-2:] == [109, -1]


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, np.float16, bool])
def test_types(dtype: Any) -> None:
    index = NumberIndex()
    keys = np.array([0, 1, -0.0, 1], np.float64).astype(dtype)
    assert index.add(keys).tolist() == [0, 1, 0, 1]
    assert index.find(np.array([1, 0], dtype)).tolist() == [1, 0]
