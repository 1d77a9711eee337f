"""Fingerprints of byte strings that are the same on every machine and in every release.

- `fingerprint64`: FarmHash Fingerprint64, the ``farmhashna`` variant that its authors promise to keep
  (G. Pike, FarmHash, 2014);
- `sip_hash`: SipHash-2-4 with a key of 128 bits (J.-P. Aumasson, D. Bernstein, SipHash, 2012);
- `hash64`: MurmurHash64A (A. Appleby, 2008) with the seed of TensorFlow's older hash.

Each takes byte strings and gives one uint64 a string. Strings are hashed together: NumPy computes one step of
the algorithm for all that need it. Arithmetic is modulo 2^64.

>>> fingerprint64([b"hello", b"world"]).tolist()
[13009744463427800296, 16436542438370751598]
>>> sip_hash([b"hello"], (1, 2)).tolist() == sip_hash([b"hello"], (1, 3)).tolist()
False
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowstone.ops.strings.packed import BLOCK, WORD, Packed

Words = np.ndarray[Any, Any]

K0, K1, K2 = (np.uint64(k) for k in (0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F))
_MURMUR = np.uint64(0xC6A4A7935BD1E995)
_ROUND = 64  # bytes that a round of FarmHash takes
_FEW = 4


# ---- what they share


def _in_blocks(hashes: Callable[[Packed], Words], strings: Sequence[bytes]) -> Words:
    """`hashes` of so many strings at a time that what it computes with stays in the processor's cache."""
    if len(strings) <= BLOCK:
        return hashes(Packed(strings))
    parts = [hashes(Packed(strings[i : i + BLOCK])) for i in range(0, len(strings), BLOCK)]
    return np.concatenate(parts)


def absorb(
    state: Words, starts: Words, rounds: Words, size: int, step: Callable[[Any, Any], Sequence[Any]]
) -> None:
    """Changes the columns of `state` by a `step` for each of so many blocks of `size` bytes; `rounds` falls.

    ``step(columns, places)`` computes with arrays while many strings have blocks left, then with the numbers
    of one string at a time.
    """
    ascending = rounds[::-1]
    for at in range(int(rounds[0]) if len(rounds) else 0):
        active = len(rounds) - int(np.searchsorted(ascending, at, "right"))
        if active > _FEW:
            state[:, :active] = step(state[:, :active], starts[:active] + at * size)
            continue
        for i in range(active):
            column: Sequence[Any] = tuple(state[:, i])
            first = int(starts[i])
            with np.errstate(over="ignore"):  # NumPy warns of single numbers that wrap around
                for place in range(first + at * size, first + int(rounds[i]) * size, size):
                    column = step(column, place)
            state[:, i] = column
        return


def rotate(x: Words, bits: int) -> Words:
    """`x` rotated to the right."""
    result: Words = (x >> np.uint64(bits)) | (x << np.uint64(64 - bits))
    return result


def shift_mix(x: Words) -> Words:
    result: Words = x ^ (x >> np.uint64(47))
    return result


def _tail(packed: Packed, starts: Words, lengths: Words) -> Words:
    """The bytes behind the last whole word of each string, as a number."""
    over = lengths % WORD
    words = packed.words(starts + lengths - over)
    kept: Words = words & ((np.uint64(1) << (over * WORD).astype(np.uint64)) - np.uint64(1))
    return kept


# ---- FarmHash


def fingerprint64(strings: Sequence[bytes]) -> Words:
    """FarmHash's Fingerprint64 of each string: uint64."""
    return _in_blocks(fingerprints_of, strings)


def fingerprints_of(packed: Packed) -> Words:
    """The same of strings that are packed already."""
    result = np.empty(len(packed.starts), np.uint64)
    shortest, longest = (int(packed.lengths.min()), int(packed.lengths.max())) if result.size else (0, -1)
    for low, high, function in _CLASSES:
        if low <= shortest and longest <= high:
            result[:] = function(packed, packed.starts, packed.lengths)
        elif low <= longest and shortest <= high:
            chosen = np.flatnonzero((packed.lengths >= low) & (packed.lengths <= high))
            result[chosen] = function(packed, packed.starts[chosen], packed.lengths[chosen])
    return result


def fingerprint_cat64(first: Words, second: Words) -> Words:
    """The fingerprint of two fingerprints in this order: uint64, broadcasting."""
    with np.errstate(over="ignore"):
        result = np.asarray(first, np.uint64) ^ _MURMUR
        result = (result ^ (shift_mix(np.asarray(second, np.uint64) * _MURMUR) * _MURMUR)) * _MURMUR
        return shift_mix(shift_mix(result) * _MURMUR)


def _mix(u: Words, v: Words, multiplier: Words) -> Words:
    """128 bits to 64."""
    a = shift_mix((u ^ v) * multiplier)
    result: Words = shift_mix((v ^ a) * multiplier) * multiplier
    return result


def _to_3(packed: Packed, starts: Words, lengths: Words) -> Words:
    first, middle, last = (
        packed.buffer[at].astype(np.uint64) for at in (starts, starts + (lengths >> 1), starts + lengths - 1)
    )
    y = first + (middle << np.uint64(8))
    z = lengths.astype(np.uint64) + (last << np.uint64(2))
    result: Words = shift_mix((y * K2) ^ (z * K0)) * K2
    return result


def _to_7(packed: Packed, starts: Words, lengths: Words) -> Words:
    size = lengths.astype(np.uint64)
    half = np.uint64(0xFFFFFFFF)
    a, b = packed.words(starts) & half, packed.words(starts + lengths - 4) & half
    return _mix(size + (a << np.uint64(3)), b, _multiplier(size))


def _to_16(packed: Packed, starts: Words, lengths: Words) -> Words:
    multiplier = _multiplier(lengths.astype(np.uint64))
    a, b = packed.words(starts) + K2, packed.words(starts + lengths - 8)
    c, d = rotate(b, 37) * multiplier + a, (rotate(a, 25) + b) * multiplier
    return _mix(c, d, multiplier)


def _to_32(packed: Packed, starts: Words, lengths: Words) -> Words:
    multiplier = _multiplier(lengths.astype(np.uint64))
    a, b = packed.words(starts) * K1, packed.words(starts + 8)
    ends = starts + lengths
    c, d = packed.words(ends - 8) * multiplier, packed.words(ends - 16) * K2
    return _mix(rotate(a + b, 43) + rotate(c, 30) + d, a + rotate(b + K2, 18) + c, multiplier)


def _to_64(packed: Packed, starts: Words, lengths: Words) -> Words:
    multiplier = _multiplier(lengths.astype(np.uint64))
    a, b = packed.words(starts) * K2, packed.words(starts + 8)
    ends = starts + lengths
    c, d = packed.words(ends - 8) * multiplier, packed.words(ends - 16) * K2
    y = rotate(a + b, 43) + rotate(c, 30) + d
    z = _mix(y, a + rotate(b + K2, 18) + c, multiplier)
    e, f = packed.words(starts + 16) * multiplier, packed.words(starts + 24)
    g, h = (y + packed.words(ends - 32)) * multiplier, (z + packed.words(ends - 24)) * multiplier
    return _mix(rotate(e + f, 43) + rotate(g, 30) + h, e + rotate(f + a, 18) + g, multiplier)


def _multiplier(size: Words) -> Words:
    result: Words = K2 + size * np.uint64(2)
    return result


def _beyond_64(packed: Packed, starts: Words, lengths: Words) -> Words:
    """Rounds of 64 bytes, the last of which ends with the string."""
    rounds = (lengths - 1) // _ROUND
    order = np.argsort(-rounds, kind="stable")
    starts, lengths = starts[order], lengths[order]
    state = np.zeros((7, len(starts)), np.uint64)
    state[0] = 81
    state[1] = state[0] * K1 + np.uint64(113)
    state[2] = shift_mix(state[1] * K2 + np.uint64(113)) * K2
    state[0] = state[0] * K2 + packed.words(starts)
    absorb(state, starts, rounds[order], _ROUND, lambda part, at: farm_round(packed, at, part, K1))
    result = np.empty(len(starts), np.uint64)
    result[order] = _finish(packed, starts, lengths, state)
    return result


def farm_round(
    packed: Packed, at: Words, state: Words, multiplier: Words, nine: int = 1, tail: Words | None = None
) -> tuple[Words, ...]:
    """One round of the state (x, y, z, v, w), where v and w are pairs; x and z change places at its end."""
    x, y, z, v0, v1, w0, w1 = state
    weight = np.uint64(nine)
    if tail is not None:
        w0 = w0 + tail
        v0 = v0 + w0
        w0 = w0 + v0
    x = rotate(x + y + v0 + packed.words(at + 8), 37) * multiplier
    y = rotate(y + v1 + packed.words(at + 48), 42) * multiplier
    x = x ^ (w1 * weight)
    y = y + v0 * weight + packed.words(at + 40)
    z = rotate(z + w0, 33) * multiplier
    v = weak_pair(packed, at, v1 * multiplier, x + w0)
    w = weak_pair(packed, at + 32, z + w1, y + packed.words(at + 16))
    return (z, y, x, *v, *w)


def weak_pair(packed: Packed, at: Words, a: Words, b: Words) -> tuple[Words, Words]:
    """32 bytes and two seeds to a pair."""
    first, second, third, fourth = (packed.words(at + offset) for offset in (0, 8, 16, 24))
    a = a + first
    b = rotate(b + a + fourth, 21)
    c = a
    a = a + second + third
    b = b + rotate(a, 44)
    return a + fourth, b + c


def _finish(packed: Packed, starts: Words, lengths: Words, state: Words) -> Words:
    multiplier = K1 + ((state[2] & np.uint64(0xFF)) << np.uint64(1))
    tail = ((lengths - 1) & (_ROUND - 1)).astype(np.uint64)
    x, y, z, v0, v1, w0, w1 = farm_round(packed, starts + lengths - _ROUND, state, multiplier, 9, tail)
    return _mix(
        _mix(v0, w0, multiplier) + shift_mix(y) * K0 + z,
        _mix(v1, w1, multiplier) + x,
        multiplier,
    )


_CLASSES = (
    (0, 0, lambda packed, starts, lengths: K2),
    (1, 3, _to_3),
    (4, 7, _to_7),
    (8, 16, _to_16),
    (17, 32, _to_32),
    (33, 64, _to_64),
    (65, np.iinfo(np.int64).max, _beyond_64),
)


# ---- SipHash


def sip_hash(strings: Sequence[bytes], key: tuple[int, int]) -> Words:
    """SipHash-2-4 of each string under `key`, two numbers of 64 bits: uint64."""
    k0, k1 = (k % 2**64 for k in key)
    initial = [
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    ]
    return _in_blocks(lambda packed: _sip_hashes(packed, np.array(initial, np.uint64)), strings)


def _sip_hashes(packed: Packed, initial: Words) -> Words:
    counts = packed.lengths // WORD
    order = np.argsort(-counts, kind="stable")
    starts, lengths = packed.starts[order], packed.lengths[order]
    state = np.repeat(initial[:, None], len(starts), 1)
    absorb(state, starts, counts[order], WORD, lambda part, at: _compress(part, packed.words(at)))
    last = _tail(packed, starts, lengths) | (lengths.astype(np.uint64) << np.uint64(56))
    a, b, c, d = _compress(state, last)
    a, b, c, d = _sip_rounds((a, b, c ^ np.uint64(0xFF), d), 4)
    result = np.empty(len(starts), np.uint64)
    result[order] = a ^ b ^ c ^ d
    return result


def _compress(state: Words, word: Words) -> tuple[Words, ...]:
    a, b, c, d = state
    a, b, c, d = _sip_rounds((a, b, c, d ^ word), 2)
    return a ^ word, b, c, d


def _sip_rounds(state: tuple[Words, ...], count: int) -> tuple[Words, ...]:
    a, b, c, d = state
    for _ in range(count):
        a, c = a + b, c + d
        b, d = rotate(b, 51) ^ a, rotate(d, 48) ^ c
        a = rotate(a, 32)
        c, a = c + b, a + d
        b, d = rotate(b, 47) ^ c, rotate(d, 43) ^ a
        c = rotate(c, 32)
    return a, b, c, d


# ---- MurmurHash64A


def hash64(strings: Sequence[bytes], seed: int = 0xDECAFCAFFE) -> Words:
    """MurmurHash64A of each string, with TensorFlow's seed: uint64."""
    return _in_blocks(lambda packed: _murmur_hashes(packed, seed), strings)


def _murmur_hashes(packed: Packed, seed: int) -> Words:
    counts = packed.lengths // WORD
    order = np.argsort(-counts, kind="stable")
    starts, lengths = packed.starts[order], packed.lengths[order]
    state = (np.uint64(seed) ^ (lengths.astype(np.uint64) * _MURMUR))[None]

    def step(part: Any, at: Any) -> tuple[Words]:
        word = shift_mix(packed.words(at) * _MURMUR) * _MURMUR
        return ((part[0] ^ word) * _MURMUR,)

    absorb(state, starts, counts[order], WORD, step)
    mixed = (state[0] ^ _tail(packed, starts, lengths)) * _MURMUR
    mixed = np.where(lengths % WORD == 0, state[0], mixed)
    result = np.empty(len(starts), np.uint64)
    result[order] = shift_mix(shift_mix(mixed) * _MURMUR)
    return result
