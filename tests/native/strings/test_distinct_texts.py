"""Strings numbered and found by machine code have the numbers that a dictionary gives them."""

from __future__ import annotations

import random

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.machine import string_code
from flowstone.native import offers
from flowstone.native.strings.distinct_texts import DistinctTexts


@pytest.fixture(scope="module")
def code() -> DistinctTexts:
    return DistinctTexts()


@pytest.mark.parametrize("count", [0, 1, 5, 70, 3000])
@pytest.mark.parametrize("kinds", [1, 3, 40, 100_000])
def test_numbers(code, count, kinds):
    draw = random.Random(count + kinds)
    texts = [b"%d" % draw.randrange(kinds) * draw.choice([1, 9, 30]) for _ in range(count)]
    index = code.index(texts)
    expected = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    assert index.distinct == len(expected)
    assert index.numbers.tolist() == [expected[text] for text in texts]
    asked = [*texts[::-1], b"", b"other", b"0" * 70]
    assert index.find(asked).tolist() == [expected.get(text, -1) for text in asked]


def test_strings_that_differ_in_one_byte_or_their_length(code):
    texts = [b"", b"\0", b"\0\0", b"a", b"a\0", b"b" * 64, b"b" * 63 + b"c", b"b" * 65]
    assert code.index(texts).numbers.tolist() == list(range(len(texts)))
    assert code.index([*texts, *map(bytes, map(bytearray, texts))]).distinct == len(texts)


def test_what_is_no_bytes(code):
    index = code.index([b"a", b"b"])
    for strange in ("a", None, 3, np.bytes_(b"a")):
        assert code.index([b"a", strange]) is None
        assert index.find([b"a", strange]) is None


def test_the_index_keeps_its_strings(code):
    index = code.index([b"text %d" % i for i in range(100)])  # a list that nobody else has
    others = [b"TEXT %d" % i for i in range(1000)]
    assert index.find([b"text 7", *others[:3]]).tolist() == [7, -1, -1, -1]


def test_ops_give_the_same_with_and_without(monkeypatch):
    offers.offer_all()
    draw = random.Random(3)
    given = np.array([b"%d" % draw.randrange(150) for _ in range(400)], object)
    results = []
    for native in (2, 0):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            texts = tf.placeholder(tf.string)
            keys = tf.constant([b"%d" % i for i in range(0, 200, 3)])
            initializer = tf.contrib.lookup.KeyValueTensorInitializer(keys, tf.range(tf.size(keys)))
            table = tf.contrib.lookup.HashTable(initializer, -1)
            ops = [*tf.unique_with_counts(texts), table.lookup(texts)]
            session.run(tf.tables_initializer())
            results += [session.run(ops, {texts: given}) for _ in range(2)]
    for found in results[1:]:
        for value, expected in zip(found, results[0]):
            np.testing.assert_array_equal(value, expected)


def test_kernels_are_offered_it_where_there_is_a_native_tier(monkeypatch):
    offers.offer_all()
    assert isinstance(string_code.distinct_texts(), DistinctTexts)
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert string_code.distinct_texts() is None
