"""Experiments: how often they train and evaluate, as TensorFlow 1.15.5 does with the same arguments;
learn_runner."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.contrib.learn import experiment as experiment_module


def nothing() -> None:
    """An input function that is never called."""


class Recorded(tf.contrib.learn.Estimator):
    """Notes how it is called, in place of training."""

    def __init__(self, config: Any = None, step: int = 5, **arguments: Any) -> None:
        super().__init__(config=config, **arguments)
        self._calls: list[tuple[str, dict[str, Any]]] = []
        self._step = step

    def fit(self, **arguments: Any) -> Any:
        self._calls.append(("fit", arguments))
        return self

    def evaluate(self, **arguments: Any) -> Any:
        self._calls.append(("evaluate", arguments))
        return {"loss": 1.0, "global_step": self._step}


def made(**arguments: Any) -> Any:
    config = arguments.pop("config", None)
    return tf.contrib.learn.Experiment(Recorded(config), nothing, nothing, **arguments)


def calls(experiment: Any, *names: str) -> list[tuple[Any, ...]]:
    return [(kind, *(given.get(name) for name in names)) for kind, given in experiment.estimator._calls]


def test_training_and_evaluation_by_themselves() -> None:
    experiment = made(train_steps=7, eval_metrics={"a": 1})
    assert experiment.train() is experiment.estimator
    assert experiment.evaluate(delay_secs=0) == {"loss": 1.0, "global_step": 5}
    experiment.evaluate(delay_secs=0, name="other")
    assert calls(experiment, "max_steps", "steps", "name", "metrics") == [
        ("fit", 7, None, None, None), ("evaluate", None, 100, "one_pass", {"a": 1}),
        ("evaluate", None, 100, "other", {"a": 1}),
    ]  # fmt: skip
    assert (experiment.train_steps, experiment.eval_steps, experiment.eval_metrics) == (7, 100, {"a": 1})


def test_a_test_takes_one_step_of_each() -> None:
    experiment = made(train_steps=7)
    experiment.test()
    assert calls(experiment, "steps", "name") == [("fit", 1, None), ("evaluate", 1, "one_pass")]


def test_local_runs_train_to_the_end() -> None:
    experiment = made(train_steps=7)
    assert experiment.local_run() == ({"loss": 1.0, "global_step": 5}, [])
    assert calls(experiment, "max_steps", "monitors", "name") == [
        ("fit", 7, [], None),
        ("evaluate", None, None, None),
    ]


@pytest.mark.parametrize(
    ("arguments", "steps"), [({}, 1000), ({"train_steps": 50}, 5), ({"train_steps_per_iteration": 3}, 3)]
)
def test_training_and_evaluation_take_turns(arguments: Any, steps: int) -> None:
    experiment, seen = made(**arguments), []

    def goes_on(result: Any) -> bool:
        seen.append(result)
        return len(seen) < 3

    assert experiment.continuous_train_and_eval(goes_on) == ({"loss": 1.0, "global_step": 5}, [])
    assert calls(experiment, "steps") == [("fit", steps), ("evaluate", 100)] * 2
    assert seen == [None, *[{"loss": 1.0, "global_step": 5}] * 2]


def test_turns_end_with_the_last_step() -> None:
    experiment = made(train_steps=5)
    experiment.continuous_train_and_eval()
    assert len(calls(experiment)) == 2


def test_exports_follow_evaluations() -> None:
    def export(estimator: Any, folder: Any, checkpoint_path: Any = None, eval_result: Any = None) -> Any:
        return folder.rpartition(b"/")[2], checkpoint_path, eval_result["loss"]

    experiment = made(train_steps=7, export_strategies=tf.contrib.learn.ExportStrategy("a", export))
    assert experiment.train_and_evaluate()[1] == [(b"a", None, 1.0)]
    assert [each.name for each in experiment.reset_export_strategies()] == ["a"]
    assert experiment.train_and_evaluate()[1] == []


def test_workers_begin_later(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(experiment_module.time, "sleep", waited.append)
    for index in (0, 2, 40):
        task = {
            "cluster": {"worker": [f"h{n}:1" for n in range(60)]},
            "task": {"type": "worker", "index": index},
        }
        monkeypatch.setenv("TF_CONFIG", json.dumps(task))
        made().train()
        by_steps = made(delay_workers_by_global_step=True)
        by_steps.train()
        (hook,) = by_steps.estimator._calls[0][1]["monitors"]
        assert hook._wait_until_step == int(8000 * math.log(index + 1))
    assert waited == [10, 60]


def test_arguments_of_other_kinds_are_refused() -> None:
    learn = tf.contrib.learn
    with pytest.raises(ValueError, match="`estimator` must implement"):
        learn.Experiment(3, nothing, nothing)
    with pytest.raises(ValueError, match="`export_strategies` must be"):
        made(export_strategies=[1])
    with pytest.raises(ValueError, match="`train_steps_per_iteration` must be an integer"):
        made(train_steps_per_iteration="a")
    with pytest.raises(ValueError, match="must be a callable, or None"):
        made().continuous_eval(continuous_eval_predicate_fn=3)
    with pytest.raises(ValueError, match="Could not start server"):
        made().run_std_server()
    core = tf.estimator.Estimator(lambda features: None)
    with pytest.raises(ValueError, match="`eval_metrics` must be `None`"):
        learn.Experiment(core, nothing, nothing, eval_metrics={"a": 1})
    with pytest.raises(ValueError, match="`saving_listeners` must be `None`"):
        made(saving_listeners=[])


@pytest.mark.parametrize("is_core", [False, True])
def test_a_model_is_trained_evaluated_and_watched(is_core: bool, tmp_path: Path) -> None:
    x = np.random.RandomState(0).rand(16, 2).astype(np.float32)

    def input_fn() -> Any:
        return {"x": tf.constant(x)}, tf.constant(x.sum(1, keepdims=True))

    if is_core:
        config = tf.estimator.RunConfig(model_dir=str(tmp_path), save_checkpoints_steps=5)
        model: Any = tf.estimator.LinearRegressor([tf.feature_column.numeric_column("x", [2])], config=config)
    else:
        config = tf.contrib.learn.RunConfig(model_dir=str(tmp_path), save_checkpoints_steps=5)
        columns = [tf.contrib.layers.real_valued_column("x", dimension=2)]
        model = tf.contrib.learn.LinearRegressor(columns, config=config)
    evaluated = []

    class Noted(tf.train.SessionRunHook):
        def end(self, session: Any) -> None:
            evaluated.append(session.run(tf.train.get_global_step()))

    experiment = tf.contrib.learn.Experiment(
        model, input_fn, input_fn, train_steps=10, eval_steps=1, eval_hooks=[Noted()]
    )
    result, _ = experiment.train_and_evaluate()
    assert result["global_step"] == 10
    assert evaluated[-1] == 10 and len(evaluated) > 2  # while it was trained, too
    seen = []
    experiment.continuous_eval(
        delay_secs=0, throttle_delay_secs=0, continuous_eval_predicate_fn=lambda r: not seen.append(r)
    )
    assert [each and each["global_step"] for each in seen] == [None, 10]
    experiment.continuous_eval_on_train_data(delay_secs=0, throttle_delay_secs=0)
    assert evaluated[-1] == 10
    stopped: list[Any] = [tf.train.StopAtStepHook(last_step=1)]
    experiment.extend_train_hooks(stopped)
    assert experiment._train_monitors == stopped


class Scheduled(tf.contrib.learn.Experiment):
    """Says which method was called."""

    def __init__(self, config: Any = None) -> None:
        super().__init__(Recorded(config), nothing, nothing)

    def train(self, delay_secs: float | None = None) -> Any:
        return "train"

    def train_and_evaluate(self) -> Any:
        return "train_and_evaluate"

    def run_std_server(self) -> Any:
        return "run_std_server"


def by_folder(output_dir: Any) -> Any:
    return Scheduled(tf.contrib.learn.RunConfig())


def by_config(run_config: Any, hparams: Any) -> Any:
    return Scheduled(run_config)


@pytest.mark.parametrize(
    ("task", "method"),
    [("master", "train_and_evaluate"), ("worker", "train"), ("ps", "run_std_server")],
)
def test_the_method_follows_the_task(monkeypatch: pytest.MonkeyPatch, task: str, method: str) -> None:
    cluster = {"ps": ["h:1"], "worker": ["h:2"], "master": ["h:3"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": task, "index": 0}}))
    assert tf.contrib.learn.learn_runner.run(by_folder, "/a") == method


def test_tasks_without_a_method(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = {"worker": ["h:2"], "other": ["h:3"]}
    for task, message in (
        ({"type": "other", "index": 0}, "No default schedule"),
        ({}, "Must specify a schedule"),
    ):
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
        with pytest.raises(ValueError, match=message):
            tf.contrib.learn.learn_runner.run(by_folder, "/a")


def test_runs_without_a_cluster() -> None:
    run, config = tf.contrib.learn.learn_runner.run, tf.contrib.learn.RunConfig
    assert run(by_folder, "/a") == "train_and_evaluate"
    assert run(by_folder, "/a", schedule="train") == "train"
    assert run(by_config, run_config=config(model_dir="/a"), hparams=3) == "train_and_evaluate"
    for error, message, arguments in (
        (ValueError, "non-existent task other", (by_folder, "/a", "other")),
        (ValueError, "Must specify an output directory", (by_folder, "")),
        (ValueError, "Must set value for", (by_folder,)),
        (ValueError, "Cannot provide both", (by_folder, "/a", None, config(model_dir="/a"))),
        (ValueError, "Must set `hparams` as None", (by_folder, "/a", None, None, 3)),
        (ValueError, "Must specify a model directory", (by_config, None, None, config())),
        (ValueError, "must be `tf.contrib.learn.RunConfig`", (by_config, None, None, 3)),
        (TypeError, "is not callable", (3, "/a")),
        (TypeError, "did not return an Experiment", (lambda output_dir: 3, "/a")),
        (
            RuntimeError,
            "is expected to be used",
            (lambda run_config, hparams: by_folder(""), None, None, config(model_dir="/a")),
        ),
    ):
        with pytest.raises(error, match=message):
            run(*arguments)


def test_a_tuner_runs_experiments() -> None:
    class Tuner:
        trials = 0

        def next_trial(self) -> bool:
            self.trials += 1
            return self.trials < 3

        def run_experiment(self, experiment_fn: Any) -> None:
            config = tf.contrib.learn.RunConfig(model_dir=f"/{self.trials}")
            assert experiment_fn(config, None).train() == "train"

    tuner = Tuner()
    tf.contrib.learn.learn_runner.tune(by_config, tuner)
    assert tuner.trials == 3
