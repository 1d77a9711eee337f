"""Objects whose attributes are checkpointed, under their names in `tf.contrib`."""

from __future__ import annotations

from pathlib import Path

import flowstone as tf


def test_an_object_is_saved_and_restored(tmp_path: Path) -> None:
    class Model(tf.contrib.checkpoint.Checkpointable):  # type: ignore[misc]
        def __init__(self) -> None:
            self.weight = tf.Variable(3.0)

    with tf.Graph().as_default(), tf.Session() as session:
        model = Model()
        checkpoint = tf.train.Checkpoint(model=model)
        session.run(model.weight.initializer)
        path = checkpoint.save(str(tmp_path / "model"), session=session)
        model.weight.load(5.0, session)
        checkpoint.restore(path).run_restore_ops(session)
        assert session.run(model.weight) == 3.0
    assert issubclass(Model, tf.contrib.checkpoint.CheckpointableBase)
    assert "model/weight/.ATTRIBUTES/VARIABLE_VALUE" in [name for name, _ in tf.train.list_variables(path)]


def test_other_names() -> None:
    assert tf.contrib.checkpoint.NoDependency(3) == 3
    assert tf.contrib.checkpoint.PythonStateWrapper is tf.train.experimental.PythonState
