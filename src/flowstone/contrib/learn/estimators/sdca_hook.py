"""The hook that ends each step of dual coordinate ascent."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.training.hooks.session_run_hook import SessionRunHook

__all__ = ["SdcaUpdateHook"]


class SdcaUpdateHook(SessionRunHook):
    """Gives the variables their new values after each training step; see `SdcaModel.update_weights`."""

    def set_parameters(self, model: Any, train_op: Any) -> None:
        """The SdcaModel, and the operation of its step; before the session begins."""
        self._model, self._train_op = model, train_op

    def begin(self) -> None:
        self._update_op = self._model.update_weights(self._train_op)

    def before_run(self, run_context: Any) -> Any:
        del run_context
        return tf.train.SessionRunArgs(self._update_op)
