"""Hashes are TensorFlow's own; long and many strings take other ways to the same values."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

from flowstone.ops.strings import fingerprints
from flowstone.ops.strings.fingerprints import fingerprint64, fingerprint_cat64, hash64, sip_hash
from hashed_strings import BUCKETS, KEY, STRINGS

GOLDEN = np.load(pathlib.Path(__file__).parents[2] / "golden" / "strings" / "hashes.npz")


def _sip(strings: list[bytes]) -> Any:
    return sip_hash(strings, KEY)


def test_values_are_tensorflows() -> None:
    np.testing.assert_array_equal(fingerprint64(STRINGS), GOLDEN["fingerprint"])
    np.testing.assert_array_equal(_sip(STRINGS) % np.uint64(BUCKETS), GOLDEN["strong"].astype(np.uint64))
    np.testing.assert_array_equal(hash64(STRINGS) % np.uint64(BUCKETS), GOLDEN["old"].astype(np.uint64))


@pytest.mark.parametrize("function", [fingerprint64, _sip, hash64])
@pytest.mark.parametrize(("few", "block"), [(0, 8192), (1000, 8192), (4, 7)])
def test_one_by_one_together_and_in_blocks(
    function: Any, few: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = function(STRINGS)
    monkeypatch.setattr(fingerprints, "_FEW", few)
    monkeypatch.setattr(fingerprints, "BLOCK", block)
    np.testing.assert_array_equal(function(STRINGS), expected)
    assert function([]).shape == (0,)


@pytest.mark.filterwarnings("error")
def test_two_fingerprints_make_one() -> None:
    a, b = fingerprint64([b"first", b"second"])
    crossed = fingerprint_cat64(fingerprint_cat64(np.uint64(956888297470), a), b)
    assert int(crossed) == 3329996670370653221  # what TensorFlow's SparseCross gives for this key
    np.testing.assert_array_equal(fingerprint_cat64([a, b], b)[0], fingerprint_cat64(a, b))
