"""Hooks that end training early, by what evaluations found.

The chief asks a function every so often and sets a variable; every worker reads it each step.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.training.hooks.session_run_hook import SessionRunHook

__all__ = [
    "make_early_stopping_hook",
    "read_eval_metrics",
    "stop_if_higher_hook",
    "stop_if_lower_hook",
    "stop_if_no_decrease_hook",
    "stop_if_no_increase_hook",
]


def make_early_stopping_hook(
    estimator: Any,
    should_stop_fn: Callable[[], bool],
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Any:
    """A hook that ends training when a function says so.

    Args:
        estimator: the Estimator that trains.
        should_stop_fn: says whether to stop.
        run_every_secs, run_every_steps: how often it is asked, by one of them.

    Raises TypeError for another kind of estimator, ValueError for both periods or none.
    """
    if not isinstance(estimator, tf.estimator.Estimator):
        raise TypeError(f"`estimator` must have type `tf.estimator.Estimator`. Got: {type(estimator)}")
    if run_every_secs is not None and run_every_steps is not None:
        raise ValueError("Only one of `run_every_secs` and `run_every_steps` must be set.")
    if estimator.config.is_chief:
        return _StopOnPredicateHook(should_stop_fn, run_every_secs, run_every_steps)
    return _CheckForStoppingHook()


def _threshold_hook(
    estimator: Any,
    metric_name: str,
    threshold: float,
    better: Callable[[Any, Any], bool],
    eval_dir: Any,
    min_steps: int,
    secs: Any,
    steps: Any,
) -> Any:
    folder = eval_dir or estimator.eval_dir()

    def should_stop() -> bool:
        for step, metrics in read_eval_metrics(folder).items():
            if step >= min_steps and metric_name in metrics and better(metrics[metric_name], threshold):
                tf.logging.info(
                    'At step %s, metric "%s" has value %s, the threshold is %s.',
                    step,
                    metric_name,
                    metrics[metric_name],
                    threshold,
                )
                return True
        return False

    return make_early_stopping_hook(estimator, should_stop, secs, steps)


def stop_if_higher_hook(
    estimator: Any,
    metric_name: str,
    threshold: float,
    eval_dir: Any = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Any:
    """A hook that ends training when an evaluation's metric is above a threshold.

    Args:
        estimator: the Estimator; `metric_name`: the metric.
        threshold: the value.
        eval_dir: the folder of evaluations' logs; the Estimator's if None.
        min_steps: evaluations of earlier steps do not count.
        run_every_secs, run_every_steps: how often the logs are read, by one of them.
    """
    return _threshold_hook(
        estimator, metric_name, threshold, operator.gt, eval_dir, min_steps, run_every_secs, run_every_steps
    )


def stop_if_lower_hook(
    estimator: Any,
    metric_name: str,
    threshold: float,
    eval_dir: Any = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Any:
    """As `stop_if_higher_hook`, when the metric is below the threshold."""
    return _threshold_hook(
        estimator, metric_name, threshold, operator.lt, eval_dir, min_steps, run_every_secs, run_every_steps
    )


def _no_improvement_hook(
    estimator: Any,
    metric_name: str,
    most: int,
    better: Callable[[Any, Any], bool],
    eval_dir: Any,
    min_steps: int,
    secs: Any,
    steps: Any,
) -> Any:
    folder = eval_dir or estimator.eval_dir()

    def should_stop() -> bool:
        best: Any = None
        best_step = 0
        for step, metrics in read_eval_metrics(folder).items():
            if step < min_steps or metric_name not in metrics:
                continue
            value = metrics[metric_name]
            if best is None or better(value, best):
                best, best_step = value, step
            if step - best_step >= most:
                tf.logging.info(
                    'No improvement of metric "%s" for %s steps, and at most %s steps are allowed.',
                    metric_name,
                    step - best_step,
                    most,
                )
                return True
        return False

    return make_early_stopping_hook(estimator, should_stop, secs, steps)


def stop_if_no_increase_hook(
    estimator: Any,
    metric_name: str,
    max_steps_without_increase: int,
    eval_dir: Any = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Any:
    """A hook that ends training when an evaluation's metric has not become larger for so many steps.

    Other arguments: of `stop_if_higher_hook`.
    """
    return _no_improvement_hook(
        estimator,
        metric_name,
        max_steps_without_increase,
        operator.gt,
        eval_dir,
        min_steps,
        run_every_secs,
        run_every_steps,
    )


def stop_if_no_decrease_hook(
    estimator: Any,
    metric_name: str,
    max_steps_without_decrease: int,
    eval_dir: Any = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Any:
    """A hook that ends training when an evaluation's metric has not become smaller for so many steps.

    Other arguments: of `stop_if_higher_hook`.
    """
    return _no_improvement_hook(
        estimator,
        metric_name,
        max_steps_without_decrease,
        operator.lt,
        eval_dir,
        min_steps,
        run_every_secs,
        run_every_steps,
    )


def read_eval_metrics(eval_dir: Any) -> dict[int, dict[str, float]]:
    """The scalar summaries in a folder's event files, by step in order."""
    found: dict[int, dict[str, float]] = {}
    for path in sorted(tf.gfile.Glob(os.path.join(eval_dir, "*tfevents*"))):
        for event in tf.train.summary_iterator(path):
            values = {
                value.tag: value.simple_value
                for value in event.summary.value
                if value.HasField("simple_value")
            }
            if values:
                found[event.step] = values
    return dict(sorted(found.items()))


def _stop_variable() -> Any:
    with tf.variable_scope("signal_early_stopping", reuse=tf.AUTO_REUSE):
        return tf.get_variable(
            "STOP",
            [],
            tf.bool,
            tf.constant_initializer(False),
            trainable=False,
            collections=[tf.GraphKeys.GLOBAL_VARIABLES],
        )


class _StopOnPredicateHook(SessionRunHook):
    """The chief's: asks the function, and sets the variable."""

    def __init__(self, should_stop_fn: Any, secs: float | None, steps: int | None) -> None:
        if not callable(should_stop_fn):
            raise TypeError("`should_stop_fn` must be callable.")
        self._should_stop_fn = should_stop_fn
        self._timer = tf.train.SecondOrStepTimer(every_secs=secs, every_steps=steps)

    def begin(self) -> None:
        self._global_step_tensor = tf.train.get_global_step()
        self._stop_var = _stop_variable()
        self._stop_op = tf.assign(self._stop_var, True)

    def before_run(self, run_context: Any) -> Any:
        del run_context
        return tf.train.SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        step = run_values.results
        if not self._timer.should_trigger_for_step(step):
            return
        self._timer.update_last_triggered_step(step)
        if self._should_stop_fn():
            tf.logging.info("Requesting early stopping at global step %d", step)
            run_context.session.run(self._stop_op)
            run_context.request_stop()


class _CheckForStoppingHook(SessionRunHook):
    """A worker's: reads the variable."""

    def begin(self) -> None:
        self._stop_var = _stop_variable()

    def before_run(self, run_context: Any) -> Any:
        del run_context
        return tf.train.SessionRunArgs(self._stop_var)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if run_values.results:
            tf.logging.info("Early stopping requested, suspending run.")
            run_context.request_stop()
