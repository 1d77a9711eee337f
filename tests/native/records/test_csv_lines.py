"""Lines that machine code reads have the values, and the errors, of lines that Python reads."""

from __future__ import annotations

import random

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import errors, flags
from flowstone.framework.machine import record_code
from flowstone.native import offers
from flowstone.native.records.csv_lines import CsvCode

TYPES = (np.float32, np.float64, np.int32, np.int64, object)


@pytest.fixture(scope="module")
def code():
    return CsvCode()


def objects(texts):
    array = np.empty(len(texts), object)
    array[:] = texts
    return array


def default_of(dtype, value=None):
    if value is None:
        return np.empty(0, dtype)
    return objects([value]) if dtype is object else np.array([value], dtype)


def read(code, lines, defaults, quote=b'"', missing=b"", chosen=(), delimiter=b","):
    found = code(objects(lines), delimiter, quote, missing, chosen, defaults)
    return None if found is None else [each.tolist() for each in found]


REQUIRED = [default_of(each) for each in TYPES]


def test_every_type(code):
    lines = [b"0.1,0.1,1,2,a", b"-1e40,1e400,-2147483648,9223372036854775807,", b'"2", 3 ,4," 5","a,\n\r"']
    defaults = [*REQUIRED[:-1], default_of(object, b"none")]
    assert read(code, lines, defaults) == [
        [np.float32(0.1), -np.inf, 2.0],
        [0.1, np.inf, 3.0],
        [1, -(2**31), 4],
        [2, 2**63 - 1, 5],
        [b"a", b"none", b"a,\n\r"],
    ]
    found = code(objects(lines), b",", b'"', b"", (), defaults)
    assert [each.dtype for each in found] == [np.dtype(each) for each in TYPES]


def test_gaps(code):
    defaults = [default_of(dtype, value) for dtype, value in zip(TYPES, (0.5, 1.5, -3, 2**40, b"none"))]
    gaps = [[0.5], [1.5], [-3], [2**40], [b"none"]]
    for line in (b",,,,", b'"",,"",,""', b"NA,NA,NA,NA,NA", b'"NA",,NA,,NA'):
        assert read(code, [line], defaults, missing=b"NA") == gaps
    assert read(code, [b"1,1,1,1,NA"], REQUIRED, missing=b"NA") is None
    assert read(code, [b"1,1,1,1,NAN"], REQUIRED, missing=b"NA")[4] == [b"NAN"]


def test_lengths_and_choices(code):
    text = [default_of(object, b"-")]
    assert read(code, [b""], text) == [[b"-"]]
    assert read(code, [b"a,"], text * 2) == [[b"a"], [b"-"]]
    assert read(code, [b"a", b"a,b"], text) is None
    assert read(code, [b"a,b"], text) is None and read(code, [b"a"], text * 2) is None
    assert read(code, [b"a,b,c,d", b"e,f,g"], text * 2, chosen=(0, 2)) == [[b"a", b"e"], [b"c", b"g"]]
    assert read(code, [b"a,b"], text, chosen=(2,)) is None
    assert read(code, [b'a,b,c"'], text, chosen=(1,)) is None
    assert read(code, [], text * 2) == [[], []]


@pytest.mark.parametrize("line", [b'a"b', b'"a', b'"a"b', b'"a""b"', b"a\nb", b"a\r", b"\na"])
def test_what_is_left_to_python(code, line):
    assert read(code, [b"a", line], [default_of(object)]) is None


def test_other_delimiters_and_no_quotes(code):
    text = [default_of(object, b"-")]
    assert read(code, [b'"a;b"'], text * 2, quote=b"", delimiter=b";") == [[b'"a'], [b'b"']]
    assert read(code, [b"a\0b"], text * 2, delimiter=b"\0") == [[b"a"], [b"b"]]
    assert read(code, [b"a\xe4b"], text * 2, delimiter=b"\xe4") == [[b"a"], [b"b"]]
    for delimiter in (b'"', b"\n", b"\r"):
        assert read(code, [b"a"], text, delimiter=delimiter) is None
    for delimiter in (b"e", b"1", b"."):  # a number ends there, though more could follow
        found = read(code, [b"2" * 25 + delimiter + b"5"], [default_of(np.float64)] * 2, delimiter=delimiter)
        assert found in (None, [[float("2" * 25)], [5.0]])
    assert read(code, [b"2e5"], [default_of(np.float64)] * 2, delimiter=b"e") == [[2.0], [5.0]]


@pytest.mark.parametrize("strange", ["text", None, 3, np.bytes_(b"a")])
def test_what_is_no_bytes(code, strange):
    assert read(code, [b"a", strange], [default_of(object)]) is None


def run(lines, defaults, **named):
    with tf.Graph().as_default(), tf.Session() as session:
        texts = tf.placeholder(tf.string)
        columns = tf.decode_csv(texts, defaults, **named)
        try:
            found = session.run(columns, {texts: lines})
        except errors.InvalidArgumentError as error:
            return error.message
    return [
        (each.dtype, each.shape, each.tobytes() if each.dtype != object else each.tolist()) for each in found
    ]


FIELDS = {
    tf.float32: [b"1.5", b"-2e-3", b"16777217.0000001", b"inf", b"0x1p3", b" 7 ", b"1e60"],
    tf.float64: [b"0.1", b"1e-320", b"12345678901234567890.5", b"nan", b"-0"],
    tf.int32: [b"12", b"-2147483648", b"+7", b" 8", b"2147483647"],
    tf.int64: [b"123456789012345", b"-9223372036854775808", b"0", b"9223372036854775807", b"0" * 25 + b"1"],
    tf.string: [b"a", b'"b,c"', b'"d""e"', b"longer text", b'"x\ny"'],
}
WRONG = [b"", b"NA", b"2147483648", b"1_0", b"abc", b'a"b', b'"', b"9223372036854775808", b"\n"]


def random_lines(draw, types, places):
    """Lines of these columns at these places, a few of them wrong."""
    rate = draw.choice((0, 0, 0.1))
    lines = []
    for _ in range(draw.randrange(1, 6)):
        fields = [b"?"] * (places[-1] + 1)
        for place, dtype in zip(places, types):
            usual = FIELDS[dtype][: draw.choice((2, 5))]
            fields[place] = draw.choice(WRONG if draw.random() < rate else usual)
        lines.append(b",".join(fields + [b"more"] * (draw.random() < rate)))
    return np.array(lines, object)


def test_random_lines_with_and_without(monkeypatch):
    draw = random.Random(5)
    wrong = 0
    for _ in range(400):
        types = draw.choices(list(FIELDS), k=draw.randrange(1, 6))
        values = [[] if draw.random() < 0.3 else [b"-" if each is tf.string else 3] for each in types]
        defaults = [np.array(value, each.as_numpy_dtype) for value, each in zip(values, types)]
        chosen = sorted(draw.sample(range(6), len(types))) if draw.random() < 0.3 else None
        lines = random_lines(draw, types, chosen or range(len(types)))
        named = {"select_cols": chosen, "na_value": draw.choice(("", "NA"))}
        results = []
        for native in (2, 0):
            monkeypatch.setattr(flags, "NATIVE", native)
            results.append(run(lines, defaults, **named))
        assert results[0] == results[1], lines
        wrong += isinstance(results[0], str)
    assert 30 < wrong < 300


def test_shapes(monkeypatch):
    lines = np.array([[b"1,a", b"2,b", b"3,c"], [b"4,d", b"5,e", b"6,f"]], object)
    for native in (2, 0):
        monkeypatch.setattr(flags, "NATIVE", native)
        for given in (lines, lines.T, lines[0, 0], lines[:, :0]):
            with tf.Graph().as_default(), tf.Session() as session:
                texts = tf.placeholder(tf.string)
                numbers, words = session.run(tf.decode_csv(texts, [[0], [""]]), {texts: given})
            assert numbers.shape == np.shape(words) == np.shape(given)
            flat = [each.split(b",") for each in np.ravel(given).tolist()]
            assert numbers.ravel().tolist() == [int(a) for a, _ in flat]
            assert np.ravel(words).tolist() == [b for _, b in flat]


def test_kernels_are_offered_it_where_there_is_a_native_tier(monkeypatch):
    offers.offer_all()
    monkeypatch.setattr(flags, "NATIVE", 2)
    assert isinstance(record_code.csv_reader(), CsvCode)
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert record_code.csv_reader() is None
