"""Large batches are read without Python's lock, with the same values; kernels are offered the reader."""

from __future__ import annotations

import numpy as np

from flowstone.framework import flags
from flowstone.framework.machine import record_code
from flowstone.io.examples import encode_examples
from flowstone.native import offers
from flowstone.native.records.examples import ExampleCode, _check


def test_objects_are_laid_out_as_the_code_takes_them_to_be():
    assert _check()


def test_large_batches():
    images = np.random.default_rng(0).random((1000, 784), np.float32)
    messages = np.array(encode_examples({"image": images, "label": np.arange(1000)}), object)
    assert len(messages[0]) * len(messages) > 1 << 20
    code = ExampleCode()
    for first in (0, 999):  # with much, and with little
        walk = code.walk(messages[first:], code.keys({b"image": 2, b"label": 3}))
        out, labels = np.empty((len(messages) - first, 784), np.float32), np.empty(1000 - first, np.int64)
        walk.fill_rows(0, out, 784, None, 0)
        walk.fill_list(1, labels)
        walk.read()
        np.testing.assert_array_equal(out, images[first:])
        np.testing.assert_array_equal(labels, np.arange(first, 1000))


def test_no_messages_and_no_keys():
    code = ExampleCode()
    walk = code.walk(np.empty(0, object), code.keys({b"a": 1}))
    assert walk.totals == walk.missing == walk.most == [0]
    walk = code.walk(np.array([b"", b"\x0a\x00"], object), code.keys({}))
    walk.read()
    assert list(walk.totals) == []


def test_kernels_are_offered_it_where_there_is_a_native_tier(monkeypatch):
    offers.offer_all()
    assert isinstance(record_code.example_reader(), ExampleCode)
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert record_code.example_reader() is None
