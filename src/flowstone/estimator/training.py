"""`train_and_evaluate`: training with an evaluation after checkpoints, and exports.

One process does both. In a cluster (`TF_CONFIG`) the chief and the workers train, parameter servers hold
the variables, and an evaluator, which is no part of the cluster, evaluates what the chief saves. A chief of
the job "master" evaluates as well.
"""

from __future__ import annotations

import os
import time
from collections import namedtuple
from collections.abc import Callable, Iterable
from typing import Any

import flowstone as tf
from flowstone.estimator.estimator import Estimator
from flowstone.estimator.exporter import Exporter
from flowstone.estimator.run_config import TaskType
from flowstone.estimator.training_task import start_server
from flowstone.training.hooks.checkpoint_hook import CheckpointSaverListener

__all__ = ["EvalSpec", "TrainSpec", "train_and_evaluate"]

_LEAST_PAUSE_S = 0.5  # between looks for a new checkpoint

_TrainFields = namedtuple("_TrainFields", ["input_fn", "max_steps", "hooks"])
_EvalFields = namedtuple(
    "_EvalFields", ["input_fn", "steps", "name", "hooks", "exporters", "start_delay_secs", "throttle_secs"]
)


class TrainSpec(_TrainFields):
    """What to train on.

    Args:
        input_fn: see `Estimator.train`.
        max_steps: the global step to end at; None: never.
        hooks: SessionRunHooks.

    Raises TypeError for a function that is none and other hooks, ValueError for steps that are not positive.
    """

    __slots__ = ()

    def __new__(
        cls, input_fn: Callable[..., Any], max_steps: int | None = None, hooks: Iterable[Any] | None = None
    ) -> TrainSpec:
        _check_input_fn(input_fn)
        if max_steps is not None and max_steps <= 0:
            raise ValueError(f"Must specify max_steps > 0, given: {max_steps}")
        return super().__new__(cls, input_fn, max_steps, _checked_hooks(hooks))


class EvalSpec(_EvalFields):
    """What to evaluate on, how often, and what to export.

    Args:
        input_fn: see `Estimator.evaluate`.
        steps: the steps of an evaluation; None: to the input's end.
        name: of the evaluation.
        hooks: SessionRunHooks.
        exporters: an Exporter or several.
        start_delay_secs: after which time a separate evaluator begins.
        throttle_secs: the time between two evaluations at least.

    Raises TypeError for other types, ValueError for numbers out of range and names that are not unique.
    """

    __slots__ = ()

    def __new__(
        cls, input_fn: Callable[..., Any], steps: int | None = 100, name: str | None = None,
        hooks: Iterable[Any] | None = None, exporters: Any = None, start_delay_secs: float = 120,
        throttle_secs: float = 600,
    ) -> EvalSpec:  # fmt: skip
        _check_input_fn(input_fn)
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"`name` must be string, given: {name}")
        hooks, exporters = _checked_hooks(hooks), _checked_exporters(exporters)
        if start_delay_secs < 0:
            raise ValueError(f"Must specify start_delay_secs >= 0, given: {start_delay_secs}")
        if throttle_secs < 0:
            raise ValueError(f"Must specify throttle_secs >= 0, given: {throttle_secs}")
        return super().__new__(cls, input_fn, steps, name, hooks, exporters, start_delay_secs, throttle_secs)


def train_and_evaluate(estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> Any:
    """Trains, and evaluates each checkpoint that is written at least `throttle_secs` after the last one.

    Args:
        estimator: the Estimator, whose RunConfig says how often checkpoints are written.
        train_spec, eval_spec: what to train and evaluate on.

    Returns the results of the last evaluation and of its exports; None if `TF_CONFIG` makes this process
    a task that does not evaluate, or the evaluator. A parameter server does not return. Raises TypeError for
    other types, ValueError if no checkpoints are written.
    """
    for value, kind, name in (
        (estimator, Estimator, "estimator"),
        (train_spec, TrainSpec, "train_spec"),
        (eval_spec, EvalSpec, "eval_spec"),
    ):
        if not isinstance(value, kind):
            raise TypeError(f"`{name}` must have type `tf.estimator.{kind.__name__}`. Got: {type(value)}")
    config = estimator.config
    tf.logging.info("Not using Distribute Coordinator.")
    if config.task_type == TaskType.EVALUATOR:
        _run_evaluator(estimator, train_spec, eval_spec)
        return None
    if sum(config.cluster_spec.num_tasks(job) for job in config.cluster_spec.jobs) <= 1:
        return _run_local(estimator, train_spec, eval_spec)
    server = start_server(config)
    if config.task_type == TaskType.PS:
        server.join()
    if config.task_type == TaskType.MASTER:
        return _run_local(estimator, train_spec, eval_spec)
    estimator.train(train_spec.input_fn, hooks=list(train_spec.hooks), max_steps=train_spec.max_steps)
    return None


def _run_evaluator(estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> None:
    """Evaluates new checkpoints until one is of the last step."""
    evaluator = _Evaluator(estimator, eval_spec, train_spec.max_steps)
    _wait(eval_spec.start_delay_secs, "f secs before starting eval")
    while train_spec.max_steps is None or (evaluator.last_step or 0) < train_spec.max_steps:
        began = time.time()
        evaluator.evaluate_and_export()
        if train_spec.max_steps is None or (evaluator.last_step or 0) < train_spec.max_steps:
            _wait(max(eval_spec.throttle_secs - (time.time() - began), _LEAST_PAUSE_S), "f secs before eval")


def _wait(seconds: float, what: str) -> None:
    if seconds > 0:
        tf.logging.info(f"Waiting %{what}.", seconds)
        time.sleep(seconds)


def _run_local(estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> Any:
    config = estimator.config
    tf.logging.info("Running training and evaluation locally (non-distributed).")
    if not config.save_checkpoints_steps and not config.save_checkpoints_secs:
        raise ValueError(
            "`save_checkpoints_steps` or `save_checkpoints_secs` in RunConfig must be set: evaluation "
            "happens "
            "after checkpoints"
        )
    tf.logging.info(
        "Start train and evaluate loop. The evaluate will happen after every checkpoint. Checkpoint "
        "frequency is "
        "determined based on RunConfig arguments: save_checkpoints_steps %s or save_checkpoints_secs %s.",
        config.save_checkpoints_steps, config.save_checkpoints_secs,
    )  # fmt: skip
    listener = _EvaluationListener(estimator, eval_spec, train_spec.max_steps)
    hooks = list(train_spec.hooks)
    estimator.train(
        train_spec.input_fn, hooks=hooks, max_steps=train_spec.max_steps, saving_listeners=[listener]
    )
    if listener.eval_result is None and listener.last_step is None:
        evaluated = _Evaluator(estimator, eval_spec, train_spec.max_steps).evaluate_and_export()
        return evaluated
    return listener.eval_result, listener.export_results


class _EvaluationListener(CheckpointSaverListener):
    """Evaluates after checkpoints, but for the first, of a step that was not trained here."""

    def __init__(self, estimator: Estimator, eval_spec: EvalSpec, max_steps: int | None) -> None:
        self._evaluator = _Evaluator(estimator, eval_spec, max_steps)
        self._throttle_secs = eval_spec.throttle_secs
        self._is_first_save = True
        self._last_time = time.time()
        self.last_step: int | None = None
        self.eval_result: Any = None
        self.export_results: list[Any] | None = None

    def begin(self) -> None:
        self._last_time = time.time()

    def after_save(self, session: Any, global_step_value: int) -> None:
        del session
        if self._is_first_save:
            self._is_first_save = False
            return
        self.last_step = global_step_value
        waited = time.time() - self._last_time
        if waited < self._throttle_secs:
            tf.logging.info(
                "Skip the current checkpoint eval due to throttle secs (%s secs).", self._throttle_secs
            )
            return
        self._evaluate()

    def end(self, session: Any, global_step_value: int) -> None:
        del session
        if global_step_value != self._evaluator.last_step:
            self._evaluate()

    def _evaluate(self) -> None:
        self.eval_result, self.export_results = self._evaluator.evaluate_and_export()
        self._last_time = time.time()


class _Evaluator:
    """Evaluates the latest checkpoint, once, and gives it to the exporters."""

    def __init__(self, estimator: Estimator, eval_spec: EvalSpec, max_steps: int | None) -> None:
        self._estimator, self._spec, self._max_steps = estimator, eval_spec, max_steps
        self._is_final_export_triggered = False
        self._last_checkpoint: str | None = None
        self.last_step: int | None = None

    def evaluate_and_export(self) -> tuple[Any, list[Any]]:
        checkpoint = self._estimator.latest_checkpoint()
        if not checkpoint:
            tf.logging.warning(
                "Estimator is not trained yet. Will start an evaluation when a checkpoint is ready."
            )
            return None, []
        if checkpoint == self._last_checkpoint:
            tf.logging.warning(
                "No new checkpoint ready for evaluation. Skip the current evaluation pass as evaluation "
                "results are expected to be same for the same checkpoint."
            )
            return None, []
        spec = self._spec
        result = self._estimator.evaluate(
            input_fn=spec.input_fn,
            steps=spec.steps,
            name=spec.name,
            checkpoint_path=checkpoint,
            hooks=spec.hooks,
        )
        if not result:
            raise RuntimeError("Internal error: `Estimator.evaluate` should never return empty metrics.")
        step = self.last_step = int(result[tf.GraphKeys.GLOBAL_STEP])
        is_final = bool(self._max_steps is not None and step >= self._max_steps)
        exports = self._export(result, checkpoint, is_final)
        self._last_checkpoint = checkpoint
        return result, exports

    def _export(self, result: Any, checkpoint: str, is_final: bool) -> list[Any]:
        if is_final and self._is_final_export_triggered:
            return []
        self._is_final_export_triggered = self._is_final_export_triggered or is_final
        folder = os.path.join(self._estimator.model_dir, "export")
        return [
            exporter.export(
                estimator=self._estimator,
                export_path=os.path.join(folder, exporter.name),
                checkpoint_path=checkpoint,
                eval_result=result,
                is_the_final_export=is_final,
            )
            for exporter in self._spec.exporters
        ]


def _check_input_fn(input_fn: Any) -> None:
    if not callable(input_fn):
        raise TypeError(f"`input_fn` must be callable, given: {input_fn}")


def _checked_hooks(hooks: Iterable[Any] | None) -> tuple[Any, ...]:
    found = tuple(hooks or ())
    for hook in found:
        if not isinstance(hook, tf.train.SessionRunHook):
            raise TypeError(f"All hooks must be `SessionRunHook` instances, given: {hook}")
    return found


def _checked_exporters(exporters: Any) -> tuple[Exporter, ...]:
    if exporters is None:
        return ()
    if isinstance(exporters, Exporter):
        exporters = [exporters]
    if not isinstance(exporters, Iterable):
        raise TypeError(
            f"`exporters` must be an Exporter, an iterable of Exporter, or `None`, found {exporters}."
        )
    found = tuple(exporters)
    names = []
    for each in found:
        if not isinstance(each, Exporter):
            raise TypeError(
                f"`exporters` must be an Exporter, an iterable of Exporter, or `None`, found {each}."
            )
        if not each.name:
            full = [each.name for each in found]
            raise ValueError(
                f"An Exporter cannot have a name that is `None` or empty. All exporter names: {full}"
            )
        if not isinstance(each.name, str):
            raise ValueError(f"An Exporter must have a string name. Given: {type(each.name)}")
        names.append(each.name)
    if len(set(names)) != len(names):
        raise ValueError(
            f"`exporters` must have unique names. Such a name cannot be `None`. All exporter names: {names}"
        )
    return found
