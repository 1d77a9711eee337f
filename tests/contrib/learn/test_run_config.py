"""RunConfig and ModelFnOps of tf.contrib.learn; the answers are those of TensorFlow 1.15.5."""

from __future__ import annotations

import json
from typing import Any

import pytest

import flowstone as tf
from flowstone.contrib.learn.estimators.run_config import ClusterConfig, Environment

CLUSTER = {"ps": ["h1:1", "h2:2"], "worker": ["h3:3", "h4:4"], "master": ["h5:5"]}


def config(monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], **arguments: Any) -> Any:
    monkeypatch.setenv("TF_CONFIG", json.dumps(settings))
    return tf.contrib.learn.RunConfig(**arguments)


def test_the_defaults() -> None:
    found = tf.contrib.learn.RunConfig()
    assert (found.master, found.evaluation_master, found.task_type, found.task_id) == ("", "", None, 0)
    assert (found.is_chief, found.num_ps_replicas, found.num_worker_replicas) == (True, 0, 0)
    assert (found.environment, found.cluster_spec.as_dict()) == ("local", {})
    assert (found.save_checkpoints_secs, found.save_checkpoints_steps) == (600, None)
    assert found.tf_config.gpu_options.per_process_gpu_memory_fraction == 1
    assert found.global_id_in_cluster is None and found.session_config is None


def test_how_often_checkpoints_are_written() -> None:
    steps = tf.contrib.learn.RunConfig(save_checkpoints_steps=5)
    assert (steps.save_checkpoints_secs, steps.save_checkpoints_steps) == (None, 5)
    both = tf.contrib.learn.RunConfig(save_checkpoints_steps=5, save_checkpoints_secs=3)
    assert (both.save_checkpoints_secs, both.save_checkpoints_steps) == (3, 5)
    assert both.replace(model_dir="/a").model_dir == "/a"


@pytest.mark.parametrize(
    ("environment", "task", "master", "is_chief"),
    [
        ("local", {"type": "worker", "index": 1}, "grpc://h4:4", False),
        ("local", {"type": "worker", "index": 0}, "grpc://h3:3", True),
        ("local", {"type": "master", "index": 0}, "grpc://h5:5", False),
        ("local", {"type": "ps", "index": 1}, "grpc://h2:2", False),
        ("local", {}, "", True),
        ("cloud", {"type": "worker", "index": 0}, "grpc://h3:3", False),
        ("cloud", {"type": "master", "index": 0}, "grpc://h5:5", True),
    ],
)
def test_a_task_of_a_cluster(
    monkeypatch: pytest.MonkeyPatch, environment: str, task: Any, master: str, is_chief: bool
) -> None:
    found = config(monkeypatch, {"cluster": CLUSTER, "task": task, "environment": environment})
    assert (found.master, found.is_chief) == (master, is_chief)
    assert (found.num_ps_replicas, found.num_worker_replicas) == (2, 3)
    assert (found.task_type, found.get_task_id()) == (task.get("type"), task.get("index", 0))
    assert found.environment in (Environment.LOCAL, Environment.CLOUD)


def test_a_single_task_has_no_target(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}
    assert config(monkeypatch, settings).master == ""
    assert config(monkeypatch, settings, master="grpc://x:1").master == "grpc://x:1"
    assert ClusterConfig().num_worker_replicas == 1


@pytest.mark.parametrize("task", [{"type": "worker", "index": 7}, {"type": "other", "index": 0}])
def test_tasks_that_the_cluster_lacks(monkeypatch: pytest.MonkeyPatch, task: Any) -> None:
    with pytest.raises(ValueError, match="is not a valid task"):
        config(monkeypatch, {"cluster": CLUSTER, "task": task})


def test_the_folder_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert config(monkeypatch, {"model_dir": "/x"}).model_dir == "/x"
    with pytest.raises(ValueError, match="must have the same value as the model_dir in TF_CONFIG"):
        config(monkeypatch, {"model_dir": "/x"}, model_dir="/y")


def test_the_text_of_a_configuration() -> None:
    first, second = (tf.contrib.learn.RunConfig(model_dir=name) for name in ("/a", "/b"))
    assert first.uid() != second.uid()
    assert first.uid(whitelist=["model_dir"]) == second.uid(whitelist=["model_dir"])
    assert "_cluster_spec=OrderedDict(), _device_fn=None, _environment='local'" in first.uid()


@pytest.mark.parametrize(
    ("mode", "arguments", "error", "message"),
    [
        ("train", {}, ValueError, "Missing train_op"),
        ("eval", {}, ValueError, "Missing loss"),
        ("infer", {}, ValueError, "Missing predictions"),
        ("other", {}, ValueError, "Invalid mode other"),
        ("eval", {"loss": [1.0, 2.0]}, ValueError, "Loss must be scalar"),
        ("infer", {"predictions": 1.0, "eval_metric_ops": 3}, ValueError, "eval_metric_ops must be a dict"),
        ("infer", {"predictions": 1.0, "training_hooks": [3]}, TypeError, "must be SessionRunHook instances"),
    ],
)
def test_model_fn_ops_that_lack_something(mode: str, arguments: Any, error: Any, message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(error, match=message):
        tf.contrib.learn.ModelFnOps(mode, **arguments)


def test_model_fn_ops_as_an_estimator_spec() -> None:
    with tf.Graph().as_default():
        values, texts = tf.ones([2]), tf.constant(["a", "b"])
        alternatives = {
            "x": (2, {"scores": values}),
            "y": (1, {"scores": values, "classes": texts}),
            "z": (0, {"v": values}),
        }
        ops = tf.contrib.learn.ModelFnOps("infer", {"a": values}, output_alternatives=alternatives)
        spec = ops.estimator_spec("y")
        kinds = {name: type(each).__name__ for name, each in spec.export_outputs.items()}
        assert kinds == {
            "x": "RegressionOutput", "y": "ClassificationOutput", "z": "PredictOutput",
            "serving_default": "ClassificationOutput",
        }  # fmt: skip
        with pytest.raises(KeyError):
            ops.estimator_spec("other")
        assert tf.contrib.learn.ModelFnOps("eval", loss=tf.ones([1])).loss.shape == []
