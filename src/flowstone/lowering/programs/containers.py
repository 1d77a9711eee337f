"""Stacks and arrays that a region makes, as containers of its program.

An element's shape is that of what is pushed, written or read, which must be the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.framework.types.shape import Dims
from flowstone.lowering.programs.program_limits import Untranslatable
from flowstone.native.codegen.emitter import KINDS
from flowstone.native.programs.programs import Builder, Container
from flowstone.rewriting.analyses.frames import Frames

__all__ = ["HANDING_ON", "Containers", "element_dims"]

HANDING_ON = frozenset({"enter", "identity", "switch"})
"""Roles of nodes whose outputs are their first input."""

_VALUES = {"StackPushV2": 1, "TensorArrayWriteV3": 2}  # the input that is an element
_ROWS = {"TensorArrayScatterV3": 2}  # the input whose rows are elements


class Containers:
    """The containers of a program, by the handles that outputs of nodes are."""

    def __init__(self, builder: Builder, frames: Frames, nodes: Sequence[PlanNode]) -> None:
        self._builder, self._frames = builder, frames
        self._of: dict[PlanOutput, int] = {}
        self._gradients: dict[tuple[int, str], int] = {}
        self._dims: dict[PlanOutput, tuple[int, ...]] = {}  # of elements, by the handle that was made
        for node in nodes:
            dims = element_dims(node)
            if dims is not None:
                self._dims.setdefault(_root(node.inputs[0]), dims)

    def knows(self, handle: PlanOutput) -> bool:
        """Whether it is a container of the program."""
        return handle in self._of

    def hand_on(self, source: PlanOutput, target: PlanOutput) -> None:
        """Another name of the handle."""
        if source in self._of:
            self._of[target] = self._of[source]

    def number(self, node: PlanNode) -> int:
        """The container that the node works on."""
        found = self._of.get(node.inputs[0])
        if found is None:
            raise Untranslatable(node, "it takes a container that is made elsewhere")
        return found

    def element_dims(self, node: PlanNode) -> tuple[int, ...]:
        """The shape of the elements of the container that the node works on."""
        return self._dims[_root(node.inputs[0])]

    def make(self, node: PlanNode, kind: str, dtype: str, **options: Any) -> int:
        """A new container, which the node's first output is."""
        dims = self._dims.get(node.outputs[0])
        if dims is None or dtype not in KINDS:
            raise Untranslatable(node, "what it holds is not known before the step")
        if self._frames.of.get(node) is not None:
            raise Untranslatable(node, "a container is made inside of a loop")
        containers = self._builder.containers
        containers.append(Container(kind, dtype, math.prod(dims), **options))
        self._of[node.outputs[0]] = len(containers) - 1
        return len(containers) - 1

    def gradients(self, node: PlanNode) -> tuple[int, bool]:
        """The array of gradients of an array, and whether it is new."""
        like = self.number(node)
        key = like, node.attributes["source"]
        found = self._gradients.get(key)
        if found is not None:
            self._of[node.outputs[0]] = found
            return found, False
        self._dims.setdefault(node.outputs[0], self.element_dims(node))
        dtype = self._builder.containers[like].dtype
        self._gradients[key] = self.make(node, "array", dtype, adds=True, of=like)
        return self._gradients[key], True


def _root(handle: PlanOutput) -> PlanOutput:
    """The output that made what a handle stands for; an array of gradients is of its own array's elements."""
    while handle.op.declaration.role in HANDING_ON or handle.op.type == "TensorArrayGradV3":
        handle = handle.op.inputs[0]
    return handle


def element_dims(node: PlanNode) -> tuple[int, ...] | None:
    """The shape of the elements that the node puts into a container or takes out, where it is known."""
    dims: Dims = None
    if node.type in _VALUES:
        dims = node.inputs[_VALUES[node.type]].dims
    elif node.type in _ROWS:
        dims = _rest(node.inputs[_ROWS[node.type]].dims)
    elif node.type == "TensorArrayGatherV3":
        dims = _rest(node.outputs[0].dims)
    elif node.type == "TensorArrayReadV3":
        dims = node.outputs[0].dims
    if dims is None or None in dims:
        return None
    return tuple([n for n in dims if n is not None])


def _rest(dims: Dims) -> Dims:
    return None if dims is None else dims[1:]
