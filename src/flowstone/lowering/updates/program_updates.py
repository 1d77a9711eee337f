"""Updates by programs: one step of a rule that a program wrote as assignments, on one parameter or many.

`_ProgramUpdate` and `_ResourceProgramUpdate` stand, in plans only, for the assignments of parameters that
follow one rule (`written_updates.py` makes them, `update_grouping.py` joins them). Inputs: `held`, the first
variable of each of `count` parameters, then the second of each …; `tensors`, the same; `numbers`, which all
share. `program` says what is done with them (`update_programs.py`).

What ATen's fused optimisers compute (`known_rules.py`) they do, for float32, in one pass over memory. Other
programs run on vectors that a core's cache holds: small parameters one behind the other, large ones a block
at a time. So memory is read and written once, whatever the number of instructions, and the bits are those of
the instructions one by one.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, Call, Input
from flowstone.framework.declarations.operation import op
from flowstone.framework.graphs.subgraph import PlanOutput
from flowstone.lowering.updates.known_rules import Use, exact_share, known_rule
from flowstone.lowering.updates.native_rules import Places, native_call, rule_of_program
from flowstone.lowering.updates.update_programs import Program, in_places, run
from flowstone.ops.numbers.elementwise import FLOATS
from flowstone.ops.variables import optimizer_steps as steps

__all__: list[str] = []

_BLOCK = 16  # of one thread, in calls
_SMALL = 1  # what is laid one behind the other


def _kernel(node: Any, env: Any) -> Any:
    held, count_of_tensors, count_of_numbers = node.group_sizes
    count = node.attributes["count"]
    variables, tensors = held // count, count_of_tensors // count
    program = in_places(node.attributes["program"], variables, tensors, count_of_numbers)
    step: Any = in_blocks(program, env.machine)
    first_number = held + count_of_tensors
    numbers: list[Any] = [Input(first_number + i) for i in range(count_of_numbers)]
    use, dtype = _use(node, first_number), node.attributes["T"].torch
    if use is not None:
        step = _ByRule(use, step, tensors)
        numbers = [_number(node, first_number + i) for i in range(count_of_numbers)]

    def update(held: Any, tensors: Any, *numbers: Any) -> Any:
        held = [variable.tensor for variable in held]
        step([held[i::count] for i in range(count)], [tensors[i::count] for i in range(count)], numbers)

    def by_numbers(held: Any, tensors: Any, *numbers: Any) -> None:
        scalars = numbers if use is not None else [torch.scalar_tensor(x, dtype=dtype) for x in numbers]
        update(held, tensors, *scalars)

    places = Places(range(held), range(held, first_number), range(first_number, len(node.inputs)))
    rule = rule_of_program(node.attributes["program"], variables, tensors, count_of_numbers)
    native = native_call(node, rule, places, by_numbers)
    if native is not None:
        return native
    inputs = [Input(i) for i in range(first_number)]
    return Call(update, inputs[:held], inputs[held:], *numbers)


def _number(node: Any, i: int) -> Any:
    value = node.constant(i)
    return Call(torch.Tensor.item, Input(i)) if value is None else value.item()


def _use(node: Any, first_number: int) -> Use | None:
    """The known rule that the program follows, if its parameters suit ATen's step."""
    scalars: list[PlanOutput] = node.inputs[first_number:]
    tensors = node.inputs[node.group_sizes[0] : first_number]
    if any(x.dtype.base_dtype.name != "float32" for x in (*scalars, *tensors)) or not tensors:
        return None
    if any(x.op.is_feed for x in tensors):  # the memory is the user's
        return None
    names = {x: f"n{i}" for i, x in enumerate(scalars)}
    values = [node.constant(first_number + i) for i in range(len(scalars))]
    constants = {f"n{i}": value for i, value in enumerate(values) if value is not None}
    complements = set()
    for x in scalars:
        if x.op.type == "Sub" and x.op.inputs[1] in names:
            one = x.op.constant(0)
            if one is not None and one == 1:
                complements.add((names[x.op.inputs[1]], names[x]))
    return known_rule(node.attributes["program"], constants, complements)


def in_blocks(program: Program, machine: Any) -> Any:
    """``run(lists of variables, lists of tensors, numbers)``: the program on these parameters."""
    small = machine.elements(_SMALL)
    return _ByBlocks(program, small, small * _BLOCK)


class _ByBlocks:
    """Runs a program on parameters of any sizes."""

    def __init__(self, program: Program, small: int, block: int) -> None:
        self._program, self._small, self._block = program, small, block

    def __call__(self, held: list[Any], tensors: list[Any], numbers: Any) -> None:
        together: list[list[Any]] = []
        for variables, operands in zip(held, tensors):
            operands = [steps.laid_out_as(variables[0], x) for x in operands]
            views = steps.in_memory_order((*variables, *operands))
            if views is None:
                self._run([*variables, *operands], numbers)
            elif len(held) > 1 and variables[0].numel() <= self._small:
                together.append(list(views))
            else:
                self._run_in_blocks([x.reshape(-1) for x in views], numbers)
        if together:
            self._run_together(together, len(held[0]), numbers)

    def _run_together(self, rows: list[list[Any]], changed: int, numbers: Any) -> None:
        """Runs the program on small parameters, one behind the other."""
        join, part = torch._C._nn.flatten_dense_tensors, torch._C._nn.unflatten_dense_tensors
        lists = [list(each) for each in zip(*rows)]
        vectors = [join(each) for each in lists]
        self._run_in_blocks(vectors, numbers)
        for vector, each in zip(vectors[:changed], lists):
            torch._foreach_copy_(each, part(vector, each))

    def _run_in_blocks(self, vectors: list[Any], numbers: Any) -> None:
        block = self._block * max(1, torch.get_num_threads())
        if vectors[0].shape[0] <= block + block // 2:
            self._run(vectors, numbers)
            return
        room = [torch.empty_like(vectors[0][:block]) for _ in range(self._program.temporaries)]
        for parts in zip(*[vector.split(block) for vector in vectors]):
            length = parts[0].shape[0]
            places = room if length == block else [x[:length] for x in room]
            run(self._program, [*parts, *numbers, *places])

    def _run(self, tensors: list[Any], numbers: Any) -> None:
        room = [torch.empty_like(tensors[0]) for _ in range(self._program.temporaries)]
        run(self._program, [*tensors, *numbers, *room])


class _ByRule:
    """Runs a known rule by ATen's fused step, where parameters and numbers suit it, or else the program."""

    def __init__(self, use: Use, otherwise: _ByBlocks, tensors: int) -> None:
        rule, names, is_clipped = use
        self._rule, self._otherwise = rule, otherwise
        self._places = {
            word: int(name[1:]) if name[0] == "h" else int(name[1:]) - tensors
            for word, name in names.items()
            if name[0] != "n"
        }
        self._numbers = [(word, int(name[1:])) for word, name in names.items() if name[0] == "n"]
        self._limited = self._places[rule.not_negative] if is_clipped else None

    def __call__(self, held: list[Any], tensors: list[Any], numbers: Any) -> None:
        named = {word: numbers[i] for word, i in self._numbers}
        for kept, share in self._rule.averages:
            named[kept] = exact_share(named[kept], named[share])
        suits = self._rule.suits(named)
        rows, rest = [], []
        for variables, operands in zip(held, tensors):
            views = self._suitable(variables, operands) if suits else None
            if views is None:
                rest.append((variables, operands))
            else:
                rows.append(views)
        if rows:
            lists = [list(each) for each in zip(*rows)]
            self._rule.step({word: lists[i] for word, i in self._places.items()}, named)
        if rest:
            scalars = [torch.scalar_tensor(x, dtype=held[0][0].dtype) for x in numbers]
            self._otherwise([each[0] for each in rest], [each[1] for each in rest], scalars)

    def _suitable(self, variables: list[Any], operands: list[Any]) -> Any:
        """The variables and operands as contiguous tensors, or None where ATen's step would not do."""
        limited = self._limited
        if limited is not None and not variables[limited].amin().item() >= 0:
            return None
        operands = [steps.laid_out_as(variables[0], x) for x in operands]
        return steps.in_memory_order((*variables, *operands))


for _name, _held in (("_ProgramUpdate", "Ref(M*T)"), ("_ResourceProgramUpdate", "M*resource")):
    _declaration = op(
        _name,
        f"held: {_held}, tensors: N*T, numbers: K*T ->",
        "program: string ; count: int = 1 ; M: int >= 1 ; N: int >= 0 ; K: int >= 0",
        stateful=True,
        mutates=[0],
        T=FLOATS,
    )
    _declaration.infer(lambda node: None)
    _declaration.kernel(CPU)(_kernel)
    _declaration.not_differentiable()
