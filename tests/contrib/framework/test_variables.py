"""Variables made, found and set. Names and collections are those that TensorFlow 1.15.5 printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

framework = tf.contrib.framework
Keys = tf.GraphKeys


def names(variables: Any) -> list[str]:
    return [variable.op.name for variable in variables]


@pytest.fixture
def model(graph: tf.Graph) -> dict[str, Any]:
    made = [framework.model_variable("w", [2, 3]), framework.model_variable("ww", [2, 3])]
    made.append(framework.variable("x", [2]))
    with tf.variable_scope("s"):
        made.append(framework.model_variable("w", [2]))
    made += [framework.local_variable(0.0, name="local"), framework.global_variable(3.0, name="global")]
    return {variable.op.name: variable for variable in made}


class TestMaking:
    def test_collections(self, model: dict[str, Any]) -> None:
        assert names(tf.get_collection(Keys.MODEL_VARIABLES)) == ["w", "ww", "s/w"]
        assert names(tf.global_variables()) == ["w", "ww", "x", "s/w", "global"]
        assert names(tf.trainable_variables()) == ["w", "ww", "x", "s/w"]
        assert names(tf.local_variables()) == ["local"]

    def test_more_collections_and_a_regularizer(self) -> None:
        framework.model_variable("w", [2], collections=["mine"], regularizer=tf.reduce_sum)
        assert names(tf.get_collection("mine")) == names(tf.model_variables()) == ["w"]
        assert names(tf.get_collection(Keys.REGULARIZATION_LOSSES)) == ["w/Regularizer/Sum"]

    def test_a_getter_of_ones_own(self) -> None:
        def getter(name: str, **keywords: Any) -> Any:
            assert keywords.pop("reuse") is False
            return tf.get_variable(f"own_{name}", **keywords)

        assert framework.variable("w", [2], custom_getter=getter).op.name == "own_w"

    def test_scopes_of_arguments(self) -> None:
        with framework.arg_scope([framework.variable], dtype=tf.float64, device="/cpu:0"):
            made = framework.variable("w", [2])
        assert (made.dtype.base_dtype, made.device) == (tf.float64, "/device:CPU:0")

    def test_devices_take_turns(self, model: dict[str, Any]) -> None:
        choose = framework.VariableDeviceChooser(num_tasks=2)
        assert [choose(None), choose(None), choose(None)] == [
            f"/job:ps/task:{task}/device:CPU:0" for task in (0, 1, 0)
        ]
        chooser = framework.VariableDeviceChooser(device_type="GPU", device_index=1, replica=2)
        assert chooser(None) == "/replica:2/device:GPU:1"

    def test_added_once(self, model: dict[str, Any]) -> None:
        framework.add_model_variable(model["x"])
        framework.add_model_variable(model["x"])
        assert names(framework.get_model_variables()) == ["w", "ww", "s/w", "x"]

    def test_zeros(self, model: dict[str, Any]) -> None:
        zero = framework.zero_initializer(model["x"])
        with tf.Session() as session:
            session.run(zero)
            assert session.run(model["x"]).tolist() == [0.0, 0.0]


class TestFinding:
    def test_by_scope_name_and_suffix(self, model: dict[str, Any]) -> None:
        assert names(framework.get_variables("s")) == ["s/w"]
        assert names(framework.get_variables_by_name("w")) == ["w", "s/w"]
        assert names(framework.get_variables_by_suffix("w")) == ["w", "ww", "s/w"]
        assert names(framework.get_trainable_variables("s")) == ["s/w"]
        assert names(framework.get_local_variables()) == ["local"]
        with tf.variable_scope("s") as scope:
            assert names(framework.get_variables(scope, "w")) == ["s/w"]

    def test_the_one(self, model: dict[str, Any]) -> None:
        assert framework.get_unique_variable("w") is model["w"]
        with pytest.raises(ValueError, match="Couldn't find variable nope"):
            framework.get_unique_variable("nope")

    def test_to_restore(self, model: dict[str, Any]) -> None:
        assert names(framework.get_variables_to_restore(include=["s"])) == ["s/w"]
        assert names(framework.get_variables_to_restore(exclude=["s", "x"])) == ["w", "ww", "global"]
        with pytest.raises(TypeError, match="exclude"):
            framework.get_variables_to_restore(exclude="s")

    def test_filtered(self, model: dict[str, Any]) -> None:
        everything = tf.global_variables()
        chosen = framework.filter_variables(everything, ["w$"], ["s/"])
        assert names(chosen) == ["w", "ww"]
        assert names(framework.filter_variables(everything, ["w"], reg_search=False)) == ["w", "ww"]
        assert framework.filter_variables(everything) == everything


class TestSetting:
    def test_values(self, model: dict[str, Any]) -> None:
        op, feed = framework.assign_from_values({"x": np.array([1.0, 2.0]), "s/w": np.array([3.0, 4.0])})
        with tf.Session() as session:
            session.run(op, feed)
            assert session.run([model["x"], model["s/w"]])[1].tolist() == [3.0, 4.0]
            framework.assign_from_values_fn({"x": np.array([7.0, 8.0])})(session)
            assert session.run(model["x"]).tolist() == [7.0, 8.0]
        with pytest.raises(ValueError, match="nope"):
            framework.assign_from_values({"nope": np.ones(1)})
        with pytest.raises(ValueError, match="reshape"):
            framework.assign_from_values({"x": np.ones(3)})

    def test_a_checkpoint(self, model: dict[str, Any], tmp_path: Path) -> None:
        x, sw = model["x"], model["s/w"]
        with tf.Session() as session:
            session.run([x.assign([1.0, 2.0]), sw.assign([3.0, 4.0])])
            path = tf.train.Saver([x, sw]).save(session, str(tmp_path / "model"))
            session.run(*framework.assign_from_checkpoint(path, {"x": sw, "s/w": x}))
            assert session.run([x, sw])[0].tolist() == [3.0, 4.0]
            framework.assign_from_checkpoint_fn(path, [x])(session)
            assert session.run(x).tolist() == [1.0, 2.0]
        assert framework.list_variables(path) == [("s/w", [2]), ("x", [2])]
        assert framework.load_variable(path, "x").tolist() == [1.0, 2.0]

    def test_what_a_checkpoint_lacks(self, model: dict[str, Any], tmp_path: Path) -> None:
        with tf.Session() as session:
            session.run(model["x"].initializer)
            path = tf.train.Saver([model["x"]]).save(session, str(tmp_path / "model"))
        with pytest.raises(ValueError, match="missing variable \\[w\\]"):
            framework.assign_from_checkpoint(path, [model["w"]])
        assert framework.assign_from_checkpoint(path, [model["w"]], ignore_missing_vars=True)[1] == {}
        assert framework.assign_from_checkpoint_fn(path, [model["w"]], ignore_missing_vars=True) is None
        with pytest.raises(ValueError, match="Total size"):
            framework.assign_from_checkpoint(path, {"x": model["w"]})

    def test_parts_of_a_variable(self, tmp_path: Path) -> None:
        partitioner = tf.fixed_size_partitioner(2)
        whole = framework.variable("table", [4], partitioner=partitioner)
        parts = list(whole)
        assert {framework.get_variable_full_name(part) for part in parts} == {"table"}
        with tf.Session() as session:
            session.run([parts[0].assign([1.0, 2.0]), parts[1].assign([3.0, 4.0])])
            path = tf.train.Saver(parts).save(session, str(tmp_path / "model"))
            session.run(tf.variables_initializer(parts))
            session.run(*framework.assign_from_checkpoint(path, parts))
            assert session.run(parts[1]).tolist() == [3.0, 4.0]


class TestGlobalStep:
    def test_given_or_the_graph_s(self) -> None:
        assert framework.assert_or_get_global_step() is None
        step = framework.get_or_create_global_step()
        assert framework.assert_or_get_global_step() is framework.get_global_step() is step
        assert framework.assert_or_get_global_step(None, step) is step
        with pytest.raises(TypeError, match="integer"):
            framework.assert_global_step(framework.variable("x", []))
        with pytest.raises(ValueError, match="already exists"):
            framework.create_global_step()
