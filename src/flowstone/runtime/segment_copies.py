"""A segment of a program of units as a subgraph of its own: copies of its nodes, arguments for what other
units compute.

The nodes of the whole plan stay as they are: `units.py` goes on asking them who takes what.
"""

from __future__ import annotations

from flowstone.framework.operation import registry
from flowstone.framework.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.frames import is_head


class SegmentCopies:
    """A segment's own copies of its nodes, of constants that it shares, and arguments for what it takes."""

    def __init__(self, members: list[PlanNode], dynamic: bool) -> None:
        self._dynamic = dynamic
        self.of_node: dict[PlanNode, PlanNode | None] = dict.fromkeys(members)
        self.of_output: dict[PlanOutput, PlanOutput] = {}
        self.taken: list[PlanOutput] = []
        self._constants: list[PlanNode] = []
        self._arguments: list[PlanNode] = []
        self._nodes: list[PlanNode] = []

    def share(self, constant: PlanNode) -> None:
        """Makes a constant known by its own name."""
        self._constants.append(constant)
        self.of_output.update((x, x) for x in constant.outputs)

    def add_argument(self, x: PlanOutput) -> None:
        """An argument for a value of another unit."""
        attributes = {"T": x.dtype.base_dtype, "index": len(self._arguments)}
        node = PlanNode(registry["_Arg"], f"{x.op.name}:{x.value_index}", [], attributes, (), [], "", 0)
        node.origin = getattr(x.op, "origin", x.op)
        self._arguments.append(node)
        self.taken.append(x)
        self.of_output[x] = node.add_output(x.dtype, x.dims)

    def add(self, node: PlanNode) -> None:
        """A copy of a member. What a loop's head takes from the next iteration is copied after it."""
        if (
            node.declaration.role == "loop_condition" and self._dynamic
        ):  # the mark of what the executor's Switches ask
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
        for x in node.outputs:
            self.of_output[x] = copy.add_output(x.dtype, x.dims)
        self.of_node[node] = copy
        self._nodes.append(copy)

    def subgraph(self, wanted: list[PlanOutput]) -> Subgraph:
        """The copies, with `wanted` as fetches."""
        for node in self._nodes:
            if is_head(node):
                node.inputs[:] = [self.of_output.get(x, x) for x in node.inputs]
        return Subgraph(
            [*self._constants, *self._arguments, *self._nodes],
            [self.of_output[x] for x in self.taken],
            [self.of_output[x] for x in wanted],
            [],
        )
