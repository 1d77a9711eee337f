"""Examples from JSON, and tensors as messages."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf


def test_numbers_in_json() -> None:
    lists = '{"a": {"int64List": {"value": [1, "-5"]}}, "b": {"floatList": {"value": [1.5]}}}'
    text = f'{{"features": {{"feature": {lists}}}}}'
    with tf.Graph().as_default(), tf.Session() as session:
        found = tf.train.Example.FromString(session.run(tf.decode_json_example(text)))
    assert list(found.features.feature["a"].int64_list.value) == [1, -5]
    assert list(found.features.feature["b"].float_list.value) == [1.5]


def test_tensors_there_and_back() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        for value in (np.float32([[1, 2], [3, 4]]), np.bool_([True, False]), np.complex64(1j), np.int8([])):
            text = tf.serialize_tensor(value)
            assert text.shape == []
            back = session.run(tf.parse_tensor(text, value.dtype))
            np.testing.assert_array_equal(back, value)
            assert back.dtype == value.dtype


@pytest.mark.parametrize(
    "proto",
    [
        b"\x08\x01\x12\x0d\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f",  # of no plausible size
        b"\x08\x01\x12\x04\x12\x02\x08\x02\x22\x03abc",  # bytes that are no floats
        b"\x08\x01\x12\x0d\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    ],
)
def test_damaged_tensors(proto: bytes) -> None:
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(tf.parse_tensor(proto, tf.float32))
