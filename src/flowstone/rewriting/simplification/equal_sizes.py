"""Sizes that are unknown but equal.

A plan for many shapes leaves sizes of its feeds open, yet may hold only where some of them are equal and none
is 0 or 1: such sizes are the same negative number in its `feed_dims`. `use_equal_sizes` follows them through
the subgraph, as `Size`s (`known_sizes.py`), and does away with what they decide:

- over which axes a gradient is summed because an operand was broadcast;
- quotients of numbers of elements, as gradients of means have them;
- reshapes and broadcasts to the shape that a value has anyway;
- broadcasts of an operand that the op does itself, among them those of one number, reshaped or not;
- shape arithmetic that gives what other nodes have computed already;
- the shapes of reshapes: constants, with -1 for the one size that is not known; axes of size 1 that are only
  added or dropped.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, num_elements
from flowstone.rewriting.analyses.frames import Frames
from flowstone.rewriting.patterns import Replacement, remove_unneeded, rewrite
from flowstone.rewriting.simplification.known_sizes import (
    KnownSizes,
    has_sizes,
    known_sizes,
    shadow_of,
    tried,
)
from flowstone.rewriting.simplification.named_sizes import Size


def without_equal_sizes(feed_dims: Sequence[Dims]) -> list[Dims]:
    """Shapes of feeds with None for open sizes, equal or not."""
    return [dims and tuple([None if n is None or n < 0 else n for n in dims]) for dims in feed_dims]


def use_equal_sizes(
    subgraph: Subgraph, feed_dims: Sequence[Dims], values: Mapping[PlanOutput, Any] = MappingProxyType({})
) -> None:
    """Rewrites what these `feed_dims` decide, if there are equal sizes among them or among the feeds' known
    `values`."""
    if not values and not any([n is not None and n < 0 for dims in feed_dims for n in dims or ()]):
        return
    known = known_sizes(subgraph, feed_dims, values)
    frames = subgraph.analysis(Frames)
    computed: dict[Any, PlanOutput] = {}  # by what is known of them

    def rule(node: PlanNode) -> Replacement | None:
        known.add(node)
        found = _decided(subgraph, node, known)
        return found or _computed_before(node, known, computed, frames.home(node))

    rewrite(subgraph, "use_equal_sizes", rule)
    remove_unneeded(subgraph)  # shape arithmetic, lest all passes look at it


# ---- what is decided


def _decided(subgraph: Subgraph, node: PlanNode, known: KnownSizes) -> Replacement | None:
    constants = _constants(subgraph, node, known)
    if constants is not None or node.control_inputs or any([x.op.control_inputs for x in node.inputs]):
        return constants
    if node.type in ("Reshape", "BroadcastTo") and not node.inputs[0].dtype.is_ref:
        if known.tells_sizes(node) and known.is_same(node.inputs[0], node.outputs[0]):
            return Replacement([node.inputs[0]], "has this shape for all sizes")
    if node.type == "Reshape" and not node.inputs[0].dtype.is_ref:
        return _reshaped(subgraph, node, known)
    if node.declaration.broadcasts and len(node.inputs) == 2:
        return _narrowed(subgraph, node, known)
    return None


def _constants(subgraph: Subgraph, node: PlanNode, known: KnownSizes) -> Replacement | None:
    """What all sizes have the same, as constants that wait for what the node's inputs wait for."""
    if node.type != "BroadcastGradientArgs" and not any([x in known.values for x in node.outputs]):
        return None
    values = [known.values.get(x) for x in node.outputs]
    reason = "is the same for all sizes"
    if node.type == "BroadcastGradientArgs":
        shadow = shadow_of(node, known)
        values = [tried(lambda i=i: node.declaration.static_value(shadow, i)) for i in (0, 1)]  # type: ignore[misc]
        reason = "given that sizes are equal and none is 1"
    if not values or not all([isinstance(value, np.ndarray) and not has_sizes(value) for value in values]):
        return None
    new = []
    for i, (x, value) in enumerate(zip(node.outputs, values)):
        constant = subgraph.new_constant(np.asarray(value, x.dtype.as_numpy_dtype), node, f"sizes{i or ''}")
        constant.control_inputs = [control for y in node.inputs for control in y.op.control_inputs]
        known.values[constant.outputs[0]] = np.asarray(value, object)
        new.append(constant)
    return Replacement([each.outputs[0] for each in new], reason, tuple(new))


def _computed_before(
    node: PlanNode, known: KnownSizes, computed: dict[Any, PlanOutput], home: Any
) -> Replacement | None:
    """What an earlier node of the same loop has computed, where these are the same sizes."""
    value = known.values.get(node.outputs[0]) if len(node.outputs) == 1 else None
    if value is None or not node.declaration.is_pure or node.outputs[0].dtype.is_ref:
        return None
    key = home, node.device, node.outputs[0].dtype, value.shape, repr(value.tolist())
    first = computed.setdefault(key, node.outputs[0])
    if first is node.outputs[0] or node.control_inputs or first.op.control_inputs:
        return None
    return Replacement([first], "has the same sizes")


# ---- reshapes


def _reshaped(subgraph: Subgraph, node: PlanNode, known: KnownSizes) -> Replacement | None:
    """A reshape whose shape is not computed in the step."""
    y = node.outputs[0]
    source = _before_reshapes(node, known) if known.tells_sizes(node) else None
    if source is not None and not source.dtype.is_ref and known.is_same(source, y):
        return Replacement([source], "is reshaped back")
    if node.inputs[1].op.is_constant or not _keeps_elements(node, known):
        return None
    before, after = known.of(node.inputs[0]), known.of(y)
    if sum([isinstance(n, Size) for n in after]) == 1:
        return _with_one_open(subgraph, node, known, after)
    ones = [axis for axis, n in enumerate(after) if type(n) is int and n == 1]
    for axis in ones:
        if tried(lambda axis=axis: after[:axis] + after[axis + 1 :] == before):  # type: ignore[misc]
            return _with_axis(subgraph, node, known, axis)
    ones = [axis for axis, n in enumerate(before) if type(n) is int and n == 1]
    if ones and tried(lambda: tuple([n for i, n in enumerate(before) if i not in ones]) == after):
        dropping = {"T": node.inputs[0].dtype.base_dtype, "squeeze_dims": ones}
        new = subgraph.new_node(registry["Squeeze"], node.inputs[:1], dropping, like=node)
        return _replaced(known, "only drops axes", new)
    return None


def _before_reshapes(node: PlanNode, known: KnownSizes) -> PlanOutput | None:
    """What a reshape's operand is a reshape of, the nearest of the same shape as the result; None if there
    is none."""
    source, y = node.inputs[0], node.outputs[0]
    while source.op.declaration.reshapes and not source.op.control_inputs:
        if not _keeps_elements(source.op, known):
            return None
        source = source.op.inputs[0]
        if known.is_same(source, y):
            return source
    return None


def _keeps_elements(node: PlanNode, known: KnownSizes) -> bool:
    """Whether a reshape is known to be possible."""
    if node.type == "Reshape" and not known.tells_sizes(node):
        return False
    before, after = known.of(node.inputs[0]), known.of(node.outputs[0])
    if before is None or after is None or None in before or None in after:
        return False
    return bool(tried(lambda: _elements(before) == _elements(after)))


def _elements(dims: Any) -> Any:
    return functools.reduce(lambda a, b: a * b, dims, 1)


def _with_one_open(subgraph: Subgraph, node: PlanNode, known: KnownSizes, dims: Any) -> Replacement:
    sizes = np.array([-1 if isinstance(n, Size) else n for n in dims], node.dtype(1).as_numpy_dtype)
    constant = subgraph.new_constant(sizes, node, "sizes")
    inputs = [node.inputs[0], constant.outputs[0]]
    new = subgraph.new_node(node.declaration, inputs, node.attributes, like=node)
    return _replaced(known, "only one size is not known", constant, new)


def _with_axis(subgraph: Subgraph, node: PlanNode, known: KnownSizes, axis: int) -> Replacement:
    constant = subgraph.new_constant(np.array(axis, np.int32), node, "axis")
    attributes = {"T": node.inputs[0].dtype.base_dtype, "Tdim": dtypes.int32}
    inputs = [node.inputs[0], constant.outputs[0]]
    new = subgraph.new_node(registry["ExpandDims"], inputs, attributes, like=node)
    return _replaced(known, "only adds an axis", constant, new)


def _replaced(known: KnownSizes, reason: str, *nodes: PlanNode) -> Replacement:
    """The last of these new nodes stands for the result."""
    for node in nodes:
        known.add(node)
    return Replacement([nodes[-1].outputs[0]], reason, nodes)


# ---- broadcasts


def _narrowed(subgraph: Subgraph, node: PlanNode, known: KnownSizes) -> Replacement | None:
    """The op on what an operand was broadcast from, where the other one has the result's shape."""
    for i in (0, 1):
        other = node.inputs[1 - i]
        source = _repeated(node.inputs[i], other, known)
        if source is not None and known.is_same(other, node.outputs[0]):
            inputs = [source, other] if i == 0 else [other, source]
            narrow = subgraph.new_node(node.declaration, inputs, node.attributes, like=node)
            return _replaced(known, "the other operand has the result's shape for all sizes", narrow)
    return None


def _repeated(x: PlanOutput, other: PlanOutput, known: KnownSizes) -> PlanOutput | None:
    """What `x` is a broadcast of, or of which a broadcast and reshapes repeat the only element; None if it is
    something else, or of more axes than `other`."""
    source = x
    while _repeats(source.op, known) and not source.op.control_inputs:
        source = source.op.inputs[0]
        if num_elements(source.dims) == 1:
            break
    else:
        if not _broadcasts(x.op, known) or x.op.control_inputs:
            return None
        source = x.op.inputs[0]
    fits = source.dims is not None and other.dims is not None and len(source.dims) <= len(other.dims)
    return source if fits and source.dtype == other.dtype else None


def _broadcasts(node: PlanNode, known: KnownSizes) -> bool:
    """Whether the node repeats its operand along axes of size 1 alone."""
    if node.type != "Tile":
        return node.type == "BroadcastTo"
    dims, value = known.of(node.inputs[0]), node.constant(1)
    if dims is None:
        return False
    counts = [None] * len(dims) if value is None else value.tolist()
    return all([count == 1 or (type(size) is int and size == 1) for size, count in zip(dims, counts)])


def _repeats(node: PlanNode, known: KnownSizes) -> bool:
    """Whether the node repeats its operand if that is one element."""
    return _broadcasts(node, known) or (node.declaration.reshapes and _keeps_elements(node, known))
