"""Flowstone's sessions with passes switched on and off, for `compare_state_programs.py` and tests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from flowstone.framework.machine import machine
from flowstone.lowering.convolutions import (
    joined_convolutions,
    spread_convolutions,
)
from flowstone.lowering.passes import NAMES
from flowstone.lowering.products import sums
from flowstone.rewriting.memory import joined_values, memory_schedule, recomputation, swapping
from flowstone.rewriting.passes import run_passes
from flowstone.runtime.plans import plan


@contextlib.contextmanager
def passes(
    disabled: frozenset[str] = frozenset(),
    enabled: frozenset[str] = frozenset(),
    seen: set[str] | None = None,
) -> Iterator[None]:
    """Plans made inside go without the passes `disabled`, and with those `enabled` that are off by default;
    `seen` gets the names of the passes that changed something."""
    usual = plan.run_passes

    def chosen(subgraph: Any, passes: Any, others: frozenset[str]) -> Any:
        run_passes(subgraph, passes, (others - enabled) | disabled)
        if seen is not None:
            seen.update(name for name, _, _ in subgraph.log)
        return subgraph

    plan.run_passes = chosen  # type: ignore[assignment]
    try:
        yield
    finally:
        plan.run_passes = usual


EVERY = NAMES
SMALL = {
    "convolution_by_onednn": 1,
    "filter_elements": 1,
    "grouped_updates": 2,
    "joined_products": 2,
    "layer_cells": 2,
    "layers_by_products": 0,
    "packed_weights": 1,
    "scaled_images": 1,
    "slow_columns": 1,
    "winograd_channels": 1,
    "winograd_gain": 1e9,
}
"""Of a machine that gains by small tensors what others gain by large ones."""
_SIZES: list[tuple[Any, str, Any]] = [
    (joined_convolutions, "_GAIN", 0),
    (joined_values, "WORTHWHILE", 1),
    (memory_schedule, "WORTHWHILE", 1),
    (memory_schedule, "_LEAST_SAVING", 0.0),
    (recomputation, "WORTHWHILE", 1),
    (recomputation, "_LEAST_SAVING", 0.0),
    (spread_convolutions, "WORTHWHILE", 1e9),
    (sums, "_saves_memory", lambda group: True),
    (swapping, "SMALLEST", 1),
]


def lower_sizes(set_attribute: Callable[[Any, str, Any], None]) -> None:
    """Lets passes that pay for large tensors change small ones."""
    for module, name, value in _SIZES:
        assert hasattr(module, name), f"{module.__name__} has no {name}"
        set_attribute(module, name, value)
    here = machine.current()
    set_attribute(here, "profile", here.profile._replace(**SMALL))
