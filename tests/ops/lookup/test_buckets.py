"""Keys of dense tables lie in the buckets where TensorFlow 1.15.5 exported them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flowstone.ops.lookup.buckets import places

EXPORTED: list[tuple[list[Any], list[int]]] = [
    ([[5], [7], [-3], [100], [2**40 + 5], [21], [37]], [5, 7, 13, 4, 6, 8, 11]),
    ([[b"a"], [b"bc"], [b"hello"], [b"x"]], [12, 14, 10, 0]),
    ([[1, 2], [3, 4], [0, 0], [7, 9]], [3, 7, 0, 14]),
    ([[b"a", b"b"], [b"c", b"d"]], [5, 15]),
]


@pytest.mark.parametrize(("keys", "expected"), EXPORTED)
def test_places_are_tensorflows(keys: list[Any], expected: list[int]) -> None:
    kind = object if isinstance(keys[0][0], bytes) else np.int64
    assert places(np.array(keys, kind), 16).tolist() == expected


def test_each_key_is_found_by_probing() -> None:
    keys = np.random.default_rng(0).integers(-100, 100, 50, np.int64) * 8 - 1
    keys = np.unique(keys)[:, None]
    found = places(keys, 64)
    assert len(set(found.tolist())) == len(keys)
    for key, place in zip(keys[:, 0].tolist(), found.tolist()):
        at, probes = key & 63, 0
        while at != place:
            assert at in found
            probes += 1
            at = (at + probes) & 63


def test_no_keys() -> None:
    assert places(np.zeros([0, 2], np.int64), 4).shape == (0,)
