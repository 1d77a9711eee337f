"""The global step as hooks read it: which variable it is, and what to fetch for its value."""

from __future__ import annotations

from typing import Any

from flowstone.framework.tensors.scope import get_default_graph
from flowstone.training.hooks.global_step import get_global_step

__all__ = ["required_global_step", "step_after"]


def required_global_step(user: str) -> Any:
    """The default graph's global step. RuntimeError, which names the hook that needs it, without one."""
    step = get_global_step(get_default_graph())
    if step is None:
        raise RuntimeError(f"Global step should be created to use {user}.")
    return step


def step_after(fetched: Any, next_step: Any) -> Any:
    """The global step after a step of a session that fetched it, before or after it was incremented.

    `next_step`: what it is expected to become; None at first, when the value is taken to be the later one.
    """
    return fetched + 1 if next_step is not None and fetched < next_step else fetched
