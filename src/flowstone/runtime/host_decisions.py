"""What the host decides without the device: counters of loops, and predicates of them.

A GPU's step leaves scalar integer constants on the host, and computes there what follows from values of the
host alone (`memory.py`). So a loop that counts to a constant asks the device for nothing, as opposed to one
that goes on until a value is small enough; and since nothing but constants and shapes goes into such a
counter, it counts alike in every step with the same shapes.

`decided_on_host` finds such values by supposing that all scalars are and dropping those that are not, until
no more has to be dropped: a counter depends on itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from flowstone.framework.operation import registry
from flowstone.framework.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.branches import MERGES, SWITCHES
from flowstone.rewriting.analyses.frames import LOOP_TYPES

_DECISIONS = registry.with_role("switch", "loop_condition")


def undecided(subgraph: Subgraph) -> PlanNode | None:
    """The first node that has the host ask the device which nodes run; None if there is none."""
    asking = [node for node in subgraph.nodes if node.type in _DECISIONS]
    decided = decided_on_host(subgraph.nodes) if asking else set()
    for node in asking:
        predicate = node.inputs[1 if node.type in SWITCHES else 0]
        if predicate not in decided:
            return node
    return None


def decided_on_host(nodes: Iterable[PlanNode]) -> set[PlanOutput]:
    """The outputs that follow from constants and shapes alone, and are on the host."""
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
    if node.type == "Const":
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
    """What decides the node's value; a Switch's predicate decides only whether there is one."""
    return node.inputs[:1] if node.type in SWITCHES else node.inputs
