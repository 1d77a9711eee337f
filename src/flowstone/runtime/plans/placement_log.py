"""The lines of ``ConfigProto(log_device_placement=True)``: where nodes run.

They are as TensorFlow's, on standard error: one for each node of the user's graph, when a plan first contains
it. For a session on a cluster the master prints them, in whichever process it is:

    MatMul: (MatMul): /job:localhost/replica:0/task:0/device:CPU:0
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from typing import TextIO

from flowstone.framework.graphs.graph import Graph


class PlacementLog:
    """Writes the device of each node of `graph` once, to `stream` (standard error if None)."""

    def __init__(self, graph: Graph, stream: TextIO | None = None) -> None:
        self._graph, self._stream = graph, stream
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def add(self, placement: Mapping[str, str]) -> None:
        """Writes the lines of the nodes of a plan that have none yet. `placement`: devices by nodes' names;
        nodes that the user's graph does not have are left out."""
        nodes = {operation.name: operation.type for operation in self._graph.get_operations()}
        with self._lock:
            new = [name for name in placement if name in nodes and name not in self._known]
            self._known.update(new)
        stream = self._stream or sys.stderr
        for name in new:
            print(f"{name}: ({nodes[name]}): {placement[name]}", file=stream)
