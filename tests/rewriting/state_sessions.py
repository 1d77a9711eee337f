"""Flowstone's sessions with passes switched on and off, for `compare_state_programs.py` and tests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from flowstone.framework import onednn
from flowstone.lowering.convolutions import (
    filter_layout,
    fused_convolutions,
    joined_convolutions,
    normalization_fusion,
)
from flowstone.lowering.convolutions import minimal_filtering as winograd
from flowstone.lowering.packing import packed_products, packed_weights
from flowstone.lowering.passes import NAMES
from flowstone.lowering.products import joined_products, sums
from flowstone.lowering.recurrences import lstm_layers, lstm_loop_layers
from flowstone.lowering.updates import update_grouping
from flowstone.rewriting.memory import joined_values, memory_schedule, recomputation, swapping
from flowstone.rewriting.passes import run_passes
from flowstone.runtime import plan


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
_SIZES: list[tuple[Any, str, Any]] = [
    (filter_layout, "_FEWEST", 1),
    (fused_convolutions, "_LARGE", 1),
    (joined_convolutions, "_GAIN", 0),
    (joined_products, "_FEWEST", 2),
    (joined_values, "WORTHWHILE", 1),
    (lstm_layers, "FEWEST", 2),
    (lstm_loop_layers, "FEWEST", 2),
    (memory_schedule, "WORTHWHILE", 1),
    (memory_schedule, "_LEAST_SAVING", 0.0),
    (normalization_fusion, "_FEWEST", 1),
    (packed_products, "_PAGE", 1),
    (onednn, "multiplies_faster", onednn.is_available),
    (recomputation, "WORTHWHILE", 1),
    (recomputation, "_LEAST_SAVING", 0.0),
    (sums, "_saves_memory", lambda group: True),
    (swapping, "SMALLEST", 1),
    (update_grouping, "_SMALLEST_GROUP", 2),
    (winograd, "_FEWEST_CHANNELS", 1),
    (winograd, "_GAIN", 1e9),
]


def lower_sizes(set_attribute: Callable[[Any, str, Any], None]) -> None:
    """Lets passes that pay for large tensors change small ones."""
    for module, name, value in _SIZES:
        assert hasattr(module, name), f"{module.__name__} has no {name}"
        set_attribute(module, name, value)
    set_attribute(packed_weights, "SMALLEST", {2: 1, 4: 1})
    set_attribute(packed_products, "SMALLEST", packed_weights.SMALLEST)
    set_attribute(fused_convolutions, "SMALLEST", packed_weights.SMALLEST)
