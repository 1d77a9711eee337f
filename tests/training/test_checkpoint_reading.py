"""Looking into checkpoints, and initial values from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import errors


@pytest.fixture
def saved(tmp_path: Path) -> Iterator[str]:
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope("old"):
            tf.get_variable("a", initializer=tf.constant([1.0, 2.0]))
            tf.get_variable("b", initializer=tf.constant([[3, 4]]), trainable=False)
        tf.get_variable("whole", initializer=tf.constant(np.arange(4, dtype=np.float32)))
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "m"))
    with tf.Graph().as_default():
        yield path


def test_what_a_checkpoint_holds(saved: str) -> None:
    reader = tf.train.NewCheckpointReader(saved)
    assert reader.get_variable_to_shape_map() == {"old/a": [2], "old/b": [1, 2], "whole": [4]}
    assert reader.get_variable_to_dtype_map()["old/b"] is tf.int32
    assert reader.has_tensor("old/a") and not reader.has_tensor("a")
    assert reader.get_tensor("old/b").tolist() == [[3, 4]]
    assert b"old/a (DT_FLOAT) [2]\nold/b (DT_INT32) [1,2]\n" in reader.debug_string()
    with pytest.raises(errors.NotFoundError, match="Key no not found"):
        reader.get_tensor("no")
    with pytest.raises(errors.NotFoundError):
        tf.train.NewCheckpointReader(saved + "x")
    folder = str(Path(saved).parent)
    assert tf.train.list_variables(folder) == [("old/a", [2]), ("old/b", [1, 2]), ("whole", [4])]
    assert tf.train.load_variable(folder, "old/a:0").tolist() == [1, 2]
    with pytest.raises(ValueError, match="Couldn't find 'checkpoint' file"):
        tf.train.list_variables(str(Path(__file__).parent))


def test_initial_values_of_a_scope_and_of_single_variables(saved: str) -> None:
    with tf.variable_scope("new"):
        a = tf.get_variable("a", [2], initializer=tf.zeros_initializer())
        b = tf.get_variable("b", [1, 2], tf.int32, initializer=tf.zeros_initializer(), use_resource=True)
    parts = tf.get_variable(
        "parts", [4], partitioner=tf.fixed_size_partitioner(2), initializer=tf.zeros_initializer()
    )
    single = tf.get_variable("single", [2], initializer=tf.zeros_initializer())
    tf.train.init_from_checkpoint(saved, {"old/": "new/", "whole": parts, "old/a": single})
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(a).tolist() == [1, 2] and session.run(b).tolist() == [[3, 4]]
        assert session.run(tf.convert_to_tensor(parts)).tolist() == [0, 1, 2, 3]
        assert session.run(single).tolist() == [1, 2]


def test_initial_values_that_are_not_there(saved: str) -> None:
    tf.get_variable("a", [3])
    with pytest.raises(ValueError, match="Shape of variable a"):
        tf.train.init_from_checkpoint(saved, {"old/a": "a"})
    with pytest.raises(ValueError, match="Tensor old/c is not found"):
        tf.train.init_from_checkpoint(saved, {"old/c": "a"})
    with pytest.raises(ValueError, match="Variable c is not found"):
        tf.train.init_from_checkpoint(saved, {"old/a": "c"})
    with pytest.raises(ValueError, match="scope only"):
        tf.train.init_from_checkpoint(saved, {"old/a": "new/"})


def test_checkpoints_as_they_come(saved: str) -> None:
    folder = str(Path(saved).parent)
    found: list[Any] = list(tf.train.checkpoints_iterator(folder, timeout=0))
    assert found == [saved]
    asked = []

    def ends() -> bool:
        asked.append(1)
        return len(asked) == 2

    assert list(tf.train.checkpoints_iterator(folder + "/none", timeout=0, timeout_fn=ends)) == []
    assert len(asked) == 2
