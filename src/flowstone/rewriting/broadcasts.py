"""Broadcasts: an operand that was only repeated need not be, where the operation repeats it itself.

- ``op(BroadcastTo(x), y)`` is ``op(x, y)`` where y alone already has the result's shape;
- ``op(BroadcastTo(x), scalar)`` is ``BroadcastTo(op(x, scalar))``, so that the arithmetic is done once an
  element of x.

Both give the same bits. They serve ops whose declaration says that they broadcast; gradients of means and of
normalisation are full of them.
"""

from __future__ import annotations

from flowstone.framework.node import Output
from flowstone.framework.subgraph import PlanNode, Subgraph
from flowstone.rewriting.patterns import Replacement, rewrite


def narrow_broadcasts(subgraph: Subgraph) -> None:
    """Applies both rules to every broadcasting op of two inputs, inputs first."""

    def rule(node: PlanNode) -> Replacement | None:
        if not node.declaration.broadcasts or len(node._inputs) != 2:
            return None
        dims = node._outputs[0]._dims
        if dims is None or None in dims:
            return None
        for i in (0, 1):
            x, other = node._inputs[i], node._inputs[1 - i]
            if x._op.declaration.name != "BroadcastTo":
                continue
            if other._dims == dims:
                return _replacement(subgraph, node, i, "the other operand has the result's shape")
            if other._dims == () and x._dims == dims:
                return _broadcast_afterwards(subgraph, node, i)
        return None

    rewrite(subgraph, "narrow_broadcasts", rule)


def _narrowed(subgraph: Subgraph, node: PlanNode, i: int) -> PlanNode:
    inputs: list[Output] = list(node._inputs)
    inputs[i] = inputs[i].op._inputs[0]
    return subgraph.new_node(node.declaration, inputs, node.attributes, like=node)


def _replacement(subgraph: Subgraph, node: PlanNode, i: int, reason: str) -> Replacement:
    new = _narrowed(subgraph, node, i)
    return Replacement([new._outputs[0]], reason, (new,))


def _broadcast_afterwards(subgraph: Subgraph, node: PlanNode, i: int) -> Replacement:
    broadcast = node._inputs[i].op
    new = _narrowed(subgraph, node, i)
    attributes = {**broadcast.attributes, "T": new._outputs[0].dtype}
    inputs = [new._outputs[0], broadcast._inputs[1]]
    after = subgraph.new_node(
        broadcast.declaration, inputs, attributes, like=node, name=f"{node.name}/broadcast"
    )
    return Replacement([after._outputs[0]], "the scalar is applied before the broadcast", (new, after))
