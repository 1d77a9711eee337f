"""`CheckpointSaverHook`: saves a checkpoint when a session begins, every so often, and at the end."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.process import logging
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.io.file_system import as_path
from flowstone.training.checkpoints.meta_graph import create_meta_graph_def, write_graph
from flowstone.training.hooks.global_step_reading import required_global_step
from flowstone.training.hooks.session_log import session_log
from flowstone.training.hooks.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from flowstone.training.hooks.step_timer import SecondOrStepTimer
from flowstone.training.hooks.summary_writer import FileWriterCache

__all__ = ["CheckpointSaverHook", "CheckpointSaverListener"]


class CheckpointSaverListener:
    """Base class of what is told of a `CheckpointSaverHook`'s checkpoints: each method does nothing."""

    def begin(self) -> None:
        """Called once before the first session is made; the graph may still be changed."""

    def before_save(self, session: Any, global_step_value: int) -> None:
        """Called before each checkpoint."""

    def after_save(self, session: Any, global_step_value: int) -> Any:
        """Called after each checkpoint; if it returns true, the training stops."""

    def end(self, session: Any, global_step_value: int) -> None:
        """Called at the end, after the last checkpoint."""


class CheckpointSaverHook(SessionRunHook):
    """Saves checkpoints.

    Args:
        checkpoint_dir: the folder.
        save_secs, save_steps: how often; one of both.
        saver: what saves. `scaffold`: whose saver it is otherwise. None of both: the one in the collection
            SAVERS.
        checkpoint_basename: the files' name, to which the step is added.
        listeners: CheckpointSaverListeners.

    Raises ValueError for both saver and scaffold and for other than one of `save_secs` and `save_steps`; as a
    hook RuntimeError without a global step and unless there is one saver.
    """

    def __init__(
        self,
        checkpoint_dir: Any,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Iterable[CheckpointSaverListener] | None = None,
    ) -> None:
        if saver is not None and scaffold is not None:
            raise ValueError("You cannot provide both saver and scaffold.")
        logging.info("Create CheckpointSaverHook.")
        self._checkpoint_dir = as_path(checkpoint_dir)
        self._save_path = os.path.join(self._checkpoint_dir, checkpoint_basename)
        self._saver, self._scaffold = saver, scaffold
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._listeners = list(listeners or ())
        self._steps_per_run = 1

    def _set_steps_per_run(self, steps_per_run: int) -> None:
        self._steps_per_run = steps_per_run

    def begin(self) -> None:
        """Finds the log and the global step."""
        self._summary_writer = FileWriterCache.get(self._checkpoint_dir)
        self._global_step_tensor = required_global_step("CheckpointSaverHook")
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Writes the graph, as ``graph.pbtxt`` and to the log, and saves a checkpoint."""
        step = session.run(self._global_step_tensor)
        graph = get_default_graph()
        definition = graph.as_graph_def(add_shapes=True)
        write_graph(definition, self._checkpoint_dir, "graph.pbtxt")
        saver = self._get_saver()
        meta = create_meta_graph_def(graph_def=definition, saver_def=saver.saver_def if saver else None)
        self._summary_writer.add_graph(graph)
        self._summary_writer.add_meta_graph(meta)
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the global step."""
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Saves a checkpoint if it is time."""
        if not self._timer.should_trigger_for_step(run_values.results + self._steps_per_run):
            return
        step = run_context.session.run(self._global_step_tensor)  # what the step made of it
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._save(run_context.session, step):
                run_context.request_stop()

    def end(self, session: Any) -> None:
        """Saves the last checkpoint, unless this step's is saved already."""
        step = session.run(self._global_step_tensor)
        if step != self._timer.last_triggered_step():
            self._save(session, step)
        for listener in self._listeners:
            listener.end(session, step)

    def _save(self, session: Any, step: int) -> bool:
        """Saves a checkpoint; returns whether a listener wants to stop."""
        logging.info("Saving checkpoints for %d into %s.", step, self._save_path)
        for listener in self._listeners:
            listener.before_save(session, step)
        self._get_saver().save(session, self._save_path, global_step=step)
        self._summary_writer.add_session_log(session_log("CHECKPOINT", self._save_path), step)
        wanted = [listener.after_save(session, step) for listener in self._listeners]
        if any(wanted):
            logging.info("A CheckpointSaverListener requested that training be stopped.")
        return any(wanted)

    def _get_saver(self) -> Any:
        if self._saver is not None:
            return self._saver
        if self._scaffold is not None:
            return self._scaffold.saver
        key = GraphKeys.SAVERS
        savers = get_default_graph().get_collection(key)
        if not savers:
            raise RuntimeError(
                f"No items in collection {key}. Please add a saver to the collection or provide a saver or "
                "scaffold."
            )
        if len(savers) > 1:
            raise RuntimeError(
                f"More than one item in collection {key}. Please indicate which one to use by passing it to "
                "the constructor."
            )
        self._saver = savers[0]
        return self._saver
