"""Distinct slices of large tensors against a dictionary's keys, and texts numbered as they come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.ops.arrays.distinct_texts import first_of_each, numbered, numbers_in

RANDOM = np.random.RandomState(0)


def distinct(x: np.ndarray[Any, Any], axis: int) -> list[Any]:
    """The slices, which of them each is, and how often each is there."""
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.string if x.dtype == object else x.dtype, x.shape)
        return list(session.run(tf.raw_ops.UniqueWithCountsV2(x=fed, axis=[axis]), {fed: x}))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["int64", "int8", "bool", "float32", "object"])
def test_slices(dtype: str, axis: int) -> None:
    x = RANDOM.randint(0, 3, (900, 4) if axis == 0 else (4, 900))
    if dtype == "int64":
        x = x * 2**62
    values = x.astype("S").astype(object) if dtype == "object" else x.astype(dtype)
    slices = [tuple(each.tolist()) for each in np.moveaxis(values, axis, 0)]
    expected = list(dict.fromkeys(slices))
    found, places, counts = distinct(values, axis)
    assert [tuple(each.tolist()) for each in np.moveaxis(found, axis, 0)] == expected
    assert [expected[i] for i in places.tolist()] == slices
    assert counts.tolist() == [slices.count(each) for each in expected]


@pytest.mark.parametrize("texts", [[], [b"a"], [b"b", b"a"], [b"b", b"a", b"b", b"c", b"a"]])
def test_numbers(texts: list[bytes]) -> None:
    words, numbers = numbered(texts)
    assert words == list(dict.fromkeys(texts)) and [words[i] for i in numbers] == texts
    assert numbers_in({word: i for i, word in enumerate(words)}, texts).tolist() == numbers.tolist()
    assert first_of_each(numbers, len(words)).tolist() == [texts.index(word) for word in words]
