"""Flowstone's sessions with passes switched off, or node by node, for `compare_state_programs.py`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from flowstone.framework import flags
from flowstone.rewriting.passes import NAMES, run_passes
from flowstone.runtime import plan


@contextlib.contextmanager
def without_passes(disabled: frozenset[str], by_node: bool = False, seen: Any = None) -> Iterator[None]:
    """Plans made inside have none of these passes, or none at all and are executed node by node; `seen`: a
    set that gets the names of passes that changed something."""
    old_passes, old_compiled = plan.run_passes, plan._compiled

    def chosen(subgraph: Any, others: frozenset[str] = flags.DISABLED_PASSES) -> Any:
        show = None if seen is None else lambda name, before, after: seen.add(name)
        return run_passes(subgraph, others | (NAMES if by_node else disabled), show)

    plan.run_passes = chosen
    try:
        yield
    finally:
        plan.run_passes, plan._compiled = old_passes, old_compiled


def lower_sizes(set_attribute: Callable[..., None]) -> None:
    """Passes that pay for large tensors are applied to small ones."""
