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
_FEW = 16  # blocks, which ATen computes as fast
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
    code = random_words() if skipped.device.type == "cpu" and len(skipped) > _FEW else None
    if code is not None:
        found = torch.empty(len(skipped), 4, dtype=torch.int64)
        given = skipped.contiguous()
        keys_of = state.key & WORD, state.key >> 32
        code(given.data_ptr(), len(given), _signed(low), _signed(high), *keys_of, found.data_ptr())
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


def uniform(state: State, count: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Numbers of [0, 1)."""
    if dtype is torch.float64:
        return doubles(words(state, 2 * count, device).view(-1, 2))
    return _as_floats(words(state, count, device), dtype)


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
        x = _as_floats(words(state, 2 * pairs, device), torch.float32).view(-1, 2)
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
    groups, exact = -(-count // of_block), torch.float64 if of_block == 2 else torch.float32
    result = torch.empty(groups, of_block, dtype=exact, device=device)
    filled = torch.zeros(groups, dtype=torch.int64, device=device)
    for block in range(_RESERVED // 4 * of_block):
        left = (filled < of_block).nonzero().reshape(-1)
        if not len(left):
            break
        x = blocks_after(state, left * (_RESERVED // 4 * of_block) + block)
        uniform = doubles(x.view(-1, 2)) if of_block == 2 else _as_floats(x, torch.float32)
        for column in box_muller(uniform.view(-1, 2)).view(len(left), -1).unbind(1):
            fits = (column.abs() < _TRUNCATED_AT) & (filled[left] < of_block)
            rows = left[fits]
            result[rows, filled[rows]] = column[fits]
            filled[rows] += 1
    return result.reshape(-1)[:count].to(dtype)
