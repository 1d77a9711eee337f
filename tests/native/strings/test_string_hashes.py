"""Hashes of strings by machine code are those of NumPy, for every length."""

from __future__ import annotations

import random

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.machine import string_code
from flowstone.native import offers
from flowstone.native.strings.string_hashes import StringHashes
from flowstone.ops.strings.fingerprints import fingerprint64, hash64, sip_hash


@pytest.fixture(scope="module")
def code():
    return StringHashes()


def strings(lengths):
    draw = random.Random(1)
    return [draw.randbytes(n) for n in lengths]


KEY = (-5, 2**62)
BY_NUMPY = {
    "fingerprint": fingerprint64,
    "sip_hash": lambda strings: sip_hash(strings, KEY),
    "murmur_hash": hash64,
}


@pytest.mark.parametrize("buckets", [1, 7, 1000, 2**40 + 3, 2**63 - 1])
@pytest.mark.parametrize("name", BY_NUMPY)
def test_every_length(code, name, buckets):
    given = strings([*(n for n in range(70) for _ in range(3)), *range(100, 330), 5000])
    found = code(name, np.array(given, object), buckets, KEY)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found.astype(np.uint64), BY_NUMPY[name](given) % np.uint64(buckets))


def test_shapes(code):
    given = np.array(strings(range(24)), object).reshape(2, 3, 4)
    flat = code("fingerprint", given.reshape(-1), 99)
    np.testing.assert_array_equal(code("fingerprint", given, 99), flat.reshape(2, 3, 4))
    assert code("fingerprint", given[0, 0, 0:1].reshape(()), 99).shape == ()
    assert code("fingerprint", np.empty((0, 3), object), 5).shape == (0, 3)


@pytest.mark.parametrize("strange", ["text", None, 3, np.bytes_(b"a")])
@pytest.mark.parametrize("name", BY_NUMPY)
def test_what_is_left_to_numpy(code, name, strange):
    given = np.empty(3, object)
    given[:] = [b"a", strange, b"b"]
    assert code(name, given, 5) is None


OPS = {
    "fingerprint": tf.string_to_hash_bucket_fast,
    "sip_hash": lambda texts, buckets: tf.string_to_hash_bucket_strong(texts, buckets, [3, -(2**60)]),
    "murmur_hash": tf.string_to_hash_bucket,
}


@pytest.mark.parametrize("name", OPS)
def test_the_op_gives_the_same_with_and_without(name, monkeypatch):
    offers.offer_all()
    given = np.array(strings([n % 201 for n in range(300)]), object).reshape(20, 15)
    results = []
    for native in (2, 0):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            texts = tf.placeholder(tf.string)
            op = OPS[name](texts, 1000)
            results.append([session.run(op, {texts: each}) for each in (given, given.T, given[0, 0])])
    for found, expected in zip(*results):
        np.testing.assert_array_equal(found, expected)


def test_kernels_are_offered_it_where_there_is_a_native_tier(monkeypatch):
    offers.offer_all()
    assert isinstance(string_code.string_hashes(), StringHashes)
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert string_code.string_hashes() is None
