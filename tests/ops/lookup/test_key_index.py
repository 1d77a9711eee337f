"""Indexes against a dictionary, with keys that collide and keys that come back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flowstone.ops.lookup import key_index
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


def test_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by fingerprints once the index is large and was asked for as many keys as it has."""
    monkeypatch.setattr(key_index, "_MANY", 10)
    monkeypatch.setattr(key_index, "_LARGE", 20)
    index = ObjectIndex()
    keys = [b"key %d" % i for i in range(50)]
    asked = [b"key 7", b"", *[b"key %d" % i for i in range(60, 30, -1)]]
    expected = [7, -1, *[-1] * 11, *range(49, 30, -1)]
    assert index.add(keys).tolist() == list(range(50))
    for _ in range(3):
        assert index.find(asked).tolist() == expected
    assert index.remove(keys[40:]).tolist() == list(range(40, 50))
    assert index.add(keys[45:]).tolist() == list(range(50, 55))
    for _ in range(4):
        assert index.find(keys[35:]).tolist() == [*range(35, 40), *[-1] * 5, *range(50, 55)]


def test_equal_fingerprints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys, and others asked for, may have one fingerprint."""
    monkeypatch.setattr(key_index, "_MANY", 1)
    monkeypatch.setattr(key_index, "_LARGE", 1)
    monkeypatch.setattr(key_index, "fingerprints_of", lambda packed: packed.lengths)
    index = ObjectIndex()
    index.add([b"a", b"bb", b"ccc"])
    for _ in range(3):
        assert index.find([b"ccc", b"xx", b"bb", b"dddd"]).tolist() == [2, -1, 1, -1]
    index.add([b"yy"])
    for _ in range(3):
        assert index.find([b"ccc", b"xx", b"bb", b"yy"]).tolist() == [2, -1, 1, 3]


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, np.float16, bool])
def test_types(dtype: Any) -> None:
    index = NumberIndex()
    keys = np.array([0, 1, -0.0, 1], np.float64).astype(dtype)
    assert index.add(keys).tolist() == [0, 1, 0, 1]
    assert index.find(np.array([1, 0], dtype)).tolist() == [1, 0]
