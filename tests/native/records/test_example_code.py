"""The walk finds the lists of features in all forms that protobuf knows, and leaves the rest to protobuf."""

from __future__ import annotations

import numpy as np
import pytest

from flowstone.io.checkpoint_files.encodings import varint
from flowstone.io.proto.example_pb2 import Example
from flowstone.native.records.example_code import BYTES, FLOATS, INTEGERS
from flowstone.native.records.examples import ExampleCode

KINDS = {b"x": FLOATS, b"y": INTEGERS, b"z": BYTES}


@pytest.fixture(scope="module")
def code():
    return ExampleCode()


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def entry(key: bytes, feature: bytes) -> bytes:
    return field(1, field(1, key) + field(2, feature))


def message(*entries: bytes) -> bytes:
    return field(1, b"".join(entries))


FLOAT = np.float32([1, 2, 3]).tobytes()
FLOATS_OF_X = entry(b"x", field(2, field(1, FLOAT)))
ONE_OF_X = entry(b"x", field(2, field(1, FLOAT[:4])))
ONE_OF_Y = entry(b"y", field(3, field(1, b"\x01")))
ZEROS_OF_Y = entry(b"y", field(3, field(1, bytes(20))))
A_OF_Z = entry(b"z", field(1, field(1, b"a")))
SINGLE = b"\x0d" + FLOAT[:4]
LONG = b"\xff" * 9 + b"\x01" + bytes(8) + b"\x85\x00"
USUAL = {
    "nothing": (b"", [-1, -1, -1]),
    "no features": (message(), [-1, -1, -1]),
    "packed": (message(FLOATS_OF_X, entry(b"y", field(3, field(1, b"\x01\x80\x01")))), [3, 2, -1]),
    "unpacked": (
        message(entry(b"x", field(2, SINGLE)), entry(b"y", field(3, b"\x08\x01\x08\x96\x01"))),
        [1, 2, -1],
    ),
    "both": (message(entry(b"x", field(2, SINGLE + field(1, FLOAT) + field(1, b"")))), [4, -1, -1]),
    "texts": (message(entry(b"z", field(1, field(1, b"a") + field(1, b"")))), [-1, -1, 2]),
    "empty lists": (message(entry(b"x", field(2, b"")), entry(b"z", field(1, b""))), [0, -1, 0]),
    "no kind": (message(entry(b"x", b"")), [-1, -1, -1]),
    "other features": (message(entry(b"q", field(3, field(1, b"\x07"))), A_OF_Z), [-1, -1, 1]),
    "the last of one key": (message(FLOATS_OF_X, ONE_OF_X), [1, -1, -1]),
    "the last has nothing": (message(FLOATS_OF_X, entry(b"x", b"")), [-1, -1, -1]),
    "two parts": (message(FLOATS_OF_X) + message(ONE_OF_Y), [3, 1, -1]),
    "unknown fields": (b"\x10\x05" + field(2, b"any") + message(ZEROS_OF_Y) + b"\x1d1234", [-1, 20, -1]),
    "long numbers": (message(entry(b"y", field(3, field(1, LONG)))), [-1, 10, -1]),
    "sizes in more bytes than needed": (
        b"\x0a\x8b\x00" + entry(b"y", field(3, b"\x08\x01")),
        [-1, 1, -1],
    ),
}
UNUSUAL = {
    "cut off": message(FLOATS_OF_X)[:-1],
    "an odd number of bytes": message(entry(b"x", field(2, field(1, FLOAT[:-1])))),
    "a number that does not end": message(entry(b"y", field(3, field(1, b"\x80")))),
    "a number of too many bytes": message(entry(b"y", field(3, field(1, b"\x80" * 10 + b"\x01")))),
    "a number of too many bits": message(entry(b"y", field(3, field(1, b"\xff" * 9 + b"\x02")))),
    "damaged, and not wanted": message(entry(b"q", field(3, field(1, b"\x80")))),
    "another kind": message(entry(b"x", field(3, field(1, b"\x01")))),
    "two kinds": message(entry(b"q", field(3, b"") + field(2, b""))),
    "one list in two parts": message(entry(b"x", field(2, field(1, FLOAT)) + field(2, field(1, FLOAT)))),
    "the value first": message(field(1, field(2, field(2, b"")) + field(1, b"x"))),
    "no value": message(field(1, field(1, b"x"))),
    "a key that is no text": message(entry(b"\xff\xfe", field(2, b""))),
    "a group": b"\x13\x14",
    "features as a number": b"\x08\x01",
    "a field in a list": message(entry(b"x", field(2, field(2, FLOAT)))),
    "the field of number 0": b"\x02\x00",
}


@pytest.mark.parametrize("name", USUAL)
def test_usual_messages(code, name):
    data, counts = USUAL[name]
    walk = code.walk(np.array([b"", data], object), code.keys(KINDS))
    assert walk is not None
    assert walk.missing == [1 + (count < 0) for count in counts]
    assert walk.totals == walk.most == [max(count, 0) for count in counts]
    features = Example.FromString(data).features.feature
    for key, kind, count in zip(KINDS, KINDS.values(), walk.totals):
        lists = {BYTES: "bytes_list", FLOATS: "float_list", INTEGERS: "int64_list"}[kind]
        assert len(getattr(features[key.decode()], lists).value) == count


@pytest.mark.parametrize("name", UNUSUAL)
def test_what_is_left_to_protobuf(code, name):
    for others in ([], [USUAL["packed"][0]] * 3):
        assert code.walk(np.array([*others, UNUSUAL[name]], object), code.keys(KINDS)) is None


@pytest.mark.parametrize("strange", ["text", None, 5, np.bytes_(b"")])
def test_objects_that_are_no_bytes(code, strange):
    messages = np.empty(2, object)
    messages[:] = [b"", strange]
    assert code.walk(messages, code.keys(KINDS)) is None


def test_counts_of_each_message(code):
    messages = np.array([USUAL["packed"][0], b"", USUAL["unpacked"][0]], object)
    walk = code.walk(messages, code.keys(KINDS))
    assert walk.counts(0).tolist() == [3, 0, 1] and walk.counts(1).tolist() == [2, 0, 2]
    assert walk.totals == [4, 4, 0] and walk.missing == [1, 1, 3] and walk.most == [3, 2, 0]


def feature_list(key: bytes, *features: bytes) -> bytes:
    return field(1, field(1, key) + field(2, b"".join(field(1, each) for each in features)))


FLOATS_LIST = field(2, field(1, FLOAT))


def test_lists_of_features(code):
    lists = [feature_list(b"x", FLOATS_LIST, b"", field(2, b"")), feature_list(b"y"), feature_list(b"q", b"")]
    data = field(1, b"skipped") + field(2, b"".join(lists))
    walk = code.walk_lists(np.array([data, b"", data], object), code.keys(KINDS))
    assert [walk.steps(i).tolist() for i in range(3)] == [[3, -1, 3], [0, -1, 0], [-1, -1, -1]]
    features = walk.features(0)
    assert features.counts(0).tolist() == [3, 0, 0] * 2
    assert features.is_there(0).tolist() == [True, False, True] * 2
    assert (features.totals, features.missing, features.most) == ([6], [2], [3])
    values = np.empty(6, np.float32)
    features.fill_list(0, values)
    features.read()
    assert values.tolist() == [1, 2, 3] * 2
    assert walk.features(1).totals == walk.features(2).totals == [0]


@pytest.mark.parametrize(
    "damaged",
    [
        field(2, feature_list(b"x", field(3, b""))),
        field(2, feature_list(b"q", field(3, field(1, b"\x80")))),
        field(2, feature_list(b"x", FLOATS_LIST)[:-1]),
        field(2, field(1, field(1, b"x") + field(2, field(2, b"")))),
        b"\x10\x01",
    ],
)
def test_lists_that_are_left_to_protobuf(code, damaged):
    assert code.walk_lists(np.array([b"", damaged], object), code.keys(KINDS)) is None
