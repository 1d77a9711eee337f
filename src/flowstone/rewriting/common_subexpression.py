"""Common subexpressions (white paper 5.1): pure nodes of the same op, attributes and inputs become one.

So do nodes that read the same state, unless a node between them, in the order in which they run, changes it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.node import Output
from flowstone.framework.subgraph import PlanNode, Subgraph
from flowstone.rewriting.patterns import Replacement, rewrite

_LARGEST_COMPARED_BYTES = 1 << 12  # larger constants are equal only if they are the same object


def merge_common_subexpressions(subgraph: Subgraph) -> None:
    """Redirects every pure node to the first one that computes the same."""
    first: dict[Any, PlanNode] = {}
    versions = _Versions()

    def rule(node: PlanNode) -> Replacement | None:
        declaration = node.declaration
        if not (declaration.is_pure or declaration.reads) or not node._outputs or node.type == "_Arg":
            if not declaration.is_pure:
                versions.note_changes(node)
            return None
        key = _key(node)
        if key is None:
            return None
        earlier = first.setdefault((key, versions.read_by(node)), node)
        if earlier is node:
            return None
        return Replacement(list(earlier._outputs), f"same as {earlier.name}")

    rewrite(subgraph, "merge_common_subexpressions", rule)


class _Versions:
    """How often each state has been changed so far. A state is what its handle or reference names."""

    def __init__(self) -> None:
        self._changes: dict[Any, int] = {}
        self._all = self._unnamed = 0  # unnamed: of states that no node of the plan names; they may be any

    def note_changes(self, node: PlanNode) -> None:
        """An impure node may change every state that it takes."""
        for x in node._inputs:
            if x._dtype.is_ref or x._dtype.name == "resource":
                name = self._name(x)
                self._all += 1
                if name is None:
                    self._unnamed += 1
                else:
                    self._changes[name] = self._changes.get(name, 0) + 1

    def read_by(self, node: PlanNode) -> tuple[int, ...]:
        """The versions of the states that `node` takes."""
        names = [self._name(x) for x in node._inputs if x._dtype.is_ref or x._dtype.name == "resource"]
        changes = [self._all if name is None else self._changes.get(name, 0) for name in names]
        return (self._unnamed, *changes)

    @staticmethod
    def _name(x: Output) -> Any:
        node = x._op
        while node.declaration.aliases and node._inputs:
            node = node._inputs[0]._op
        attributes = node.attributes
        if "shared_name" not in attributes:
            return None
        return attributes.get("container", ""), attributes["shared_name"] or node.name


def _key(node: PlanNode) -> Any:
    inputs: Any = [id(x) for x in node._inputs]
    if node.declaration.commutative:
        inputs.sort()
    controls = frozenset([id(control) for control in node._control_inputs])
    key = (node.type, tuple(inputs), controls, attribute_key(node), node._device)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def attribute_key(node: PlanNode) -> tuple[Any, ...]:
    """Equal for nodes of a type that compute the same of the same inputs; not always hashable."""
    attributes = []
    for name, value in node.attributes.items():
        if name == "_class":  # says where to compute, not what
            continue
        if isinstance(value, np.ndarray):
            if value.nbytes > _LARGEST_COMPARED_BYTES or value.dtype.hasobject:
                value = id(value)
            else:
                value = (value.dtype.str, value.shape, value.tobytes())
        attributes.append((name, value))
    return tuple(attributes)
