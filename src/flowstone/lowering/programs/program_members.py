"""What a program stands for: the nodes, what they take and give, and the packs that pass between programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.framework.tensors.node import PlanData
from flowstone.framework.types.shape import num_elements
from flowstone.native.programs.programs import Program

__all__ = ["Packed", "ProgramMembers", "places_in"]

Packed = tuple[PlanOutput, ...]


class ProgramMembers(PlanData):
    """The `nodes` that a program stands for, in order; `inputs`, what they take of others; `outputs`, what
    others take of them; and the `program` that they are. The `drawing` nodes among them draw random numbers.

    Values that pass between programs alone do so as one array of a type, a *pack*: the node's outputs are
    `outputs` and then one array for each of `packed_outputs`, end to end. `packed_inputs` are packs of
    others, which the node takes after `inputs`.

    `functions`, which all programs of a plan may share, keeps what runs the nodes (`member_functions.py`).
    """

    __slots__ = (
        "drawing", "functions", "inputs", "nodes", "outputs", "packed_inputs", "packed_outputs", "program"
    )  # fmt: skip

    def __init__(
        self,
        nodes: Sequence[PlanNode],
        inputs: Sequence[PlanOutput],
        outputs: Sequence[PlanOutput],
        program: Program,
        packed_inputs: Sequence[Packed] = (),
        packed_outputs: Sequence[Packed] = (),
        drawing: Sequence[PlanNode] = (),
    ) -> None:
        self.nodes, self.inputs, self.outputs, self.program = nodes, inputs, outputs, program
        self.packed_inputs, self.packed_outputs, self.drawing = packed_inputs, packed_outputs, drawing
        self.functions: dict[Any, Any] = {}

    def unpacked(self) -> list[tuple[int, int, PlanOutput]]:
        """What the nodes take of packs: which pack, where in it, and the value."""
        taken = {x for node in self.nodes for x in node.inputs}
        return [each for each in places_in(self.packed_inputs) if each[2] in taken]


def places_in(packs: Sequence[Packed]) -> list[tuple[int, int, PlanOutput]]:
    """All values of packs: which pack, where in it, and the value."""
    found = []
    for i, pack in enumerate(packs):
        place = 0
        for x in pack:
            found.append((i, place, x))
            place += num_elements(x.dims) or 0
    return found
