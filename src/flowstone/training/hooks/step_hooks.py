"""Hooks that look at the global step: to stop at one, to begin at one, and to tell how fast it grows."""

from __future__ import annotations

import time
from typing import Any

from flowstone.framework.process import logging
from flowstone.framework.types.tensor_proto import messages
from flowstone.training.hooks.global_step_reading import required_global_step
from flowstone.training.hooks.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from flowstone.training.hooks.step_timer import SecondOrStepTimer
from flowstone.training.hooks.summary_writer import FileWriterCache

__all__ = ["GlobalStepWaiterHook", "StepCounterHook", "StopAtStepHook"]

_POLL_S = 0.5  # how often a waiting worker looks at the global step
_STEPS_A_MESSAGE = 1000
_STUCK_WARNINGS = 5


class StopAtStepHook(SessionRunHook):
    """Asks to stop after `num_steps` further steps, or at the global step `last_step`.

    Raises ValueError unless one of both is given; as a hook RuntimeError without a global step.
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if num_steps is None and last_step is None:
            raise ValueError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise ValueError("Only one of num_steps or last_step can be specified.")
        self._num_steps, self._last_step = num_steps, last_step

    def begin(self) -> None:
        """Finds the global step."""
        self._global_step_tensor = required_global_step("StopAtStepHook")

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Counts `num_steps` from the first session's global step."""
        if self._last_step is None and self._num_steps is not None:
            self._last_step = session.run(self._global_step_tensor) + self._num_steps

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the global step."""
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Asks to stop if the last step is reached."""
        if run_values.results + 1 < self._last_step:
            return
        # The value may be the one before the step, or after it: what counts is what it is now.
        if run_context.session.run(self._global_step_tensor) >= self._last_step:
            run_context.request_stop()


class GlobalStepWaiterHook(SessionRunHook):
    """Delays the first step until the global step is at least `wait_until_step`.

    Workers that begin one after the other train more steadily than workers that begin together. RuntimeError
    without a global step.
    """

    def __init__(self, wait_until_step: int) -> None:
        self._wait_until_step, self._is_started = wait_until_step, False

    def begin(self) -> None:
        """Finds the global step."""
        self._global_step_tensor = required_global_step("_GlobalStepWaiterHook")

    def before_run(self, run_context: SessionRunContext) -> None:
        """Waits, before the first step."""
        if self._is_started:
            return
        if self._wait_until_step > 0:
            self._wait(run_context.session)
        self._is_started = True

    def _wait(self, session: Any) -> None:
        logging.info("Waiting for global step %d before starting training.", self._wait_until_step)
        told = 0
        while (step := session.run(self._global_step_tensor)) < self._wait_until_step:
            if step - told > _STEPS_A_MESSAGE:
                logging.info(
                    "Waiting for global step %d before starting training. Current step is %d.",
                    self._wait_until_step,
                    step,
                )
                told = step
            time.sleep(_POLL_S)


class StepCounterHook(SessionRunHook):
    """Logs the steps a second, and writes them as a summary ``global_step/sec``.

    Args:
        every_n_steps, every_n_secs: how often; one of both, else ValueError.
        output_dir: the log's folder; `summary_writer`: the log instead. None of both: no summary.

    RuntimeError without a global step.
    """

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: Any = None,
        summary_writer: Any = None,
    ) -> None:
        if (every_n_steps is None) == (every_n_secs is None):
            raise ValueError("exactly one of every_n_steps and every_n_secs should be provided.")
        self._timer = SecondOrStepTimer(every_steps=every_n_steps, every_secs=every_n_secs)
        self._summary_writer, self._output_dir = summary_writer, output_dir
        self._last_global_step: Any = None
        self._steps_per_run, self._warnings = 1, 0

    def _set_steps_per_run(self, steps_per_run: int) -> None:
        self._steps_per_run = steps_per_run

    def begin(self) -> None:
        """Finds the log and the global step."""
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = FileWriterCache.get(self._output_dir)
        self._global_step_tensor = required_global_step("StepCounterHook")
        self._summary_tag = self._global_step_tensor.op.name + "/sec"

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the global step."""
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Logs the rate if it is time."""
        stale = run_values.results
        if self._timer.should_trigger_for_step(stale + self._steps_per_run):
            step = run_context.session.run(self._global_step_tensor)
            if self._timer.should_trigger_for_step(step):
                seconds, steps = self._timer.update_last_triggered_step(step)
                if seconds is not None and steps is not None:
                    self._log_and_record(steps, seconds, step)
        self._warn_if_stuck(stale)

    def _log_and_record(self, elapsed_steps: int, elapsed_time: float, global_step: int) -> None:
        rate = elapsed_steps / elapsed_time
        if self._summary_writer is not None:
            value = messages("summary_pb2").Summary.Value(tag=self._summary_tag, simple_value=rate)
            self._summary_writer.add_summary(messages("summary_pb2").Summary(value=[value]), global_step)
        logging.info("%s: %g", self._summary_tag, rate)

    def _warn_if_stuck(self, stale: Any) -> None:
        if self._warnings < _STUCK_WARNINGS and self._last_global_step == stale:
            self._warnings += 1
            logging.warning(
                "The global step (tf.train.get_global_step) is still %s: two consecutive runs did not "
                "increase it. Does an optimizer or an assign_add increment it?",
                stale,
            )
        self._last_global_step = stale
