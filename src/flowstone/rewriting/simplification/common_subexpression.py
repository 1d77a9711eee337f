"""Common subexpressions (white paper 5.1): pure nodes of the same op, attributes and inputs become one.

So do nodes that read the same version of the same state (`state_versions.py`).

Predicates come first, in `share_predicates`, before anyone asks when nodes are alive (`branches.py`): what
depends on several conditionals has conditions as many as the product of their predicates, if equal ones are
not known to be equal.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.branches import SWITCHES
from flowstone.rewriting.analyses.frames import is_loop_switch
from flowstone.rewriting.analyses.state_versions import References, StateVersions
from flowstone.rewriting.patterns import Replacement, rewrite

_LARGEST_COMPARED_BYTES = 1 << 12  # larger constants are equal only if they are the same object


def merge_common_subexpressions(subgraph: Subgraph) -> None:
    """Redirects every pure node to the first one that computes the same."""
    merging = _Merging(subgraph)
    rewrite(subgraph, "merge_common_subexpressions", merging.rule)


class _Merging:
    def __init__(self, subgraph: Subgraph) -> None:
        self._subgraph, self._references = subgraph, References()
        self._earlier: dict[Any, list[PlanNode]] = {}  # nodes by what they compute, each of other versions

    @cached_property
    def _versions(self) -> StateVersions:
        return StateVersions(self._subgraph, self._references)

    def rule(self, node: PlanNode) -> Replacement | None:
        declaration = node.declaration
        if not (declaration.is_pure or declaration.reads) or not node.outputs or node.is_feed:
            return None
        key = _key(node, node.inputs)
        if key is None:
            return None
        earlier = self._earlier.setdefault(key, [])
        for other in earlier:
            if self._read_the_same(other, node):
                return Replacement(list(other.outputs), f"same as {other.name}")
        earlier.append(node)
        return None

    def _read_the_same(self, a: PlanNode, b: PlanNode) -> bool:
        """Of nodes that take the same: whether they see the same versions."""
        if not any([self._references[x] for x in a.inputs]):
            return True
        return self._versions.read_by(a) == self._versions.read_by(b)


def share_predicates(subgraph: Subgraph) -> None:
    """Lets conditionals whose predicates compute the same ask the first one."""
    asking = [node for node in subgraph.nodes if node.type in SWITCHES and not is_loop_switch(node)]
    if len({node.inputs[1] for node in asking}) < 2:
        return
    references, deciding = References(), _deciding(asking)
    first: dict[Any, PlanNode] = {}
    same: dict[PlanOutput, PlanOutput] = {}
    for node in subgraph.nodes:
        if node not in deciding or any(references[x] for x in (*node.inputs, *node.outputs)):
            continue
        key = _key(node, [same.get(x, x) for x in node.inputs])
        if key is not None:
            same.update(zip(node.outputs, first.setdefault(key, node).outputs))
    for node in asking:
        node.inputs[1] = same.get(node.inputs[1], node.inputs[1])


def _deciding(asking: list[PlanNode]) -> set[PlanNode]:
    """The pure nodes that the predicates of these Switches are computed by."""
    found: set[PlanNode] = set()
    waiting = [node.inputs[1].op for node in asking]
    while waiting:
        node = waiting.pop()
        if node not in found and node.declaration.is_pure and not node.is_feed:
            found.add(node)
            waiting += [x.op for x in node.inputs]
    return found


def _key(node: PlanNode, inputs: list[PlanOutput]) -> Any:
    taken = [id(x) for x in inputs]
    if node.commutes:
        taken.sort()
    controls = frozenset([id(control) for control in node.control_inputs])
    key = (node.type, tuple(taken), controls, attribute_key(node), node.device)
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
