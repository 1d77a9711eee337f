"""Messages read as one array of bytes, by protobuf, or partly so, give the same columns."""

from __future__ import annotations

import random

import numpy as np
import pytest
from google.protobuf.message import DecodeError

import flowstone as tf
from flowstone.framework import errors
from flowstone.ops.parsing import columns
from flowstone.ops.parsing.columns import Column, columns_of
from flowstone.ops.parsing.layouts import BYTES, FLOATS, INTEGERS, layout_of

WANTED = {b"x": FLOATS, b"y": INTEGERS, b"z": BYTES, b"absent": FLOATS}


def message(floats: int, integers: list[int], texts: list[bytes], seed: int = 0) -> bytes:
    example = tf.train.Example()
    features = example.features.feature
    features["x"].float_list.value.extend(np.random.RandomState(seed).rand(floats))
    features["y"].int64_list.value.extend(integers)
    features["z"].bytes_list.value.extend(texts)
    features["unused"].int64_list.value.extend([1, 2, 3])
    return example.SerializeToString(deterministic=True)


def refusal(key: bytes, row: int, expected: int, actual: int) -> Exception:
    return ValueError((key, row, expected, actual))


def by_protobuf(messages: list[bytes]) -> dict[bytes, Column]:
    return columns._through_protobuf(messages, range(len(messages)), WANTED, refusal)


def assert_same(found: dict[bytes, Column], expected: dict[bytes, Column]) -> None:
    for key in WANTED:
        for a, b in zip(found[key], expected[key]):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("floats", [0, 1, 40])
@pytest.mark.parametrize("digits", [1, 2, 5, 10])
def test_one_layout(floats: int, digits: int) -> None:
    low, high = 2 ** (7 * (digits - 1)) % 2**63, min(2 ** (7 * digits), 2**63)
    draw = random.Random(digits)
    messages = [
        message(floats, [draw.randrange(low, high), -1], [b"ab", bytes([i])], i) for i in range(8)
    ] if digits < 10 else [message(floats, [-i - 1, 5], [b"", b"q"], i) for i in range(8)]  # fmt: skip
    assert columns._as_one_array(messages, range(8), WANTED, refusal) is not None
    assert_same(columns_of(messages, WANTED, refusal), by_protobuf(messages))


def test_a_few_layouts() -> None:
    """Rows of other lengths come in between, and stay at their places."""
    messages = [message(i % 3, [10 ** (i % 4)] * (i % 2), [b"a" * (i % 2)], i) for i in range(24)]
    messages[5] = messages[7] = b""
    assert len({len(each) for each in messages}) <= columns._MOST_GROUPS + 8
    assert_same(columns_of(messages, WANTED, refusal), by_protobuf(messages))
    same = [message(2, [10 ** (i % 2 * 3)], [b"a"], i) for i in range(24)]
    assert_same(columns_of(same, WANTED, refusal), by_protobuf(same))


def test_same_length_but_another_layout() -> None:
    messages = [message(2, [1, 2], [b"abc"], i) for i in range(5)]
    messages.append(message(2, [1], [b"abcd"], 9))
    assert len({len(each) for each in messages}) == 1
    assert_same(columns_of(messages, WANTED, refusal), by_protobuf(messages))


def test_the_row_of_another_kind() -> None:
    wrong = tf.train.Example()
    wrong.features.feature["x"].int64_list.value.append(1)
    messages = [message(2, [1], [b"a"], i) for i in range(6)]
    messages[4] = wrong.SerializeToString()
    with pytest.raises(ValueError, match=r"\(b'x', 4, 2, 3\)"):
        columns_of(messages, WANTED, refusal)


def test_damaged_messages_are_refused_or_parsed_as_protobuf_does() -> None:
    """Bytes are changed, cut off and put in: never another error, nor values that protobuf does not see."""
    draw = random.Random(7)
    whole = message(6, [3, 300], [b"ab", b"c"])
    for _ in range(1500):
        data = bytearray(whole)
        for _ in range(draw.randrange(1, 4)):
            place = draw.randrange(len(data))
            kind = draw.randrange(3)
            if kind == 0:
                data[place] = draw.randrange(256)
            elif kind == 1:
                del data[place:]
            else:
                data.insert(place, draw.randrange(256))
            if not data:
                break
        messages = [bytes(data)] * 5
        try:
            expected = by_protobuf(messages)
        except (errors.InvalidArgumentError, ValueError) as error:
            with pytest.raises(type(error)):
                columns_of(messages, WANTED, refusal)
            continue
        assert_same(columns_of(messages, WANTED, refusal), expected)


def test_layouts_are_those_of_readable_messages() -> None:
    """A layout is found of nothing that protobuf refuses for its structure."""
    draw = random.Random(3)
    for _ in range(3000):
        data = bytes(draw.choice((0x0A, 0x12, 0x1A, 1, 2, 3, 4, 5, 8)) for _ in range(draw.randrange(14)))
        layout = layout_of(data)
        if layout is not None:
            try:
                features = tf.train.Example.FromString(data).features.feature
            except DecodeError as error:
                assert b"a" not in layout.fields or "utf" in str(error).lower()
                continue
            assert {key.encode() for key in features} == set(layout.fields)
