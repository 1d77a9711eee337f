"""`tf.contrib.checkpoint.split_dependency`, with the names in checkpoints that TensorFlow 1.15 gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def test_a_variable_in_two_parts(tmp_path: Path) -> None:
    v = tf.Variable([1.0, 2.0, 3.0], use_resource=True)
    asked = []

    def consume(buffer: dict[str, Any]) -> Any:
        asked.append(sorted(buffer))
        return v.assign(tf.concat([buffer["a"], buffer["b"]], 0)).op

    parts = tf.contrib.checkpoint.split_dependency(
        component_names=("a", "b"),
        component_dtypes=(tf.float32, tf.float32),
        fill_save_buffer_fn=lambda buffer: buffer.update(a=v[:1], b=v[1:]),
        consume_restore_buffer_fn=consume,
        device="/cpu:0",
    )
    checkpoint = tf.train.Checkpoint(o=tf.train.Checkpoint(**parts))
    with tf.Session() as session:
        session.run(v.initializer)
        path = checkpoint.save(tmp_path / "c")
        session.run(v.assign([0.0, 0.0, 0.0]))
        status = checkpoint.restore(path).assert_consumed()
        assert asked == [["a", "b"]] and session.run(v).tolist() == [0, 0, 0]
        status.run_restore_ops()
        assert session.run(v).tolist() == [1, 2, 3]
    names = dict(tf.train.list_variables(path))
    assert names["o/a/.ATTRIBUTES/VARIABLE_VALUE"] == [1] and names["o/b/.ATTRIBUTES/VARIABLE_VALUE"] == [2]


def test_a_part_that_is_missing(tmp_path: Path) -> None:
    parts = tf.contrib.checkpoint.split_dependency(
        ("a", "b"),
        (tf.float32, tf.float32),
        lambda buffer: buffer.update(a=tf.constant(1.0)),
        lambda buffer: tf.no_op(),
        "/cpu:0",
    )
    with tf.Session(), pytest.raises(KeyError, match="b"):
        tf.train.Checkpoint(**parts).save(tmp_path / "c")
