"""Runs a subgraph node by node: the reference that generated code must agree with.

`interpret` computes every node in order with its own kernel, keeps all values, overwrites and copies nothing
itself, and propagates dead values through Switch and Merge. It is what ``FLOWSTONE_CHECK=2`` and the
random-graph tests compare a segment with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from flowstone.framework.declarations.kernel import AsyncCall, Environment, StepCall, Value
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.process.denormals import flushing
from flowstone.rewriting.analyses.branches import MERGES, SWITCHES
from flowstone.runtime.execution.executor import DEAD
from flowstone.runtime.steps.step import UNLIMITED


@flushing
def interpret(subgraph: Subgraph, environment: Environment, feeds: Sequence[Any]) -> list[Any]:
    """The fetched runtime values for these fed ones; DEAD for a fetch on a branch that was not taken."""
    values: dict[PlanOutput, Any] = dict(zip(subgraph.feeds, feeds))
    alive: set[PlanNode] = set()
    for node in subgraph.nodes:
        if node.is_feed:
            alive.add(node)
            continue
        inputs = [values[x] for x in node.inputs]
        results = _results(node, inputs, environment) if _runs(node, inputs, alive) else None
        if results is not None:
            alive.add(node)
        for i, output in enumerate(node.outputs):
            values[output] = DEAD if results is None else results[i]
    fetched = [values[x] for x in subgraph.fetches]
    return [v.tensor if x.dtype.is_ref and v is not DEAD else v for x, v in zip(subgraph.fetches, fetched)]


def _runs(node: PlanNode, inputs: list[Any], alive: set[PlanNode]) -> bool:
    if any(control not in alive for control in node.control_inputs):
        return False
    if node.type in MERGES:
        return any(value is not DEAD for value in inputs)
    return not any(value is DEAD for value in inputs)


def _results(node: PlanNode, inputs: list[Any], environment: Environment) -> Sequence[Any]:
    if node.type in MERGES:
        index = next(i for i, value in enumerate(inputs) if value is not DEAD)
        return inputs[index], torch.tensor(index, dtype=torch.int32)
    if node.type in SWITCHES:
        return (DEAD, inputs[0]) if bool(_plain(node, 1, inputs[1])) else (inputs[0], DEAD)
    kernel = node.declaration.kernels[environment.device_type](node, environment)
    if isinstance(kernel, Value):
        return (kernel.value,)
    arguments = [_plain(node, i, value) for i, value in enumerate(inputs)]
    if isinstance(kernel, StepCall):
        result = kernel.function(UNLIMITED, *arguments)
    elif isinstance(kernel, AsyncCall):
        raise TypeError(f"{node.name} is asynchronous: the interpreter has nobody to wait for it")
    else:
        result = kernel(*arguments)
    return result if isinstance(result, (tuple, list)) else (result,)


def _plain(node: PlanNode, i: int, value: Any) -> Any:
    """Input `i` as the kernel takes it: the variable itself only if the declaration takes a reference."""
    is_buffer = node.inputs[i].dtype.is_ref and not node.input_argument(i).is_ref
    return value.tensor if is_buffer else value


def disagreement(computed: Sequence[Any], expected: Sequence[Any], tolerance: float = 1e-5) -> str | None:
    """A description of the first fetch of a segment that differs from the interpreter's; None if none
    does."""
    for i, (value, wanted) in enumerate(zip(computed, expected)):
        if isinstance(wanted, torch.Tensor) and wanted.dtype.is_floating_point | wanted.dtype.is_complex:
            same = value.shape == wanted.shape and torch.allclose(
                value, wanted, tolerance, tolerance, equal_nan=True
            )
        elif isinstance(wanted, torch.Tensor):
            same = torch.equal(value, wanted)
        else:
            same = True
        if not same:
            return f"fetch {i}: the segment computed {value}, node by node it is {wanted}"
    return None
