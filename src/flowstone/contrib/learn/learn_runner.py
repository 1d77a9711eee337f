"""`run` and `tune`: an Experiment run as this process's part of the cluster, or by a tuner of
hyperparameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.contrib.learn.constants import TaskType
from flowstone.contrib.learn.estimators.run_config import RunConfig
from flowstone.contrib.learn.experiment import Experiment

__all__ = ["run", "tune"]

_SCHEDULES = {TaskType.MASTER: "train_and_evaluate", TaskType.PS: "run_std_server", TaskType.WORKER: "train"}


def run(
    experiment_fn: Callable[..., Any],
    output_dir: Any = None,
    schedule: str | None = None,
    run_config: Any = None,
    hparams: Any = None,
) -> Any:
    """Makes an Experiment and calls one of its methods.

    Args:
        experiment_fn: a function of `output_dir`, or of (`run_config`, `hparams`), that returns an
            Experiment; its Estimator has this RunConfig.
        output_dir: the folder of the model; or `run_config`, a RunConfig with a folder, and `hparams`,
            whatever the function takes.
        schedule: the name of the method; None: by the task that the RunConfig names, `train_and_evaluate`
            without a cluster.

    Returns what the method does. Raises ValueError unless either output_dir or run_config is given, and for
    an unknown schedule or task; TypeError for what is no function or no Experiment; RuntimeError for an
    Estimator of another RunConfig.
    """
    if output_dir is not None and run_config is not None:
        raise ValueError("Cannot provide both `output_dir` and `run_config`")
    if output_dir is None and run_config is None:
        raise ValueError("Must set value for `output_dir` or `run_config`")
    if not callable(experiment_fn):
        raise TypeError(f'Experiment builder "{experiment_fn}" is not callable.')
    if run_config is None:
        if hparams is not None:
            raise ValueError("Must set `hparams` as None for `experiment_fn` with `output_dir`.")
        if not output_dir:
            raise ValueError("Must specify an output directory")
        experiment = _checked(experiment_fn(output_dir=output_dir))
    else:
        experiment = _with_run_config(experiment_fn, run_config, hparams)
    name = schedule or _default_schedule(run_config or experiment.estimator.config)
    method = getattr(experiment, name, None)
    if method is None:
        raise ValueError(f"Schedule references non-existent task {name}")
    if not callable(method):
        raise TypeError(f"Schedule references non-callable member {name}")
    return method()


def tune(experiment_fn: Callable[..., Any], tuner: Any) -> None:
    """Has a tuner run experiments as long as it has trials.

    `experiment_fn`: a function of (`run_config`, `hparams`), see `run`; `tuner`: what has the methods
    `next_trial` and `run_experiment`, which takes such a function.
    """

    def wrapped(run_config: Any, hparams: Any) -> Experiment:
        return _with_run_config(experiment_fn, run_config, hparams)

    while tuner.next_trial():
        tuner.run_experiment(wrapped)


def _checked(experiment: Any) -> Experiment:
    if not isinstance(experiment, Experiment):
        raise TypeError(
            f"Experiment builder did not return an Experiment instance, got {type(experiment)} instead."
        )
    return experiment


def _with_run_config(experiment_fn: Callable[..., Any], run_config: Any, hparams: Any) -> Experiment:
    """The Experiment of a function that takes a RunConfig, which its Estimator must have."""
    if not isinstance(run_config, (RunConfig, tf.estimator.RunConfig)):
        raise ValueError("`run_config` must be `tf.contrib.learn.RunConfig` instance")
    if not run_config.model_dir:
        raise ValueError("Must specify a model directory `model_dir` in `run_config`.")
    expected = _text(run_config)
    experiment = _checked(experiment_fn(run_config=run_config, hparams=hparams))
    actual = _text(experiment.estimator.config)
    if actual != expected:
        raise RuntimeError(
            "`RunConfig` instance is expected to be used by the `Estimator` inside the `Experiment`. "
            "expected "
            f"{expected}, but got {actual}"
        )
    return experiment


def _text(config: Any) -> str:
    """What tells configurations apart; of one of `tf.estimator`, which changes on its way, the folder."""
    return config.uid() if isinstance(config, RunConfig) else str(config.model_dir)


def _default_schedule(config: Any) -> str:
    if not config or not config.cluster_spec:
        return "train_and_evaluate"
    if not config.task_type:
        raise ValueError("Must specify a schedule")
    if config.task_type not in _SCHEDULES:
        raise ValueError(f"No default schedule for task type: {config.task_type}")
    return _SCHEDULES[config.task_type]
