"""Random numbers by counters: Philox 4x32, ten rounds (Salmon et al., 2011), and distributions of its bits.

A block of four words of 32 bits is a function of a key of two words and a counter of four. Words are held in
int64 tensors, whose products wrap as unsigned ones do, so that the same code runs on every device. The
distributions take the words in TensorFlow's order: its numbers for the same key and counter.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from flowstone.framework.machine_code import random_words

WORD = 0xFFFFFFFF
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_WEYL = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10
_MIX_KEY = 0x3EC8F720, 0x02461E29  # of the block that turns a seed into a key and a counter
_LEAST = 1e-7  # instead of smaller uniform numbers, whose logarithm would be too large
_TRUNCATED_AT = 2.0
_RESERVED = 256  # words kept for each number that is drawn again until it fits
_DOUBLE = 1 << 64


class State(NamedTuple):
    """A key of 64 bits and a counter of 128 bits, both as ints."""

    key: int
    counter: int

    def skipped(self, blocks: int) -> State:
        """The state after so many blocks."""
        return self._replace(counter=(self.counter + blocks) % (1 << 128))


def state_of(seed: tuple[int, int]) -> State:
    """The state that belongs to a seed of two integers: these as a counter, put through one block."""
    counter = (seed[0] % _DOUBLE) | (seed[1] % _DOUBLE) << 64
    words = blocks(State(_MIX_KEY[0] | _MIX_KEY[1] << 32, counter), 1, torch.device("cpu"))[0].tolist()
    return State(words[0] | words[1] << 32, (words[2] | words[3] << 32) << 64)


def blocks(state: State, count: int, device: torch.device) -> torch.Tensor:
    """The words [count, 4] of the next blocks."""
    return blocks_after(state, torch.arange(count, device=device))


def blocks_after(state: State, skipped: torch.Tensor) -> torch.Tensor:
    """The words [count, 4] of the blocks that come after so many others; int64 [count]."""
    low, high = state.counter % _DOUBLE, state.counter >> 64
    code = random_words() if skipped.device.type == "cpu" else None
    if code is not None:
        found = torch.empty(len(skipped), 4, dtype=torch.int64)
        given = skipped.contiguous()
        keys_of = state.key & WORD, state.key >> 32
        code.words(given.data_ptr(), len(given), _signed(low), _signed(high), *keys_of, found.data_ptr())
        return found
    first = skipped + _signed(low)
    lowest = torch.iinfo(torch.int64).min
    carry = ((first ^ lowest) < (_signed(low) ^ lowest)).long()  # unsigned, the sum has wrapped
    second = carry + _signed(high)
    x = [first & WORD, (first >> 32) & WORD, second & WORD, (second >> 32) & WORD]
    keys = [state.key & WORD, state.key >> 32]
    for _ in range(_ROUNDS):
        products = [x[0] * _MULTIPLIERS[0], x[2] * _MULTIPLIERS[1]]
        (low_0, high_0), (low_1, high_1) = ((p & WORD, (p >> 32) & WORD) for p in products)
        x = [high_1 ^ x[1] ^ keys[0], low_1, high_0 ^ x[3] ^ keys[1], low_0]
        keys = [(key + weyl) & WORD for key, weyl in zip(keys, _WEYL)]
    return torch.stack(x, 1)


def _signed(value: int) -> int:
    return value - _DOUBLE if value >= _DOUBLE >> 1 else value


def words(state: State, count: int, device: torch.device) -> torch.Tensor:
    """The first `count` words."""
    return blocks(state, -(-count // 4), device).reshape(-1)[:count]


# ---- distributions


def full_integers(state: State, count: int, bits: int, device: torch.device) -> torch.Tensor:
    """Integers of 32 or 64 random bits, in int64."""
    if bits == 32:
        return words(state, count, device)
    pairs = words(state, 2 * count, device).view(-1, 2)
    return pairs[:, 0] | pairs[:, 1] << 32


def integers_between(
    state: State, count: int, low: int, high: int, kind: torch.dtype, device: torch.device
) -> torch.Tensor:
    """Integers of [low, high): the rest of random bits by the width, which is as good as uniform."""
    width, bits = high - low, 8 * kind.itemsize
    numbers = full_integers(state, count, bits, device)
    if bits == 32:
        return (numbers % width + low).to(kind)
    # An unsigned number of 64 bits is twice its half, and its lowest bit.
    half = (numbers >> 1) & (2**63 - 1)
    if width < 2**62:
        rest = (half % width * 2 + (numbers & 1)) % width + low
    else:
        rest = torch.tensor(
            [(n % 2**64) % width + low for n in numbers.tolist()], dtype=torch.int64, device=device
        )
    return rest.to(kind) if kind is not torch.uint64 else rest.view(torch.uint64)


def uniform(state: State, count: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Numbers of [0, 1)."""
    if dtype is torch.float64:
        return doubles(words(state, 2 * count, device).view(-1, 2))
    if dtype is torch.float32:
        return _floats(state, -(-count // 4), 1, device).view(-1)[:count]
    return _as_floats(words(state, count, device), dtype)


def _floats(state: State, count: int, step: int, device: torch.device) -> torch.Tensor:
    """The numbers [count, 4] of [0, 1) of so many blocks, each `step` blocks after the one before."""
    code = random_words() if device.type == "cpu" else None
    if code is None:
        return _as_floats(blocks_after(state, torch.arange(count, device=device) * step), torch.float32)
    found = torch.empty(count, 4)
    low, high = _signed(state.counter % _DOUBLE), _signed(state.counter >> 64)
    code.floats(step, count, low, high, state.key & WORD, state.key >> 32, found.data_ptr())
    return found


def _as_floats(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The lowest bits of words as the fraction of numbers of [1, 2), less one."""
    bits = {torch.float32: 23, torch.float16: 10, torch.bfloat16: 7}[dtype]
    return (x & ((1 << bits) - 1)).to(torch.float32).mul_(2.0**-bits).to(dtype)


def doubles(words: torch.Tensor) -> torch.Tensor:
    """Numbers of [0, 1) of float64, one of each two words."""
    pairs = words.reshape(-1, 2)
    mantissa = (pairs[:, 0] & 0xFFFFF) << 32 | pairs[:, 1]
    return mantissa.to(torch.float64).mul_(2.0**-52)


def normal(state: State, count: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Standard normal numbers, two of two uniform ones (Box and Muller, 1958)."""
    pairs = -(-count // 2)
    if dtype is torch.float64:
        x = doubles(words(state, 4 * pairs, device).view(-1, 2)).view(-1, 2)
    else:
        x = uniform(state, 2 * pairs, torch.float32, device).view(-1, 2)
    return box_muller(x).reshape(-1)[:count].to(dtype)


def box_muller(x: torch.Tensor) -> torch.Tensor:
    """Normal numbers of pairs [n, 2] of uniform ones (Box and Muller, 1958)."""
    radius = x[:, 0].clamp_min(_LEAST).log().mul_(-2).sqrt_()
    angle = x[:, 1] * (2 * math.pi)
    return torch.stack([radius * angle.sin(), radius * angle.cos()], 1)


def truncated_normal(state: State, count: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Standard normal numbers within two deviations; others are drawn again, from the words kept for each.

    A group of numbers, as many as a block gives, has 256 words for each of them.
    """
    of_block = 2 if dtype is torch.float64 else 4
    groups, step = -(-count // of_block), _RESERVED // 4 * of_block
    if of_block == 4:
        x = _floats(state, groups, step, device)
    else:
        x = doubles(blocks_after(state, torch.arange(groups, device=device) * step))
    result = box_muller(x.view(-1, 2)).view(groups, of_block)
    left = (result.abs() >= _TRUNCATED_AT).any(1).nonzero().reshape(-1)
    if len(left):
        result[left] = _drawn_until_they_fit(state, left * step, of_block)
    return result.reshape(-1)[:count].to(dtype)


def _drawn_until_they_fit(state: State, starts: torch.Tensor, of_block: int) -> torch.Tensor:
    """Groups of normal numbers within the bounds, of the words after so many blocks."""
    exact = torch.float64 if of_block == 2 else torch.float32
    result = torch.empty(len(starts), of_block, dtype=exact, device=starts.device)
    filled = torch.zeros(len(starts), dtype=torch.int64, device=starts.device)
    for block in range(_RESERVED // 4 * of_block):
        left = (filled < of_block).nonzero().reshape(-1)
        if not len(left):
            break
        x = blocks_after(state, starts[left] + block)
        uniform = doubles(x.view(-1, 2)) if of_block == 2 else _as_floats(x, torch.float32)
        for column in box_muller(uniform.view(-1, 2)).view(len(left), -1).unbind(1):
            fits = (column.abs() < _TRUNCATED_AT) & (filled[left] < of_block)
            rows = left[fits]
            result[rows, filled[rows]] = column[fits]
            filled[rows] += 1
    return result
