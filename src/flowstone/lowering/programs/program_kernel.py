"""``_Program``: loops, conditionals and small computations as one node (`program_regions.py` makes it).

The attribute `members` says what is computed: the nodes that it stands for and the program that these are
(`native/programs.py`). Their own kernels, in a function that the runtime compiles of them, compute it until
the machine code is there, and where that finds that it has to fail. `operations` names the nodes' operations
for readers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowstone.framework.kernel import CPU, Call, Environment, Input, Kernel
from flowstone.framework.node import Node, PlanData
from flowstone.framework.operation import Shapes, op
from flowstone.framework.subgraph import PlanNode, PlanOutput
from flowstone.native.program_kernels import program_kernel
from flowstone.native.programs import Loop, Program

__all__ = ["ProgramMembers", "program_op"]

_ITERATIONS = 100  # that a loop is taken to have, to say what a program costs


class ProgramMembers(PlanData):
    """The `nodes` that a program stands for, in order; `inputs`, what they take of others; `outputs`, what
    others take of them; and the `program` that they are.
    """

    __slots__ = ("inputs", "nodes", "outputs", "program")

    def __init__(
        self,
        nodes: Sequence[PlanNode],
        inputs: Sequence[PlanOutput],
        outputs: Sequence[PlanOutput],
        program: Program,
    ) -> None:
        self.nodes, self.inputs, self.outputs, self.program = nodes, inputs, outputs, program


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

    def run(*inputs: Any) -> Any:
        if not compiled:
            compiled.append(env.compile_nodes(members.nodes, members.inputs, members.outputs))
        return tuple(compiled[0](env.new_step(), *inputs))

    return run
