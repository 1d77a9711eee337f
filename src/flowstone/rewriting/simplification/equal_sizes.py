"""Sizes that are unknown but equal.

A plan for many shapes leaves sizes of its feeds open, yet may hold only where some of them are equal and none
is 0 or 1: such sizes are the same negative number in its `feed_dims`. `use_equal_sizes` follows them through
the subgraph, as `Size`s, with the ops' own shape inference, and does away with what they decide:

- over which axes a gradient is summed because an operand was broadcast;
- quotients of numbers of elements, as gradients of means have them;
- reshapes and broadcasts to the shape that a value has anyway;
- broadcasts of an operand that the op does itself, among them those of one number, reshaped or not.

What ops make of sizes by multiplying and dividing them is a `Size` again; whatever else an op wants to know
of one raises `Undecided`, and of its result is known what the static shape says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.tensors.node import static_value
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, num_elements
from flowstone.rewriting.analyses.frames import is_head
from flowstone.rewriting.analyses.state_access import input_positions
from flowstone.rewriting.patterns import Replacement, rewrite

_FIRST_CODE = 1 << 30  # numbers that stand for sizes while they are moved
_LARGEST = 32  # elements of a vector of sizes
_ANY_TYPE = SimpleNamespace(as_numpy_dtype=object)  # of numbers among which are `Size`s


class Undecided(Exception):
    """Depends on how large a size is."""


class Size:
    """A size of at least `factor` * 2: the product of a number and of named sizes of at least 2."""

    __slots__ = ("factor", "names")
    __hash__: Any = None

    def __init__(self, names: tuple[int, ...], factor: int = 1) -> None:
        self.names, self.factor = names, factor

    def __eq__(self, other: Any) -> bool:
        if other is None:
            return False
        if isinstance(other, Size):
            if (self.names, self.factor) == (other.names, other.factor):
                return True
        elif other < self._least:
            return False
        raise Undecided

    @property
    def _least(self) -> int:
        return self.factor << len(self.names)

    def _above(self, other: Any) -> bool:
        if not isinstance(other, Size) and other < self._least:
            return True
        raise Undecided

    __gt__ = __ge__ = _above

    def __lt__(self, other: Any) -> bool:
        return not self._above(other)

    __le__ = __lt__

    def __mul__(self, other: Any) -> Size:
        if isinstance(other, Size):
            return Size(tuple(sorted((*self.names, *other.names))), self.factor * other.factor)
        if other < 1:
            raise Undecided
        return Size(self.names, self.factor * int(other))

    __rmul__ = __mul__

    def __mod__(self, other: Any) -> int:
        self // other
        return 0

    def __floordiv__(self, other: Any) -> Any:
        names, divisor = list(self.names), other
        if isinstance(other, Size):
            divisor = other.factor
            for name in other.names:
                if name not in names:
                    raise Undecided
                names.remove(name)
        if divisor < 1 or self.factor % divisor:
            raise Undecided
        factor = self.factor // int(divisor)
        return Size(tuple(names), factor) if names else factor

    def __repr__(self) -> str:
        return "*".join([*([str(self.factor)] if self.factor != 1 else []), *[f"n{-n}" for n in self.names]])


def without_equal_sizes(feed_dims: Sequence[Dims]) -> list[Dims]:
    """Shapes of feeds with None for open sizes, equal or not."""
    return [dims and tuple([None if n is None or n < 0 else n for n in dims]) for dims in feed_dims]


def use_equal_sizes(subgraph: Subgraph, feed_dims: Sequence[Dims]) -> None:
    """Rewrites what these `feed_dims` decide, if there are equal sizes among them."""
    if not any([n is not None and n < 0 for dims in feed_dims for n in dims or ()]):
        return
    known = _Known()
    for output, dims in zip(subgraph.feeds, feed_dims):
        known.dims[output] = dims and tuple([Size((n,)) if n is not None and n < 0 else n for n in dims])

    def rule(node: PlanNode) -> Replacement | None:
        if not node.is_feed:
            known.add(node)
        return _decided(subgraph, node, known)

    rewrite(subgraph, "use_equal_sizes", rule)


class _Known:
    """What is known of outputs: `dims`, with `Size`s among them, and `values`, arrays of integers and
    `Size`s."""

    def __init__(self) -> None:
        self.dims: dict[PlanOutput, Any] = {}
        self.values: dict[PlanOutput, np.ndarray[Any, Any]] = {}

    def of(self, x: PlanOutput) -> Any:
        """The shape of an output."""
        return self.dims.get(x, x.dims)

    def add(self, node: PlanNode) -> None:
        """Infers what is known of a node's outputs."""
        if is_head(node) or not any([x in self.dims or x in self.values for x in node.inputs]):
            return
        shadow = _shadow(node, self)
        infer = node.declaration.infer_function
        inferred = _tried(lambda: infer(shadow)) if infer is not None else None
        for x, dims in zip(node.outputs, inferred if type(inferred) is list else [inferred]):
            merged = _merged(x.dims, dims)
            if merged is not None and any([isinstance(n, Size) for n in merged]):
                self.dims[x] = merged
        for x in node.outputs:
            value = _tried(lambda x=x: self._value(node, shadow, x.value_index))  # type: ignore[misc]
            if value is not None:
                self.values[x] = value

    def _value(self, node: PlanNode, shadow: PlanNode, index: int) -> Any:
        if node.declaration.shape_only and "out_type" in node.attributes:
            shadow.attributes = {**node.attributes, "out_type": _ANY_TYPE}
            sizes = node.declaration.static_value(shadow, index)
            return sizes if isinstance(sizes, np.ndarray) else None
        values = [self.values.get(x) for x in node.inputs]
        if node.declaration.moves:
            return _moved(shadow, values, index)
        compute = node.declaration.sizes_function
        if compute is not None and any([value is not None for value in values]):
            a, b = [static_value(x) if value is None else value for x, value in zip(node.inputs, values)]
            return None if a is None or b is None else np.asarray(compute(a, b), object)
        is_kept = node.type == "Cast" and node.outputs[0].dtype in (dtypes.int32, dtypes.int64)
        return values[0] if is_kept else None


class _Shadow(PlanNode):
    """A node as its op's inference is to see it: `sizes` are the values of its inputs, where these are
    integers and `Size`s."""

    __slots__ = ("sizes",)
    sizes: list[Any]

    def constant_dims(self, i: int) -> Any:
        value = self.sizes[i]
        return super().constant_dims(i) if value is None else tuple(value.tolist())


def _shadow(node: PlanNode, known: _Known) -> _Shadow:
    inputs = []
    for x in node.inputs:
        copy = PlanOutput(x.op, x.value_index, x.dtype, known.of(x))
        copy._static_value = static_value(x)
        inputs.append(copy)
    shadow = _Shadow(node.declaration, node.name, inputs, node.attributes, node.group_sizes, [], "", 0)
    shadow.origin = node.origin
    shadow.sizes = [known.values.get(x) for x in node.inputs]
    for copy, value in zip(inputs, shadow.sizes):
        if value is not None:
            copy._static_value = tuple(value.tolist()) if value.ndim == 1 else None
    for x in node.outputs:
        shadow.add_output(x.dtype, x.dims)
    return shadow


def _tried(compute: Callable[[], Any]) -> Any:
    """The result; None if it depends on how large a size is, or asks a `Size` for what it is not."""
    try:
        return compute()
    except (Undecided, TypeError, ValueError, AttributeError):
        return None


def _merged(static: Dims, inferred: Any) -> Any:
    """What the static shape knows, and the inference with sizes."""
    if static is None or inferred is None or len(static) != len(inferred):
        return inferred if static is None else static
    return tuple([m if n is None else n for n, m in zip(static, inferred)])


def _moved(shadow: PlanNode, values: list[Any], index: int) -> Any:
    """The value of an op that only moves integers, computed with numbers in the places of sizes."""
    coded: list[Any] = []
    moved = values[: len(input_positions(shadow, (0,)))]
    if any([value is not None for value in values[len(moved) :]]):
        return None  # a size says where to
    for x, value in zip(shadow.inputs, moved):
        if value is not None and value.size <= _LARGEST:
            codes = np.arange(len(coded), len(coded) + value.size) + _FIRST_CODE
            coded += value.ravel().tolist()
            x._static_value = codes.reshape(value.shape).astype(x.dtype.base_dtype.as_numpy_dtype)
            x.dims = value.shape
    if not coded:
        return None
    found = shadow.declaration.static_value(shadow, index)
    if not isinstance(found, np.ndarray) or found.ndim > 1:
        return None
    result = np.empty(found.shape, object)
    flat = [coded[n - _FIRST_CODE] if n >= _FIRST_CODE else n for n in found.ravel().tolist()]
    result.ravel()[:] = flat
    return result


# ---- what is decided


def _decided(subgraph: Subgraph, node: PlanNode, known: _Known) -> Replacement | None:
    if node.control_inputs or any([x.op.control_inputs for x in node.inputs]):
        return None
    value = known.values.get(node.outputs[0]) if len(node.outputs) == 1 else None
    if value is not None and not any([isinstance(n, Size) for n in value.ravel().tolist()]):
        array = value.astype(node.outputs[0].dtype.as_numpy_dtype)
        constant = subgraph.new_constant(array, node, "sizes")
        return Replacement([constant.outputs[0]], "is the same for all sizes", (constant,))
    if node.type == "BroadcastGradientArgs":
        shadow = _shadow(node, known)
        axes = [_tried(lambda i=i: node.declaration.static_value(shadow, i)) for i in (0, 1)]  # type: ignore[misc]
        if not all([isinstance(value, np.ndarray) for value in axes]):
            return None
        new = [subgraph.new_constant(value, node, f"r{i}") for i, value in enumerate(axes)]
        return Replacement(
            [each.outputs[0] for each in new], "given that sizes are equal and none is 1", tuple(new)
        )
    if node.type in ("Reshape", "BroadcastTo") and not node.inputs[0].dtype.is_ref:
        if _is_same(known, node.inputs[0], node.outputs[0]):
            return Replacement([node.inputs[0]], "has this shape for all sizes")
    if node.declaration.broadcasts and len(node.inputs) == 2:
        for i in (0, 1):
            other = node.inputs[1 - i]
            source = _repeated(node.inputs[i], other)
            if source is not None and _is_same(known, other, node.outputs[0]):
                inputs = [source, other] if i == 0 else [other, source]
                narrow = subgraph.new_node(node.declaration, inputs, node.attributes, like=node)
                known.add(narrow)
                reason = "the other operand has the result's shape for all sizes"
                return Replacement([narrow.outputs[0]], reason, (narrow,))
    return None


def _repeated(x: PlanOutput, other: PlanOutput) -> PlanOutput | None:
    """What `x` is a broadcast of, or of which a broadcast and reshapes repeat the only element; None if it is
    something else, or of more axes than `other`."""
    source = x
    while _repeats(source.op) and not source.op.control_inputs:
        source = source.op.inputs[0]
        if num_elements(source.dims) == 1:
            break
    else:
        if x.op.type != "BroadcastTo" or x.op.control_inputs:
            return None
        source = x.op.inputs[0]
    fits = source.dims is not None and other.dims is not None and len(source.dims) <= len(other.dims)
    return source if fits and source.dtype == other.dtype else None


def _repeats(node: PlanNode) -> bool:
    """Whether the node repeats its operand if that is one element."""
    return node.declaration.reshapes or node.type == "BroadcastTo"


def _is_same(known: _Known, x: PlanOutput, y: PlanOutput) -> bool:
    """Whether two outputs have one shape, of known or equal sizes."""
    a, b = known.of(x), known.of(y)
    if a is None or b is None or len(a) != len(b) or None in a or None in b:
        return False
    return bool(_tried(lambda: a == b))
