"""Stacks and arrays that a region makes, as containers of its program.

An element's shape is that of what is pushed, written or read, which must be the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.framework.types.shape import Dims, fully_known
from flowstone.lowering.programs.statement_parts import Untranslatable, kind_of, static_dims
from flowstone.native.codegen.emitter import KINDS
from flowstone.native.programs.programs import Container

if TYPE_CHECKING:
    from flowstone.lowering.programs.translation import Translation

__all__ = ["CONTAINERS", "HANDING_ON", "Containers"]

HANDING_ON = frozenset({"enter", "identity", "switch"})
"""Roles of nodes whose outputs are their first input."""

_VALUES = {"StackPushV2": 1, "TensorArrayWriteV3": 2}  # the input that is an element
_ROWS = {"TensorArrayScatterV3": 2}  # the input whose rows are elements


class Containers:
    """The containers of a translation, by the handles that outputs of nodes are."""

    def __init__(self, translation: Translation, nodes: Sequence[PlanNode]) -> None:
        self._translation = translation
        self._of: dict[PlanOutput, int] = {}
        self._gradients: dict[tuple[int, str], int] = {}
        self._dims: dict[PlanOutput, tuple[int, ...]] = {}  # of elements, by the handle that was made
        for node in nodes:
            dims = _element_dims(node)
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
        if self._translation.frames.of.get(node) is not None:
            raise Untranslatable(node, "a container is made inside of a loop")
        containers = self._translation.builder.containers
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
        dtype = self._translation.builder.containers[like].dtype
        self._gradients[key] = self.make(node, "array", dtype, adds=True, of=like)
        return self._gradients[key], True


def _root(handle: PlanOutput) -> PlanOutput:
    """The output that made what a handle stands for; an array of gradients is of its own array's elements."""
    while handle.op.declaration.role in HANDING_ON or handle.op.type == "TensorArrayGradV3":
        handle = handle.op.inputs[0]
    return handle


def _element_dims(node: PlanNode) -> tuple[int, ...] | None:
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


# ---- statements


def _stack(t: Translation, node: PlanNode) -> list[int]:
    limit = node.constant(0)
    if limit is None or int(limit) >= 0:
        raise Untranslatable(node, "the stack has a limit")
    t.containers.make(node, "stack", node.attributes["elem_type"].name)
    return []


def _push(t: Translation, node: PlanNode) -> list[int]:
    i, value = t.containers.number(node), t.of(node.inputs[1])
    _check(t, node, i, value)
    t.add("Push", [value], None, container=i)
    return [value]


def _pop(t: Translation, node: PlanNode) -> list[int]:
    i = t.containers.number(node)
    x = node.outputs[0]
    dims = x.dims if x.dims is not None and None not in x.dims else t.containers.element_dims(node)
    return [t.add("Pop", [], (kind_of(node, x), static_dims(node, dims)), container=i)]


def _array(t: Translation, node: PlanNode) -> list[int]:
    if node.attributes["dynamic_size"]:
        raise Untranslatable(node, "the array grows")
    dtype, clears = node.attributes["dtype"].name, node.attributes["clear_after_read"]
    dims = node.attributes["element_shape"]
    known, learns = fully_known(dims) is not None, node.attributes["identical_element_shapes"]
    i = t.containers.make(node, "array", dtype, clears=clears, known=known, learns=learns)
    t.add("MakeArray", [t.of(node.inputs[0])], None, container=i)
    return [-1, _flow(t)]


def _gradients(t: Translation, node: PlanNode) -> list[int]:
    i, is_new = t.containers.gradients(node)
    if is_new:
        t.add("MakeArray", [], None, container=i, like=t.containers.number(node))
    return [-1, _flow(t)]


def _flow(t: Translation) -> int:
    return t.builder.constant("float32", (), [0.0])


def _write(t: Translation, node: PlanNode) -> list[int]:
    i, value = t.containers.number(node), t.of(node.inputs[2])
    _check(t, node, i, value)
    t.add("WriteArray", [t.of(node.inputs[1]), value], None, container=i)
    return [t.of(node.inputs[3])]


def _read(t: Translation, node: PlanNode) -> list[int]:
    i, x = t.containers.number(node), node.outputs[0]
    dims = x.dims if x.dims is not None and None not in x.dims else t.containers.element_dims(node)
    result = kind_of(node, x), static_dims(node, dims)
    found = t.add("ReadArray", [t.of(node.inputs[1])], result, container=i)
    _check(t, node, i, found)
    return [found]


def _scatter(t: Translation, node: PlanNode) -> list[int]:
    i, value = t.containers.number(node), t.of(node.inputs[2])
    _check(t, node, i, value, rows=t.builder.values[t.of(node.inputs[1])].size)
    t.add("ScatterArray", [t.of(node.inputs[1]), value], None, container=i)
    return [t.of(node.inputs[3])]


def _gather(t: Translation, node: PlanNode) -> list[int]:
    i, x, indices = t.containers.number(node), node.outputs[0], t.of(node.inputs[1])
    count = t.builder.values[indices].size
    dims = x.dims
    if dims is None or None in dims:
        dims = (count, *t.containers.element_dims(node))
    found = t.add("GatherArray", [indices], (kind_of(node, x), static_dims(node, dims)), container=i)
    _check(t, node, i, found, rows=count)
    return [found]


def _size(t: Translation, node: PlanNode) -> list[int]:
    return [t.add("SizeArray", [], ("int32", ()), container=t.containers.number(node))]


def _check(t: Translation, node: PlanNode, i: int, value: int, rows: int = 1) -> None:
    """Whether the value is an element of the container, or so many."""
    container, found = t.builder.containers[i], t.builder.values[value]
    if found.dtype != container.dtype or found.size != container.size * rows:
        raise Untranslatable(node, "elements of a container differ")


CONTAINERS: dict[str, Callable[[Translation, PlanNode], list[int]]] = {
    "StackV2": _stack,
    "StackPushV2": _push,
    "StackPopV2": _pop,
    "TensorArrayV3": _array,
    "TensorArrayGradV3": _gradients,
    "TensorArrayWriteV3": _write,
    "TensorArrayReadV3": _read,
    "TensorArrayScatterV3": _scatter,
    "TensorArrayGatherV3": _gather,
    "TensorArraySizeV3": _size,
    "TensorArrayCloseV3": lambda t, node: [],
}
"""Nodes that work on containers."""
