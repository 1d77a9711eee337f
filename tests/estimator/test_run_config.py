"""RunConfig, with and without TF_CONFIG; the values are TensorFlow 1.15.5's."""

from __future__ import annotations

import json
from typing import Any

import pytest

import flowstone as tf

CLUSTER = {"chief": ["h0:1"], "ps": ["h1:1", "h2:1"], "worker": ["h3:1", "h4:1"]}
FIELDS = (
    "task_type",
    "task_id",
    "is_chief",
    "master",
    "evaluation_master",
    "num_ps_replicas",
    "num_worker_replicas",
    "global_id_in_cluster",
)


def of_task(monkeypatch: pytest.MonkeyPatch, configuration: Any, **arguments: Any) -> Any:
    monkeypatch.setenv("TF_CONFIG", json.dumps(configuration))
    return tf.estimator.RunConfig(**arguments)


def test_the_defaults() -> None:
    config = tf.estimator.RunConfig()
    assert config.save_checkpoints_secs == 600 and config.save_checkpoints_steps is None
    assert (config.keep_checkpoint_max, config.log_step_count_steps, config.save_summary_steps) == (
        5,
        100,
        100,
    )
    assert config.keep_checkpoint_every_n_hours == 10000 and config.session_creation_timeout_secs == 7200
    assert config.model_dir is config.tf_random_seed is config.session_config is config.device_fn is None
    assert config.protocol is config.train_distribute is config.eval_distribute is config.service is None
    assert config.experimental_max_worker_delay_secs is None
    assert [getattr(config, name) for name in FIELDS] == ["worker", 0, True, "", "", 0, 1, 0]
    assert config.cluster_spec.as_dict() == {}


def test_replace_gives_a_checked_copy() -> None:
    config = tf.estimator.RunConfig(save_checkpoints_steps=3)
    other = config.replace(save_checkpoints_secs=5, model_dir="/m")
    assert (other.save_checkpoints_steps, other.save_checkpoints_secs, other.model_dir) == (None, 5, "/m")
    assert config.model_dir is None and config.save_checkpoints_steps == 3
    with pytest.raises(ValueError, match="Replacing foo is not supported"):
        config.replace(foo=1)
    with pytest.raises(ValueError, match="cannot be both set"):
        config.replace(save_checkpoints_secs=5, save_checkpoints_steps=5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model_dir": ""}, "model_dir should be non-empty"),
        ({"save_checkpoints_secs": 3, "save_checkpoints_steps": 3}, "cannot be both set"),
        ({"save_checkpoints_secs": -3}, "save_checkpoints_secs should be >= 0"),
        ({"save_checkpoints_steps": -3}, "save_checkpoints_steps should be >= 0"),
        ({"save_summary_steps": -3}, "save_summary_steps should be >= 0"),
        ({"keep_checkpoint_max": -3}, "keep_checkpoint_max should be >= 0"),
        ({"keep_checkpoint_every_n_hours": 0}, "keep_checkpoint_every_n_hours should be > 0"),
        ({"log_step_count_steps": 0}, "log_step_count_steps should be > 0"),
        ({"tf_random_seed": "a"}, "tf_random_seed must be integer"),
        ({"session_config": "a"}, "session_config must be instance of ConfigProto"),
        ({"device_fn": lambda: 3}, "exactly one argument"),
        ({"protocol": "x"}, "protocol should be grpc"),
        ({"train_distribute": object()}, "train_distribute must be a strategy"),
    ],
)
def test_values_out_of_range_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tf.estimator.RunConfig(**arguments)


@pytest.mark.parametrize(
    ("task", "fields"),
    [
        (("worker", 1), ["worker", 1, False, "grpc://h4:1", "", 2, 3, 2]),
        (("chief", 0), ["chief", 0, True, "grpc://h0:1", "", 2, 3, 0]),
        (("ps", 1), ["ps", 1, False, "grpc://h2:1", "", 2, 3, 4]),
        (("evaluator", 1), ["evaluator", 1, False, "", "", 0, 0, None]),
    ],
)
def test_the_task_is_that_of_the_environment(
    task: Any, fields: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = {"cluster": CLUSTER, "task": dict(zip(("type", "index"), task, strict=True))}
    config = of_task(monkeypatch, configuration)
    assert [getattr(config, name) for name in FIELDS] == fields
    assert config.cluster_spec.as_dict() == ({} if task[0] == "evaluator" else CLUSTER)


def test_smaller_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    old = {"cluster": {"master": ["a:1"], "worker": ["b:1"]}, "task": {"type": "master", "index": 0}}
    found = [getattr(of_task(monkeypatch, old), name) for name in FIELDS]
    assert found == ["master", 0, True, "grpc://a:1", "", 0, 2, 0]
    alone = {"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 0}}
    assert [getattr(of_task(monkeypatch, alone), name) for name in FIELDS] == [
        "chief",
        0,
        True,
        "",
        "",
        0,
        1,
        0,
    ]
    masters = {"session_master": "foo", "eval_session_master": "bar", "service": {"a": 1}, "model_dir": "/m"}
    config = of_task(monkeypatch, masters)
    assert (config.master, config.evaluation_master, config.service) == ("foo", "bar", {"a": 1})
    assert config.model_dir == "/m"


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        ({"cluster": CLUSTER, "task": {"type": "master", "index": 0}}, "master is not a valid task_type"),
        (
            {"cluster": CLUSTER, "task": {"type": "worker", "index": 5}},
            "5 is not a valid task_id for task_type",
        ),
        ({"cluster": CLUSTER, "task": {"type": "worker", "index": -1}}, "non-negative"),
        ({"cluster": CLUSTER, "task": {"type": "worker"}}, "task index must be set"),
        ({"cluster": CLUSTER}, "task type must be set"),
        ({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}, 'one "chief" node'),
        ({"cluster": {"chief": ["a:1", "b:1"]}, "task": {"type": "chief", "index": 0}}, 'only one "chief"'),
        ({"task": {"type": "ps", "index": 0}}, "task type must be WORKER"),
        ({"task": {"type": "worker", "index": 1}}, "task index must be 0"),
        ({"model_dir": ""}, "model_dir in TF_CONFIG should be non-empty"),
    ],
)
def test_inconsistent_environments_are_refused(
    configuration: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=message):
        of_task(monkeypatch, configuration)


def test_other_values_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="must be a dict"):
        of_task(monkeypatch, {"service": 3})
    with pytest.raises(ValueError, match="must have the same value as the model_dir"):
        of_task(monkeypatch, {"model_dir": "/a"}, model_dir="/b")
