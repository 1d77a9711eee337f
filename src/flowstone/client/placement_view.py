"""Where nodes run, for people: the lines of ``ConfigProto(log_device_placement=True)``, and a session's
placement as a table and a picture.

A line is TensorFlow's, on standard error, one for each node of the user's graph when a plan first has it:

    MatMul: (MatMul): /job:localhost/replica:0/task:0/device:CPU:0
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from os import PathLike
from typing import Any, TextIO

from flowstone.framework.graph import Graph
from flowstone.placement.placement_report import draw_placement, placement_table
from flowstone.runtime.device import Device, default_device
from flowstone.runtime.plan import Plan, placed_subgraph


class PlacementLog:
    """Writes each node's device once, to `stream` (standard error if None)."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def add(self, plan: Plan, graph: Graph) -> None:
        """Writes the lines of the plan's nodes that are new."""
        nodes = {operation.name: operation.type for operation in graph.get_operations()}
        with self._lock:
            new = [name for name in plan.placement if name in nodes and name not in self._known]
            self._known.update(new)
        stream = self._stream or sys.stderr
        for name in new:
            print(f"{name}: ({nodes[name]}): {plan.placement[name]}", file=stream)


def describe_placement(
    fetches: Sequence[Any],
    targets: Sequence[Any],
    feeds: Sequence[Any],
    devices: list[Device],
    picture: str | PathLike[str] | None = None,
    **options: Any,
) -> str:
    """The placement of a step as a table (`placement/placement_report.py`), and as a picture at this path.

    `options`: those of `placed_subgraph`.
    """
    subgraph, chosen = placed_subgraph(fetches, targets, feeds, devices, **options)
    placement = chosen or dict.fromkeys(subgraph.nodes, default_device(devices))
    if picture is not None:
        draw_placement(subgraph, placement, picture, options.get("costs"))
    return placement_table(subgraph, placement, options.get("costs"))
