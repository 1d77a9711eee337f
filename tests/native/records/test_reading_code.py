"""Values are read to their places, rows are filled up, and strings are counted once."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from flowstone.io.proto.example_pb2 import Example
from flowstone.native.records.example_code import BYTES, FLOATS, INTEGERS
from flowstone.native.records.examples import ExampleCode

INTEGER_VALUES = [0, 1, -1, 127, 128, 300, 2**35, 2**63 - 1, -(2**63)]


@pytest.fixture(scope="module")
def code():
    return ExampleCode()


def example(**lists) -> bytes:
    message = Example()
    for key, values in lists.items():
        name = {"f": "float_list", "i": "int64_list", "b": "bytes_list"}[key]
        getattr(message.features.feature[key], name).value.extend(values)
    return message.SerializeToString()


KINDS = {b"f": FLOATS, b"i": INTEGERS, b"b": BYTES}
ROWS = [
    example(f=[1, 2], i=INTEGER_VALUES, b=[b"one", b"", b"three of them"]),
    example(),
    example(f=range(100), i=range(20), b=[b"x"]),
    example(f=[], i=[-5], b=[b"\x00\xff"] * 3),
]
EXPECTED = {
    0: [[1, 2], [], list(range(100)), []],
    1: [INTEGER_VALUES, [], list(range(20)), [-5]],
    2: [[b"one", b"", b"three of them"], [], [b"x"], [b"\x00\xff"] * 3],
}
TYPES = (np.float32, np.int64, object)


@pytest.mark.parametrize("feature", [0, 1, 2])
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_lists_and_their_places(code, feature, rank):
    walk = code.walk(np.array(ROWS, object), code.keys(KINDS))
    values = np.empty(walk.totals[feature], TYPES[feature])
    places, shape = np.full((len(values), rank), 99), np.full(rank, 99)
    walk.fill_list(feature, values, *((places, shape) if rank else ()))
    walk.read()
    rows = EXPECTED[feature]
    assert values.tolist() == [each for row in rows for each in row]
    every = [(i, j)[2 - rank :] for i, row in enumerate(rows) for j in range(len(row))]
    assert [tuple(place) for place in places.tolist()] == every
    assert shape.tolist() == [len(rows), max(map(len, rows))][2 - rank :]


@pytest.mark.parametrize("feature", [0, 1, 2])
def test_rows_are_filled_up(code, feature):
    walk = code.walk(np.array(ROWS, object), code.keys(KINDS))
    width = walk.most[feature] + 2
    padding = np.array([b"pad"], object) if feature == 2 else np.array([7], TYPES[feature])
    out = np.empty((len(ROWS), width), TYPES[feature])
    walk.fill_rows(feature, out, width, padding, 0)
    default = np.arange(width).astype(TYPES[feature])
    if feature == 2:
        default[:] = [b"%d" % i for i in range(width)]
    other = np.empty_like(out)
    walk.fill_rows(feature, other, width, default, 1)
    walk.read()
    for row, found, filled in zip(EXPECTED[feature], out.tolist(), other.tolist()):
        assert found == row + padding.tolist() * (width - len(row))
        assert filled == row + default.tolist()[len(row) :]


def test_strings_are_counted_once(code):
    padding = b"a padding element"
    fill = np.array([padding], object)
    before, of_none = sys.getrefcount(padding), sys.getrefcount(None)
    for _ in range(50):
        walk = code.walk(np.array(ROWS, object), code.keys(KINDS))
        out = np.empty((4, 5), object)
        walk.fill_rows(2, out, 5, fill, 0)
        walk.read()
    assert sys.getrefcount(padding) == before + 13
    by_python = np.array([b"%d longer" % len(out), b"%d texts" % len(out)], object)
    assert [sys.getrefcount(each) for each in out[0, ::2]][:2] == [
        sys.getrefcount(each) for each in by_python
    ]
    del out, walk
    assert sys.getrefcount(padding) == before
    assert abs(sys.getrefcount(None) - of_none) < 50


def test_values_outlive_the_messages(code):
    messages = np.array(ROWS, object)
    walk = code.walk(messages, code.keys(KINDS))
    out = np.empty(walk.totals[2], object)
    walk.fill_list(2, out)
    walk.read()
    del messages, walk
    assert out.tolist() == [each for row in EXPECTED[2] for each in row]
