"""Numbers read by machine code are those of Python."""

from __future__ import annotations

import random

import numpy as np
import pytest

from flowstone.native.strings.text_numbers import TextNumbers


@pytest.fixture(scope="module")
def code() -> TextNumbers:
    return TextNumbers()


def test_floats(code):
    draw = random.Random(1)
    texts = [repr(draw.uniform(-1, 1) * 10 ** draw.randint(-300, 300)).encode() for _ in range(2000)]
    texts += [
        b" 1.5\n",
        b"+7",
        b"-0",
        b".5",
        b"5.",
        b"1e5",
        b"1E-400",
        b"123456789012345678901234567890",
        b"4.9e-324",
    ]
    for given in (texts, np.array(texts, object)):
        found = code.floats(given)
        assert found.tobytes() == np.array(list(map(float, texts))).tobytes()


def test_integers(code):
    draw = random.Random(2)
    texts = [b"%d" % draw.randint(-(2**63), 2**63 - 1) for _ in range(2000)]
    texts += [b"-9223372036854775808", b"9223372036854775807", b"0007", b"+3", b"\t-4 ", b"-0"]
    for given in (texts, np.array(texts, object)):
        assert code.integers(given).tolist() == list(map(int, texts))


@pytest.mark.parametrize(
    "text", [b"", b" ", b"1_0", b"1 2", b"0x10", b"inf", b"1\0", b"--1", b"1e", "1\u0661".encode()]
)
def test_what_is_left_to_others(code, text):
    assert code.floats([b"1", text]) is None
    assert code.integers([b"1", text]) is None


def test_what_is_no_integer(code):
    for text in (b"1.5", b"9223372036854775808", b"-9223372036854775809", b"00000000000000000000001"):
        assert code.integers([text]) is None


def test_nothing_and_what_is_no_bytes(code):
    assert code.floats([]).shape == code.integers(np.empty(0, object)).shape == (0,)
    assert code.floats([b"1", "1"]) is None
    assert code.integers(np.array([b"1", 1], object)) is None
