"""Philox 4x32 with ten rounds (Salmon et al., 2011) as machine code: many blocks of random words at a time.

A block is a function of a key of two words and a counter of four, the sum of a state's and of how many blocks
were skipped. `ops/randomness/philox.py` says what words and numbers are; the code gives the same. It is
compiled on a thread when it is first asked for; until then, and where there is no native tier, `random_words`
is None.
"""

from __future__ import annotations

import ctypes

from flowstone.framework.machine.machine_code import RandomCode
from flowstone.native.codegen import compiler
from flowstone.native.codegen.code_library import when_asked

__all__ = ["MULTIPLIERS", "ROUNDS", "WEYL", "WORD", "made", "random_words", "words_code"]

WORD = 0xFFFFFFFF
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10
_LANES = 8


def words_code() -> str:
    """LLVM's text of the function: blocks eight at a time, and then one at a time."""
    lines = [
        "define void @words(ptr %skipped, i64 %count, i64 %low, i64 %high, i64 %key0, i64 %key1, ptr %out) "
        "nounwind {",
        "entry:",
        f" %whole = and i64 %count, {-_LANES}",
        " br label %head8",
        *_loop(_LANES, "entry", "0", "%whole", "head1"),
        *_loop(1, "head8", "%whole", "%count", "done"),
        "done:",
        " ret void",
        "}",
    ]
    return "\n".join(lines)


def _loop(lanes: int, before: str, start: str, end: str, after: str) -> list[str]:
    """The blocks of a range, so many at a time."""
    kind = f"<{lanes} x i64>"
    lines = [
        f"head{lanes}:",
        f" %i{lanes} = phi i64 [ {start}, %{before} ], [ %next{lanes}, %body{lanes} ]",
        f" %more{lanes} = icmp slt i64 %i{lanes}, {end}",
        f" br i1 %more{lanes}, label %body{lanes}, label %{after}",
        f"body{lanes}:",
    ]
    count = 0

    def let(text: str) -> str:
        nonlocal count
        count += 1
        lines.append(f" %v{lanes}.{count} = {text}")
        return f"%v{lanes}.{count}"

    def each(value: str | int) -> str:
        if isinstance(value, int):
            return f"splat (i64 {value})"
        first = let(f"insertelement {kind} poison, i64 {value}, i32 0")
        return let(f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer")

    def apply(name: str, a: str, b: str) -> str:
        return let(f"{name} {kind} {a}, {b}")

    mask, half, low = each(WORD), each(32), each("%low")
    place = let(f"getelementptr i64, ptr %skipped, i64 %i{lanes}")
    skipped = let(f"load {kind}, ptr {place}, align 8")
    first = apply("add", skipped, low)
    wrapped = let(f"icmp ult {kind} {first}, {low}")
    second = apply("add", let(f"zext <{lanes} x i1> {wrapped} to {kind}"), each("%high"))
    x = [word for pair in (first, second) for word in (apply("and", pair, mask), apply("lshr", pair, half))]
    keys = ["%key0", "%key1"]
    for _ in range(ROUNDS):
        products = [apply("mul", x[i], each(m)) for i, m in zip((0, 2), MULTIPLIERS)]
        (low_0, high_0), (low_1, high_1) = (
            (apply("and", product, mask), apply("lshr", product, half)) for product in products
        )
        x = [
            apply("xor", apply("xor", high_1, x[1]), each(keys[0])),
            low_1,
            apply("xor", apply("xor", high_0, x[3]), each(keys[1])),
            low_0,
        ]
        keys = [let(f"and i64 {let(f'add i64 {key}, {weyl}')}, {WORD}") for key, weyl in zip(keys, WEYL)]
    first_word = let(f"shl i64 %i{lanes}, 2")
    base = let(f"getelementptr i64, ptr %out, i64 {first_word}")
    for lane in range(lanes):
        for i, word in enumerate(x):
            value = let(f"extractelement {kind} {word}, i32 {lane}")
            to = let(f"getelementptr i64, ptr {base}, i64 {4 * lane + i}")
            lines.append(f" store i64 {value}, ptr {to}")
    return [*lines, f" %next{lanes} = add i64 %i{lanes}, {lanes}", f" br label %head{lanes}"]


_modules: list[compiler.Module] = []


def made() -> RandomCode:
    """The function, compiled now."""
    module = compiler.compiled(words_code(), ["words"], is_rough=True)
    _modules.append(module)
    return RandomCode(ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 7)(module.address("words")))


random_words = when_asked(made)
"""The machine code, if it is there by now."""
