"""``_Program``: loops, conditionals and small computations as one node (`program_regions.py` makes it).

The attribute `members` says what is computed: the nodes that it stands for and the program that these are
(`native/programs.py`). Their own kernels, in a function that the runtime compiles of them, compute it until
the machine code is there, and where that finds that it has to fail. `operations` names the nodes' operations
for readers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from flowstone.framework.kernel import CPU, Call, Environment, Input, Kernel
from flowstone.framework.node import Node, PlanData
from flowstone.framework.operation import Shapes, op
from flowstone.framework.shape import num_elements
from flowstone.framework.subgraph import PlanNode, PlanOutput
from flowstone.native.program_kernels import program_kernel
from flowstone.native.programs import Loop, Program

__all__ = ["Packed", "ProgramMembers", "places_in", "program_op"]

Packed = tuple[PlanOutput, ...]

_ITERATIONS = 100  # that a loop is taken to have, to say what a program costs


class ProgramMembers(PlanData):
    """The `nodes` that a program stands for, in order; `inputs`, what they take of others; `outputs`, what
    others take of them; and the `program` that they are.

    Values that pass between programs alone do so as one array of a type, a *pack*: the node's outputs are
    `outputs` and then one array for each of `packed_outputs`, end to end. `packed_inputs` are packs of
    others, which the node takes after `inputs`.
    """

    __slots__ = ("inputs", "nodes", "outputs", "packed_inputs", "packed_outputs", "program")

    def __init__(
        self,
        nodes: Sequence[PlanNode],
        inputs: Sequence[PlanOutput],
        outputs: Sequence[PlanOutput],
        program: Program,
        packed_inputs: Sequence[Packed] = (),
        packed_outputs: Sequence[Packed] = (),
    ) -> None:
        self.nodes, self.inputs, self.outputs, self.program = nodes, inputs, outputs, program
        self.packed_inputs, self.packed_outputs = packed_inputs, packed_outputs

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


def _program_of(node: Node) -> Program:
    members: ProgramMembers = node.attributes["members"]
    return members.program


def _work(node: Node) -> float:
    """The operations of a run: see `framework/work.py`."""
    program = _program_of(node)

    def work(body: Any) -> float:
        total = 0.0
        for each in body:
            if isinstance(each, Loop):
                total += _ITERATIONS * (work(each.before) + work(each.body))
            else:
                total += max([program.values[x].size for x in (*each.operands, *each.results)], default=1)
        return total

    return work(program.body)


program_op = op(
    "_Program",
    "inputs: *Tin -> outputs: *Tout",
    "operations: string ; Tin: list(type) >= 0 ; Tout: list(type) >= 1",
    cost=_work,
)
program_op.not_differentiable()


@program_op.infer
def _(node: Node) -> Shapes:
    program = _program_of(node)
    return [program.values[x].dims for x in program.outputs]


@program_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    members: ProgramMembers = node.attributes["members"]
    words = [Input(i) for i in range(len(node.inputs))]
    return Call(program_kernel(members.program, _by_members(members, env)), *words)


def _by_members(members: ProgramMembers, env: Environment) -> Callable[..., Any]:
    """The function of the inputs that runs the members' own kernels; compiled when it is first needed."""
    compiled: list[Any] = []

    taken = [(i, place, num_elements(x.dims) or 0, x.dims) for i, place, x in members.unpacked()]
    values = [x for _, _, x in members.unpacked()]
    results = [*members.outputs, *[x for pack in members.packed_outputs for x in pack]]

    def run(*inputs: Any) -> Any:
        if not compiled:
            compiled.append(env.compile_nodes(members.nodes, [*members.inputs, *values], results))
        if taken:
            packs = inputs[len(members.inputs) :]
            pieces = [packs[i][place : place + size].reshape(dims) for i, place, size, dims in taken]
            inputs = (*inputs[: len(members.inputs)], *pieces)
        found = tuple(compiled[0](env.new_step(), *inputs))
        return _packed(members, found) if members.packed_outputs else found

    return run


def _packed(members: ProgramMembers, found: Sequence[Any]) -> tuple[Any, ...]:
    """The outputs, and the packs."""
    count = len(members.outputs)
    result = list(found[:count])
    for pack in members.packed_outputs:
        pieces = found[count : count + len(pack)]
        result.append(torch.cat([each.reshape(-1) for each in pieces]))
        count += len(pack)
    return tuple(result)
