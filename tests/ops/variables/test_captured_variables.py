"""`tf.contrib.checkpoint.capture_dependencies`, and templates in checkpoints, by TensorFlow's names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

VALUE = ".ATTRIBUTES/VARIABLE_VALUE"


def saved(path: Path, **objects: Any) -> list[str]:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        prefix = tf.train.Checkpoint(**objects).save(path / "c")
    return [name.removesuffix("/" + VALUE) for name, _ in tf.train.list_variables(prefix) if VALUE in name]


def test_a_template_has_its_variables_and_those_that_are_captured(tmp_path: Path) -> None:
    def two() -> Any:
        first = tf.get_variable("v", [])
        with tf.variable_scope("in"):
            return first, tf.get_variable("w", [2], use_resource=True)

    template = tf.make_template("t", two)
    template()
    template()
    with tf.contrib.checkpoint.capture_dependencies(template=template):
        with tf.variable_scope(template.variable_scope):
            tf.get_variable("u", [3])
            tf.Variable(1.0, name="plain")
        tf.get_variable("outside", [])
    with tf.variable_scope(template.variable_scope):
        tf.get_variable("not_captured", [])
    assert saved(tmp_path, model=template) == ["model/in.Sw", "model/u", "model/v", "save_counter"]


def test_any_object_with_a_scope(tmp_path: Path) -> None:
    class Model(tf.train.Checkpoint):  # type: ignore[misc]
        variable_scope: Any = None

    model = Model()
    with tf.variable_scope("scope") as model.variable_scope:
        pass
    with tf.contrib.checkpoint.capture_dependencies(template=model):
        for reuse in (False, True):
            with tf.variable_scope("scope", reuse=reuse):
                tf.get_variable("q", [])
    assert saved(tmp_path, m=model) == ["m/q", "save_counter"]


def test_an_object_may_be_told_what_is_part_of_it(tmp_path: Path) -> None:
    class Holder(tf.train.Checkpoint):  # type: ignore[misc]
        pass

    holder = Holder()
    first, second = tf.Variable(1.0), tf.Variable(2.0)
    assert holder._track_trackable(first, name="own") is first
    holder._track_trackable(second, name="own")
    assert holder.own is first
    holder._track_trackable(second, name="own", overwrite=True)
    assert holder.own is second
    assert saved(tmp_path, m=holder) == ["m/own", "save_counter"]
