"""Checkpoints of objects that a Saver restores by the names of variables, as in TensorFlow 1.15."""

from __future__ import annotations

from pathlib import Path

import pytest

import flowstone as tf
from flowstone.training.checkpoints.object_names import keys_by_name, renamed_saveables

pytestmark = pytest.mark.usefixtures("graph")


def _saved(folder: Path) -> str:
    """A checkpoint of an object with two variables and a slot."""
    with tf.Graph().as_default(), tf.Session() as session:
        first = tf.Variable([1.0, 2.0], name="first", use_resource=True)
        second = tf.Variable(3.0, name="inner/second")
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        step = optimizer.minimize(tf.reduce_sum(first) * second)
        checkpoint = tf.train.Checkpoint(a=first, b=[second], optimizer=optimizer)
        session.run(tf.global_variables_initializer())
        session.run(step)
        return checkpoint.save(str(folder / "objects"), session)


def test_names_have_their_keys(tmp_path: Path) -> None:
    keys = keys_by_name(_saved(tmp_path))
    assert keys is not None
    assert keys["first"] == "a/.ATTRIBUTES/VARIABLE_VALUE"
    assert keys["inner/second"] == "b/0/.ATTRIBUTES/VARIABLE_VALUE"
    assert keys["first/Momentum"] == "a/.OPTIMIZER_SLOT/optimizer/momentum/.ATTRIBUTES/VARIABLE_VALUE"


def test_a_checkpoint_of_names_has_no_keys(tmp_path: Path) -> None:
    tf.Variable(1.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert keys_by_name(tf.train.Saver().save(session, str(tmp_path / "names"))) is None


@pytest.mark.parametrize("kind", ["all", "dict"])
def test_a_saver_restores_what_objects_wrote(kind: str, tmp_path: Path) -> None:
    path = _saved(tmp_path)
    first = tf.Variable([0.0, 0.0], name="first" if kind == "all" else "other")
    tf.Variable(0.0, name="inner/second", use_resource=True)
    saver = tf.train.Saver() if kind == "all" else tf.train.Saver({"first": first})
    with tf.Session() as session:
        for _ in range(2):  # the operations are added once
            saver.restore(session, path)
            count = len(session.graph.get_operations())
            assert session.run(first) == pytest.approx([0.7, 1.7])
        saver.restore(session, path)
        assert len(session.graph.get_operations()) == count


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    path = _saved(tmp_path)
    tf.Variable([0.0, 0.0], name="renamed")
    saver = tf.train.Saver()
    with tf.Session() as session, pytest.raises(tf.errors.NotFoundError, match="checkpoint: renamed\n"):
        saver.restore(session, path)
    with pytest.raises(tf.errors.NotFoundError, match="0 names did match"):
        renamed_saveables(tf.global_variables(), {"first": "a"})
