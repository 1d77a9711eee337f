"""`tf.contrib.checkpoint.NumpyState`, and states of other Python objects, in checkpoints."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def test_arrays_are_saved_and_restored(tmp_path: Path) -> None:
    arrays = tf.contrib.checkpoint.NumpyState()
    checkpoint = tf.train.Checkpoint(arrays=arrays)
    arrays.x, arrays.y = np.ones([2, 2]), np.float32(5)
    with tf.Session():
        path = checkpoint.save(tmp_path / "c")
        arrays.x[1] = 9
        arrays.y = np.array(6)
        assert arrays.x.tolist() == [[1, 1], [9, 9]]
        again = checkpoint.save(tmp_path / "c")
        status = checkpoint.restore(path).assert_consumed()  # at once
        assert arrays.x.tolist() == [[1, 1], [1, 1]] and arrays.y == 5
        status.run_restore_ops()
        other = tf.contrib.checkpoint.NumpyState()
        tf.train.Checkpoint(arrays=other).restore(again)
    assert other.x.tolist() == [[1, 1], [9, 9]] and {"x", "y"} <= set(dir(other))
    assert dict(tf.train.list_variables(path))["arrays/x/.ATTRIBUTES/py_state"] == []
    stored = tf.train.load_variable(path, "arrays/x/.ATTRIBUTES/py_state")
    np.testing.assert_array_equal(np.load(io.BytesIO(stored)), np.ones([2, 2]))


def test_what_is_no_array_is_refused(tmp_path: Path) -> None:
    arrays = tf.contrib.checkpoint.NumpyState()
    for value in (5, "text", [1, 2], None, tf.train.Checkpoint()):
        with pytest.raises(NotImplementedError, match=r"to the x property of .* which is not a NumPy array"):
            arrays.x = value
    with pytest.raises(AttributeError, match="'NumpyState' object has no attribute 'x'"):
        _ = arrays.x
    arrays.x = np.array(["a", b"b"], object)
    with tf.Session(), pytest.raises(ValueError, match="Object arrays cannot be saved"):
        tf.train.Checkpoint(arrays=arrays).save(tmp_path / "c")


class Count(tf.contrib.checkpoint.PythonStateWrapper):  # type: ignore[misc]
    number = 0

    def serialize(self) -> str:
        return str(self.number)

    def deserialize(self, string_value: bytes) -> None:
        self.number = int(string_value)


def test_states_of_python_objects(tmp_path: Path) -> None:
    count, v = Count(), tf.Variable(1.0)
    checkpoint = tf.train.Checkpoint(count=count, v=v)
    with tf.Session() as session:
        session.run(v.initializer)
        count.number = 3
        path = checkpoint.save(tmp_path / "c")
        count.number = 4
        checkpoint.restore(path).assert_consumed().run_restore_ops()
        assert count.number == 3
        with pytest.raises(AssertionError, match=r"count/\.ATTRIBUTES/py_state"):
            tf.train.Checkpoint(v=v).restore(path).assert_consumed()
        without = tf.train.Checkpoint(v=v).save(tmp_path / "d")
        with pytest.raises(AssertionError, match=r"count/\.ATTRIBUTES/py_state"):
            checkpoint.restore(without).assert_existing_objects_matched()
