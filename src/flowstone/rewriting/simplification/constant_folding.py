"""Constant folding and local identities.

`fold_constants` computes, once per plan, every pure node whose inputs are all constants (with its own CPU
kernel), and every node whose value is known without its inputs' (a static shape, a rank, a shape that comes
back from a stack). A check of what is known to hold is dropped. `apply_identities` asks a node's
declaration for what equals it (x + 0 = x, Identity): its `fold` hook. Where that is a constant, it computes
what depends on constants alone since then.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from flowstone.framework.declarations.operation import evaluate, registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.process.denormals import flushing
from flowstone.framework.tensors.node import static_value
from flowstone.framework.types.values import to_numpy
from flowstone.rewriting.analyses.frames import ENTERS
from flowstone.rewriting.analyses.stored_values import is_pop
from flowstone.rewriting.patterns import Replacement, rewrite

LARGEST_CONSTANT_BYTES = (
    256 << 10
)  # a plan is not to hold every initial value; smaller than its inputs is welcome
LARGEST_PRODUCT_BYTES = 10 << 20  # the same of a product or a convolution, which steps spend their time on
_GIVEN = frozenset({"constant", "feed"})  # roles
_evaluate = flushing(evaluate)  # as steps do


def fold_constants(subgraph: Subgraph) -> None:
    """Replaces nodes whose value does not depend on the step by constants."""

    def rule(node: PlanNode) -> Replacement | None:
        declaration = node.declaration
        if _always_holds(node):
            return Replacement([], "always holds")
        if not node.outputs or declaration.role in _GIVEN:
            return None
        if not declaration.is_pure and not is_pop(node):
            return None
        if node.type in ENTERS and (node.control_inputs or node.inputs[0].op.control_inputs):
            return None  # inside the loop, a constant cannot wait for what is outside
        if declaration.role == "placeholder" and node.inputs[0].op.is_constant:
            return Replacement([node.inputs[0]], "is its default, since it is not fed")
        if declaration._value_function is not None:
            known = [static_value(output) for output in node.outputs]
            if all([isinstance(value, np.ndarray) for value in known]):
                return _constants(subgraph, node, known, "known before the step")
        return _computed(subgraph, node)

    rewrite(subgraph, "fold_constants", rule)


def _always_holds(node: PlanNode) -> bool:
    """Whether it is a check that nothing of the step can fail."""
    if node.type != "Assert" or not node.inputs[0].op.is_constant:
        return False
    return bool(node.inputs[0].op.attributes["value"])


def _computed(subgraph: Subgraph, node: PlanNode) -> Replacement | None:
    """What a pure node of constants gives."""
    if (
        not node.declaration.is_pure
        or not node.inputs
        or any([x.op.declaration.role != "constant" for x in node.inputs])
    ):
        return None
    values = _evaluated(node)
    return None if values is None else _constants(subgraph, node, values, "all inputs are constant")


def _evaluated(node: PlanNode) -> list[Any] | None:
    if any(output.dtype.is_ref for output in node.outputs) or "CPU" not in node.declaration.kernels:
        return None
    size = 0
    for output in node.outputs:
        if output.dtype.torch is None and output.dtype.name != "string":
            return None
        if output.static_shape is not None:
            size += math.prod(output.static_shape) * max(output.dtype.size, 1)
    most = LARGEST_PRODUCT_BYTES if node.declaration.multiplies else LARGEST_CONSTANT_BYTES
    if size > max(most, sum(x.op.attributes["value"].nbytes for x in node.inputs)):
        return None
    try:
        results = _evaluate(node, [x.op.attributes["value"] for x in node.inputs])
    except Exception:  # left to the step, whose error names the node
        return None
    return [to_numpy(result, output.dtype) for result, output in zip(results, node.outputs)]


def _constants(subgraph: Subgraph, node: PlanNode, values: list[Any], reason: str) -> Replacement:
    nodes = []
    for output, value in zip(node.outputs, values):
        name = node.name if not output.value_index else f"{node.name}/{output.value_index}"
        attributes = {"value": value, "dtype": output.dtype.base_dtype}
        constant = subgraph.new_node(registry["Const"], [], attributes, like=node, name=name)
        constant.control_inputs = [control for x in node.inputs for control in x.op.control_inputs]
        nodes.append(constant)
    return Replacement([new.outputs[0] for new in nodes], reason, tuple(nodes))


def apply_identities(subgraph: Subgraph) -> None:
    """Replaces nodes by what their declaration says they equal."""
    found: set[PlanNode] = set()  # constants that were none before

    def rule(node: PlanNode) -> Replacement | None:
        replacement = identity(node)
        if replacement is None and found and not found.isdisjoint([x.op for x in node.inputs]):
            replacement = None if node.type in ENTERS else _computed(subgraph, node)
        if replacement is not None:
            found.update(replacement.nodes)
        return replacement

    def identity(node: PlanNode) -> Replacement | None:
        fold = node.declaration.fold_function
        if fold is None:
            return None
        if node.control_inputs and (node.declaration.role != "identity" or node.inputs[0].dtype.is_ref):
            return None
        equal = fold(node)
        if equal is None:
            return None
        if isinstance(equal, list):
            waits = any(x.op.control_inputs for x in node.inputs)
            return None if waits else Replacement(list(node.inputs), "equal its inputs")
        if isinstance(equal, np.ndarray):
            return _constants(subgraph, node, [equal], "a constant by identity")
        if any(x is not equal and x.op.control_inputs for x in node.inputs):
            return None  # the other input, dropped, is what the node waits for
        return Replacement([cast(PlanOutput, equal)], "equals its input", controls=tuple(node.control_inputs))

    rewrite(subgraph, "apply_identities", rule)
