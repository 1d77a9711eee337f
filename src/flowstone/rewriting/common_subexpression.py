"""Common subexpressions (white paper 5.1): pure nodes of the same op, attributes and inputs become one."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.subgraph import PlanNode, Subgraph
from flowstone.rewriting.patterns import Replacement, rewrite

_LARGEST_COMPARED_BYTES = 1 << 12  # larger constants are equal only if they are the same object


def merge_common_subexpressions(subgraph: Subgraph) -> None:
    """Redirects every pure node to the first one that computes the same."""
    first: dict[Any, PlanNode] = {}
    state_changes = any(node.declaration.mutates for node in subgraph.nodes)

    def rule(node: PlanNode) -> Replacement | None:
        if not node.declaration.is_pure or not node._outputs or node.type == "_Arg":
            return None
        if state_changes and any([x._dtype.is_ref for x in node._inputs]):
            return None  # what it reads may change between the two
        key = _key(node)
        if key is None:
            return None
        earlier = first.setdefault(key, node)
        if earlier is node:
            return None
        return Replacement(list(earlier._outputs), f"same as {earlier.name}")

    rewrite(subgraph, "merge_common_subexpressions", rule)


def _key(node: PlanNode) -> Any:
    inputs: Any = [id(x) for x in node._inputs]
    if node.declaration.commutative:
        inputs.sort()
    controls = frozenset([id(control) for control in node._control_inputs])
    attributes = []
    for name, value in node.attributes.items():
        if isinstance(value, np.ndarray):
            if value.nbytes > _LARGEST_COMPARED_BYTES or value.dtype.hasobject:
                value = id(value)
            else:
                value = (value.dtype.str, value.shape, value.tobytes())
        attributes.append((name, value))
    key = (node.type, tuple(inputs), controls, tuple(attributes), node._device)
    try:
        hash(key)
    except TypeError:
        return None
    return key
