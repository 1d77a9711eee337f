"""`SecondOrStepTimer`: decides at which steps something happens that happens every so often."""

from __future__ import annotations

import time

__all__ = ["SecondOrStepTimer"]


class SecondOrStepTimer:
    """Triggers at the first step that it is asked about, then every so many seconds or steps.

    `every_secs`, `every_steps`: one of both; else ValueError.
    """

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        if every_secs is None and every_steps is None:
            raise ValueError("Either every_secs or every_steps should be provided.")
        if every_secs is not None and every_steps is not None:
            raise ValueError("Can not provide both every_secs and every_steps.")
        self._every_secs, self._every_steps = every_secs, every_steps
        self.reset()

    def reset(self) -> None:
        """Forgets when it last triggered."""
        self._last_triggered_step: int | None = None
        self._last_triggered_time = 0.0

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether it triggers at this step; never twice at the same."""
        last = self._last_triggered_step
        if last is None:
            return True
        if last == step:
            return False
        if self._every_secs is not None:
            return time.time() >= self._last_triggered_time + self._every_secs
        return self._every_steps is not None and step >= last + self._every_steps

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Notes that it triggered at this step; returns the seconds and steps since it last did, (None, None)
        the first time."""
        now, last = time.time(), self._last_triggered_step
        since = (None, None) if last is None else (now - self._last_triggered_time, step - last)
        self._last_triggered_step, self._last_triggered_time = step, now
        return since

    def last_triggered_step(self) -> int | None:
        """The step at which it last triggered; None if it never did."""
        return self._last_triggered_step
