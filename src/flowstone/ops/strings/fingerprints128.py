"""Fingerprints of 128 bits of byte strings, the same on every machine and in every release.

`fingerprint128` is FarmHash's Fingerprint128 (G. Pike, FarmHash, 2014), the ``farmhashcc`` variant that its
authors promise to keep. Strings are hashed together, as in `fingerprints.py`.

>>> [hex(word) for word in fingerprint128([b""])[0].tolist()]
['0x3df09dfc64c09a2b', '0x3cb540c392e51e29']
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowstone.ops.strings.fingerprints import (
    K0,
    K1,
    Words,
    absorb,
    farm_round,
    fingerprints_of,
    rotate,
    shift_mix,
    weak_pair,
)
from flowstone.ops.strings.packed import WORD, Packed

_PAIR = np.uint64(0x9DDFEA08EB382D69)  # the multiplier that mixes two words
_BLOCK, _ROUND, _STEP, _TAIL = 128, 64, 16, 32  # bytes


def fingerprint128(strings: Sequence[bytes]) -> Words:
    """FarmHash's Fingerprint128 of each string: uint64 [strings, 2], the lower half first."""
    packed = Packed(strings)
    starts, lengths = packed.starts, packed.lengths
    result = np.empty((len(starts), 2), np.uint64)
    short = lengths < _STEP
    first, second = np.full(len(starts), K0), np.full(len(starts), K1)
    long = ~short
    first[long] = packed.words(starts[long])
    second[long] = packed.words(starts[long] + WORD) + K0
    starts, lengths = starts + long * _STEP, lengths - long * _STEP  # the seed has taken the first bytes
    beyond = lengths >= _BLOCK
    for chosen, function in ((~beyond, _murmur), (beyond, _rounds)):
        at = np.flatnonzero(chosen)
        if at.size:
            result[at] = function(packed, starts[at], lengths[at], first[at], second[at])
    return result


def _mixed(u: Words, v: Words) -> Words:
    """128 bits to 64."""
    a = shift_mix((u ^ v) * _PAIR)
    result: Words = shift_mix((v ^ a) * _PAIR) * _PAIR
    return result


# ---- strings below 128 bytes


def _murmur(packed: Packed, starts: Words, lengths: Words, a: Words, b: Words) -> Words:
    size = lengths.astype(np.uint64)
    state = np.empty((4, len(starts)), np.uint64)
    small = lengths <= _STEP
    at = np.flatnonzero(small)
    if at.size:
        state[:, at] = _seeded_small(packed, starts[at], lengths[at], a[at], b[at])
    at = np.flatnonzero(~small)
    if at.size:
        ends = starts[at] + lengths[at]
        c = _mixed(packed.words(ends - WORD) + K1, a[at])
        d = _mixed(b[at] + size[at], c + packed.words(ends - _STEP))
        state[:, at] = a[at] + d, b[at], c, d
    rounds = np.maximum(-(-(lengths - _STEP) // _STEP), 0)
    order = np.argsort(-rounds, kind="stable")
    state = state[:, order]
    absorb(state, starts[order], rounds[order], _STEP, lambda part, place: _step(packed, part, place))
    a, b = _mixed(state[0], state[2]), _mixed(state[3], state[1])
    result = np.empty((len(starts), 2), np.uint64)
    result[order] = np.stack([a ^ b, _mixed(b, a)], 1)
    return result


def _seeded_small(
    packed: Packed, starts: Words, lengths: Words, a: Words, b: Words
) -> tuple[Words, Words, Words, Words]:
    """The state of strings of at most 16 bytes, which have no rounds."""
    a = shift_mix(a * K1) * K1
    c = b * K1 + fingerprints_of(Packed.of(packed.buffer, starts, lengths))
    last = np.where(lengths >= WORD, packed.words(starts), c)
    return a, b, c, shift_mix(a + last)


def _step(packed: Packed, state: Words, place: Words) -> tuple[Words, ...]:
    a, b, c, d = state
    a = (a ^ (shift_mix(packed.words(place) * K1) * K1)) * K1
    c = (c ^ (shift_mix(packed.words(place + WORD) * K1) * K1)) * K1
    b = b ^ a
    return a, b, c, d ^ c


# ---- longer strings


def _rounds(packed: Packed, starts: Words, lengths: Words, x: Words, y: Words) -> Words:
    rounds = lengths // _BLOCK * 2
    order = np.argsort(-rounds, kind="stable")
    starts, lengths, x, y = starts[order], lengths[order], x[order], y[order]
    z = lengths.astype(np.uint64) * K1
    v0 = rotate(y ^ K1, 49) * K1 + packed.words(starts)
    v1 = rotate(v0, 42) * K1 + packed.words(starts + 8)
    w0 = rotate(y + z, 35) * K1 + x
    w1 = rotate(x + packed.words(starts + 88), 53) * K1
    state = np.stack([x, y, z, v0, v1, w0, w1])
    absorb(state, starts, rounds[order], _ROUND, lambda part, place: farm_round(packed, place, part, K1))
    left = lengths % _BLOCK
    x, y, z, v0, v1, w0, w1 = state
    x = x + rotate(v0 + z, 49) * K0
    y, z = y * K0 + rotate(w1, 37), z * K0 + rotate(w0, 27)
    state = np.stack([x, y, z, v0 * K0, v1, w0 * np.uint64(9), w1])
    state = _absorb_tails(packed, starts + lengths, left, state)
    x, y, z, v0, v1, w0, w1 = state
    x, y = _mixed(x, v0), _mixed(y + z, w0)
    result = np.empty((len(starts), 2), np.uint64)
    result[order] = np.stack([_mixed(x + v1, w1) + y, _mixed(x + w1, y + v1)], 1)
    return result


def _absorb_tails(packed: Packed, ends: Words, left: Words, state: Words) -> Words:
    """The state after what whole blocks leave of each string, in steps of 32 bytes from its end."""
    for done in range(_TAIL, _BLOCK + 1, _TAIL):
        at = np.flatnonzero(left > done - _TAIL)
        if not at.size:
            break
        place = ends[at] - done
        x, y, z, v0, v1, w0, w1 = state[:, at]
        y = rotate(x + y, 42) * K0 + v1
        w0 = w0 + packed.words(place + 16)
        x = x * K0 + w0
        z = z + w1 + packed.words(place)
        w1 = w1 + v0
        v0, v1 = weak_pair(packed, place, v0 + z, v1)
        state[:, at] = x, y, z, v0 * K0, v1, w0, w1
    return state
