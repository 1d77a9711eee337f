"""The global step as hooks read it: which variable it is, and what to fetch for its value."""

from __future__ import annotations

from typing import Any

from flowstone.framework.scope import get_default_graph
from flowstone.training.global_step import get_global_step

__all__ = ["required_global_step"]


def required_global_step(user: str) -> Any:
    """The default graph's global step. RuntimeError, which names the hook that needs it, without one."""
    step = get_global_step(get_default_graph())
    if step is None:
        raise RuntimeError(f"Global step should be created to use {user}.")
    return step
