"""Stored values: what is known of the values read from stacks and tensor arrays, by what is put in.

A pop gives what some push to the same stack put there, a read what some write to the same array did; so all
that the shapes of what goes in have in common is true of what comes out. An array of gradients holds tensors
of the shapes of the array that it belongs to. `StoredValues` follows handles back to where they are made; if
there is a push or write whose handle it cannot follow, nothing is said of any.
"""

from __future__ import annotations

import numpy as np

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.tensors.node import static_value
from flowstone.framework.types.shape import Dims

MADE = frozenset({"stack", "array", "sum"})
"""Traits of the nodes that make them."""

_HANDING_ON = frozenset({"enter", "identity", "switch"})  # roles
_PUTS = frozenset({"push", "write", "scatter", "unpack", "split"})
_TAKES = frozenset({"pop", "read", "gather"})
_LARGEST_BYTES = 4096  # of constants that are not left on stacks
_VALUE = {"push": 1, "write": 2, "scatter": 2, "unpack": 1}  # what is put in, if its parts have one shape


def is_step_storage(node: PlanNode) -> bool:
    """Whether the node makes, or looks up, a stack or an array of tensors, or a sum of products."""
    return node.declaration.container in MADE or node.declaration.container == "gradient"


def lives_in_a_step(node: PlanNode) -> bool:
    """Whether the node is about a stack or an array of tensors, or a sum of products."""
    return bool(node.declaration.container)


def is_put(node: PlanNode) -> bool:
    """Whether the node puts something into a stack or an array."""
    return node.declaration.container in _PUTS


def is_taken(node: PlanNode) -> bool:
    """Whether the node takes something out of a stack or an array."""
    return node.declaration.container in _TAKES


def storage_of(node: PlanNode) -> tuple[PlanNode | None, bool]:
    """What makes the stack or array that the node puts into or takes from, None if that is not known; and
    whether it is the array's gradient."""
    return _creation(node.inputs[0])


class StoredValues:
    """What is known of the stacks and arrays of a subgraph. `writes`: by the node that makes a handle, (the
    value put in, whether it is an element rather than many)."""

    def __init__(self, subgraph: Subgraph) -> None:
        self.writes: dict[PlanNode, list[tuple[PlanOutput | None, bool]]] = {}
        for node in subgraph.nodes:
            if not is_put(node):
                continue
            creation, is_gradient = _creation(node.inputs[0])
            if creation is None:
                self.writes.clear()
                return
            if not is_gradient:
                place = _VALUE.get(node.declaration.container)
                value = None if place is None else node.inputs[place]
                is_element = node.declaration.container in ("push", "write")
                self.writes.setdefault(creation, []).append((value, is_element))

    def written_for(self, node: PlanNode) -> list[tuple[PlanOutput | None, bool]]:
        """What is put into what a pop, read or gather takes from."""
        creation, _ = _creation(node.inputs[0])
        return self.writes.get(creation, []) if creation is not None else []

    def dims_for(self, node: PlanNode) -> Dims:
        """The shape of the first output of a pop, read or gather, as far as it is known by now."""
        written = self.written_for(node)
        if not is_taken(node) or not written:
            return None
        dims = common([_element_dims(*each) for each in written])
        return dims if dims is None or node.declaration.container != "gather" else (None, *dims)

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
    return node.declaration.container == "pop"


def _creation(handle: PlanOutput) -> tuple[PlanNode | None, bool]:
    """Where a handle is made, and whether it stands for the gradients of the array made there."""
    node, is_gradient = handle.op, False
    while node.declaration.role in _HANDING_ON or node.declaration.container == "gradient":
        is_gradient = is_gradient or node.declaration.container == "gradient"
        node = node.inputs[0].op
    return (node if node.declaration.container in MADE else None), is_gradient


def _element_dims(value: PlanOutput | None, is_element: bool) -> Dims:
    dims = None if value is None else value.dims
    return dims if is_element or not dims else dims[1:]


def common(shapes: list[Dims]) -> Dims:
    """All that is true of each of these shapes."""
    first, *others = shapes
    for dims in others:
        if first is None or dims is None or len(first) != len(dims):
            return None
        first = tuple([x if x == y else None for x, y in zip(first, dims)])
    return first
