"""How a worker runs one part: whether it may be run at once, what it may be fed, and a step of its plan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch._C import _InferenceMode

from flowstone.framework import errors
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.dtypes import from_torch
from flowstone.framework.types.shape import is_compatible
from flowstone.partition.send_receive import SENDS
from flowstone.runtime.code.failures import explain
from flowstone.runtime.code.generated_code import Segment
from flowstone.runtime.code.tracing import Trace, TracedStep
from flowstone.runtime.execution.transfers import to_device
from flowstone.runtime.explaining.traced_plans import with_feeds
from flowstone.runtime.plans.plan import Plan
from flowstone.runtime.process import threads
from flowstone.runtime.steps.step import Step

__all__ = ["check_feed", "has_loops", "is_quick", "run_plan"]

_QUICK_NODES = 200
_QUICK_BYTES = 1 << 16
_LOOPS = ("While", "StatelessWhile", "For")


def is_quick(plan: Plan) -> bool:
    """Whether a part is one segment of a few nodes with small values, which waits for nothing."""
    if not isinstance(plan.program, Segment) or plan.program.waits or len(plan.subgraph.nodes) > _QUICK_NODES:
        return False
    return all(
        x.dims is not None
        and None not in x.dims
        and math.prod(x.dims) * (x.dtype.base_dtype.size or _QUICK_BYTES) <= _QUICK_BYTES
        for node in plan.subgraph.nodes
        for x in (*node.outputs, *(node.inputs if node.declaration.role in SENDS else ()))
        if not node.declaration.holds_state
    )


def has_loops(graph: Graph) -> bool:
    """Whether the graph has loops, of which nobody knows how long they take."""
    return any(
        operation.declaration.role == "loop_condition" or operation.type in _LOOPS
        for operation in graph.get_operations()
    )


def check_feed(value: Any, tensor: Tensor) -> None:
    """InvalidArgumentError for a value of another type or shape than the fed tensor's."""
    dtype = tensor.dtype.base_dtype
    if dtype.torch is None:
        return
    if not isinstance(value, torch.Tensor) or value.dtype != dtype.torch:
        found = from_torch(value.dtype).name if isinstance(value, torch.Tensor) else type(value).__name__
        raise errors.InvalidArgumentError(
            None, None, f"{tensor.name} is of type {dtype.name}, but the value fed to it is of type {found}"
        )
    if not is_compatible(tuple(value.shape), tensor.dims):
        raise errors.InvalidArgumentError(
            None,
            None,
            f"{tensor.name} has the shape {tensor.shape!s}, but the value fed to it {list(value.shape)}",
        )


def run_plan(plan: Plan, step: Step, feeds: Sequence[Any], count: int, trace: Trace | None) -> Any:
    """Runs a plan of a session that asks for `count` intra-op threads."""
    enter = to_device(plan.feed_device) if plan.feed_device.type != "cpu" else None
    values = feeds if enter is None else [enter(value) for value in feeds]

    function = plan.function
    if trace is not None:
        function, step = with_feeds(plan, trace), _traced(step, trace)

    def call() -> Any:
        with _InferenceMode(True):
            try:
                return function(step, *values)
            except Exception as error:
                raise explain(error, plan.program) from None

    results = threads.run_with(plan.intra_op_threads(count), call)
    if any(isinstance(value, torch.Tensor) and value.is_cuda for value in results):
        results = [value.cpu() if isinstance(value, torch.Tensor) else value for value in results]
    return results


def _traced(step: Step, trace: Trace) -> Step:
    """A step with a trace, at the same rendezvous, that ends early when `step` does."""
    traced = TracedStep(trace)
    traced.rendezvous = step.rendezvous

    def end() -> None:
        traced.is_over = step.is_over
        traced.cancel(step.error)

    step.on_cancel(end)
    return traced
