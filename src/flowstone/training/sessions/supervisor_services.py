"""The threads of a `Supervisor`: they save checkpoints and write summaries while the program trains."""

from __future__ import annotations

import time
from typing import Any

from flowstone.framework.process import logging
from flowstone.framework.types.tensor_proto import messages
from flowstone.training.hooks.global_step import global_step
from flowstone.training.hooks.session_log import session_log
from flowstone.training.input.coordinator import LooperThread

__all__ = ["CheckpointThread", "StepCounterThread", "SummaryThread"]


class _Service(LooperThread):
    """A thread that calls `run_loop` every so many seconds, until the supervisor stops."""

    def __init__(self, supervisor: Any, session: Any, interval_secs: float) -> None:
        super().__init__(supervisor.coord, interval_secs)
        self._supervisor, self._session = supervisor, session


class SummaryThread(_Service):
    """Writes the supervisor's summaries."""

    def run_loop(self) -> None:
        """Computes and writes them."""
        supervisor = self._supervisor
        if supervisor.global_step is None:
            summary, step = self._session.run(supervisor.summary_op), None
        else:
            summary, step = self._session.run([supervisor.summary_op, supervisor.global_step])
        if supervisor.summary_writer is not None:
            logging.info("Recording summary at step %s.", step)
            supervisor.summary_writer.add_summary(summary, step)


class StepCounterThread(_Service):
    """Writes the steps a second, as ``global_step/sec``."""

    def start_loop(self) -> None:
        """Begins to count."""
        self._last_time = time.monotonic()
        self._last_step = global_step(self._session, self._supervisor.global_step)

    def run_loop(self) -> None:
        """Writes the rate since the last call."""
        supervisor, now = self._supervisor, time.monotonic()
        step = global_step(self._session, supervisor.global_step)
        seconds, steps = now - self._last_time, step - self._last_step
        self._last_time, self._last_step = now, step
        rate = steps / seconds if seconds else float("inf")
        protos = messages("summary_pb2")
        tag = f"{supervisor.global_step.op.name}/sec"
        if supervisor.summary_writer is not None:
            value = protos.Summary.Value(tag=tag, simple_value=rate)
            supervisor.summary_writer.add_summary(protos.Summary(value=[value]), step)
        logging.info("%s: %g", tag, rate)


class CheckpointThread(_Service):
    """Saves checkpoints."""

    def run_loop(self) -> None:
        """Saves one."""
        supervisor = self._supervisor
        logging.info("Saving checkpoint to path %s", supervisor.save_path)
        supervisor.saver.save(self._session, supervisor.save_path, global_step=supervisor.global_step)
        if supervisor.summary_writer is not None and supervisor.global_step is not None:
            step = global_step(self._session, supervisor.global_step)
            supervisor.summary_writer.add_session_log(session_log("CHECKPOINT", supervisor.save_path), step)
