"""Copies a segment of a program of units to a subgraph of its own, with arguments for the values of other
units.

The nodes of the whole plan are not changed: `units.py` still needs their edges.
"""

from __future__ import annotations

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.frames import is_head


class SegmentCopies:
    """A segment's own copies of its nodes and of constants that it shares, and its arguments."""

    def __init__(self, members: list[PlanNode], dynamic: bool) -> None:
        self._dynamic = dynamic
        self.of_node: dict[PlanNode, PlanNode | None] = dict.fromkeys(members)
        self.of_output: dict[PlanOutput, PlanOutput] = {}
        self.taken: list[PlanOutput] = []
        self._constants: list[PlanNode] = []
        self._arguments: list[PlanNode] = []
        self._nodes: list[PlanNode] = []

    def share(self, constant: PlanNode) -> None:
        """Adds a copy of a constant, under its own name."""
        self._constants.append(constant)
        self.of_output.update((x, x) for x in constant.outputs)

    def add_argument(self, x: PlanOutput, as_value: bool = False) -> None:
        """Adds an argument for a value of another unit; `as_value`: what a variable holds instead of the
        variable."""
        attributes = {"T": x.dtype.base_dtype, "index": len(self._arguments)}
        node = PlanNode(registry["_Arg"], f"{x.op.name}:{x.value_index}", [], attributes, (), [], "", 0)
        node.origin = getattr(x.op, "origin", x.op)
        self._arguments.append(node)
        self.taken.append(x)
        self.of_output[x] = node.add_output(x.dtype.base_dtype if as_value else x.dtype, x.dims)

    def add(self, node: PlanNode) -> None:
        """Adds a copy of a member. The input that a loop's head takes from the iteration before is copied
        later."""
        if (
            node.declaration.role == "loop_condition" and self._dynamic
        ):  # the mark of an executor's Switches' predicate
            self.of_output[node.outputs[0]] = self.of_output.get(node.inputs[0], node.inputs[0])
            return
        controls = [copy for c in node.control_inputs if (copy := self.of_node.get(c)) is not None]
        copy = PlanNode(
            node.declaration,
            node.name,
            [self.of_output.get(x, x) for x in node.inputs],
            node.attributes,
            node.group_sizes,
            controls,
            node.device,
            node.order,
        )
        copy.origin = node.origin
        holds_values = bool(copy.inputs) and not any(x.dtype.is_ref for x in copy.inputs)
        for x in node.outputs:  # a RefEnter passes on the value where its variable is one here
            self.of_output[x] = copy.add_output(x.dtype.base_dtype if holds_values else x.dtype, x.dims)
        self.of_node[node] = copy
        self._nodes.append(copy)

    def subgraph(self, wanted: list[PlanOutput]) -> Subgraph:
        """The subgraph of the copies, with `wanted` as fetches."""
        for node in self._nodes:
            if is_head(node):
                node.inputs[:] = [self.of_output.get(x, x) for x in node.inputs]
        return Subgraph(
            [*self._constants, *self._arguments, *self._nodes],
            [self.of_output[x] for x in self.taken],
            [self.of_output[x] for x in wanted],
            [],
        )
