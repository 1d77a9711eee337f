"""`SessionManager`: makes a session and brings its variables to where the training begins.

The chief's `prepare_session` restores the latest checkpoint, or runs the initialiser, then the local
initialiser. `recover_session` only restores. The other workers' `wait_for_session` waits until the chief has
done so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from flowstone.client.session import Session
from flowstone.framework import errors
from flowstone.framework.process import logging
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.training.checkpoints.checkpoint_state import get_checkpoint_state

__all__ = ["SessionManager"]

_FIRST_PAUSE_S = 0.1


class SessionManager:
    """Makes sessions whose variables are initialised or restored.

    Args:
        local_init_op: what each session runs once its other variables are there.
        ready_op: a string vector with the names of what is not initialised; None: always ready.
        ready_for_local_init_op: likewise, of what `local_init_op` needs.
        graph: the graph; the default graph if None.
        recovery_wait_secs: how often a waiting session looks again, at the least; at first it looks more
        often. local_init_run_options: the RunOptions of `local_init_op`; `local_init_feed_dict`: what it is
        fed.

    ValueError for a `ready_for_local_init_op` without `local_init_op`.
    """

    def __init__(
        self,
        local_init_op: Any = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        graph: Any = None,
        recovery_wait_secs: float = 30,
        local_init_run_options: Any = None,
        local_init_feed_dict: Any = None,
    ) -> None:
        self._graph = get_default_graph() if graph is None else graph
        self._local_init_op, self._ready_op = local_init_op, ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._recovery_wait_secs = recovery_wait_secs
        self._local_init_run_options = local_init_run_options
        self._local_init_feed_dict = local_init_feed_dict
        self._target = ""
        if ready_for_local_init_op is not None and local_init_op is None:
            raise ValueError(
                "If you pass a ready_for_local_init_op you must also pass a local_init_op , "
                f"ready_for_local_init_op [{ready_for_local_init_op}]"
            )

    def prepare_session(
        self,
        master: str,
        init_op: Any = None,
        saver: Any = None,
        checkpoint_dir: Any = None,
        checkpoint_filename_with_path: Any = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
        init_feed_dict: Any = None,
        init_fn: Callable[[Any], Any] | None = None,
    ) -> Any:
        """A session that is ready: its variables are those of a checkpoint, or initialised.

        Args:
            master: the session's target; `config`: its ConfigProto.
            init_op, init_feed_dict, init_fn: run without a checkpoint.
            saver: restores; `checkpoint_dir` (its latest) or `checkpoint_filename_with_path`: what.
            wait_for_checkpoint: waits for one in the folder, at most `max_wait_secs`.

        Raises RuntimeError if there is neither checkpoint nor initialiser, or the model is not ready after
        it; ValueError for both places of a checkpoint.
        """
        session, is_loaded = self._restore_checkpoint(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint, max_wait_secs,
            config,
        )  # fmt: skip
        if not is_loaded:
            if init_op is None and not init_fn and self._local_init_op is None:
                raise RuntimeError(
                    "Model is not initialized and no init_op or init_fn or local_init_op was given"
                )
            if init_op is not None:
                session.run(init_op, feed_dict=init_feed_dict)
            if init_fn:
                init_fn(session)
        lacking = self._try_local_init(session)
        described = f"Init op: {getattr(init_op, 'name', init_op)}, init fn: {init_fn}"
        if lacking is not None:
            raise RuntimeError(
                f"Init operations did not make model ready for local_init.  {described}, error: {lacking}"
            )
        lacking = _lacking(session, self._ready_op, "Model not ready")
        if lacking is not None:
            local = getattr(self._local_init_op, "name", self._local_init_op)
            raise RuntimeError(
                "Init operations did not make model ready.  "
                f"{described}, local_init_op: {local}, error: {lacking}"
            )
        return session

    def recover_session(
        self,
        master: str,
        saver: Any = None,
        checkpoint_dir: Any = None,
        checkpoint_filename_with_path: Any = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
    ) -> tuple[Any, bool]:
        """A session, and whether a checkpoint made it ready; see `prepare_session`."""
        session, is_loaded = self._restore_checkpoint(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint, max_wait_secs,
            config,
        )  # fmt: skip
        lacking = self._try_local_init(session)
        if not is_loaded:
            return session, False
        what = "Restoring model from {} did not make model ready: {}"
        if lacking is not None:
            what = "Restoring model from {} did not make model ready for local init: {}"
        else:
            lacking = _lacking(session, self._ready_op, "Model not ready")
        if lacking is not None:
            logging.info(what.format(checkpoint_dir or checkpoint_filename_with_path, lacking))
            return session, False
        logging.info("Restored model from %s", checkpoint_dir or checkpoint_filename_with_path)
        return session, True

    def wait_for_session(
        self, master: str, config: Any = None, max_wait_secs: float | None = float("Inf")
    ) -> Any:
        """A session whose variables another process has initialised; waits for that.

        DeadlineExceededError after `max_wait_secs` seconds.
        """
        deadline = time.monotonic() + (float("Inf") if max_wait_secs is None else max_wait_secs)
        for pause in self._pauses():
            session = Session(master, graph=self._graph, config=config)
            lacking = self._try_local_init(session)
            if lacking is None:
                lacking = _lacking(session, self._ready_op, "Model not ready")
            if lacking is None:
                return session
            session.close()
            if time.monotonic() + pause > deadline:
                raise errors.DeadlineExceededError(
                    None, None, f"Session was not ready after waiting {max_wait_secs} secs."
                )
            logging.info("Waiting for model to be ready: %s", lacking)
            time.sleep(pause)
        raise AssertionError("the pauses do not end")

    def _pauses(self) -> Iterator[float]:
        """How long to wait before looking again: longer each time, up to `recovery_wait_secs`."""
        pause = _FIRST_PAUSE_S
        while True:
            yield min(pause, self._recovery_wait_secs)
            pause *= 2

    def _restore_checkpoint(
        self,
        master: str,
        saver: Any,
        checkpoint_dir: Any,
        checkpoint_filename_with_path: Any,
        wait_for_checkpoint: bool,
        max_wait_secs: float,
        config: Any,
    ) -> tuple[Any, bool]:
        """A session, and whether a checkpoint was restored in it."""
        self._target = master
        session = Session(master, graph=self._graph, config=config)
        if checkpoint_dir and checkpoint_filename_with_path:
            raise ValueError("Can not provide both checkpoint_dir and checkpoint_filename_with_path.")
        if not saver or not (checkpoint_dir or checkpoint_filename_with_path):
            return session, False
        if checkpoint_filename_with_path:
            saver.restore(session, checkpoint_filename_with_path)
            return session, True
        deadline = time.monotonic() + max_wait_secs
        state, pauses = get_checkpoint_state(checkpoint_dir), self._pauses()
        while not state or not state.model_checkpoint_path:
            if not wait_for_checkpoint or time.monotonic() >= deadline:
                return session, False
            logging.info("Waiting for checkpoint to be available.")
            time.sleep(next(pauses))
            state = get_checkpoint_state(checkpoint_dir)
        saver.restore(session, state.model_checkpoint_path)
        saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
        return session, True

    def _try_local_init(self, session: Any) -> str | None:
        """Runs the local initialiser if the model is ready for it; returns what it lacks otherwise."""
        if self._local_init_op is None:
            return None
        lacking = _lacking(session, self._ready_for_local_init_op, "Model not ready for local init")
        if lacking is None:
            logging.info("Running local_init_op.")
            session.run(
                self._local_init_op, feed_dict=self._local_init_feed_dict,
                options=self._local_init_run_options,
            )  # fmt: skip
            logging.info("Done running local_init_op.")
        return lacking


def _lacking(session: Any, ready_op: Any, message: str) -> str | None:
    """What a ready operation says is not initialised, None if nothing."""
    if ready_op is None:
        return None
    try:
        value = session.run(ready_op)
    except errors.FailedPreconditionError as error:
        if "uninitialized" not in str(error).lower():
            logging.warning("%s : error [%s]", message, error)
            raise
        return str(error)
    if value is None or np.size(value) == 0 or np.asarray(value).dtype == np.int32:
        return None
    names = ", ".join(item.decode() if isinstance(item, bytes) else str(item) for item in np.ravel(value))
    return f"Variables not initialized: {names}"
