"""Monitors that use the estimator whose training they watch: it evaluates or exports while it trains."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.learn.monitors.base_monitor import EveryN

__all__ = ["ExportMonitor", "ValidationMonitor"]


class ValidationMonitor(EveryN):
    """Evaluates the estimator on its latest checkpoint, and ends the training that no longer gets better.

    Args:
        x, y, input_fn, batch_size, metrics, hooks, name: go to `estimator.evaluate`.
        eval_steps: on how many batches it evaluates; None takes all.
        every_n_steps: how many steps lie between two evaluations.
        early_stopping_rounds: for how many steps the metric may fail to get better; None never stops.
        early_stopping_metric: the metric that is to get better.
        early_stopping_metric_minimize: whether smaller is better.
        check_interval_secs: for how many seconds at least no newer checkpoint is looked for.

    Raises ValueError without both `x` and `input_fn`.
    """

    def __init__(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Callable[[], Any] | None = None,
        batch_size: int | None = None,
        eval_steps: int | None = None,
        every_n_steps: int = 100,
        metrics: Any = None,
        hooks: Any = None,
        early_stopping_rounds: int | None = None,
        early_stopping_metric: str = "loss",
        early_stopping_metric_minimize: bool = True,
        name: str | None = None,
        check_interval_secs: float | None = 5,
    ) -> None:
        super().__init__(every_n_steps=every_n_steps, first_n_steps=-1)
        if x is None and input_fn is None:
            raise ValueError("Either x or input_fn should be provided.")
        self.x = x
        self.y = y
        self.input_fn = input_fn
        self.batch_size = batch_size
        self.eval_steps = eval_steps
        self.metrics = metrics
        self.hooks = hooks
        self.early_stopping_rounds = early_stopping_rounds
        self.early_stopping_metric = early_stopping_metric
        self.early_stopping_metric_minimize = early_stopping_metric_minimize
        self.name = name
        self._best_value_step: int | None = None
        self._best_value: Any = None
        self._best_metrics: dict[str, Any] | None = None
        self._early_stopped = False
        self._latest_path: str | None = None
        self._latest_path_step: int | None = None
        self._last_checkpoint_check_time: float | None = None
        self._check_interval_secs = check_interval_secs

    @property
    def early_stopped(self) -> bool:
        """Whether this monitor has ended the training."""
        return self._early_stopped

    @property
    def best_step(self) -> int | None:
        """The step with the best value of the metric; None while there is none."""
        return self._best_value_step

    @property
    def best_value(self) -> Any:
        """The best value of the metric; None while there is none."""
        return self._best_value

    @property
    def best_metrics(self) -> dict[str, Any] | None:
        """All metrics of the best step; None while there is none."""
        return self._best_metrics

    def every_n_step_end(self, step: int, outputs: Mapping[Any, Any]) -> bool:
        """Evaluates, if there is a newer checkpoint; returns whether the metric has stopped getting better.

        Raises ValueError without an estimator, or if it does not have the metric.
        """
        super().every_n_step_end(step, outputs)
        if self._estimator is None:
            raise ValueError("Missing call to set_estimator.")
        if not self._finds_newer_checkpoint(step):
            return False
        metrics = self._evaluate()
        results = ", ".join(f"{name} = {value!s}" for name, value in metrics.items())
        tf.logging.info("Validation (step %d): %s", step, results)
        return self.early_stopping_rounds is not None and self._stops(step, metrics)

    def _finds_newer_checkpoint(self, step: int) -> bool:
        now = time.time()
        if self._last_checkpoint_check_time is not None and self._check_interval_secs is not None:
            if now - self._last_checkpoint_check_time < self._check_interval_secs:
                tf.logging.debug("No look for a checkpoint within %s seconds.", self._check_interval_secs)
                return False
        self._last_checkpoint_check_time = now
        latest = tf.train.latest_checkpoint(self._estimator.model_dir)
        if latest is None:
            tf.logging.debug("No evaluation at step %d: there is no checkpoint yet.", step)
            return False
        if latest == self._latest_path:
            tf.logging.debug(
                "No evaluation at step %d: %s is step %s's.", step, latest, self._latest_path_step
            )
            return False
        self._latest_path = latest
        self._latest_path_step = step
        return True

    def _evaluate(self) -> dict[str, Any]:
        results: dict[str, Any] = self._estimator.evaluate(
            x=self.x,
            y=self.y,
            input_fn=self.input_fn,
            batch_size=self.batch_size,
            steps=self.eval_steps,
            metrics=self.metrics,
            hooks=self.hooks,
            name=self.name,
        )
        return results

    def _stops(self, step: int, metrics: dict[str, Any]) -> bool:
        if self.early_stopping_metric not in metrics:
            raise ValueError(f"Metric {self.early_stopping_metric} missing from outputs {set(metrics)}.")
        value = metrics[self.early_stopping_metric]
        if self._best_value is None or self._is_better(value):
            self._best_value = value
            self._best_metrics = metrics
            self._best_value_step = step
        assert self._best_value_step is not None and self.early_stopping_rounds is not None
        if step - self._best_value_step < self.early_stopping_rounds:
            return False
        best = (self._best_value_step, self.early_stopping_metric, self._best_value)
        tf.logging.info("Stopping. Best step: %s with %s = %s.", *best)
        self._early_stopped = True
        return True

    def _is_better(self, value: Any) -> bool:
        smaller, larger = value < self._best_value, value > self._best_value
        return bool(smaller if self.early_stopping_metric_minimize else larger)


class ExportMonitor(EveryN):
    """Exports the estimator's model every so many steps, and when training ends.

    Args:
        every_n_steps: how many steps lie between two exports.
        export_dir: the folder of the exports.
        input_fn: a function of no arguments that gives features and labels; None reads serialised examples.
        input_feature_key: the feature that has the serialised examples.
        exports_to_keep: how many exports stay; None keeps all.
        signature_fn: from examples, features and predictions to signatures.
        default_batch_size: the batch size of the placeholder that there is without an `input_fn`.
    """

    def __init__(
        self,
        every_n_steps: int,
        export_dir: str,
        input_fn: Callable[..., Any] | None = None,
        input_feature_key: str | None = None,
        exports_to_keep: int | None = 5,
        signature_fn: Callable[..., Any] | None = None,
        default_batch_size: int = 1,
    ) -> None:
        super().__init__(every_n_steps=every_n_steps)
        self._export_dir = export_dir
        self._input_fn = input_fn
        self._input_feature_key = input_feature_key
        self._use_deprecated_input_fn = input_fn is None
        self._exports_to_keep = exports_to_keep
        self._signature_fn = signature_fn
        self._default_batch_size = default_batch_size
        self._last_export_dir: Any = None

    @property
    def export_dir(self) -> str:
        """The folder of the exports."""
        return self._export_dir

    @property
    def exports_to_keep(self) -> int | None:
        """How many exports stay."""
        return self._exports_to_keep

    @property
    def signature_fn(self) -> Callable[..., Any] | None:
        """What makes the signatures."""
        return self._signature_fn

    @property
    def last_export_dir(self) -> Any:
        """What the last export returned: its folder; None before the first."""
        return self._last_export_dir

    def every_n_step_end(self, step: int, outputs: Mapping[Any, Any]) -> bool:
        """Exports, unless the latest checkpoint has been exported already."""
        super().every_n_step_end(step, outputs)
        try:
            self._export()
        except RuntimeError:
            # The estimator refuses to export a checkpoint twice.
            tf.logging.info(
                "Skipping exporting because the existing checkpoint has already been exported. "
                "Consider exporting less frequently."
            )
        return False

    def end(self, session: Any = None) -> None:
        """Exports the last checkpoint, if there is one that has not been exported."""
        super().end(session)
        if tf.train.latest_checkpoint(self._estimator.model_dir) is None:
            tf.logging.info("Skipping export at the end since model has not been saved yet.")
            return
        try:
            self._export()
        except RuntimeError:
            tf.logging.info("Skipping exporting for the same step.")

    def _export(self) -> None:
        self._last_export_dir = self._estimator.export(
            self._export_dir,
            exports_to_keep=self._exports_to_keep,
            signature_fn=self._signature_fn,
            input_fn=self._input_fn,
            default_batch_size=self._default_batch_size,
            input_feature_key=self._input_feature_key,
            use_deprecated_input_fn=self._use_deprecated_input_fn,
        )
