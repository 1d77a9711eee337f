"""Filter layout: stores filters in the order that their convolutions' kernels read.

TensorFlow's filters are [height, width, in, out]. ATen's kernels want the filter of each output channel in
one piece: [out, height, width, in] in memory for images with channels last, [out, in, height, width] for
others. A variable in TensorFlow's order would be copied into that one by every convolution and every
gradient, and the update would add a gradient whose order is another. So the variable keeps its shape and
changes its strides, when the plan is compiled, and with it the optimiser's slots for it. Values, shapes and
what users fetch stay as they are.

    %1 = VariableV2() shape=(3,3,64,64) : float32_ref[3,3,64,64]
    %1 = VariableV2() memory_order=(3,0,1,2) shape=(3,3,64,64) : float32_ref[3,3,64,64]
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.machine import machine
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import num_elements
from flowstone.rewriting.analyses.branches import MERGES

_ORDERS = {"NHWC": (3, 0, 1, 2), "NCHW": (3, 2, 0, 1)}


def lay_out_filters(subgraph: Subgraph) -> None:
    """Marks filters, and their optimiser's slots, with the memory order that kernels read."""
    orders: dict[PlanNode, tuple[int, ...]] = {}
    for node in subgraph.nodes:
        filters = _filter(node)
        if filters is not None:
            variable = _variable(filters)
            if variable is not None and _is_large(filters):
                orders.setdefault(variable, _ORDERS[node.attributes["data_format"]])
    if not orders:
        return
    for node in subgraph.nodes:
        if node.declaration.mutates and len(node.inputs) > 1:
            changed = [_variable(node.inputs[i]) for i in node.declaration.mutates]
            if changed[0] in orders:
                for slot in changed[1:]:
                    if slot is not None and _shape(slot) == _shape(changed[0]):
                        orders.setdefault(slot, orders[changed[0]])
    subgraph.invalidate()
    for node, order in orders.items():
        node.attributes = {**node.attributes, "memory_order": order}
        subgraph.log.append(("lay_out_filters", node.name, f"in memory as its convolution reads it: {order}"))


def _filter(node: PlanNode) -> PlanOutput | None:
    """What a convolution of images that is not depthwise, or its gradient, takes as a filter."""
    images = node.declaration.images
    if node.attributes.get("direct") or images is None or images.filter is None:
        return None
    if not node.declaration.multiplies.startswith("convolution"):
        return None
    return node.inputs[images.filter] if node.attributes["data_format"] in _ORDERS else None


def _variable(x: PlanOutput) -> PlanNode | None:
    """The variable that a value of its shape shows, seen through reads; None if it is something else."""
    node: PlanNode = x.op
    while node.inputs and node.declaration.aliases:
        if node.type in MERGES:
            return None  # one of several, or what a loop makes of it
        if node.inputs[0].dtype is not dtypes.resource and node.inputs[0].dims != node.outputs[0].dims:
            return None
        node = node.inputs[0].op
    return node if node.declaration.role == "variable" else None


def _shape(variable: PlanNode) -> Any:
    return variable.attributes["shape"]


def _is_large(x: PlanOutput) -> bool:
    size = num_elements(x.dims)
    return x.dtype.base_dtype is dtypes.float32 and size is not None and machine.current().packs(size, 4)
