"""Containers of what a checkpoint saves; keys and orders are those of TensorFlow 1.15.5."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf

checkpoint = tf.contrib.checkpoint


class Model(checkpoint.Checkpointable):  # type: ignore[misc, name-defined]
    """Variables of the same base name, and a list with a dict in it."""

    def __init__(self) -> None:
        self.names = checkpoint.UniqueNameTracker()
        for name in "xyxx":
            self.names.track(tf.Variable([1.0, 2.0], name="t"), name)
        inner = checkpoint.Mapping(k=tf.Variable(4, name="b", trainable=False))
        self.several = checkpoint.List([tf.Variable(3.0, name="a"), inner])
        self.several.append(tf.Variable(5.0, name="z", use_resource=True))


def test_what_they_hold_is_saved_and_restored(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        model = Model()
        saver = tf.train.Checkpoint(model=model)
        session.run(tf.global_variables_initializer())
        path = saver.save(str(tmp_path / "model"), session=session)
        model.several[0].load(7.0, session)
        saver.restore(path).assert_consumed().run_restore_ops(session)
        assert session.run(model.several[0]) == 3
    keys = {name.partition("/.")[0] for name, _ in tf.train.list_variables(path)}
    names = {"x", "y", "x_1", "x_2"}
    several = {"model/several/0", "model/several/1/k", "model/several/2"}
    assert keys == {f"model/names/{name}" for name in names} | several | {
        "_CHECKPOINTABLE_OBJECT_GRAPH",
        "save_counter",
    }


def test_they_know_their_layers_and_variables() -> None:
    with tf.Graph().as_default():
        dense, norm = tf.layers.Dense(2), tf.layers.BatchNormalization()
        norm(dense(tf.ones([1, 3])))
        alone, fixed = tf.Variable(1.0), tf.Variable(2.0, trainable=False)
        held = checkpoint.List([fixed, alone, {"d": dense}, checkpoint.Mapping(n=norm)])
        assert held.layers == [dense, norm]
        assert held.trainable_weights == [*dense.trainable_weights, *norm.trainable_weights, alone]
        assert held.non_trainable_variables == [*norm.non_trainable_weights, fixed]
        assert held.variables == held.trainable_variables + held.non_trainable_weights
        assert held.updates == norm.updates and held.losses == []
        held.trainable = False
        assert held.trainable_variables == [] and len(held.non_trainable_variables) == len(held.weights) == 8


def test_a_list_and_a_mapping_only_grow() -> None:
    with tf.Graph().as_default():
        a, b = tf.Variable(1.0), tf.Variable(2.0)
        several: Any = checkpoint.List([a])
        several += [b]
        assert list(several[1:]) == [b] and isinstance(several[1:], checkpoint.List)
        assert list(several.copy() + [a]) == [a, b, a] and list([b] + several) == [b, a, b]
        mapping = checkpoint.Mapping({"a": a})
        mapping["b"] = b
        mapping["a"] = a
        assert dict(mapping) == {"a": a, "b": b}
        with pytest.raises(ValueError, match="append-only"):
            mapping["a"] = b
        with pytest.raises(TypeError, match="string keys"):
            checkpoint.Mapping({1: a})
        for make in (lambda: checkpoint.List([3]), lambda: checkpoint.Mapping(a=3)):
            with pytest.raises(ValueError, match="Only trackable objects"):
                make()
        with pytest.raises(ValueError, match="Expected a trackable value"):
            checkpoint.UniqueNameTracker().track(np.ones(3), "x")
