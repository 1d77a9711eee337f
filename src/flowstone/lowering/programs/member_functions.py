"""Functions that run a program's own nodes by their kernels, for as long as there is no machine code.

A plan of many small nodes has many programs, of which most are alike: the same nodes on other inputs, as in
layer after layer. `by_members` gives them all the function that the runtime compiles of the first. Should it
fail, the program's own nodes are compiled and run, since errors name nodes; a program has no effects, so that
it may be run twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from flowstone.framework.declarations.kernel import Environment
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.framework.types.shape import num_elements
from flowstone.lowering.programs.program_members import ProgramMembers
from flowstone.rewriting.simplification.common_subexpression import attribute_key

__all__ = ["are_alike", "by_members"]


def by_members(members: ProgramMembers, env: Environment, lowered: bool = False) -> Callable[..., Any]:
    """The function of the step and the inputs that runs the members' own kernels, or those of nodes that are
    alike; compiled when it is first needed. `lowered`: by what lowering makes of these nodes but programs."""
    known: list[tuple[ProgramMembers, Callable[..., Any]]] = []

    def run(step: Any, *inputs: Any) -> Any:
        if not known:
            known.append(_shared(members, env, lowered))
        first, function = known[0]
        if first is members:
            return function(step, *inputs)
        try:
            return function(step, *inputs)
        except Exception:  # it names a node of the first
            known[0] = members, _compiled(members, env, lowered)
        return known[0][1](step, *inputs)

    return run


def _shared(
    members: ProgramMembers, env: Environment, lowered: bool
) -> tuple[ProgramMembers, Callable[..., Any]]:
    """The first of the plan's programs that are alike, and its function."""
    known = members.functions.setdefault((env, members.program, lowered), [])
    for first, function in known:
        if first is members or are_alike(first, members):
            return first, function
    known.append((members, _compiled(members, env, lowered)))
    return known[-1]  # type: ignore[no-any-return]


def _compiled(members: ProgramMembers, env: Environment, lowered: bool) -> Callable[..., Any]:
    """The function of the members' own nodes."""
    taken = [(i, place, num_elements(x.dims) or 0, x.dims) for i, place, x in members.unpacked()]
    values = [x for _, _, x in members.unpacked()]
    nothing = [None for _ in members.drawing]
    results = [*members.outputs, *[x for pack in members.packed_outputs for x in pack]]
    function = env.compile_nodes(members.nodes, [*members.inputs, *values], results, lowered)

    def run(step: Any, *inputs: Any) -> Any:
        inputs = inputs[: len(inputs) - len(nothing)]
        if taken:
            packs = inputs[len(members.inputs) :]
            pieces = [packs[i][place : place + size].reshape(dims) for i, place, size, dims in taken]
            inputs = (*inputs[: len(members.inputs)], *pieces)
        found = tuple(function(step, *inputs))
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


# ---- which are alike


def are_alike(a: ProgramMembers, b: ProgramMembers) -> bool:
    """Whether the nodes of two equal programs are the same ones on other inputs. Programs with loops, and
    those that draw random numbers, are not taken to be."""
    if a.drawing or b.drawing or len(a.nodes) != len(b.nodes):
        return False
    mine, others = a.unpacked(), b.unpacked()
    if [each[:2] for each in mine] != [each[:2] for each in others]:
        return False
    arguments = [*zip(a.inputs, b.inputs), *zip([x for *_, x in mine], [y for *_, y in others])]
    same: dict[PlanOutput, PlanOutput] = {}
    for x, y in arguments:
        if x.op.is_constant or y.op.is_constant:
            continue  # its value is part of the function
        if x.dtype.base_dtype is not y.dtype.base_dtype or x.dims != y.dims:
            return False  # either takes what variables hold
        same[x] = y
    node_of: dict[PlanNode, PlanNode] = {}
    if not all(_is_alike(x, y, same, node_of) for x, y in zip(a.nodes, b.nodes)):
        return False
    return _results(a, same) == _results(b, {})


def _is_alike(
    a: PlanNode, b: PlanNode, same: dict[PlanOutput, PlanOutput], node_of: dict[PlanNode, PlanNode]
) -> bool:
    """Whether a node of one program is what `b` is of the other; notes that it is."""
    if a.declaration is not b.declaration or a.device != b.device or a.group_sizes != b.group_sizes:
        return False
    if len(a.inputs) != len(b.inputs) or len(a.outputs) != len(b.outputs):
        return False
    if not all(same.get(x) is y or _are_equal_constants(x, y, node_of) for x, y in zip(a.inputs, b.inputs)):
        return False
    if [(x.dtype, x.dims) for x in a.outputs] != [(x.dtype, x.dims) for x in b.outputs]:
        return False
    if a.control_inputs or b.control_inputs:
        waits, mirrored = [node_of[x] for x in a.control_inputs if x in node_of], set(node_of.values())
        if waits != [x for x in b.control_inputs if x in mirrored]:
            return False
    node_of[a] = b
    same.update(zip(a.outputs, b.outputs))
    return attribute_key(a) == attribute_key(b)


def _are_equal_constants(x: PlanOutput, y: PlanOutput, node_of: dict[PlanNode, PlanNode]) -> bool:
    """Whether both are the same constant, outside of the programs."""
    if not (x.op.is_constant and y.op.is_constant) or x.op in node_of:
        return False
    return x is y or attribute_key(x.op) == attribute_key(y.op)


def _results(members: ProgramMembers, same: dict[PlanOutput, PlanOutput]) -> list[list[PlanOutput]]:
    """What it gives, in terms of the other program."""
    return [[same.get(x, x) for x in each] for each in (members.outputs, *members.packed_outputs)]
