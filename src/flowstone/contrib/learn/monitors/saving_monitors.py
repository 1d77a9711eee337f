"""Monitors that write: summaries, the number of steps a second, checkpoints."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.learn.monitors.base_monitor import BaseMonitor, EveryN, _extract_output
from flowstone.contrib.learn.monitors.tensor_monitors import PrintTensor
from flowstone.contrib.learn.summary_writer_cache import SummaryWriterCache

__all__ = ["CheckpointSaver", "StepCounter", "SummarySaver", "get_default_monitors"]


class _WritingMonitor(EveryN):
    """A monitor with a writer of events: the one given, or one for `output_dir` or the model's folder."""

    def __init__(self, every_n_steps: int, output_dir: str | None, summary_writer: Any) -> None:
        super().__init__(every_n_steps=every_n_steps)
        self._summary_writer = summary_writer
        if summary_writer is None and output_dir:
            self._summary_writer = SummaryWriterCache.get(output_dir)

    def set_estimator(self, estimator: Any) -> None:
        """Takes a writer for the estimator's folder, if the monitor has none."""
        super().set_estimator(estimator)
        if self._summary_writer is None:
            self._summary_writer = SummaryWriterCache.get(estimator.model_dir)


class SummarySaver(_WritingMonitor):
    """Writes a summary to a file of events.

    Args:
        summary_op: the string tensor that is the summary; None takes the scaffold's.
        save_steps: how many steps lie between two whose summaries are written.
        output_dir: where to write, if there is no `summary_writer`.
        summary_writer: what writes. Without both, it is a writer for the estimator's folder.
        scaffold: has a summary, if `summary_op` is None.
    """

    def __init__(
        self,
        summary_op: Any,
        save_steps: int = 100,
        output_dir: str | None = None,
        summary_writer: Any = None,
        scaffold: Any = None,
    ) -> None:
        super().__init__(save_steps, output_dir, summary_writer)
        self._summary_op = summary_op
        self._scaffold = scaffold

    def every_n_step_begin(self, step: int) -> list[Any]:
        """Asks for the summary."""
        super().every_n_step_begin(step)
        if self._summary_op is None and self._scaffold is not None:
            self._summary_op = self._scaffold.summary_op
        return [] if self._summary_op is None else [self._summary_op]

    def every_n_step_end(self, step: int, outputs: Mapping[Any, Any]) -> bool:
        """Writes the summary."""
        super().every_n_step_end(step, outputs)
        if self._summary_op is not None:
            summary = _extract_output(outputs, self._summary_op)
            if self._summary_writer is not None:
                self._summary_writer.add_summary(summary, step)
        return False

    def end(self, session: Any = None) -> None:
        """Has everything written."""
        super().end(session)
        if self._summary_writer is not None:
            self._summary_writer.flush()


class StepCounter(_WritingMonitor):
    """Writes how many steps there were a second, as the summary `global_step/sec`.

    The arguments are `SummarySaver`'s.
    """

    def __init__(
        self, every_n_steps: int = 100, output_dir: str | None = None, summary_writer: Any = None
    ) -> None:
        super().__init__(every_n_steps, output_dir, summary_writer)
        self._summary_tag = "global_step/sec"
        self._last_reported_step: int | None = None
        self._last_reported_time = 0.0

    def every_n_step_end(self, current_step: int, outputs: Mapping[Any, Any]) -> bool:
        """Writes the rate since the last time."""
        now = time.time()
        if self._last_reported_step is not None and self._summary_writer is not None:
            rate = (current_step - self._last_reported_step) / max(now - self._last_reported_time, 1e-9)
            value = tf.Summary.Value(tag=self._summary_tag, simple_value=rate)
            self._summary_writer.add_summary(tf.Summary(value=[value]), current_step)
        self._last_reported_step = current_step
        self._last_reported_time = now
        return False


class CheckpointSaver(BaseMonitor):
    """Saves checkpoints: after the first step, then every so many steps or seconds, and when training ends.

    Args:
        checkpoint_dir: the folder.
        save_secs: the seconds between two checkpoints.
        save_steps: the steps between two checkpoints.
        saver: what saves; None takes the scaffold's.
        checkpoint_basename: how the files' names begin.
        scaffold: has a saver, if `saver` is None.

    Raises ValueError unless exactly one of `save_secs` and `save_steps` is given.
    """

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
    ) -> None:
        super().__init__()
        if save_secs is None and save_steps is None:
            raise ValueError("Either save_steps or save_secs should be provided")
        if save_secs is not None and save_steps is not None:
            raise ValueError("Can not provide both save_steps and save_secs.")
        self._saver = saver
        self._scaffold = scaffold
        self._summary_writer = SummaryWriterCache.get(checkpoint_dir)
        self._save_path = os.path.join(checkpoint_dir, checkpoint_basename)
        self._save_secs = save_secs
        self._save_steps = save_steps
        self._forget()

    def _forget(self) -> None:
        self._last_saved_time = 0.0
        self._last_saved_step: int | None = None
        self._last_begin_step: int | None = None

    def begin(self, max_steps: int | None = None) -> None:
        """Forgets what was saved in an earlier training."""
        super().begin(max_steps)
        self._forget()

    def step_begin(self, step: int) -> list[Any]:
        """Asks for nothing."""
        super().step_begin(step)
        self._last_begin_step = step
        return []

    def post_step(self, step: int, session: Any) -> None:
        """Saves, if it is time. Raises ValueError without a saver."""
        super().post_step(step, session)
        if self._is_time(step):
            self._save(step, session)

    def _is_time(self, step: int) -> bool:
        if self._last_saved_step is None:
            return True
        if self._save_steps is not None:
            return step >= self._last_saved_step + self._save_steps
        assert self._save_secs is not None
        return time.time() >= self._last_saved_time + self._save_secs

    def end(self, session: Any = None) -> None:
        """Saves the last step."""
        super().end(session)
        if self._last_begin_step is not None:
            self._save(self._last_begin_step, session)

    def _save(self, step: int, session: Any) -> None:
        if step == self._last_saved_step:
            return
        saver = self._saver if self._saver is not None else getattr(self._scaffold, "saver", None)
        if saver is None:
            raise ValueError("CheckpointSaver has neither a saver nor a scaffold that has one.")
        tf.logging.info("Saving checkpoints for %d into %s.", step, self._save_path)
        self._last_saved_time = time.time()
        self._last_saved_step = step
        saver.save(session, self._save_path, global_step=step)
        log = tf.SessionLog(status=tf.SessionLog.CHECKPOINT, checkpoint_path=self._save_path)
        self._summary_writer.add_session_log(log, step)


def get_default_monitors(
    loss_op: Any = None,
    summary_op: Any = None,
    save_summary_steps: int = 100,
    output_dir: str | None = None,
    summary_writer: Any = None,
) -> list[EveryN]:
    """A monitor that logs the loss, if there is one, and one that writes the summary, if there is one."""
    monitors: list[EveryN] = []
    if loss_op is not None:
        monitors.append(PrintTensor({"loss": loss_op.name}))
    if summary_op is not None:
        monitors.append(SummarySaver(summary_op, save_summary_steps, output_dir, summary_writer))
    return monitors
