"""Finds what the host decides without the device: loops' counters, and predicates that depend on them.

A GPU's step leaves scalar integer constants on the host, and computes there what depends on host values alone
(`memory.py`). So a loop that counts to a constant needs no value of the device, whereas one that goes on
until a value is small enough does. Such a counter depends only on constants and shapes, so it counts the same
in every step with the same shapes.

`decided_on_host` assumes at first that all scalars are such values, since a counter depends on itself. It
then drops those that are not until nothing more has to be dropped.
"""

from __future__ import annotations

from collections.abc import Iterable

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.branches import MERGES, SWITCHES
from flowstone.rewriting.analyses.frames import LOOP_TYPES

_DECISIONS = registry.with_role("switch", "loop_condition")


def undecided(subgraph: Subgraph) -> PlanNode | None:
    """The first node for which the host needs a value of the device to decide which nodes run; None if there
    is none."""
    asking = [node for node in subgraph.nodes if node.type in _DECISIONS]
    decided = decided_on_host(subgraph.nodes) if asking else set()
    for node in asking:
        predicate = node.inputs[1 if node.type in SWITCHES else 0]
        if predicate not in decided:
            return node
    return None


def decided_on_host(nodes: Iterable[PlanNode]) -> set[PlanOutput]:
    """The outputs that depend only on constants and shapes, and are on the host."""
    nodes = list(nodes)
    decided = {output for node in nodes for output in node.outputs if _may_be(node, output)}
    while True:
        dropped = {
            output
            for node in nodes
            if _follows_from_inputs(node)
            for output in node.outputs
            if output in decided and not decided.issuperset(_sources(node))
        }
        if not dropped:
            return decided
        decided -= dropped


def _may_be(node: PlanNode, output: PlanOutput) -> bool:
    if _is_named(node, output):
        return True
    if node.is_constant:
        return output.dtype.is_integer and output.dims == ()
    return output.dims == () and not output.dtype.is_ref and _follows_from_inputs(node)


def _is_named(node: PlanNode, output: PlanOutput) -> bool:
    """Whether the op's declaration says that this output is on the host, as shapes are."""
    return node.declaration.is_capturable and any(
        argument.name in node.declaration.host
        for argument, other in zip(node.declaration.outputs, node.outputs)
        if other is output
    )


def _follows_from_inputs(node: PlanNode) -> bool:
    if node.type in LOOP_TYPES or node.type in SWITCHES or node.type in MERGES:
        return True
    return (
        bool(node.inputs)
        and node.declaration.is_pure
        and not node.declaration.host.intersection(argument.name for argument in node.declaration.outputs)
    )


def _sources(node: PlanNode) -> list[PlanOutput]:
    """The inputs that determine the node's value; a Switch's predicate determines only whether there is
    one."""
    return node.inputs[:1] if node.type in SWITCHES else node.inputs
