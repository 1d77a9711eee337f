"""Stacks and arrays that a region makes, as containers of its program.

An element's shape is that of what is pushed, written or read, which must be the same everywhere. An array
that a loop makes in each iteration is one container, which begins anew. The gradient of such a loop pops the
arrays of a stack: what it takes of them is how many elements they have, which must be the same in all
iterations, and their gradients. So it takes the one container.
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

_ARRAYS = -1  # instead of a container's number: a stack of arrays
_PASSING = ("StackPopV2", "StackPushV2")
_OF_LIKENESS = ("TensorArrayGradV3", "TensorArraySizeV3")  # what an array of an earlier iteration is asked
_VALUES = {"StackPushV2": 1, "TensorArrayWriteV3": 2}  # the input that is an element
_ROWS = {"TensorArrayScatterV3": 2}  # the input whose rows are elements


class Containers:
    """The containers of a program, by the handles that outputs of nodes are."""

    def __init__(self, builder: Builder, frames: Frames, nodes: Sequence[PlanNode]) -> None:
        self._builder, self._frames = builder, frames
        self._of: dict[PlanOutput, int] = {}
        self._pushed: dict[PlanOutput, list[PlanOutput]] = {}  # arrays, by the stacks that they are pushed to
        for node in nodes:
            if node.type == "StackPushV2" and node.inputs[1].dtype.name == "resource":
                self._pushed.setdefault(_handed(node.inputs[0]), []).append(node.inputs[1])
        self._gradients: dict[tuple[int, str], int] = {}
        self._dims: dict[PlanOutput, tuple[int, ...]] = {}  # of elements, by the handle that was made
        for node in nodes:
            dims = element_dims(node)
            if dims is not None:
                self._dims.setdefault(self._root(node.inputs[0]), dims)

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
        return self._dims[self._root(node.inputs[0])]

    def make(self, node: PlanNode, kind: str, dtype: str, **options: Any) -> int:
        """A new container, which the node's first output is."""
        dims = self._dims.get(node.outputs[0])
        if dims is None or dtype not in KINDS:
            raise Untranslatable(node, "what it holds is not known before the step")
        if kind == "stack" and self._frames.of.get(node) is not None:
            raise Untranslatable(node, "a stack is made inside of a loop")
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
        if self._depth(node) != self._depth(self._root(node.inputs[0]).op):
            raise Untranslatable(node, "a container is made inside of a loop")
        self._dims.setdefault(node.outputs[0], self.element_dims(node))
        dtype = self._builder.containers[like].dtype
        self._gradients[key] = self.make(node, "array", dtype, adds=True, of=like)
        return self._gradients[key], True

    def _depth(self, node: PlanNode) -> int:
        """How many loops it is in."""
        depth, frame = 0, self._frames.home(node)
        while frame is not None:
            depth, frame = depth + 1, frame.parent
        return depth

    # ---- arrays on stacks

    def hold(self, stack: PlanNode) -> None:
        """The stack is one of arrays."""
        self._of[stack.outputs[0]] = _ARRAYS

    def push(self, node: PlanNode) -> None:
        """The node pushes an array, which all iterations make of one size."""
        array = self._root(node.inputs[1]).op
        if self.number(node) != _ARRAYS or node.inputs[1] not in self._of or array.type != "TensorArrayV3":
            raise Untranslatable(node, "it keeps what is no array")
        if array.constant(0) is None:
            raise Untranslatable(node, "the size of an array is not known before the step")
        self.hand_on(node.inputs[1], node.outputs[0])

    def pop(self, node: PlanNode, takers: Sequence[PlanNode]) -> None:
        """The node gives the array that was pushed, to those who take it."""
        arrays = self._pushed.get(_handed(node.inputs[0]), [])
        if len(arrays) != 1 or arrays[0] not in self._of:
            raise Untranslatable(node, "it takes a container that is made elsewhere")
        if any(each.type not in _OF_LIKENESS for each in takers):
            raise Untranslatable(node, "it takes the elements of an array of an earlier iteration")
        self.hand_on(arrays[0], node.outputs[0])

    def _root(self, handle: PlanOutput) -> PlanOutput:
        """The output that made what a handle stands for; an array of gradients is of its own array's
        elements."""
        while True:
            handle = _handed(handle)
            pushed = self._pushed.get(_handed(handle.op.inputs[0])) if handle.op.type in _PASSING else None
            if handle.op.type == "TensorArrayGradV3":
                handle = handle.op.inputs[0]
            elif handle.op.type == "StackPushV2":
                handle = handle.op.inputs[1]
            elif pushed:
                handle = pushed[0]
            else:
                return handle


def _handed(handle: PlanOutput) -> PlanOutput:
    """What was handed on."""
    while handle.op.declaration.role in HANDING_ON:
        handle = handle.op.inputs[0]
    return handle


def element_dims(node: PlanNode) -> tuple[int, ...] | None:
    """The shape of the elements that the node puts into a container or takes out, where it is known."""
    dims: Dims = None
    if node.type == "StackPushV2" and node.inputs[1].dtype.name == "resource":
        return None
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
