"""Random numbers by counters: Philox 4x32, ten rounds (Salmon et al., 2011), and distributions of its bits.

A block of four words of 32 bits is a function of a key of two words and a counter of four. Words are held in
int64 tensors, whose products wrap as unsigned ones do, so that the same code runs on every device. The
distributions take the words in TensorFlow's order: its numbers for the same key and counter. What TensorFlow
rounds to float32 is rounded here, after each function, so that normal numbers are its own but for about one
in seventy, which is off by at most 3 units in the last place. On a CPU machine code draws them, if there is
any.
"""

from __future__ import annotations

import array
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from flowstone.framework.machine.machine_code import RandomValues, random_values, random_words

WORD = 0xFFFFFFFF
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_WEYL = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10
_MIX_KEYS = [  # by round, of the block that turns a seed into a key and a counter
    [(word + weyl * i) & WORD for word, weyl in zip((0x3EC8F720, 0x02461E29), _WEYL)] for i in range(_ROUNDS)
]
_LEAST = 1e-7  # instead of smaller uniform numbers, whose logarithm would be too large
_TRUNCATED_AT = 2.0
_RESERVED = 256  # words kept for each number that is drawn again until it fits
_DOUBLE = 1 << 64
_FRACTION = {torch.float32: 23, torch.float16: 10, torch.bfloat16: 7}  # bits
Sizes = int | Sequence[int]


class State(NamedTuple):
    """A key of 64 bits and a counter of 128 bits, both as ints."""

    key: int
    counter: int

    def skipped(self, blocks: int) -> State:
        """The state after so many blocks."""
        return self._replace(counter=(self.counter + blocks) % (1 << 128))


def state_of(seed: tuple[int, int]) -> State:
    """The state that belongs to a seed of two integers: these as a counter, put through one block."""
    (a, b), (c, d) = ((number & WORD, number >> 32 & WORD) for number in seed)
    for first_key, second_key in _MIX_KEYS:
        first, second = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b, c, d = second >> 32 ^ b ^ first_key, second & WORD, first >> 32 ^ d ^ second_key, first & WORD
    return State(a | b << 32, (c | d << 32) << 64)


def stream_of(state: State) -> torch.Tensor:
    """The state as int64 [3]: the key, and the counter's lower and upper half."""
    key, counter = state
    halves = array.array("Q", (key, counter % _DOUBLE, counter >> 64))
    return torch.frombuffer(halves, dtype=torch.int64)


def counter_of(stream: torch.Tensor) -> int:
    """The counter of the state that int64 [3] stand for."""
    _, low, high = stream.tolist()
    return (high % _DOUBLE) << 64 | low % _DOUBLE  # type: ignore[no-any-return]


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
    state: State, sizes: Sizes, low: int, high: int, kind: torch.dtype, device: torch.device
) -> torch.Tensor:
    """Integers of [low, high): the rest of random bits by the width, which is as good as uniform."""
    code = _integer_code(kind, device)
    if code is None:
        count = sizes if isinstance(sizes, int) else math.prod(sizes)
        return _integers_between(state, count, low, high, kind, device).view(sizes)
    out = torch.empty(sizes, dtype=kind)
    code(*state, out, low, high - low)
    return out


def integers_of(
    sizes: Sequence[int], low: int, high: int, kind: torch.dtype, device: torch.device
) -> Callable[[State], torch.Tensor]:
    """The same function of the state alone."""
    code = _integer_code(kind, device)
    if code is None:
        return lambda state: integers_between(state, sizes, low, high, kind, device)
    return _filled(sizes, kind, code.of(math.prod(sizes), low, high - low))


def _filled(
    sizes: Sequence[int], dtype: torch.dtype, fill: Callable[[int, int, int], None]
) -> Callable[[State], torch.Tensor]:
    """The array that a function of key, counter and address fills."""
    like = torch.empty((), dtype=dtype).expand(list(sizes))

    def drawn(state: State) -> torch.Tensor:
        key, counter = state
        out = torch.empty_like(like)
        fill(key, counter, out.data_ptr())
        return out

    return drawn


def _integer_code(kind: torch.dtype, device: torch.device) -> RandomValues | None:
    if device.type != "cpu":
        return None
    return random_values("integers", torch.int32 if kind.itemsize == 4 else torch.int64)


def _integers_between(
    state: State, count: int, low: int, high: int, kind: torch.dtype, device: torch.device
) -> torch.Tensor:
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


def permutation(state: State, count: int) -> torch.Tensor:
    """The numbers below count, int64, each exchanged with one of the rest by a word (Fisher and Yates)."""
    code = random_values("permutation", torch.int64)
    if code is not None:
        out = torch.empty(count, dtype=torch.int64)
        code(*state, out)
        return out
    order = list(range(count))
    steps = (words(state, count, torch.device("cpu")) % torch.arange(count, 0, -1)).tolist()
    for i, step in enumerate(steps):
        order[i], order[i + step] = order[i + step], order[i]
    return torch.tensor(order, dtype=torch.int64)


class Distribution:
    """Numbers of one distribution: ``f(state, sizes, dtype, device)``, where sizes may be their number.

    `numbers(state, count, dtype, device)` computes them where there is no machine code of the name `how`. If
    `exact`, those of 16 bits are rounded ones of float32; or else such as need no rounding.
    """

    def __init__(
        self, how: str, exact: bool, numbers: Callable[[State, int, torch.dtype, torch.device], torch.Tensor]
    ) -> None:
        self._how, self._exact, self._numbers = how, exact, numbers

    def __call__(self, state: State, sizes: Sizes, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        wide, code = _wide(dtype), self._code(dtype, device)
        if code is None:
            count = sizes if isinstance(sizes, int) else math.prod(sizes)
            out = self._numbers(state, count, wide if self._exact else dtype, device).view(sizes)
        else:
            out = torch.empty(sizes, dtype=wide)
            code(*state, out, shift=self._shift(dtype))
        return out if out.dtype is dtype else out.to(dtype)

    def of(
        self, sizes: Sequence[int], dtype: torch.dtype, device: torch.device
    ) -> Callable[[State], torch.Tensor]:
        """The same function of the state alone, at a third of the cost for few numbers."""
        wide, code = _wide(dtype), self._code(dtype, device)
        if code is None:
            return lambda state: self(state, sizes, dtype, device)
        drawn = _filled(sizes, wide, code.of(math.prod(sizes), shift=self._shift(dtype)))
        return drawn if wide is dtype else lambda state: drawn(state).to(dtype)

    def _code(self, dtype: torch.dtype, device: torch.device) -> RandomValues | None:
        return random_values(self._how, _wide(dtype)) if device.type == "cpu" else None

    def _shift(self, dtype: torch.dtype) -> int:
        return 0 if self._exact else _FRACTION[torch.float32] - _FRACTION.get(dtype, _FRACTION[torch.float32])


def _wide(dtype: torch.dtype) -> torch.dtype:
    """The type in which machine code makes numbers of this one."""
    return torch.float64 if dtype is torch.float64 else torch.float32


def has_code(how: str, dtype: torch.dtype) -> bool:
    """Whether machine code draws numbers of this kind on a host: of a distribution, or "integers"."""
    return random_values(how, dtype if how == "integers" else _wide(dtype)) is not None


def _uniform(state: State, count: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    if dtype is torch.float64:
        return doubles(words(state, 2 * count, device).view(-1, 2))
    return _as_floats(words(state, count, device), dtype)


def _as_floats(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The lowest bits of words as the fraction of numbers of [1, 2), less one."""
    bits = _FRACTION[dtype]
    return (x & ((1 << bits) - 1)).to(torch.float32).mul_(2.0**-bits).to(dtype)


def doubles(words: torch.Tensor) -> torch.Tensor:
    """Numbers of [0, 1) of float64, one of each two words."""
    pairs = words.reshape(-1, 2)
    mantissa = (pairs[:, 0] & 0xFFFFF) << 32 | pairs[:, 1]
    return mantissa.to(torch.float64).mul_(2.0**-52)


def _normal(state: State, count: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    pairs = -(-count // 2)
    return box_muller(_uniform(state, 2 * pairs, dtype, device).view(-1, 2)).reshape(-1)[:count]


def box_muller(x: torch.Tensor) -> torch.Tensor:
    """Normal numbers of pairs [n, 2] of uniform ones (Box and Muller, 1958)."""
    on_host = x.device.type == "cpu"

    def exactly(function: Callable[[torch.Tensor], torch.Tensor], given: torch.Tensor) -> torch.Tensor:
        # On a host as C libraries, not as ATen's faster functions.
        return function(given.double() if on_host else given).to(x.dtype)

    radius = exactly(torch.sqrt, exactly(torch.log, x[:, 0].clamp_min(_LEAST)).mul_(-2))
    angle = exactly(lambda turns: turns * (2 * math.pi), x[:, 1])
    return torch.stack([radius * exactly(torch.sin, angle), radius * exactly(torch.cos, angle)], 1)


def _truncated_normal(state: State, count: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    of_block = 2 if dtype is torch.float64 else 4
    step = _RESERVED // 4 * of_block
    starts = torch.arange(-(-count // of_block), device=device) * step
    result = _normal_groups(blocks_after(state, starts), of_block)
    left = (result.abs() >= _TRUNCATED_AT).any(1).nonzero().reshape(-1)
    if len(left):
        result[left] = _drawn_until_they_fit(state, starts[left], of_block)
    return result.reshape(-1)[:count]


def _normal_groups(x: torch.Tensor, of_block: int) -> torch.Tensor:
    """The normal numbers [n, of_block] of blocks [n, 4]."""
    uniform = doubles(x) if of_block == 2 else _as_floats(x, torch.float32)
    return box_muller(uniform.view(-1, 2)).view(-1, of_block)


def _drawn_until_they_fit(state: State, starts: torch.Tensor, of_block: int) -> torch.Tensor:
    """Groups of normal numbers within the bounds, of the words after so many blocks."""
    exact = torch.float64 if of_block == 2 else torch.float32
    result = torch.empty(len(starts), of_block, dtype=exact, device=starts.device)
    filled = torch.zeros(len(starts), dtype=torch.int64, device=starts.device)
    for block in range(_RESERVED // 4 * of_block):
        left = (filled < of_block).nonzero().reshape(-1)
        if not len(left):
            break
        for column in _normal_groups(blocks_after(state, starts[left] + block), of_block).unbind(1):
            fits = (column.abs() < _TRUNCATED_AT) & (filled[left] < of_block)
            rows = left[fits]
            result[rows, filled[rows]] = column[fits]
            filled[rows] += 1
    return result


uniform = Distribution("uniform", False, _uniform)
"""Numbers of [0, 1)."""
normal = Distribution("normal", True, _normal)
"""Standard normal numbers, two of two uniform ones (Box and Muller, 1958)."""
truncated_normal = Distribution("truncated", True, _truncated_normal)
"""Standard normal numbers within two deviations; others are drawn again, from the words kept for each: a
group of numbers, as many as a block gives, has 256 words for each of them."""
