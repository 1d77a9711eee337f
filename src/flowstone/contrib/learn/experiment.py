"""`Experiment`: an Estimator with its inputs, and when it is trained, evaluated and exported."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import flowstone as tf
from flowstone.contrib.learn.estimators.base_estimator import BaseEstimator
from flowstone.contrib.learn.estimators.run_config import Environment
from flowstone.contrib.learn.export_strategy import ExportStrategy
from flowstone.training.hooks.session_run_hook import SessionRunHook

__all__ = ["Experiment"]

_STEPS_OF_DELAY = 8000.0  # a worker T begins after 8000 log(T + 1) steps of the others


class _EvaluationHook(SessionRunHook):
    """Evaluates a new checkpoint, looking for one every so many steps."""

    def __init__(self, evaluate: Callable[[str], Any], folder: str, every_n_steps: int) -> None:
        self._evaluate, self._folder, self._every = evaluate, folder, every_n_steps
        self._steps = 0
        self._last: str | None = None

    def begin(self) -> None:
        self._last = tf.train.latest_checkpoint(self._folder)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._steps += 1
        if self._steps % self._every:
            return
        latest = tf.train.latest_checkpoint(self._folder)
        if latest and latest != self._last:
            self._last = latest
            self._evaluate(latest)


class Experiment:
    """All that is needed to train and evaluate a model.

    Args:
        estimator: an Estimator of `tf.contrib.learn` or of `tf.estimator`.
        train_input_fn, eval_input_fn: the inputs.
        eval_metrics: further metrics, not with an Estimator of `tf.estimator`.
        train_steps: the global step to end at; None: to the input's end.
        eval_steps: the steps of an evaluation; None: to the input's end.
        train_monitors, eval_hooks: monitors and hooks.
        local_eval_frequency: the same as `min_eval_frequency`, for `local_run`.
        eval_delay_secs: how long `evaluate` waits; continuous_eval_throttle_secs: the time between two
            evaluations at least.
        min_eval_frequency: the steps after which training looks for a checkpoint to evaluate; 0: never.
        delay_workers_by_global_step: whether workers begin after steps of the others, not after a time.
        export_strategies: an ExportStrategy or several.
        train_steps_per_iteration: the steps between evaluations of `continuous_train_and_eval`.
        checkpoint_and_export: whether the model is exported after every evaluation while it is trained.
        saving_listeners: CheckpointSaverListeners, of an Estimator of `tf.estimator`.
        check_interval_secs: not needed here, where checkpoints are looked for by steps.

    Raises ValueError for what is no Estimator, and for arguments of other kinds.
    """

    def __init__(
        self,
        estimator: Any,
        train_input_fn: Callable[[], Any],
        eval_input_fn: Callable[[], Any] | None,
        eval_metrics: Any = None,
        train_steps: int | None = None,
        eval_steps: int | None = 100,
        train_monitors: Iterable[Any] | None = None,
        eval_hooks: Iterable[Any] | None = None,
        local_eval_frequency: int | None = None,
        eval_delay_secs: float = 120,
        continuous_eval_throttle_secs: float = 60,
        min_eval_frequency: int | None = None,
        delay_workers_by_global_step: bool = False,
        export_strategies: Any = None,
        train_steps_per_iteration: int | None = None,
        checkpoint_and_export: bool = False,
        saving_listeners: Any = None,
        check_interval_secs: float = 5,
    ) -> None:
        del check_interval_secs
        self._is_core = isinstance(estimator, tf.estimator.Estimator)
        if not self._is_core and not isinstance(estimator, BaseEstimator):
            raise ValueError(
                "`estimator` must implement `tf.contrib.learn.Evaluable` or `tf.estimator.Estimator`."
            )
        if self._is_core and eval_metrics is not None:
            raise ValueError(
                "`eval_metrics` must be `None` with `tf.estimator.Estimator`. Use `eval_metric_ops` in "
                "`tf.estimator.EstimatorSpec` instead."
            )
        if not self._is_core and saving_listeners is not None:
            raise ValueError(
                "`saving_listeners` must be `None` for estimators that are not `tf.estimator.Estimator`."
            )
        if train_steps_per_iteration is not None and not isinstance(train_steps_per_iteration, int):
            raise ValueError("`train_steps_per_iteration` must be an integer.")
        self._estimator = estimator
        self._train_input_fn, self._eval_input_fn = train_input_fn, eval_input_fn
        self._eval_metrics, self._train_steps, self._eval_steps = eval_metrics, train_steps, eval_steps
        self._train_monitors, self._eval_hooks = list(train_monitors or ()), list(eval_hooks or ())
        self._local_eval_frequency, self._eval_delay_secs = local_eval_frequency, eval_delay_secs
        self._throttle_secs = continuous_eval_throttle_secs
        self._min_eval_frequency = 1 if min_eval_frequency is None else min_eval_frequency
        self._delay_workers_by_global_step = delay_workers_by_global_step
        self._steps_per_iteration, self._saving_listeners = train_steps_per_iteration, saving_listeners
        self._checkpoint_and_export = checkpoint_and_export
        self._export_strategies: tuple[ExportStrategy, ...] = ()
        self.reset_export_strategies(export_strategies)

    @property
    def estimator(self) -> Any:
        """The Estimator."""
        return self._estimator

    @property
    def eval_metrics(self) -> Any:
        """The further metrics."""
        return self._eval_metrics

    @property
    def train_steps(self) -> int | None:
        """The global step to end at."""
        return self._train_steps

    @property
    def eval_steps(self) -> int | None:
        """The steps of an evaluation."""
        return self._eval_steps

    def extend_train_hooks(self, additional_hooks: Iterable[Any]) -> None:
        """Adds hooks to those of training."""
        self._train_monitors.extend(additional_hooks)

    def reset_export_strategies(self, new_export_strategies: Any = None) -> tuple[ExportStrategy, ...]:
        """Replaces the export strategies; returns the old ones. ValueError for what is none."""
        old, given = self._export_strategies, new_export_strategies
        if given is None:
            given = ()
        elif isinstance(given, ExportStrategy):
            given = (given,)
        for each in given if isinstance(given, Iterable) else (given,):
            if not isinstance(each, ExportStrategy):
                raise ValueError(
                    "`export_strategies` must be an ExportStrategy, an iterable of ExportStrategy, or "
                    "`None`, found "
                    f"{each}."
                )
        self._export_strategies = tuple(given)
        return old

    # ---- training

    def train(self, delay_secs: float | None = None) -> Any:
        """Trains; returns the Estimator.

        `delay_secs`: how long to wait first; None: five seconds for each worker before this one, at most
        60. On a cluster whose environment is "cloud" this starts the task's server first.
        """
        config, hooks = self._estimator.config, []
        if getattr(config, "environment", Environment.LOCAL) == Environment.CLOUD and config.master:
            self._start_server()
        task = getattr(config, "task_id", 0) or 0
        if delay_secs is None and self._delay_workers_by_global_step:
            steps = int(_STEPS_OF_DELAY * math.log(task + 1))
            hooks.append(tf.train.GlobalStepWaiterHook(steps))
        elif delay_secs is None:
            delay_secs = min(60, task * 5)
        if delay_secs:
            tf.logging.info("Waiting %d secs before starting training.", delay_secs)
            time.sleep(delay_secs)
        return self._call_train(hooks=[*self._train_monitors, *hooks], max_steps=self._train_steps)

    def _call_train(self, hooks: list[Any], steps: int | None = None, max_steps: int | None = None) -> Any:
        shared: dict[str, Any] = {"input_fn": self._train_input_fn, "steps": steps, "max_steps": max_steps}
        if self._is_core:
            return self._estimator.train(hooks=hooks, saving_listeners=self._saving_listeners, **shared)
        return self._estimator.fit(monitors=hooks, **shared)

    # ---- evaluation

    def evaluate(self, delay_secs: float | None = None, name: str | None = None) -> Any:
        """Evaluates the latest checkpoint; returns the metrics.

        `delay_secs`: how long to wait first; None: as long as the Experiment says.
        """
        delay_secs = self._eval_delay_secs if delay_secs is None else delay_secs
        if delay_secs:
            tf.logging.info("Waiting %d secs before starting eval.", delay_secs)
            time.sleep(delay_secs)
        return self._call_evaluate(
            self._eval_input_fn, name or "one_pass", self._eval_steps, self._eval_hooks
        )

    def _call_evaluate(
        self, input_fn: Any, name: str | None, steps: int | None, hooks: Any, checkpoint_path: Any = None
    ) -> Any:
        shared: dict[str, Any] = {
            "input_fn": input_fn, "steps": steps, "hooks": hooks, "name": name,
            "checkpoint_path": checkpoint_path,
        }  # fmt: skip
        if not self._is_core:
            shared["metrics"] = self._eval_metrics
        return self._estimator.evaluate(**shared)

    def continuous_eval(
        self,
        delay_secs: float | None = None,
        throttle_delay_secs: float | None = None,
        evaluate_checkpoint_only_once: bool = True,
        continuous_eval_predicate_fn: Callable[[Any], bool] | None = None,
        name: str = "continuous",
    ) -> None:
        """Evaluates checkpoint after checkpoint, until that of the last training step.

        Args:
            delay_secs: how long to wait first; `throttle_delay_secs`: the time between two evaluations at
                least; None: as the Experiment says.
            evaluate_checkpoint_only_once: whether a checkpoint is evaluated once.
            continuous_eval_predicate_fn: a function of the last results, None at first: whether to go on.
            name: of the evaluations.

        ValueError for a predicate that is no function.
        """
        self._continuous_eval(
            self._eval_input_fn, name, delay_secs, throttle_delay_secs, continuous_eval_predicate_fn,
            evaluate_checkpoint_only_once,
        )  # fmt: skip

    def continuous_eval_on_train_data(
        self,
        delay_secs: float | None = None,
        throttle_delay_secs: float | None = None,
        continuous_eval_predicate_fn: Callable[[Any], bool] | None = None,
        name: str = "continuous_on_train_data",
    ) -> None:
        """`continuous_eval` on the input of training."""
        self._continuous_eval(
            self._train_input_fn, name, delay_secs, throttle_delay_secs, continuous_eval_predicate_fn, True
        )

    def _continuous_eval(
        self, input_fn: Any, name: str, delay_secs: Any, throttle_secs: Any, predicate: Any, only_once: bool
    ) -> None:
        _check_predicate(predicate)
        time.sleep(self._eval_delay_secs if delay_secs is None else delay_secs)
        throttle_secs = self._throttle_secs if throttle_secs is None else throttle_secs
        result, previous = None, None
        while (predicate is None or predicate(result)) and not self._has_ended(result):
            start = time.time()
            latest = tf.train.latest_checkpoint(self._estimator.model_dir)
            if not latest or (only_once and latest == previous):
                what = (
                    "No new checkpoint ready for evaluation." if latest else "Estimator is not trained yet."
                )
                tf.logging.warning("%s Will start an evaluation when a checkpoint is ready.", what)
                result = {} if result is None else result
            else:
                result = self._call_evaluate(input_fn, name, self._eval_steps, self._eval_hooks, latest)
                self._export(result, latest)
                previous = latest
            time.sleep(max(0.0, throttle_secs - (time.time() - start)))

    def _has_ended(self, result: Any) -> bool:
        """Whether these results are those of the last training step."""
        return bool(result and self._train_steps and result["global_step"] >= self._train_steps)

    # ---- both

    def train_and_evaluate(self) -> tuple[Any, list[Any]]:
        """Trains, evaluating new checkpoints, then evaluates and exports.

        Returns the last results, and those of the exports.
        """
        hooks = list(self._train_monitors)
        if self._min_eval_frequency:
            hooks.append(
                _EvaluationHook(
                    self._evaluate_in_training, self._estimator.model_dir, self._min_eval_frequency
                )
            )
        self._call_train(hooks=hooks, max_steps=self._train_steps)
        result = self._call_evaluate(self._eval_input_fn, None, self._eval_steps, self._eval_hooks)
        return result, self._export(result)

    def _evaluate_in_training(self, checkpoint_path: str) -> None:
        result = self._call_evaluate(
            self._eval_input_fn, None, self._eval_steps, self._eval_hooks, checkpoint_path
        )
        if self._checkpoint_and_export:
            self._export(result, checkpoint_path)

    def local_run(self) -> tuple[Any, list[Any]]:
        """`train_and_evaluate`, with evaluations every `local_eval_frequency` steps."""
        self._min_eval_frequency = self._local_eval_frequency or 0
        return self.train_and_evaluate()

    def continuous_train_and_eval(
        self, continuous_eval_predicate_fn: Callable[[Any], bool] | None = None
    ) -> tuple[Any, list[Any]]:
        """Trains some steps and evaluates, again and again, until the last training step.

        `continuous_eval_predicate_fn`: see `continuous_eval`. Returns the last results, and those of the
        exports.
        """
        _check_predicate(continuous_eval_predicate_fn)
        steps = self._steps_per_iteration
        if steps is None:
            steps = 1000 if self._train_steps is None else max(1, int(self._train_steps / 10))
        result: Any = None
        exports: list[Any] = []
        predicate = continuous_eval_predicate_fn
        while (predicate is None or predicate(result)) and not self._has_ended(result):
            self._call_train(hooks=list(self._train_monitors), steps=steps)
            result = self._call_evaluate(self._eval_input_fn, "one_pass", self._eval_steps, self._eval_hooks)
            exports = self._export(result)
        return result, exports

    def test(self) -> Any:
        """Trains one step, evaluates one and exports: whether all fits together. Returns the metrics."""
        self._call_train(hooks=list(self._train_monitors), steps=1)
        result = self._call_evaluate(self._eval_input_fn, "one_pass", 1, None)
        self._export(result)
        return result

    def _export(self, result: Any, checkpoint_path: Any = None) -> list[Any]:
        """Calls the export strategies; returns what they do."""
        return [
            strategy.export(
                self._estimator,
                os.path.join(os.fsencode(self._estimator.model_dir), b"export", os.fsencode(strategy.name)),
                checkpoint_path=checkpoint_path,
                eval_result=result,
            )
            for strategy in self._export_strategies
        ]

    # ---- servers

    def run_std_server(self) -> None:
        """Runs this task's server, such as that of a parameter server, until the process ends.

        ValueError unless the RunConfig names a cluster and a task.
        """
        self._start_server().join()

    def _start_server(self) -> Any:
        config = self._estimator.config
        if not config.cluster_spec or not config.task_type or not config.master or config.task_id is None:
            raise ValueError(
                "Could not start server; be sure to specify cluster_spec, task_type, master, and task in "
                "RunConfig "
                "or set the TF_CONFIG environment variable."
            )
        server = tf.train.Server(
            config.cluster_spec,
            job_name=config.task_type,
            task_index=config.task_id,
            config=config.session_config or getattr(config, "tf_config", None),
            start=False,
        )
        server.start()
        return server


def _check_predicate(predicate: Any) -> None:
    if predicate is not None and not callable(predicate):
        raise ValueError("`continuous_eval_predicate_fn` must be a callable, or None.")
