"""Reductions over sorted segments whose number is given. The reference is NumPy's ufuncs: TensorFlow has
these ops for accelerators alone."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F

IDS = [0, 0, 2, 3, 3]
DATA = np.array([[1, 2], [3, 4], [5, 6], [7, 3], [2, 9]])
REDUCTIONS = {"Sum": np.add, "Prod": np.multiply, "Max": np.maximum, "Min": np.minimum}


def nothing(kind: str, dtype: np.dtype) -> float:
    """The reduction of no rows."""
    if kind in ("Sum", "Prod"):
        return float(kind == "Prod")
    info = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    return info.min if kind == "Max" else info.max


def reduced(kind: str, data: object, ids: object, count: object) -> tf.Tensor:
    return getattr(F, f"Segment{kind}V2")(data, ids, count)


@pytest.mark.parametrize("kind", REDUCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64", "uint16", "uint32"])
@pytest.mark.parametrize("count", [4, 6])
def test_values(kind: str, dtype: str, count: int) -> None:
    data = DATA.astype(dtype)
    expected = np.full((count, 2), nothing(kind, data.dtype), dtype)
    for i in set(IDS):
        expected[i] = REDUCTIONS[kind].reduce(data[np.array(IDS) == i], dtype=dtype)
    node = reduced(kind, data, np.array(IDS, np.int64), count)
    assert node.shape.as_list() == [count, 2]
    with tf.Session() as session:
        found = session.run(node)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", REDUCTIONS)
def test_empty_and_unknown(kind: str) -> None:
    data, ids, count = tf.placeholder(tf.float32), tf.placeholder(tf.int32), tf.placeholder(tf.int32)
    node = reduced(kind, data, ids, count)
    assert node.shape.ndims is None
    with tf.Session() as session:
        found = session.run(node, {data: np.zeros((0, 2)), ids: [], count: 2})
        np.testing.assert_array_equal(found, np.full((2, 2), nothing(kind, np.dtype("f4")), "f4"))
        assert session.run(node, {data: np.zeros((0, 2)), ids: [], count: 0}).shape == (0, 2)


@pytest.mark.parametrize(
    "ids, count, words",
    [
        ([0, 1, 0, 2, 2], 3, "not increasing"),
        ([-1, 0, 0, 1, 1], 3, ">= 0"),
        ([0, 0, 1, 1, 3], 3, "3 is not in"),
        ([0, 1], 3, "vector"),
        ([0, 0, 0, 0, 0], -1, "-1"),
    ],
)
def test_errors(ids: list, count: int, words: str) -> None:
    number = tf.placeholder(tf.int32)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=words):
        session.run(reduced("Sum", DATA, ids, number), {number: count})


def test_static_errors() -> None:
    with pytest.raises(ValueError, match="-1"):
        reduced("Sum", DATA, IDS, -1)
    with pytest.raises(ValueError, match="rank"):
        reduced("Sum", 1.0, IDS, 4)
