"""Distinct slices of large tensors against a dictionary's keys, and texts numbered as they come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.ops.arrays import distinct_slices
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


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8", "bool"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((40,), 0), ((9, 2), 0), ((3, 12), 1), ((4, 3, 2), 1), ((6, 0), 0)]
)
def test_few_elements_are_compared_by_python_with_the_same_result(monkeypatch, dtype, shape, axis) -> None:
    x = np.random.RandomState(len(shape)).randint(0, 2, shape).astype(dtype)
    if dtype == "float32" and x.size:
        x.flat[0] = -0.0
    found = []
    for few in (0, 200):
        monkeypatch.setattr(distinct_slices, "_FEWEST", few)
        found.append([each.numpy() for each in distinct_slices._distinct(torch.from_numpy(x), axis)])
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)


def test_no_two_nan_are_one_slice() -> None:
    x = np.array([[-0.0, 1], [np.nan, 1], [0, 1], [2, 2], [np.nan, 1], [2, 2]], np.float32)
    slices, places, counts = distinct(x, 0)
    np.testing.assert_array_equal(slices, [[0, 1], [np.nan, 1], [2, 2], [np.nan, 1]])
    assert (places.tolist(), counts.tolist()) == ([0, 1, 0, 2, 3, 2], [2, 1, 2, 1])
