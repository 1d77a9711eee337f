"""Stored values: what is known of the values read from stacks and tensor arrays, by what is put in.

A pop gives what some push to the same stack put there, a read what some write to the same array did; so all
that the shapes of what goes in have in common is true of what comes out. An array of gradients holds tensors
of the shapes of the array that it belongs to. `StoredValues` follows handles back to where they are made; if
there is a push or write whose handle it cannot follow, nothing is said of any.
"""

from __future__ import annotations

import functools
import re

import numpy as np

from flowstone.framework.node import static_value
from flowstone.framework.shape import Dims
from flowstone.framework.subgraph import PlanNode, PlanOutput, Subgraph

_HANDED_ON = frozenset({"Enter", "RefEnter", "Identity", "RefIdentity"})
_GRADIENTS = frozenset({"TensorArrayGrad", "TensorArrayGradV2", "TensorArrayGradV3"})
_CREATION = re.compile(r"(Stack|TensorArray)(V\d)?$|TensorArrayGradWithShape$")
_WRITE = re.compile(
    r"(StackPush|TensorArrayWrite|TensorArrayScatter|TensorArrayUnpack|TensorArraySplit)(V\d)?$"
)
_READ = re.compile(r"(StackPop|TensorArrayRead|TensorArrayGather)(V\d)?$")
_LARGEST_BYTES = 4096  # of constants that are not left on stacks
_VALUE = {"StackPush": 1, "TensorArrayWrite": 2, "TensorArrayScatter": 2, "TensorArrayUnpack": 1}


def is_step_storage(node: PlanNode) -> bool:
    """Whether the node makes, or looks up, a stack or an array of tensors, or a sum of products."""
    return _makes_storage(node.declaration.name)


def lives_in_a_step(node: PlanNode) -> bool:
    """Whether the node is about a stack or an array of tensors, or a sum of products."""
    return node.type.startswith(("Stack", "TensorArray", "_ProductSum"))


def is_put(node: PlanNode) -> bool:
    """Whether the node puts something into a stack or an array."""
    return _WRITE.match(node.type) is not None


def is_taken(node: PlanNode) -> bool:
    """Whether the node takes something out of a stack or an array."""
    return _READ.match(node.type) is not None


def storage_of(node: PlanNode) -> tuple[PlanNode | None, bool]:
    """What makes the stack or array that the node puts into or takes from, None if that is not known; and
    whether it is the array's gradient."""
    return _creation(node.inputs[0])


@functools.cache
def _makes_storage(op_type: str) -> bool:
    return _CREATION.match(op_type) is not None or op_type in _GRADIENTS or op_type == "_ProductSum"


class StoredValues:
    """What is known of the stacks and arrays of a subgraph. `writes`: by the node that makes a handle, (the
    value put in, whether it is an element rather than many)."""

    def __init__(self, subgraph: Subgraph) -> None:
        self.writes: dict[PlanNode, list[tuple[PlanOutput | None, bool]]] = {}
        for node in subgraph.nodes:
            found = _WRITE.match(node.type)
            if found is None:
                continue
            creation, is_gradient = _creation(node.inputs[0])
            if creation is None:
                self.writes.clear()
                return
            if not is_gradient:
                place = _VALUE.get(found[1])
                value = None if place is None else node.inputs[place]
                is_element = found[1] in ("StackPush", "TensorArrayWrite")
                self.writes.setdefault(creation, []).append((value, is_element))

    def written_for(self, node: PlanNode) -> list[tuple[PlanOutput | None, bool]]:
        """What is put into what a pop, read or gather takes from."""
        creation, _ = _creation(node.inputs[0])
        return self.writes.get(creation, []) if creation is not None else []

    def dims_for(self, node: PlanNode) -> Dims:
        """The shape of the first output of a pop, read or gather, as far as it is known by now."""
        found, written = _READ.match(node.type), self.written_for(node)
        if found is None or not written:
            return None
        dims = _common([_element_dims(*each) for each in written])
        return dims if dims is None or found[1] != "TensorArrayGather" else (None, *dims)

    def constant_for(self, pop: PlanNode) -> np.ndarray | None:
        """What a pop always gives, if all that is pushed is the same small constant."""
        known = None
        for pushed, _ in self.written_for(pop):
            value = None if pushed is None else static_value(pushed)
            if not isinstance(value, np.ndarray) or value.nbytes > _LARGEST_BYTES:
                return None
            if known is not None and (known.shape != value.shape or not np.array_equal(known, value)):
                return None
            known = value
        return known


def is_pop(node: PlanNode) -> bool:
    """Whether `node` takes something from a stack."""
    return node.type in ("StackPop", "StackPopV2")


def is_handed_out(node: PlanNode) -> bool:
    """Whether `node` takes something from a stack or an array."""
    return node.type.startswith(("Stack", "TensorArray")) and _READ.match(node.type) is not None


def _creation(handle: PlanOutput) -> tuple[PlanNode | None, bool]:
    """Where a handle is made, and whether it stands for the gradients of the array made there."""
    node, is_gradient = handle.op, False
    while node.type in _HANDED_ON or node.type in _GRADIENTS:
        is_gradient = is_gradient or node.type in _GRADIENTS
        node = node.inputs[0].op
    return (node if _CREATION.match(node.type) else None), is_gradient


def _element_dims(value: PlanOutput | None, is_element: bool) -> Dims:
    dims = None if value is None else value.dims
    return dims if is_element or not dims else dims[1:]


def _common(shapes: list[Dims]) -> Dims:
    """All that is true of each."""
    first, *others = shapes
    for dims in others:
        if first is None or dims is None or len(first) != len(dims):
            return None
        first = tuple([x if x == y else None for x, y in zip(first, dims)])
    return first
