"""Functions of a graph's library as callables: a plan of its own for each, on the CPU.

A call in a graph is replaced by the function's nodes (`rewriting/functions`). What calls a function once an
element of its input, as datasets do, has a kernel that holds a `FunctionCall`
(`framework/declarations/kernel.py`). So has what stands for several nodes of a plan, to run these instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from flowstone.framework import flags
from flowstone.framework.declarations.kernel import CPU, Environment, FunctionCall
from flowstone.framework.graphs.function_library import FunctionBody
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.lowering.passes import passes_for
from flowstone.lowering.programs.program_regions import join_programs
from flowstone.ops.datasets.workers import is_one_of_many
from flowstone.rewriting.passes import run_passes
from flowstone.runtime.code.failures import explain
from flowstone.runtime.code.segments import compile_segment
from flowstone.runtime.execution.segment_copies import SegmentCopies
from flowstone.runtime.plans.plan import Plan, Program, make_plan
from flowstone.runtime.plans.plan_options import PlanOptions
from flowstone.runtime.process import threads


def function_compiler(options: PlanOptions) -> Callable[[FunctionBody], FunctionCall]:
    """What compiles functions for sessions that plan with `options`."""
    host = next(device for device in options.devices if device.device_type == CPU)
    shared = options.environments[host.name]

    def compiled(body: FunctionBody) -> FunctionCall:
        environment = host.environment(shared.resources, {})  # type: ignore[arg-type]
        environment.open_doors(
            compiled, compiled_nodes, shared.run_blocking, shared.new_step, shared.collectives
        )
        own = options._replace(
            devices=[host],
            environments={host.name: environment},
            assigned={},
            soft_placement=True,
            costs=None,
        )
        return _call(make_plan(body.outputs, body.controls, body.inputs, own))

    return compiled


def compiled_nodes(
    environment: Environment,
    nodes: Sequence[PlanNode],
    inputs: Sequence[PlanOutput],
    outputs: Sequence[PlanOutput],
    lowered: bool = False,
) -> FunctionCall:
    """Some nodes of a plan, in order, as a function of what they take of others. `lowered`: what lowering
    makes of them, but for programs."""
    copies = SegmentCopies(list(nodes), dynamic=False)
    inside = set(nodes)
    taken_constants = (x.op for node in nodes for x in node.inputs if x.op.is_constant and x.op not in inside)
    for constant in dict.fromkeys(taken_constants):  # perhaps inside of a loop
        copies.share(constant)
    for x in inputs:
        if not x.op.is_constant:
            copies.add_argument(x, as_value=True)
    for node in nodes:
        copies.add(node)
    subgraph = copies.subgraph(list(outputs))
    if lowered:
        run_passes(subgraph, passes_for(CPU, in_part=False), {*flags.DISABLED_PASSES, join_programs.__name__})
    segment = compile_segment(subgraph, environment, feeds_are_there=True)
    call = _owned(segment.function, segment)
    taken = [i for i, x in enumerate(inputs) if not x.op.is_constant]
    return lambda step, *arguments: call(step, *[arguments[i] for i in taken])


def _call(plan: Plan) -> FunctionCall:
    """A function of the step and the arguments that runs the plan; the results are the caller's own. The
    calling thread is in inference mode, as in a step. It starts no team if it is one of several that call
    functions at once."""
    function = plan.function

    def alone(step: Any, *arguments: Any) -> Any:
        return threads.run_with(1, lambda: function(step, *arguments))

    def run(step: Any, *arguments: Any) -> Any:
        return alone(step, *arguments) if is_one_of_many() else function(step, *arguments)

    return _owned(alone if plan.one_thread else run, plan.program)


def _owned(function: Callable[..., Any], program: Program) -> FunctionCall:
    """The function with its errors explained, and results that share no memory with arguments or states."""
    copied = [i for i, must_copy in enumerate(program.copied_fetches) if must_copy]

    def call(step: Any, *arguments: Any) -> Sequence[Any]:
        try:
            results = function(step, *arguments)
        except Exception as error:
            raise explain(error, program) from None
        if not copied:
            return results  # type: ignore[no-any-return]
        owned = list(results)
        for i in copied:
            owned[i] = _copy(owned[i])
        return owned

    return call


def _copy(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    return value.copy() if hasattr(value, "copy") else value
