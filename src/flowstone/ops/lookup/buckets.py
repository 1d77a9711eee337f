"""Where a dense table of TensorFlow keeps its keys: in the first free bucket that their hash leads to.

Whoever reads such a table looks for a key in the same buckets, so that exported tables are laid out this way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.ops.strings.fingerprints import hash64

Array = np.ndarray[Any, Any]

_GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7800)
_LEFT, _RIGHT = np.uint64(10), np.uint64(4)


def places(keys: Array, buckets: int) -> Array:
    """The bucket of each key; `keys`: [count, elements of a key], `buckets`: a power of 2, more than there
    are keys. Keys that come first are placed first."""
    wanted = (_hashes(keys) & np.uint64(buckets - 1)).astype(np.int64)
    taken = np.zeros(buckets, np.bool_)
    found = np.full(len(keys), -1, np.int64)
    searching, probes = np.arange(len(keys)), 0
    while searching.size:
        free = searching[~taken[wanted[searching]]]
        _, first = np.unique(wanted[free], return_index=True)
        placed = free[first]
        found[placed] = wanted[placed]
        taken[wanted[placed]] = True
        searching = searching[found[searching] < 0]
        probes += 1
        wanted[searching] = (wanted[searching] + probes) & (buckets - 1)
    return found


def _hashes(keys: Array) -> Array:
    """The hash of each key: integers are their own, texts have the older hash of string buckets."""
    if keys.dtype == object:
        numbers = np.asarray(hash64(keys.reshape(-1).tolist()), np.uint64).reshape(keys.shape)
    else:
        numbers = keys.astype(np.int64).view(np.uint64)
    if keys.shape[1] == 1:
        first: Array = numbers[:, 0]
        return first
    hashes = np.zeros(len(keys), np.uint64)
    with np.errstate(over="ignore"):
        for column in numbers.T:
            hashes ^= column + _GOLDEN_RATIO + (hashes << _LEFT) + (hashes >> _RIGHT)
    return hashes
