"""Shows where nodes run: a session's placement as a table and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.client.feeds_fetches import FetchStructure
from flowstone.client.planning import Planner
from flowstone.framework.tensors.tensor import Tensor
from flowstone.placement.placement_report import draw_placement, placement_table
from flowstone.runtime.process.device import default_device


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
