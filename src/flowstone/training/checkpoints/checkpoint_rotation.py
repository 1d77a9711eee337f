"""`tf.train.CheckpointManager`: keeps the last checkpoints of a folder."""

from __future__ import annotations

import os
import time
from typing import Any

from flowstone.framework.tensors.scope import get_default_session
from flowstone.io.file_system import as_path
from flowstone.training.checkpoints.checkpoint_state import (
    get_checkpoint_state,
    remove_checkpoint,
    update_checkpoint_state,
)
from flowstone.training.checkpoints.object_checkpoint import session_or_default

__all__ = ["CheckpointManager"]

_HOUR = 3600.0


class CheckpointManager:
    """Saves a `Checkpoint` in a folder, as ``ckpt-N``, and removes old ones.

    Args:
        checkpoint: the Checkpoint.
        directory: the folder; checkpoints that its state file names count as earlier ones.
        max_to_keep: so many are left; None leaves all.
        keep_checkpoint_every_n_hours: one of so many hours is left besides.
        checkpoint_name: in place of "ckpt".
        step_counter: an integer variable, for `checkpoint_interval`.
        checkpoint_interval: `save` does nothing before so many steps have passed since the last one.
        init_fn: called by `restore_or_initialize` where there is no checkpoint.
        last_checkpoint_step: the step of the last one, for the interval.

    ValueError if `max_to_keep` is not positive, or an interval has no counter.
    """

    def __init__(
        self,
        checkpoint: Any,
        directory: Any,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        init_fn: Any = None,
        last_checkpoint_step: int | None = None,
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}.")
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("`step_counter` should be passed if `checkpoint_interval` is not None.")
        self._checkpoint, self._directory = checkpoint, as_path(directory)
        self._max_to_keep, self._hours = max_to_keep, keep_checkpoint_every_n_hours
        self._name, self._step_counter, self._interval = checkpoint_name, step_counter, checkpoint_interval
        self._init_fn, self._last_step = init_fn, last_checkpoint_step
        self._kept: dict[str, float] = {}  # times by prefix, the oldest first
        self._last_preserved = time.time()
        self.sync()

    def sync(self) -> None:
        """Reads again which checkpoints the folder's state file names."""
        state = get_checkpoint_state(self._directory)
        if state is None:
            return
        paths = list(state.all_model_checkpoint_paths)
        times = list(state.all_model_checkpoint_timestamps) or [time.time()] * len(paths)
        self._kept = dict(zip(paths, times))
        self._last_preserved = state.last_preserved_timestamp or self._last_preserved

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def checkpoint(self) -> Any:
        """The Checkpoint."""
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        """The steps between checkpoints, or None."""
        return self._interval

    @property
    def checkpoints(self) -> list[str]:
        """The prefixes of the checkpoints that are left, the oldest first."""
        return list(self._kept)

    @property
    def latest_checkpoint(self) -> str | None:
        """The prefix of the last one, or None."""
        return self.checkpoints[-1] if self._kept else None

    def save(self, checkpoint_number: Any = None, check_interval: bool = True) -> str | None:
        """Saves in the default session, and removes what is too old.

        `checkpoint_number`: N in place of how often the Checkpoint was saved. Returns the prefix, or None if
        the interval has not passed; `check_interval=False` does not ask.
        """
        session = session_or_default(None)
        step = None if self._interval is None else int(session.run(self._step_counter))
        if check_interval and step is not None and self._last_step is not None:
            if step < self._last_step + (self._interval or 0):
                return None
        number = (
            self._checkpoint._counted(session) if checkpoint_number is None else _number(checkpoint_number)
        )
        path = self._checkpoint.write(os.path.join(self._directory, f"{self._name}-{number}"), session)
        self._kept.pop(path, None)
        self._kept[path] = time.time()
        self._last_step = step
        self._write_state(path)
        self._sweep()
        self._write_state(path)
        return path  # type: ignore[no-any-return]

    def _sweep(self) -> None:
        """Removes the oldest checkpoints but those that the hours preserve."""
        while self._max_to_keep is not None and len(self._kept) > self._max_to_keep:
            path = next(iter(self._kept))
            saved = self._kept.pop(path)
            if self._hours is not None and saved - self._hours * _HOUR >= self._last_preserved:
                self._last_preserved = saved
            else:
                remove_checkpoint(path)

    def _write_state(self, latest: str) -> None:
        update_checkpoint_state(
            self._directory, latest, self.checkpoints, None, list(self._kept.values()), self._last_preserved,
            save_relative_paths=True,
        )  # fmt: skip

    def restore_or_initialize(self) -> str | None:
        """Restores the last checkpoint in the default session, else calls `init_fn`.

        Returns the prefix of what was restored, or None.
        """
        latest = self.latest_checkpoint
        if latest is not None:
            self._checkpoint.restore(latest).initialize_or_restore(get_default_session())
        elif self._init_fn is not None:
            self._init_fn()
        return latest


def _number(value: Any) -> int:
    return int(session_or_default(None).run(value)) if hasattr(value, "op") else int(value)
