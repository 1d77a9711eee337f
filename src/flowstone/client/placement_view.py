"""Shows where nodes run: the lines of ``ConfigProto(log_device_placement=True)``, and a session's placement
as a table and a picture.

The lines are as TensorFlow's, on standard error: one for each node of the user's graph, when a plan first
contains it:

    MatMul: (MatMul): /job:localhost/replica:0/task:0/device:CPU:0
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import Any, TextIO

from flowstone.client.feeds_fetches import FetchStructure
from flowstone.client.planning import Planner
from flowstone.framework.graph import Graph
from flowstone.framework.tensor import Tensor
from flowstone.placement.placement_report import draw_placement, placement_table
from flowstone.runtime.device import default_device
from flowstone.runtime.plan import Plan


class PlacementLog:
    """Writes the device of each node of `graph` once, to `stream` (standard error if None)."""

    def __init__(self, graph: Graph, stream: TextIO | None = None) -> None:
        self._graph, self._stream = graph, stream
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def add(self, plan: Plan) -> None:
        """Writes the lines of the plan's nodes that have none yet."""
        nodes = {operation.name: operation.type for operation in self._graph.get_operations()}
        with self._lock:
            new = [name for name in plan.placement if name in nodes and name not in self._known]
            self._known.update(new)
        stream = self._stream or sys.stderr
        for name in new:
            print(f"{name}: ({nodes[name]}): {plan.placement[name]}", file=stream)


def describe_placement(
    planner: Planner, structure: FetchStructure, feeds: Sequence[Tensor], picture: Any = None
) -> str:
    """The placement of a step as a table (`placement/placement_report.py`), and as a picture at the path
    `picture`.
    """
    with planner.lock:
        subgraph, chosen = planner.placed(structure, feeds)
        placement = chosen or dict.fromkeys(subgraph.nodes, default_device(planner.options.devices))
        if picture is not None:
            draw_placement(subgraph, placement, picture, planner.options.costs)
        return placement_table(subgraph, placement, planner.options.costs)
