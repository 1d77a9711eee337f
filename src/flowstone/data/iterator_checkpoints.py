"""Positions of iterators in checkpoints: `make_saveable_from_iterator` and `CheckpointInputPipelineHook`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from flowstone.data.iterator import ITERATORS, Iterator
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.checkpoints.saveable_object import SaveableObject, SaveSpec
from flowstone.training.checkpoints.checkpoint_state import latest_checkpoint
from flowstone.training.checkpoints.saver import Saver
from flowstone.training.hooks.checkpoint_hook import CheckpointSaverHook
from flowstone.training.hooks.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)

__all__ = ["CheckpointInputPipelineHook", "make_saveable_from_iterator"]

_LATEST = "checkpoint_input"


class IteratorSaveable(SaveableObject):
    """An iterator, by its resource."""

    def __init__(self, resource: Tensor) -> None:
        state = F.SerializeIterator(resource)
        super().__init__(
            resource, [SaveSpec(state, "", f"{resource.name}-state", dtypes.variant)], resource.name
        )

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Any] | None) -> Any:
        """Has the iterator go on there."""
        with get_default_graph().colocate_with(self.op):
            return F.DeserializeIterator.operation(self.op, restored_tensors[0])


def make_saveable_from_iterator(iterator: Iterator) -> SaveableObject:
    """What a Saver saves of an iterator: where its pass is, with what is buffered and drawn.

    Put it into the collection SAVEABLE_OBJECTS, or give it to `tf.train.Saver`. An iterator of an equal
    dataset, which must be initialised, goes on there once it is restored. A checkpoint that lacks it gives
    NotFoundError, one that is damaged DataLossError.
    """
    return IteratorSaveable(iterator._iterator_resource)


class CheckpointInputPipelineHook(SessionRunHook):
    """Saves and restores the iterators of an Estimator's input, as often as the Estimator saves the model.

    The checkpoints are `input.ckpt-STEP` in the Estimator's folder. Training that is resumed goes on with the
    elements after the last checkpoint of the input.

    Args:
        estimator: the Estimator, whose `config` says where and how often.

    Raises ValueError if the graph has no iterator.
    """

    def __init__(self, estimator: Any) -> None:
        config = estimator.config
        prefix = "" if config.is_chief else f"{config.task_type}_{config.task_id}_"
        self._saver = _InputSaver(prefix)
        self._folder = estimator.model_dir
        self._hook = CheckpointSaverHook(
            self._folder,
            save_secs=config.save_checkpoints_secs,
            save_steps=config.save_checkpoints_steps,
            saver=self._saver,
            checkpoint_basename=f"{prefix}input.ckpt",
        )
        self._is_new = True

    def begin(self) -> None:
        """Finds the iterators of the graph, and the global step."""
        self._saver.make()
        self._is_new = True
        self._hook.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Waits for the first step: other hooks initialise iterators here."""
        self._is_new = True

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Before the first step, restores the iterators, or saves them for the first time."""
        if self._is_new:
            self._is_new = False
            last = latest_checkpoint(self._folder, self._saver.latest)
            if last:
                self._saver.restore(run_context.session, last)
            else:
                step = run_context.session.run(self._hook._global_step_tensor)
                self._hook._save(run_context.session, step)
                self._hook._timer.update_last_triggered_step(step)
        return self._hook.before_run(run_context)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Saves the iterators if it is time."""
        self._hook.after_run(run_context, run_values)

    def end(self, session: Any) -> None:
        """Saves them for the last time."""
        self._hook.end(session)


class _InputSaver:
    """The Saver of a graph's iterators, whose last checkpoint is noted in a file of its own."""

    def __init__(self, prefix: str) -> None:
        self.latest = f"{_LATEST}_{prefix.rstrip('_')}" if prefix else _LATEST
        self.saver_def = None

    def make(self) -> None:
        """Makes the Saver of the default graph."""
        resources = get_default_graph().get_collection(ITERATORS)
        if not resources:
            raise ValueError("CheckpointInputPipelineHook: the input pipeline has no iterator of tf.data")
        self._saver = Saver([IteratorSaveable(resource) for resource in resources], sharded=True)

    def save(self, session: Any, path: str, global_step: Any) -> Any:
        """Saves the iterators."""
        return self._saver.save(
            session, path, global_step, latest_filename=self.latest, write_meta_graph=True
        )

    def restore(self, session: Any, path: str) -> None:
        """Restores them."""
        self._saver.restore(session, os.fspath(path))
