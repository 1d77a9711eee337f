"""The statements that nodes on stacks and arrays are."""

from __future__ import annotations

from collections.abc import Callable

from flowstone.framework.graphs.subgraph import PlanNode
from flowstone.framework.types.shape import fully_known
from flowstone.lowering.programs.program_limits import Untranslatable, kind_of, static_dims
from flowstone.lowering.programs.translation import Translation

__all__ = ["CONTAINERS"]


def _stack(t: Translation, node: PlanNode) -> list[int]:
    limit = node.constant(0)
    if limit is None or int(limit) >= 0:
        raise Untranslatable(node, "the stack has a limit")
    if node.attributes["elem_type"].name == "resource":
        t.containers.hold(node)
        return []
    t.containers.make(node, "stack", node.attributes["elem_type"].name)
    return []


def _push(t: Translation, node: PlanNode) -> list[int]:
    if node.inputs[1].dtype.name == "resource":
        t.containers.push(node)
        return []
    i, value = t.containers.number(node), t.of(node.inputs[1])
    _check(t, node, i, value)
    t.add("Push", [value], None, container=i)
    return [value]


def _pop(t: Translation, node: PlanNode) -> list[int]:
    x = node.outputs[0]
    if x.dtype.name == "resource":
        t.containers.pop(node, t.takers_of(x))
        return []
    i = t.containers.number(node)
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
