"""What every monitor is: `BaseMonitor`, and `EveryN`, which acts on some steps only.

The order of calls, of which the loop makes all:

    begin, then for each step: step_begin, the step itself, step_end, post_step; finally end

`EveryN` acts on the steps up to `first_n_steps`, on the last one if `begin` was told it, and `every_n_steps`
after the last on which it acted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flowstone as tf

__all__ = ["BaseMonitor", "EveryN"]


def _as_graph_element(request: Any) -> Any:
    """The default graph's tensor of a name, with or without ':0'; anything else as it is.

    Raises KeyError for a name that the graph lacks.
    """
    if not isinstance(request, str):
        return request
    name = request if ":" in request else f"{request}:0"
    return tf.get_default_graph().as_graph_element(name)


def _extract_output(outputs: Mapping[Any, Any], request: Any) -> Any:
    """The value of what a monitor has asked for: by the request itself, else by its name."""
    if request in outputs:
        return outputs[request]
    return outputs[request.name]


class BaseMonitor:
    """A monitor that watches and does nothing; what extends it overrides events."""

    def __init__(self) -> None:
        self._begun = False
        self._current_epoch: int | None = None
        self._current_step: int | None = None
        self._max_steps: int | None = None
        self._estimator: Any = None

    @property
    def run_on_all_workers(self) -> bool:
        """Whether every worker needs the monitor, not the chief alone."""
        return False

    def set_estimator(self, estimator: Any) -> None:
        """Tells the monitor whose training it watches. Raises ValueError for None."""
        if estimator is None:
            raise ValueError("Missing estimator.")
        self._estimator = estimator

    def begin(self, max_steps: int | None = None) -> None:
        """Training begins; `max_steps` is the last step, if that is known.

        Raises ValueError if it has begun already.
        """
        if self._begun:
            raise ValueError("begin called twice without end.")
        self._max_steps = max_steps
        self._begun = True

    def end(self, session: Any = None) -> None:
        """Training ends; raises ValueError if it has not begun."""
        if not self._begun:
            raise ValueError("end called without begin.")
        self._max_steps = None
        self._begun = False

    def epoch_begin(self, epoch: int) -> None:
        """An epoch begins; raises ValueError within another."""
        if self._current_epoch is not None:
            raise ValueError("epoch_begin called twice without epoch_end.")
        self._current_epoch = epoch

    def epoch_end(self, epoch: int) -> None:
        """The epoch ends; raises ValueError for another than has begun."""
        if self._current_epoch != epoch:
            raise ValueError(f"epoch_end expected {self._current_epoch} but got {epoch}.")
        self._current_epoch = None

    def step_begin(self, step: int) -> list[Any]:
        """A step begins. Returns the tensors, operations and names whose values the monitor wants.

        Raises ValueError for a step after the last.
        """
        if self._max_steps is not None and step > self._max_steps:
            raise ValueError(f"Invalid step {step}.")
        self._current_step = step
        return []

    def step_end(self, step: int, output: Mapping[Any, Any]) -> bool:
        """The step has ended; `output` has the values by what was asked for. Returns whether to stop.

        Raises ValueError for another step than has begun.
        """
        if self._current_step != step:
            raise ValueError(f"step_end expected {self._current_step} but got {step}.")
        self._current_step = None
        return False

    def post_step(self, step: int, session: Any) -> None:
        """The step has ended for every monitor; the session may be used."""


class EveryN(BaseMonitor):
    """A monitor that acts on every n-th step, in methods of its own: `every_n_step_begin` and so on.

    Args:
        every_n_steps: how many steps lie between two on which it acts.
        first_n_steps: it acts on every step up to this one.
    """

    def __init__(self, every_n_steps: int = 100, first_n_steps: int = 1) -> None:
        super().__init__()
        self._every_n_steps = every_n_steps
        self._first_n_steps = first_n_steps
        self._last_successful_step: int | None = None
        self._last_active_step = 0
        self._every_n_step_begin_called = False

    def every_n_step_begin(self, step: int) -> list[Any]:
        """Such a step begins; returns what is wanted of it."""
        return []

    def every_n_step_end(self, step: int, outputs: Mapping[Any, Any]) -> bool:
        """Such a step has ended; returns whether to stop."""
        return False

    def every_n_post_step(self, step: int | None, session: Any) -> None:
        """Such a step has ended for all monitors; also called for the last step, when training ends."""

    def _acts_on(self, step: int) -> bool:
        return (
            step <= self._first_n_steps
            or step >= self._every_n_steps + self._last_active_step
            or step == self._max_steps
        )

    def step_begin(self, step: int) -> list[Any]:
        """Calls `every_n_step_begin` if the step is one to act on; else asks for nothing."""
        super().step_begin(step)
        self._every_n_step_begin_called = self._acts_on(step)
        return self.every_n_step_begin(step) if self._every_n_step_begin_called else []

    def step_end(self, step: int, output: Mapping[Any, Any]) -> bool:
        """Calls `every_n_step_end` if the step is one to act on; else training goes on."""
        super().step_end(step, output)
        return self.every_n_step_end(step, output) if self._every_n_step_begin_called else False

    def post_step(self, step: int, session: Any) -> None:
        """Calls `every_n_post_step` if the step is one to act on."""
        super().post_step(step, session)
        if self._every_n_step_begin_called:
            self.every_n_post_step(step, session)
            self._last_active_step = step
        self._last_successful_step = step

    def end(self, session: Any = None) -> None:
        """Calls `every_n_post_step` for the last step, unless it was one to act on."""
        super().end(session)
        if self._last_successful_step != self._last_active_step:
            self.every_n_post_step(self._last_successful_step, session)
