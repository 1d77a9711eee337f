"""`MeasuredRuns`: which runs of a session are measured, and the costs that come of it.

`ConfigProto.graph_options` asks for it: after ``build_cost_model_after`` runs of the same fetches and feeds,
every ``build_cost_model``-th one is traced.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any, TypeVar

from flowstone.placement.cost_model import CostModel

_Self = TypeVar("_Self", bound="MeasuredRuns")


class MeasuredRuns:
    """Measures every `every`-th run of the same key after the first `after`."""

    def __init__(self, every: int, after: int) -> None:
        self.costs = CostModel()
        self._every, self._after = every, after
        self._runs: dict[Hashable, int] = {}
        self._measured: set[Hashable] = set()
        self._lock = threading.Lock()

    @classmethod
    def wanted(cls: type[_Self], config: Any) -> _Self | None:
        """The measurements that a ConfigProto asks for; None if it asks for none."""
        if config is None or config.graph_options.build_cost_model <= 0:
            return None
        return cls(config.graph_options.build_cost_model, config.graph_options.build_cost_model_after)

    def is_due(self, key: Hashable) -> bool:
        """Counts a run of this key; returns whether it is to be measured."""
        with self._lock:
            run = self._runs[key] = self._runs.get(key, 0) + 1
        return run > self._after and (run - self._after) % self._every == 0

    def is_first(self, key: Hashable) -> bool:
        """Notes that a run of this key was measured; returns whether none was before."""
        with self._lock:
            is_first = key not in self._measured
            self._measured.add(key)
        return is_first
