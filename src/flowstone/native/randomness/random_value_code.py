"""LLVM's text of functions that fill arrays with random numbers: uniform and normal ones, integers, orders.

The words are those of Philox (`random_words.py`), a vector of blocks at a time; the numbers are what
`ops/randomness/philox.py` makes of them. Threads share an array by *parts* of some thousand numbers. A part
that is not whole is made in a buffer on the stack, and then copied. In a truncated part, groups that lack
numbers within the bounds stand in a queue, all of them at first: each round draws one more block for all that
are left, a vector of groups at a time.

Logarithms, sines and cosines of float32 are computed in float64, right to 2^-30, and rounded, so that results
are those of a good C library but for about one number in seventy, and there within 3 units in the last place.
Those of float64 are SLEEF's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from flowstone.native.codegen.code_library import my_part, share, words_of
from flowstone.native.codegen.emitter import KINDS, SIZES
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes
from flowstone.native.numerics.wide_numbers import Wide
from flowstone.native.randomness.philox_code import HALF, double_of, round_keys, words_after

__all__ = ["NAMES", "PARAMETERS", "filling_code", "random_value_code"]

NAMES = (
    *(f"{how}_{kind}" for how in ("uniform", "normal", "truncated") for kind in ("float32", "float64")),
    "integers_int32",
    "integers_int64",
    "permutation_int64",
)
"""The functions, each of an array of two addresses: of the numbers of `PARAMETERS`, and of the results."""
PARAMETERS = ("threads", "key", "low", "high", "count", "least", "width", "shift")
"""How many threads; the key, and the counter's lower and upper 64 bits; how many results. Of integers the
least, and how many there are; of uniform numbers of float32 how many of the fraction's lowest bits are 0."""
_TOGETHER = 32  # vectors of blocks in a part
_RESERVED, _BOUND, _LEAST = 256, 2.0, 1e-7
_WHOLE = 1 << 52
_WHOLE_BITS = (1023 + 52) << 52  # of 2^52 in float64
_TERMS = 7  # of the logarithm's series in ((m - 1) / (m + 1))², which is below 0.03
_HALF_PI, _HALF_PI_LOW = math.pi / 2, 6.123233995736766e-17
_SINE = [(-1) ** n / math.factorial(2 * n + 1) for n in range(6)]
_COSINE = [(-1) ** n / math.factorial(2 * n) for n in range(6)]


def random_value_code(lanes: int, names: Sequence[str] = NAMES) -> str:
    """The text of the functions of these names, by vectors of so many float32."""
    declarations: dict[str, str] = {}
    texts = []
    for name in names:
        texts += [filling_code(name, lanes, declarations), _public(name, declarations)]
    return "\n".join([*declarations.values(), *texts])


def filling_code(name: str, lanes: int, declarations: dict[str, str]) -> str:
    """The text of a part of a function, ``void @name_some(ptr a, i64 part, i64 parts)``, of an array of two
    addresses: those of the numbers of `PARAMETERS`, and of the results."""
    how, kind = name.split("_")
    if how == "permutation":
        return _Exchanges(name, how, "int32", lanes, declarations).text()
    return _Filling(name, how, kind, lanes, declarations).text()


def _public(name: str, declarations: dict[str, str]) -> str:
    """The function that others call: a team of threads fills the array, or this one alone."""
    team = Code(f"{name}_team", ["ptr a"], 1, declarations)
    share(team, f"{name}_some")
    e = Code(name, ["ptr a"], 1, declarations, is_public=True)
    e.do(f"call void @{name}_team(ptr %a)")
    return f"{team.text()}\n{e.text()}"


class _Filling:
    """What one thread does of a function: ``text()``."""

    def __init__(self, name: str, how: str, kind: str, lanes: int, declarations: dict[str, str]) -> None:
        self._e = e = Code(f"{name}_some", ["ptr a"], lanes, declarations)
        self._how, self._kind, self._lanes = how, kind, lanes
        self._of_block = 16 // SIZES[kind]
        self._step = _RESERVED // 4 * self._of_block if how == "truncated" else 1
        self._words = words_of(e, e.pointer("%a", 0), PARAMETERS)
        self._keys = round_keys(e, self._words["key"])
        self._low, self._high, self._least, self._width, self._shift = (
            in_all_lanes(e, "i64", self._words[each]) for each in ("low", "high", "least", "width", "shift")
        )
        self._fill()

    def text(self) -> str:
        """The function's text."""
        return self._e.text()

    def _fill(self) -> None:
        """This thread's parts."""
        e, kind, of_vector = self._e, KINDS[self._kind], self._lanes * self._of_block
        size = _TOGETHER * of_vector
        out, buffer = e.pointer("%a", 1), e.array(kind, size)
        queue = _Queue(e, _TOGETHER * self._lanes, kind, of_vector) if self._how == "truncated" else None
        count = self._words["count"]
        _, first, last = my_part(e, e.quotient(e.add(count, size - 1), size))
        with e.loop(first, last) as part:
            start = e.mul(part, size)
            left = e.least(e.sub(count, start), size)
            is_whole = e.let(f"icmp eq i64 {left}, {size}")
            place = e.at(out, start, kind)
            target = e.let(f"select i1 {is_whole}, ptr {place}, ptr {buffer}")
            block, vectors = (
                e.mul(part, _TOGETHER * self._lanes),
                e.quotient(e.add(left, of_vector - 1), of_vector),
            )
            if queue is not None:
                self._fill_within_bounds(queue, target, block, e.mul(vectors, self._lanes))
            else:
                lane_numbers = self._lane_numbers()
                with e.loop(0, vectors) as vector:
                    at = e.add(block, e.mul(vector, self._lanes))
                    groups = self._whole("add", in_all_lanes(e, "i64", at), lane_numbers)
                    self._write(
                        self._values(self._skipped(groups, "0")), e.at(target, e.mul(vector, of_vector), kind)
                    )
            with e.when(e.let(f"xor i1 {is_whole}, true")), e.loop(0, left) as i:
                e.set(kind, e.at(place, i, kind), e.get(kind, e.at(target, i, kind)))

    def _lane_numbers(self) -> str:
        return f"<{', '.join(f'i64 {lane}' for lane in range(self._lanes))}>"

    def _write(self, values: list[str], address: str) -> None:
        """Stores the numbers of each lane one after the other."""
        e, kind = self._e, KINDS[self._kind]
        lanes = self._lanes
        while len(values) > 1:
            order = ", ".join(f"i32 {i}, i32 {i + lanes}" for i in range(lanes))
            half, vector = len(values) // 2, f"<{lanes} x {kind}>"
            values = [
                e.let(f"shufflevector {vector} {a}, {vector} {b}, <{2 * lanes} x i32> <{order}>")
                for a, b in zip(values[:half], values[half:])
            ]
            lanes *= 2
        e.do(f"store <{lanes} x {kind}> {values[0]}, ptr {address}, align {SIZES[self._kind]}")

    # ---- blocks of words

    def _whole(self, name: str, a: str, b: str | int) -> str:
        return self._e.binary(name, "int64", a, b if isinstance(b, str) else self._e.constant("int64", b))

    def _skipped(self, groups: str, further: str) -> str:
        """How many blocks are skipped before these groups' first, and so many further ones."""
        first = self._whole("mul", groups, self._step)
        return self._whole("add", first, in_all_lanes(self._e, "i64", further))

    def _words_after(self, skipped: str) -> list[str]:
        """The four words of the blocks after so many others, each in 64 bits."""
        return words_after(self._e, self._keys, self._low, self._high, skipped)

    # ---- numbers

    def _values(self, skipped: str) -> list[str]:
        """The numbers of the blocks after so many others."""
        x = self._words_after(skipped)
        if self._how == "permutation":
            return [self._e.convert(word, "int64", "int32") for word in x]
        if self._how == "integers":
            return self._integers(x)
        uniform = [self._float(word) for word in x]
        if self._kind == "float64":
            uniform = [double_of(self._e, *x[:2]), double_of(self._e, *x[2:])]
        if self._how == "uniform":
            return uniform
        pairs = zip(uniform[::2], uniform[1::2])
        make = self._normal_floats if self._kind == "float32" else self._normal_doubles
        return [number for pair in pairs for number in make(*pair)]

    def _integers(self, x: list[str]) -> list[str]:
        """The rest of the bits by the width, and the least."""
        if self._kind == "int32":
            rests = [self._rest(bits) for bits in x]
        else:
            x = [self._whole("or", a, self._whole("shl", b, HALF)) for a, b in zip(x[::2], x[1::2])]
            rests = [self._whole("urem", bits, self._width) for bits in x]
        found = [self._whole("add", rest, self._least) for rest in rests]
        return [self._e.convert(each, "int64", self._kind) for each in found]

    def _rest(self, word: str) -> str:
        """The rest of a word by the width, which is below 2^32: no step in float64 rounds but the quotient,
        which is at most one too large."""
        e, w = self._e, Wide(self._e)
        x, width = self._exactly(word), self._exactly(self._width)
        quotient = w.intrinsic("rint", w.mul(x, w.div(1.0, width)))
        rest = w.sub(x, w.mul(quotient, width))
        rest = w.where(w.is_("olt", rest, 0.0), w.add(rest, width), rest)
        bits = e.bits(w.add(rest, float(_WHOLE)), "double", "i64")
        return self._whole("and", bits, _WHOLE - 1)

    def _exactly(self, whole: str) -> str:
        """A whole number below 2^52 in float64: the fraction of one of [2^52, 2^53)."""
        e = self._e
        bits = self._whole("or", whole, _WHOLE_BITS)
        return Wide(e).sub(e.bits(bits, "i64", "double"), float(_WHOLE))

    def _float(self, word: str) -> str:
        """The lowest 23 bits as the fraction of a number of [1, 2), less one."""
        e = self._e
        if self._how == "uniform":
            word = self._whole("shl", word, self._shift)
        word = e.let(f"trunc {e.type('int64')} {word} to {e.type('int32')}")
        fraction = e.binary("and", "int32", word, e.constant("int32", 0x7FFFFF))
        bits = e.binary("or", "int32", fraction, e.constant("int32", 0x3F800000))
        return e.binary("fsub", "float32", e.bits(bits, "i32", "float"), e.constant("float32", 1))

    def _not_too_small(self, x: str) -> str:
        least = self._e.constant(self._kind, _LEAST)
        is_small = self._e.compare("fcmp olt", self._kind, x, least)
        return self._e.select(is_small, self._kind, least, x)

    def _radius(self, log: str) -> str:
        e, kind = self._e, self._kind
        return e.intrinsic("sqrt", kind, e.binary("fmul", kind, log, e.constant(kind, -2)))

    def _normal_doubles(self, first: str, second: str) -> tuple[str, str]:
        e = self._e
        radius = self._radius(e.sleef("log", "float64", self._not_too_small(first)))
        angle = e.binary("fmul", "float64", second, e.constant("float64", 2 * math.pi))
        sine, cosine = (e.sleef(name, "float64", angle) for name in ("sin", "cos"))
        return e.binary("fmul", "float64", radius, sine), e.binary("fmul", "float64", radius, cosine)

    def _normal_floats(self, first: str, second: str) -> tuple[str, str]:
        e, w = self._e, Wide(self._e)
        radius = self._radius(self._log(w, self._not_too_small(first)))
        angle = w.mul(e.convert(second, "float32", "float64"), 2 * math.pi)
        sine, cosine = self._turn(w, e.convert(angle, "float64", "float32"))
        return e.binary("fmul", "float32", radius, sine), e.binary("fmul", "float32", radius, cosine)

    def _log(self, w: Wide, x: str) -> str:
        """The logarithm of a number of float32: of its fraction from sqrt(1/2) on, and its exponent."""
        e, root = self._e, 0x3F3504F3
        moved = e.binary("add", "int32", e.bits(x, "float", "i32"), e.constant("int32", 0x3F800000 - root))
        exponent = e.binary("ashr", "int32", moved, e.constant("int32", 23))
        exponent = e.convert(e.binary("sub", "int32", exponent, e.constant("int32", 127)), "int32", "float64")
        fraction = e.binary("and", "int32", moved, e.constant("int32", 0x7FFFFF))
        fraction = e.bits(e.binary("add", "int32", fraction, e.constant("int32", root)), "i32", "float")
        above = w.sub(e.convert(fraction, "float32", "float64"), 1.0)
        part = w.div(above, w.add(above, 2.0))
        series = w.polynomial(w.mul(part, part), [2 / (2 * n + 1) for n in range(_TERMS)][::-1])
        log = w.fma(exponent, math.log(2), w.mul(part, series))
        return e.convert(log, "float64", "float32")

    def _turn(self, w: Wide, angle: str) -> tuple[str, str]:
        """The sine and the cosine of an angle of float32 in [0, 2 pi]."""
        e = self._e
        wide = e.convert(angle, "float32", "float64")
        quarters = w.intrinsic("rint", w.mul(wide, 1 / _HALF_PI))
        minus = e.negate("float64", quarters)
        rest = w.fma(minus, _HALF_PI_LOW, w.fma(minus, _HALF_PI, wide))
        square = w.mul(rest, rest)
        sine = e.convert(w.mul(rest, w.polynomial(square, _SINE[::-1])), "float64", "float32")
        cosine = e.convert(w.polynomial(square, _COSINE[::-1]), "float64", "float32")
        number = e.convert(quarters, "float64", "int32")
        is_odd = e.convert(e.binary("and", "int32", number, e.constant("int32", 1)), "int32", "bool")
        sine, cosine = e.select(is_odd, "float32", cosine, sine), e.select(is_odd, "float32", sine, cosine)
        return self._signed(sine, number), self._signed(
            cosine, e.binary("add", "int32", number, e.constant("int32", 1))
        )

    def _signed(self, x: str, quarters: str) -> str:
        """Minus x in the third and the fourth quarter."""
        e = self._e
        sign = e.binary("and", "int32", quarters, e.constant("int32", 2))
        sign = e.binary("shl", "int32", sign, e.constant("int32", 30))
        return e.bits(e.binary("xor", "int32", e.bits(x, "float", "i32"), sign), "i32", "float")

    # ---- numbers within bounds

    def _fill_within_bounds(self, queue: _Queue, target: str, block: str, groups: str) -> None:
        """Draws for each group of a part until it has as many numbers within the bounds as a block."""
        e, kind, of_block = self._e, KINDS[self._kind], self._of_block
        queue.fill(groups)
        number = e.variable("i64", "0")
        with e.repeat() as leave:
            left = e.get("i64", queue.count)
            leave(e.let(f"icmp eq i64 {left}, 0"))
            with e.loop(0, left, self._lanes) as first:
                groups = e.let(f"load {e.type('int64')}, ptr {e.at(queue.groups, first, 'i64')}, align 8")
                groups = self._whole("add", groups, in_all_lanes(e, "i64", block))
                drawn = e.at(queue.drawn, e.mul(first, of_block), kind)
                self._write(self._values(self._skipped(groups, e.get("i64", number))), drawn)
            queue.clear()
            is_first = e.let(f"icmp eq i64 {e.get('i64', number)}, 0")
            with e.when(is_first), e.loop(0, left) as i:
                self._append(queue, target, i, i, "0")
            with e.when(e.let(f"xor i1 {is_first}, true")), e.loop(0, left) as i:
                group, filled = (e.get("i64", e.at(each, i, "i64")) for each in (queue.groups, queue.filled))
                self._append(queue, target, i, group, filled)
            e.set("i64", number, e.add(e.get("i64", number), 1))

    def _append(self, queue: _Queue, target: str, i: str, group: str, filled: str) -> None:
        """Puts those of the i-th drawn numbers that fit behind the first ones of a group, and the group into
        the queue if it lacks more."""
        e, kind, dtype, of_block = self._e, KINDS[self._kind], self._kind, self._of_block
        drawn, place = e.at(queue.drawn, e.mul(i, of_block), kind), e.at(target, e.mul(group, of_block), kind)
        for number in [e.get(kind, e.at(drawn, each, kind)) for each in range(of_block)]:
            has_room = e.let(f"icmp slt i64 {filled}, {of_block}")
            to = e.let(f"select i1 {has_room}, ptr {e.at(place, filled, kind)}, ptr {queue.drawn_away}")
            e.set(kind, to, number)
            size = e.one.intrinsic("fabs", dtype, number)
            fits = e.one.compare("fcmp olt", dtype, size, e.one.constant(dtype, _BOUND))
            more = e.let(f"zext i1 {e.let(f'and i1 {fits}, {has_room}')} to i64")
            filled = e.add(filled, more)
        queue.add(group, filled)


class _Exchanges(_Filling):
    """A permutation: each number is exchanged with one of the rest, by a word each (Fisher and Yates)."""

    def _fill(self) -> None:
        e, of_vector = self._e, self._lanes * self._of_block
        e.takes("i64 part", "i64 parts")  # which are one
        order, drawn, count = e.pointer("%a", 1), e.array("i32", of_vector), self._words["count"]
        with e.loop(0, count) as i:
            e.set("i64", e.at(order, i, "i64"), i)
        steps = e.most(e.sub(count, 1), 0)
        with e.loop(0, steps, of_vector) as start:
            block = in_all_lanes(e, "i64", e.quotient(start, self._of_block))
            self._write(self._values(self._whole("add", block, self._lane_numbers())), drawn)
            with e.loop(start, e.least(steps, e.add(start, of_vector))) as i:
                word = e.let(f"zext i32 {e.get('i32', e.at(drawn, e.sub(i, start), 'i32'))} to i64")
                other = e.add(i, e.rest(word, e.sub(count, i)))
                places = [e.at(order, each, "i64") for each in (i, other)]
                numbers = [e.get("i64", place) for place in places]
                for place, number in zip(places, reversed(numbers)):
                    e.set("i64", place, number)


class _Queue:
    """The groups of a part that still lack numbers, and how many each has."""

    def __init__(self, e: Code, most: int, kind: str, of_vector: int) -> None:
        self._e, self._of_block = e, of_vector // e.lanes
        self.groups, self.filled = e.array("i64", most + e.lanes), e.array("i64", most)
        self.drawn, self.drawn_away = e.array(kind, most * self._of_block), e.array(kind, 1)
        self.count = e.variable("i64", "0")
        with e.loop(0, most + e.lanes) as i:  # what is behind the last group is read as a number
            e.set("i64", e.at(self.groups, i, "i64"), "0")

    def fill(self, groups: str) -> None:
        """Puts the first groups into it, none of which has a number."""
        e = self._e
        with e.loop(0, groups) as i:
            e.set("i64", e.at(self.groups, i, "i64"), i)
        e.set("i64", self.count, groups)

    def clear(self) -> None:
        self._e.set("i64", self.count, "0")

    def add(self, group: str, filled: str) -> None:
        """Puts a group behind the last one if it lacks numbers."""
        e, count = self._e, self._e.get("i64", self.count)
        e.set("i64", e.at(self.groups, count, "i64"), group)
        e.set("i64", e.at(self.filled, count, "i64"), filled)
        lacks = e.let(f"zext i1 {e.let(f'icmp slt i64 {filled}, {self._of_block}')} to i64")
        e.set("i64", self.count, e.add(count, lacks))
