"""``_Program``: loops, conditionals and small computations as one node (`program_regions.py` makes it).

`_DrawingProgram` is one that draws random numbers.

The attribute `members` says what is computed: the nodes that it stands for and the program that these are
(`native/programs/programs.py`). Their own kernels compute it until the machine code is there, and where that
finds that it has to fail (`member_functions.py`). `operations` names the nodes' operations for readers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowstone.framework.declarations.kernel import CPU, Environment, Kernel, StepCall
from flowstone.framework.declarations.operation import OpDeclaration, Shapes, op
from flowstone.framework.graphs.subgraph import PlanNode
from flowstone.framework.tensors.node import Node
from flowstone.lowering.programs.member_functions import by_members
from flowstone.lowering.programs.open_dims import without_open
from flowstone.lowering.programs.program_members import ProgramMembers
from flowstone.native.programs.open_sizes import typical
from flowstone.native.programs.program_kernels import program_kernel
from flowstone.native.programs.programs import Loop, Program
from flowstone.ops.randomness.op_seeds import SeededSequence, fresh_seed, sequence_of
from flowstone.ops.randomness.philox import counter_of, stream_of

__all__ = ["drawing_program_op", "program_op"]

_ITERATIONS = 100  # that a loop is taken to have, to say what a program costs


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
                total += max(
                    [typical(program.values[x].size) for x in (*each.operands, *each.results)], default=1
                )
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
    return [without_open(program.values[x].dims) for x in outputs]


def _kernel(node: Node, env: Environment) -> Kernel:
    members: ProgramMembers = node.attributes["members"]
    by_nodes = by_members(members, env)
    beyond = by_members(members, env, lowered=True) if members.program.is_open else by_nodes
    function: Callable[..., Any] = program_kernel(members.program, by_nodes, beyond)
    if members.drawing:
        function = _with_streams(function, [_sequence(each, env) for each in members.drawing])
    return StepCall(function)


program_op = _declared("_Program", draws=False)
drawing_program_op = _declared("_DrawingProgram", draws=True)


def _sequence(node: PlanNode, env: Environment) -> SeededSequence:
    """Where a node's numbers come from: without seeds, from anywhere."""
    return sequence_of(node, env) or SeededSequence(fresh_seed(), fresh_seed(), by_chance=True)


def _with_streams(function: Callable[..., Any], sequences: Sequence[SeededSequence]) -> Callable[..., Any]:
    """The function of the step and the inputs alone: it draws from where the sequences stand, which then
    stand where it has left off. If another run has drawn meanwhile, it draws again; nothing is drawn
    twice."""
    count = len(sequences)

    def run(step: Any, *inputs: Any) -> Any:
        while True:
            states = [each.state() for each in sequences]
            found = function(step, *inputs, *[stream_of(state) for state in states])
            ends = found[-count:]
            if any([end is None for end in ends]):  # the nodes' own kernels have drawn
                return found[:-count]
            counters = [counter_of(end) for end in ends]
            if all([s.move(before, after) for s, before, after in zip(sequences, states, counters)]):
                return found[:-count]

    return run
