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


def test_an_object_that_makes_what_a_checkpoint_has_of_it(tmp_path: Path) -> None:
    class Word(tf.train.experimental.PythonState):  # type: ignore[misc]
        text = ""

        def serialize(self) -> str:
            return self.text

        def deserialize(self, string_value: bytes) -> None:
            self.text = string_value.decode()

    class Words(tf.contrib.checkpoint.CheckpointableBase):  # type: ignore[misc]
        def _lookup_dependency(self, name: str) -> object:
            if super()._lookup_dependency(name) is None:
                self._track_trackable(Word(), name)
            return super()._lookup_dependency(name)

    with tf.Graph().as_default(), tf.Session() as session:
        saved, restored = Words(), Words()
        saved._track_trackable(Word(), "greeting").text = "hello"
        path = tf.train.Checkpoint(words=saved).save(str(tmp_path / "words"), session=session)
        tf.train.Checkpoint(words=restored).restore(path).assert_consumed()
    assert restored._lookup_dependency("greeting").text == "hello"
    assert restored._unconditional_dependency_names == {"greeting": restored._lookup_dependency("greeting")}
