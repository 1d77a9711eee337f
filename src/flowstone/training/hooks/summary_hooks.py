"""Hooks that write what TensorBoard and trace viewers show: summaries, and profiles of steps."""

from __future__ import annotations

import os
from typing import Any

from flowstone.client.timeline import Timeline
from flowstone.framework.process import logging
from flowstone.framework.types.tensor_proto import messages
from flowstone.io.file_system import as_path, write_string_to_file
from flowstone.training.hooks.global_step_reading import required_global_step, step_after
from flowstone.training.hooks.session_log import session_log
from flowstone.training.hooks.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from flowstone.training.hooks.step_timer import SecondOrStepTimer
from flowstone.training.hooks.summary_writer import FileWriterCache

__all__ = ["ProfilerHook", "SummarySaverHook"]


class SummarySaverHook(SessionRunHook):
    """Writes summaries every so often, of the first step too.

    Args:
        save_steps, save_secs: how often; one of both.
        output_dir: the log's folder; `summary_writer`: the log instead.
        scaffold: whose `summary_op` is written. `summary_op`: what is written instead, a string tensor or a
            list of such.

    Raises ValueError unless one of `scaffold` and `summary_op`, and one of the periods, is given; as a hook
    RuntimeError without a global step.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: Any = None,
        summary_writer: Any = None,
        scaffold: Any = None,
        summary_op: Any = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            raise ValueError("Exactly one of scaffold or summary_op must be provided.")
        self._summary_op, self._scaffold = summary_op, scaffold
        self._summary_writer, self._output_dir = summary_writer, output_dir
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)

    def begin(self) -> None:
        """Finds the log and the global step."""
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = FileWriterCache.get(self._output_dir)
        self._next_step: Any = None
        self._global_step_tensor = required_global_step("SummarySaverHook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the global step, and for the summaries if it is time."""
        self._request_summary = self._next_step is None or self._timer.should_trigger_for_step(
            self._next_step
        )
        requests = {"global_step": self._global_step_tensor}
        if self._request_summary and (summaries := self._summaries()) is not None:
            requests["summary"] = summaries
        return SessionRunArgs(requests)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes the summaries."""
        if self._summary_writer is None:
            return
        step = step_after(run_values.results["global_step"], self._next_step)
        if self._next_step is None or self._request_summary:
            step = run_context.session.run(self._global_step_tensor)
        if self._next_step is None:
            self._summary_writer.add_session_log(session_log("START"), step)
        if self._request_summary:
            self._timer.update_last_triggered_step(step)
            for summary in run_values.results.get("summary", ()):
                self._summary_writer.add_summary(summary, step)
        self._next_step = step + 1

    def end(self, session: Any = None) -> None:
        """Hands what was written to the store."""
        if self._summary_writer is not None:
            self._summary_writer.flush()

    def _summaries(self) -> list[Any] | None:
        wanted = self._summary_op if self._summary_op is not None else self._scaffold.summary_op
        if wanted is None:
            return None
        return wanted if isinstance(wanted, list) else [wanted]


class ProfilerHook(SessionRunHook):
    """Traces a step every so often, into files ``timeline-STEP.json`` for trace viewers, and into
    the log.

    Args:
        save_steps, save_secs: how often; one of both, else ValueError.
        output_dir: the folder.
        show_dataflow: arrows follow the tensors. `show_memory`: tensors are objects with their memory.

    RuntimeError without a global step.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: Any = "",
        show_dataflow: bool = True,
        show_memory: bool = False,
    ) -> None:
        self._output_dir = as_path(output_dir)
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._show_dataflow, self._show_memory = show_dataflow, show_memory

    def begin(self) -> None:
        """Finds the log and the global step."""
        self._next_step: Any = None
        self._global_step_tensor = required_global_step("ProfilerHook")
        self._summary_writer = FileWriterCache.get(self._output_dir or ".")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the global step, and for a trace if it is time; never of the first step."""
        self._request_summary = self._next_step is not None and self._timer.should_trigger_for_step(
            self._next_step
        )
        options = None
        if self._request_summary:
            kind = messages("config_pb2").RunOptions
            options = kind(trace_level=kind.FULL_TRACE)
        return SessionRunArgs({"global_step": self._global_step_tensor}, options=options)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes the trace."""
        step = step_after(run_values.results["global_step"], self._next_step)
        if self._next_step is None:
            self._timer.update_last_triggered_step(step - 1)
        if self._request_summary:
            step = run_context.session.run(self._global_step_tensor)
            self._timer.update_last_triggered_step(step)
            self._save(step, run_values.run_metadata)
        self._next_step = step + 1

    def _save(self, step: int, run_metadata: Any) -> None:
        path = os.path.join(self._output_dir, f"timeline-{step}.json")
        logging.info("Saving timeline for %d into '%s'.", step, path)
        trace = Timeline(run_metadata.step_stats).generate_chrome_trace_format(
            show_dataflow=self._show_dataflow, show_memory=self._show_memory
        )
        write_string_to_file(path, trace)
        self._summary_writer.add_run_metadata(run_metadata, f"step_{step}")
