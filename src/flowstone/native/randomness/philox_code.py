"""Philox's words in LLVM's text, of a vector of blocks or of one, and the numbers of float64 that they make.

Words are held in 64 bits each; `ops/randomness/philox.py` says what they are.
"""

from __future__ import annotations

from flowstone.native.codegen.emitter import Emitter
from flowstone.native.codegen.vector_memory import in_all_lanes
from flowstone.native.randomness.random_words import MULTIPLIERS, ROUNDS, WEYL, WORD

__all__ = ["HALF", "double_of", "round_keys", "words_after"]

HALF = 32


def round_keys(e: Emitter, key: str) -> list[list[str]]:
    """The two words of every round's key, in all lanes; `key`: an i64."""
    halves = [e.let(f"and i64 {key}, {WORD}"), e.let(f"lshr i64 {key}, {HALF}")]
    return [
        [
            in_all_lanes(e, "i64", e.let(f"and i64 {e.let(f'add i64 {half}, {i * weyl}')}, {WORD}"))
            for half, weyl in zip(halves, WEYL)
        ]
        for i in range(ROUNDS)
    ]


def words_after(e: Emitter, keys: list[list[str]], low: str, high: str, skipped: str) -> list[str]:
    """The four words of the blocks after so many others; `low` and `high`: the counter's halves."""
    first = e.binary("add", "int64", skipped, low)
    has_wrapped = e.compare("icmp ult", "int64", first, low)
    carry = e.let(f"zext {e.type('bool')} {has_wrapped} to {e.type('int64')}")
    second = e.binary("add", "int64", carry, high)
    x = [
        word
        for pair in (first, second)
        for word in (_whole(e, "and", pair, WORD), _whole(e, "lshr", pair, HALF))
    ]
    for key in keys:
        products = [_whole(e, "mul", x[i], m) for i, m in zip((0, 2), MULTIPLIERS)]
        (low_0, high_0), (low_1, high_1) = (
            (_whole(e, "and", product, WORD), _whole(e, "lshr", product, HALF)) for product in products
        )
        x = [
            e.binary("xor", "int64", e.binary("xor", "int64", high_1, x[1]), key[0]),
            low_1,
            e.binary("xor", "int64", e.binary("xor", "int64", high_0, x[3]), key[1]),
            low_0,
        ]
    return x


def double_of(e: Emitter, upper: str, lower: str) -> str:
    """The lowest 20 bits of a word, and another, as the fraction of a number of [1, 2), less one."""
    upper = _whole(e, "shl", _whole(e, "and", upper, 0xFFFFF), HALF)
    bits = _whole(e, "or", e.binary("or", "int64", upper, lower), 0x3FF << 52)
    return e.binary("fsub", "float64", e.bits(bits, "i64", "double"), e.constant("float64", 1))


def _whole(e: Emitter, name: str, a: str, b: int) -> str:
    return e.binary(name, "int64", a, e.constant("int64", b))
