"""What is done to many strings at once is what is done to each alone."""

from __future__ import annotations

import base64
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.native.codegen import host
from flowstone.native.strings.byte_strings import StringCode
from flowstone.ops.strings import packed
from flowstone.ops.strings.packed import Packed, character_counts, lengths_of, texts_of

RANDOM = np.random.RandomState(0)
LETTERS = ("ab \n", "aé€😀", "a\0b", "ab\1")
SIZES = (1, 12, 70)


def texts(letters: str, longest: int, count: int = 1500) -> list[bytes]:
    chosen = [RANDOM.choice(list(letters), RANDOM.randint(0, longest + 1)) for _ in range(count)]
    return ["".join(each).encode() for each in chosen]


def as_objects(strings: list[bytes]) -> np.ndarray[Any, Any]:
    array = np.empty(len(strings), object)
    array[:] = strings
    return array


@functools.cache
def machine_code() -> StringCode:
    return StringCode()


@pytest.fixture(autouse=True, params=["NumPy", "machine code"])
def small_blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """By NumPy alone, and with machine code."""
    monkeypatch.setattr(packed, "BLOCK", 400)
    if request.param == "NumPy":
        monkeypatch.setattr(packed, "byte_strings", lambda: None)
    elif reason := host.reason():
        pytest.skip(reason)
    else:
        monkeypatch.setattr(packed, "byte_strings", machine_code)


@pytest.mark.parametrize("letters", LETTERS)
@pytest.mark.parametrize("longest", SIZES)
def test_places(letters: str, longest: int) -> None:
    strings = texts(letters, longest)
    found = Packed(strings)
    assert found.pieces(found.starts, found.lengths).tolist() == strings
    assert lengths_of(strings).tolist() == [len(each) for each in strings]
    assert character_counts(strings).tolist() == [len(each.decode()) for each in strings]
    half = found.lengths // 2
    assert found.pieces(found.starts + half, half).tolist() == [
        each[len(each) // 2 :][: len(each) // 2] for each in strings
    ]


def test_one_long_string_and_none() -> None:
    strings = [b"a", b"b" * 100_000, b"", b"\0"] * 3
    found = Packed(strings)
    assert found.pieces(found.starts, found.lengths).tolist() == strings
    assert lengths_of(strings).tolist() == [1, 100_000, 0, 1] * 3
    nothing = Packed([])
    assert nothing.pieces(nothing.starts, nothing.lengths).tolist() == []
    assert texts_of(nothing.rows(nothing.starts, nothing.lengths), nothing.lengths).tolist() == []


def decoded(x: Any) -> Any:
    values = tf.raw_ops.UnicodeDecodeWithOffsets(input=x, input_encoding="UTF-8")
    return values[1], values[2], values[0][1:] - values[0][:-1]


def parts(separator: str) -> Callable[[Any], Any]:
    def split(x: Any) -> Any:
        indices, values, _ = tf.raw_ops.StringSplitV2(input=x, sep=separator)
        return values, indices[:, 1]

    return split


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "upper": tf.strings.upper,
    "start": lambda x: tf.strings.substr(x, 0, 2),
    "end": lambda x: tf.strings.substr(x, 0, -1),
    "start of characters": lambda x: tf.strings.substr(x, 0, 2, unit="UTF8_CHAR"),
    "lengths": lambda x: tf.strings.length(x, unit="UTF8_CHAR"),
    "decoded": decoded,
    "encode": tf.encode_base64,
    "encode with padding": lambda x: tf.encode_base64(x, pad=True),
    "there and back": lambda x: tf.decode_base64(tf.encode_base64(x)),
    "there and back with padding": lambda x: tf.decode_base64(tf.encode_base64(x, pad=True)),
    "split at a": parts("a"),
    "split at ab": parts("ab"),
    "split at aa": parts("aa"),
    "replaced": lambda x: tf.strings.regex_replace(x, "(a+)(b?)", r"<\2\1>"),
    "matched": lambda x: tf.strings.regex_full_match(x, "a.*b"),
    "distinct": lambda x: tf.gather(*tf.unique(x)[:2]),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("letters", LETTERS)
def test_many_and_few(name: str, letters: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.string, [None])
        results = OPERATIONS[name](x)
        results = results if isinstance(results, tuple) else (results,)
        for longest in SIZES:
            strings = as_objects(texts(letters, longest))
            together = session.run(results, {x: strings})
            by_few = [session.run(results, {x: strings[i : i + 20]}) for i in range(0, len(strings), 20)]
            for found, several in zip(together, zip(*by_few), strict=True):
                assert found.tolist() == np.concatenate(several).tolist()


def test_code_points_of_malformed_bytes() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.string, [None])
        results = decoded(x)
        strings = texts("aé€", 9)
        strings[700:710] = [b"\xff", b"a\xc3", b"\xe2\x82", b"\x80a"] * 2 + [b"", b"\xed\xa0\x80"]
        together = session.run(results, {x: as_objects(strings)})
        by_few = [session.run(results, {x: as_objects(strings[i : i + 20])}) for i in range(0, 1500, 20)]
        for found, several in zip(together, zip(*by_few), strict=True):
            assert found.tolist() == np.concatenate(several).tolist()


def test_each_its_own_part() -> None:
    strings = texts("aé b", 12)
    for unit, counts in (("BYTE", lengths_of(strings)), ("UTF8_CHAR", character_counts(strings))):
        at = np.array([RANDOM.randint(-count, count + 1) for count in counts])
        sizes = RANDOM.randint(0, 9, len(strings))
        with tf.Graph().as_default(), tf.Session() as session:
            found = session.run(tf.strings.substr(as_objects(strings), at, sizes, unit=unit))
        whole: list[Any] = [each.decode() for each in strings] if unit != "BYTE" else list(strings)
        begins = np.where(at < 0, at + counts, at)
        expected = [each[a : a + size] for each, a, size in zip(whole, begins, sizes)]
        assert found.tolist() == [each.encode() if isinstance(each, str) else each for each in expected]


def test_the_string_without_the_position_is_named() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        part = tf.strings.substr(as_objects([b"abc"] * 700 + [b"a"] + [b"abc"] * 700), 2, 1)
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="pos 2 out of range for string b'a' at index 700"
        ):
            session.run(part)


@pytest.mark.parametrize(
    "wrong", [b"=", b"QUJ=D", b"QUI==", b"Q===", b"QU=", b"\0\0", b"A", b"====", b"QU+/"]
)
def test_what_is_no_base64(wrong: bytes) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.string, [None])
        bytes_of = tf.decode_base64(x)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(bytes_of, {x: as_objects([b"QUJD"] * 500 + [wrong])})
        values = [b"\xff" * i for i in range(40)] * 10
        right = [base64.urlsafe_b64encode(value) for value in values]
        assert session.run(bytes_of, {x: as_objects(right)}).tolist() == values


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integers_as_text(dtype: str) -> None:
    limits = np.iinfo(dtype)
    numbers = RANDOM.randint(limits.min, limits.max, 1500, dtype=dtype)
    numbers[:6] = limits.min, limits.max, 0, 9, 10, 100
    for each in (numbers, numbers % 50, np.zeros(1500, dtype)):
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(dtype, [None])
            assert session.run(tf.as_string(x), {x: each}).tolist() == [b"%d" % n for n in each.tolist()]
