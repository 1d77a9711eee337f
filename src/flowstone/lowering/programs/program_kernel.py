"""``_Program``: loops, conditionals and small computations as one node (`program_regions.py` makes it).

`_DrawingProgram` is one that draws random numbers.

The attribute `members` says what is computed: the nodes that it stands for and the program that these are
(`native/programs/programs.py`). Their own kernels, in a function that the runtime compiles of them, compute
it until the machine code is there, and where that finds that it has to fail. `operations` names the nodes'
operations for readers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, Environment, Kernel, StepCall
from flowstone.framework.declarations.operation import OpDeclaration, Shapes, op
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.framework.tensors.node import Node, PlanData
from flowstone.framework.types.shape import num_elements
from flowstone.native.programs.program_kernels import program_kernel
from flowstone.native.programs.programs import Loop, Program
from flowstone.ops.randomness.op_seeds import SeededSequence, fresh_seed, sequence_of
from flowstone.ops.randomness.philox import state_of_stream, stream_of

__all__ = ["Packed", "ProgramMembers", "drawing_program_op", "places_in", "program_op"]

Packed = tuple[PlanOutput, ...]

_ITERATIONS = 100  # that a loop is taken to have, to say what a program costs


class ProgramMembers(PlanData):
    """The `nodes` that a program stands for, in order; `inputs`, what they take of others; `outputs`, what
    others take of them; and the `program` that they are. The `drawing` nodes among them draw random numbers.

    Values that pass between programs alone do so as one array of a type, a *pack*: the node's outputs are
    `outputs` and then one array for each of `packed_outputs`, end to end. `packed_inputs` are packs of
    others, which the node takes after `inputs`.
    """

    __slots__ = ("drawing", "inputs", "nodes", "outputs", "packed_inputs", "packed_outputs", "program")

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
    """The operations of a run: see `framework/declarations/work.py`."""
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


def _declared(name: str, draws: bool) -> OpDeclaration:
    declaration = op(
        name,
        "inputs: *Tin -> outputs: *Tout",
        "operations: string ; Tin: list(type) >= 0 ; Tout: list(type) >= 1",
        cost=_work,
        stateful=draws,
    )
    declaration.infer(_shapes)
    declaration.kernel(CPU)(_kernel)
    return declaration.not_differentiable()


def _shapes(node: Node) -> Shapes:
    program, members = _program_of(node), node.attributes["members"]
    outputs = program.outputs[: len(program.outputs) - len(members.drawing)]
    return [program.values[x].dims for x in outputs]


def _kernel(node: Node, env: Environment) -> Kernel:
    members: ProgramMembers = node.attributes["members"]
    function: Callable[..., Any] = program_kernel(members.program, _by_members(members, env))
    if members.drawing:
        function = _with_streams(function, [_sequence(each, env) for each in members.drawing])
    return StepCall(function)


program_op = _declared("_Program", draws=False)
drawing_program_op = _declared("_DrawingProgram", draws=True)


def _sequence(node: PlanNode, env: Environment) -> SeededSequence:
    """Where a node's numbers come from: without seeds, from anywhere."""
    return sequence_of(node, env) or SeededSequence(fresh_seed(), fresh_seed())


def _with_streams(function: Callable[..., Any], sequences: Sequence[SeededSequence]) -> Callable[..., Any]:
    """The function of the step and the inputs alone: it draws from where the sequences stand, which then
    stand where it has left off. If another run has drawn meanwhile, it draws again; nothing is drawn
    twice."""
    count = len(sequences)

    def run(step: Any, *inputs: Any) -> Any:
        while True:
            states = [each.state() for each in sequences]
            found = function(step, *inputs, *[torch.tensor(stream_of(state)) for state in states])
            ends = found[-count:]
            if None in ends:  # the nodes' own kernels have drawn
                return found[:-count]
            counters = [state_of_stream(end.tolist()).counter for end in ends]
            if all([s.move(before, after) for s, before, after in zip(sequences, states, counters)]):
                return found[:-count]

    return run


def _by_members(members: ProgramMembers, env: Environment) -> Callable[..., Any]:
    """The function of the step and the inputs that runs the members' own kernels; compiled when it is first
    needed."""
    compiled: list[Any] = []

    taken = [(i, place, num_elements(x.dims) or 0, x.dims) for i, place, x in members.unpacked()]
    values = [x for _, _, x in members.unpacked()]
    nothing = [None for _ in members.drawing]
    results = [*members.outputs, *[x for pack in members.packed_outputs for x in pack]]

    def run(step: Any, *inputs: Any) -> Any:
        inputs = inputs[: len(inputs) - len(nothing)]
        if not compiled:
            compiled.append(env.compile_nodes(members.nodes, [*members.inputs, *values], results))
        if taken:
            packs = inputs[len(members.inputs) :]
            pieces = [packs[i][place : place + size].reshape(dims) for i, place, size, dims in taken]
            inputs = (*inputs[: len(members.inputs)], *pieces)
        found = tuple(compiled[0](step, *inputs))
        found = _packed(members, found) if members.packed_outputs else found
        return (*found, *nothing)

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
