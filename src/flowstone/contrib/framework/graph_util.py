"""What a graph is fed with."""

from __future__ import annotations

from typing import Any


def get_placeholders(graph: Any) -> list[Any]:
    """The placeholders of a graph, as tensors in the order in which they were made."""
    return [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"]
