"""Monitors as a hook of a session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.learn.monitors.base_monitor import BaseMonitor, _as_graph_element
from flowstone.training.hooks.session_run_hook import SessionRunHook

__all__ = ["RunHookAdapterForMonitors", "replace_monitors_with_hooks"]


class RunHookAdapterForMonitors(SessionRunHook):
    """Calls monitors as a session runs; the first step is one more than the global step when it begins.

    Every monitor's `step_end` is given the values of what all monitors have asked for.
    """

    def __init__(self, monitors: Iterable[Any]) -> None:
        self._monitors = list(monitors)
        self._last_step: int | None = None

    def begin(self) -> None:
        """Begins every monitor; the next run is its first step."""
        self._last_step = None
        for monitor in self._monitors:
            monitor.begin(max_steps=None)

    def before_run(self, run_context: Any) -> Any:
        """Asks for what the monitors want of this step."""
        if self._last_step is None:
            step = run_context.session.run(tf.train.get_or_create_global_step(run_context.session.graph))
            self._last_step = int(step) + 1
        wanted = [monitor.step_begin(self._last_step) or [] for monitor in self._monitors]
        requests = [request for each in wanted for request in each]
        return tf.train.SessionRunArgs({request: _as_graph_element(request) for request in requests})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Gives the monitors the values; requests a stop if any of them wants one."""
        assert self._last_step is not None
        results = run_values.results or {}
        if any([monitor.step_end(self._last_step, results) for monitor in self._monitors]):
            run_context.request_stop()
        for monitor in self._monitors:
            monitor.post_step(self._last_step, run_context.session)
        self._last_step += 1

    def end(self, session: Any) -> None:
        """Ends every monitor."""
        self._last_step = None
        for monitor in self._monitors:
            monitor.end(session=session)


def replace_monitors_with_hooks(monitors_or_hooks: Sequence[Any] | None, estimator: Any) -> list[Any]:
    """Hooks in the place of monitors and hooks: the hooks as they are, then one hook for all monitors.

    The monitors are told the estimator. Where that is not the chief's, those that run on all workers stay.
    """
    given = monitors_or_hooks or []
    hooks = [each for each in given if isinstance(each, SessionRunHook)]
    monitors: list[BaseMonitor] = [each for each in given if not isinstance(each, SessionRunHook)]
    if not estimator.config.is_chief:
        monitors = [monitor for monitor in monitors if monitor.run_on_all_workers]
    for monitor in monitors:
        monitor.set_estimator(estimator)
    if monitors:
        hooks.append(RunHookAdapterForMonitors(monitors))
    return hooks
