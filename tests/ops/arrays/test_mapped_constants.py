"""Constants that lie in files."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F

NUMBERS = np.arange(6, dtype=np.float32)


@pytest.fixture
def path(tmp_path: pathlib.Path) -> str:
    NUMBERS.tofile(tmp_path / "numbers")
    return str(tmp_path / "numbers")


def run(path: str, dtype: tf.DType, shape: object) -> object:
    with tf.Session() as session:
        return session.run(F.ImmutableConst(dtype=dtype, shape=shape, memory_region_name=path))


def test_values(path: str) -> None:
    np.testing.assert_array_equal(run(path, tf.float32, (2, 3)), NUMBERS.reshape(2, 3))
    np.testing.assert_array_equal(run(path, tf.float32, (4,)), NUMBERS[:4])
    np.testing.assert_array_equal(run(path, tf.complex64, (3,)), NUMBERS.view(np.complex64))
    assert run(path, tf.float32, (0, 2)).shape == (0, 2)
    assert F.ImmutableConst(dtype=tf.int8, shape=(2, 3), memory_region_name="x").shape.as_list() == [2, 3]


def test_the_file_is_not_written(path: str) -> None:
    node = F.ImmutableConst(dtype=tf.float32, shape=(6,), memory_region_name=path)
    with tf.Session() as session:
        fetched = session.run(node)
        fetched[:] = 9
        np.testing.assert_array_equal(session.run(-(node + 1.0)), -(NUMBERS + 1))
        np.testing.assert_array_equal(session.run(node), NUMBERS)
    np.testing.assert_array_equal(np.fromfile(path, np.float32), NUMBERS)


def test_errors(path: str) -> None:
    with pytest.raises(tf.errors.InternalError, match=r"wrong length \(24\) when allocating 28"):
        run(path, tf.float32, (7,))
    with pytest.raises(tf.errors.NotFoundError, match="nowhere"):
        run(path + "nowhere", tf.float32, (1,))
    with pytest.raises(tf.errors.UnimplementedError, match="string"):
        run(path, tf.string, (1,))
    with pytest.raises(tf.errors.InvalidArgumentError, match="not fully defined"):
        run(path, tf.float32, (None,))
