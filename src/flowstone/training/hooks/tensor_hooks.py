"""Hooks that look at tensors: to log them, to stop at a loss that is no number, to compute some at the end.
And one that feeds some."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from flowstone.framework import errors
from flowstone.framework.process import logging
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.training.hooks.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from flowstone.training.hooks.step_timer import SecondOrStepTimer

__all__ = ["FeedFnHook", "FinalOpsHook", "LoggingTensorHook", "NanLossDuringTrainingError", "NanTensorHook"]


class LoggingTensorHook(SessionRunHook):
    """Logs the values of tensors every so often, or at the end.

    Args:
        tensors: tensors or names, in a list or by the tags they are logged under.
        every_n_iter, every_n_secs: how often, in calls of `run` or in seconds; not both.
        at_end: whether they are also logged at the end.
        formatter: a function of the values by tag, that returns what is logged.

    Raises ValueError if it would never log, or both periods are given, or `every_n_iter` is not positive.
    """

    def __init__(
        self,
        tensors: Any,
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[dict[Any, Any]], str] | None = None,
    ) -> None:
        has_no_period = every_n_iter is None and every_n_secs is None
        if (has_no_period and not at_end) or (every_n_iter is not None and every_n_secs is not None):
            raise ValueError(
                "either at_end and/or exactly one of every_n_iter and every_n_secs must be provided."
            )
        if every_n_iter is not None and every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        self._tensors = tensors if isinstance(tensors, Mapping) else {item: item for item in tensors}
        self._tag_order = None if isinstance(tensors, Mapping) else list(tensors)
        self._timer = (
            None if has_no_period else SecondOrStepTimer(every_secs=every_n_secs, every_steps=every_n_iter)
        )
        self._formatter, self._log_at_end = formatter, at_end
        self._should_log, self._iter_count, self._last_iter_count = False, 0, 0

    def begin(self) -> None:
        """Finds the tensors."""
        if self._timer is not None:
            self._timer.reset()
        self._iter_count = 0
        graph = get_default_graph()
        self._current_tensors = {tag: graph.as_graph_element(tensor) for tag, tensor in self._tensors.items()}

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Asks for the tensors if it is time to log them."""
        self._should_log = self._timer is not None and self._timer.should_trigger_for_step(self._iter_count)
        return SessionRunArgs(self._current_tensors) if self._should_log else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Logs them."""
        if self._should_log:
            self._log_tensors(run_values.results)
        self._iter_count += 1

    def end(self, session: Any) -> None:
        """Logs them once more if that is wanted."""
        if self._log_at_end:
            self._log_tensors(session.run(self._current_tensors))

    def _log_tensors(self, values: dict[Any, Any]) -> None:
        seconds = None
        if self._timer is not None:
            seconds, _ = self._timer.update_last_triggered_step(self._iter_count)
        if self._formatter is not None:
            logging.info(self._formatter(values))
            return
        tags = self._tag_order or sorted(self._tensors)
        with np.printoptions(suppress=True):
            text = ", ".join(f"{tag} = {values[tag]!s}" for tag in tags)
        logging.info(text if seconds is None else f"{text} ({seconds:.3f} sec)")


class NanLossDuringTrainingError(RuntimeError):
    """The loss is not a number."""

    @property
    def message(self) -> str:
        """The text of the error, as Python 2 named it."""
        return str(self)

    def __str__(self) -> str:
        return "NaN loss during training."


class NanTensorHook(SessionRunHook):
    """Looks at the loss after each step. If it is NaN, it raises NanLossDuringTrainingError, or stops.

    `fail_on_nan_loss`: whether it raises.
    """

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        self._loss_tensor, self._fail_on_nan_loss = loss_tensor, fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the loss."""
        return SessionRunArgs(self._loss_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Looks at it."""
        if not np.isnan(run_values.results):
            return
        message = "Model diverged with loss = NaN."
        if self._fail_on_nan_loss:
            logging.error(message)
            raise NanLossDuringTrainingError
        logging.warning(message)
        run_context.request_stop()


class FinalOpsHook(SessionRunHook):
    """Computes `final_ops` (as fetches of `Session.run`) at the end.

    `final_ops_feed_dict`: what it feeds for that.
    """

    def __init__(self, final_ops: Any, final_ops_feed_dict: Any = None) -> None:
        self._final_ops, self._final_ops_feed_dict = final_ops, final_ops_feed_dict
        self._final_ops_values: Any = None

    @property
    def final_ops_values(self) -> Any:
        """The values; None until the end."""
        return self._final_ops_values

    def end(self, session: Any) -> None:
        """Computes them."""
        if self._final_ops is None:
            return
        try:
            self._final_ops_values = session.run(self._final_ops, feed_dict=self._final_ops_feed_dict)
        except (errors.OutOfRangeError, StopIteration) as error:
            logging.warning("The final ops depend on an input that is used up: %s", error)
            raise


class FeedFnHook(SessionRunHook):
    """Feeds each step with what `feed_fn()` returns, values by tensor."""

    def __init__(self, feed_fn: Callable[[], Any]) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Calls the function."""
        return SessionRunArgs(fetches=None, feed_dict=self.feed_fn())
