"""Numbers read by machine code are Python's, to the last bit; all others are left alone."""

from __future__ import annotations

import ctypes
import random
import struct

import numpy as np
import pytest

from flowstone.native.codegen import compiler
from flowstone.native.codegen.structured import Code
from flowstone.native.records.number_code import float_text, integer_text, number_constants


class Numbers:
    """What reads one number: None where the code leaves it to others."""

    def __init__(self):
        texts = [number_constants()]
        for name, kind, write in (("whole", "i64", integer_text), ("real", "double", float_text)):
            e = Code(name, ["ptr begin", "i64 length", "ptr out", "ptr status"], 1, {}, is_public=True)
            e.set("i64", "%status", "1")
            with e.repeat() as unusual:
                e.set(kind, "%out", write(e, "%begin", e.at("%begin", "%length", "i8"), unusual))
                e.set("i64", "%status", "0")
                unusual("true")
            texts.append(e.text())
        self._module = compiler.compiled("\n".join(texts), ["whole", "real"])

    def read(self, name, dtype, text):
        function = ctypes.PYFUNCTYPE(None, *[ctypes.c_int64] * 4)(self._module.address(name))
        memory, out, status = ctypes.create_string_buffer(text), np.zeros(1, dtype), np.zeros(1, np.int64)
        function(ctypes.addressof(memory), len(text), out.ctypes.data, status.ctypes.data)
        return None if status[0] else out[0].item()

    def whole(self, text):
        return self.read("whole", np.int64, text)

    def real(self, text):
        return self.read("real", np.float64, text)


@pytest.fixture(scope="module")
def numbers():
    return Numbers()


def bits(value):
    return struct.pack("d", value)


def test_floats_of_every_length(numbers):
    draw = random.Random(1)
    for _ in range(30_000):
        digits = b"".join(b"%d" % draw.randrange(10) for _ in range(draw.randrange(1, draw.choice((5, 30)))))
        point = draw.randrange(len(digits) + 1)
        text = digits[:point] + draw.choice((b"", b".")) + digits[point:]
        text = draw.choice((b"", b"-", b"+")) + text
        if draw.random() < 0.5:
            text += draw.choice((b"e", b"E")) + draw.choice((b"", b"-", b"+"))
            text += b"%d" % draw.randrange(draw.choice((10, 400)))
        assert bits(numbers.real(text)) == bits(float(text)), text


def test_floats_that_python_writes(numbers):
    draw = random.Random(2)
    for _ in range(10_000):
        value = struct.unpack("d", draw.randbytes(8))[0]
        if np.isfinite(value):
            assert bits(numbers.real(repr(value).encode())) == bits(value)


@pytest.mark.parametrize(
    "text",
    [
        *(b"0", b"-0", b"+0.0", b"-0.0e5", b"0e999", b".5", b"5.", b"-.5e1", b"  1.5\t", b"\v\f7\r\n"),
        *(
            b"9007199254740992",
            b"9007199254740993",
            b"9007199254740991e22",
            b"1e22",
            b"1e23",
            b"1e-22",
            b"1e-23",
        ),
        *(
            b"1e309",
            b"-1e9999",
            b"1e-9999",
            b"4.9e-324",
            b"2.4703282292062327e-324",
            b"2.4703282292062328e-324",
        ),
        *(b"1.7976931348623157e308", b"1.7976931348623159e308", b"0.000000000000000000000000000000000001"),
        *(b"123456789012345678901234567890", b"0" * 50 + b"1", b"1" + b"0" * 50, b"18446744073709551616"),
    ],
)
def test_floats_at_limits(numbers, text):
    assert bits(numbers.real(text)) == bits(float(text))


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b" ", b".", b"-", b"e5", b"1e", b"1e+", b"1.5.2", b"1 2", b"- 1", b"+-1", b"1_0", b"0x10"),
        *(b"inf", b"nan", b"1f", b"1\0", b"\xd9\xa1", b"1e12345", b"--1", b"1e5.0"),
    ],
)
def test_what_is_left_to_others(numbers, text):
    assert numbers.real(text) is None and numbers.whole(text) is None


def test_integers(numbers):
    draw = random.Random(3)
    for _ in range(20_000):
        value = draw.randrange(10 ** draw.randrange(1, 19)) * draw.choice((1, -1))
        text = b"%d" % value
        if value >= 0 and draw.random() < 0.3:
            text = b"+" + text
        if draw.random() < 0.3:
            text = b" " * draw.randrange(3) + text + b"\t" * draw.randrange(3)
        assert numbers.whole(text) == value


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 0, 9_999_999_999, -(2**63) + 1])
def test_integers_at_limits(numbers, value):
    assert numbers.whole(b"%d" % value) == value


@pytest.mark.parametrize(
    "text",
    [b"%d" % 2**63, b"%d" % (-(2**63) - 1), b"9" * 19, b"0" * 20, b"1.0", b"1e3", b"18446744073709551617"],
)
def test_integers_that_are_left_to_others(numbers, text):
    assert numbers.whole(text) is None


def test_leading_zeros(numbers):
    assert numbers.whole(b"-0") == 0 and numbers.whole(b"0000000000000000007") == 7
