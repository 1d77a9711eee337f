"""Characters counted and base64 by machine code are those of Python."""

from __future__ import annotations

import base64
import random
import sys

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.machine import string_code
from flowstone.native import offers
from flowstone.native.strings.string_codecs import StringCodecs


@pytest.fixture(scope="module")
def code() -> StringCodecs:
    return StringCodecs()


def strings() -> list[bytes]:
    draw = random.Random(1)
    return [draw.randbytes(n) for n in range(200) for _ in range(3)]


def encoded(string: bytes, pads: bool) -> bytes:
    text = base64.urlsafe_b64encode(string)
    return text if pads else text.rstrip(b"=")


@pytest.mark.parametrize("pads", [True, False])
def test_base64_of_every_length(code, pads):
    texts = code.encoded(strings(), pads)
    assert texts.dtype == object
    assert texts.tolist() == [encoded(each, pads) for each in strings()]
    assert code.decoded(texts.tolist()).tolist() == strings()


@pytest.mark.parametrize(
    "text",
    [b"a", b"a===", b"ab=", b"abc*", b"ab=c", b"====", b"=", b"abcde", b"abcdef=", b"AB+/", b"abcd\xff\0ab"],
)
def test_what_is_no_base64(code, text):
    assert code.decoded([b"abcd", text]) is None


def test_bits_that_are_no_byte_are_left_out(code):
    assert code.decoded([b"AB", b"AAB", b"AB==", b"AAB="]).tolist() == [b"\0", b"\0\0", b"\0", b"\0\0"]


def test_characters(code):
    texts = [*strings(), "äöü€𝄞a".encode(), b"\x80\x80", b""]
    expected = [sum((byte & 0xC0) != 0x80 for byte in text) for text in texts]
    assert code.character_counts(texts).tolist() == expected


def test_nothing_and_what_is_no_bytes(code):
    assert code.encoded([], True).shape == code.decoded([]).shape == code.character_counts([]).shape == (0,)
    for strange in ("text", None, 3, np.bytes_(b"x")):
        given = [b"abcd", strange]
        assert code.encoded(given, True) is code.decoded(given) is code.character_counts(given) is None


def test_results_are_counted_once(code):
    texts = code.encoded([b"some text of this test"], False)
    assert sys.getrefcount(texts[0]) == sys.getrefcount(b"%d other text" % len(texts)) + 1


def test_the_ops_give_the_same_with_and_without(monkeypatch):
    offers.offer_all()
    given = np.array([each for each in strings() if len(each) < 60], object)
    results = []
    for native in (2, 0):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            texts = tf.placeholder(tf.string)
            padded = tf.encode_base64(texts, pad=True)
            ops = [
                padded,
                tf.encode_base64(texts),
                tf.decode_base64(padded),
                tf.strings.length(texts, unit="UTF8_CHAR"),
            ]
            results.append(session.run(ops, {texts: given}))
            wrong = tf.decode_base64(tf.fill([200], "abc*"), name="wrong")
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)found in base64.*node wrong"):
                session.run(wrong)
    for found, expected in zip(*results):
        np.testing.assert_array_equal(found, expected)


def test_kernels_are_offered_it_where_there_is_a_native_tier(monkeypatch):
    offers.offer_all()
    assert isinstance(string_code.string_codecs(), StringCodecs)
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert string_code.string_codecs() is None
