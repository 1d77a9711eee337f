"""`KnownSizes`: what is known of shapes, and of integers made of them, where sizes have names.

The ops' own shape inference is asked, with `Size`s (`named_sizes.py`) in place of numbers. What ops make of
sizes by arithmetic is a `Size` again; whatever else an op wants to know of one raises `Undecided`, and of its
result is known what the static shape says.

A loop variable is believed to keep the shape that it enters with. What the body gives it under such beliefs
confirms them, all together, or says which sizes are not to be believed; then the same is tried without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import numpy as np

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.tensors.node import static_value
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims
from flowstone.ops.lists.tensor_array_ops import creation_of_fixed_size
from flowstone.rewriting.analyses.frames import NEXT_ITERATIONS, is_head
from flowstone.rewriting.analyses.state_access import input_positions
from flowstone.rewriting.analyses.stored_values import StoredValues, is_pop, is_taken
from flowstone.rewriting.simplification.named_sizes import Size, Undecided

_LARGEST = 32  # elements of a vector of sizes
_ANY_TYPE = SimpleNamespace(as_numpy_dtype=object)  # of numbers among which are `Size`s
_ATTEMPTS = 4  # then nothing is believed of loop variables


def known_sizes(
    subgraph: Subgraph, feed_dims: Sequence[Dims], values: Mapping[PlanOutput, Any] = MappingProxyType({})
) -> KnownSizes:
    """What is known of the feeds, among them these `values`, and of loop variables. `add` is to add the
    nodes, in order."""
    heads = [node for node in subgraph.nodes if is_head(node)]
    stored = StoredValues(subgraph) if any([is_taken(node) for node in subgraph.nodes]) else None
    fed = {
        output: tuple([Size((n,)) if n is not None and n < 0 else n for n in dims])
        for output, dims in zip(subgraph.feeds, feed_dims)
        if dims is not None
    }
    believed: dict[PlanNode, Any] = {}
    for _ in range(_ATTEMPTS if heads else 0):
        known = KnownSizes(fed, stored, believed, values)
        for node in subgraph.nodes:
            known.add(node)
        confirmed = {head: known.confirmed(head) for head in heads}
        doubted = {head: dims for head, dims in confirmed.items() if dims != known.of(head.outputs[0])}
        if not doubted:
            known.is_settled = True
            return known
        believed.update(doubted)
    known = KnownSizes(fed, stored, dict.fromkeys(heads), values)
    known.is_settled = True
    return known


class KnownSizes:
    """What is known of outputs: `dims`, with `Size`s among them, where that is more than their static shapes
    say, and `values`, arrays of integers and `Size`s. `believed`: the shapes of loop variables that are
    decided already, None for those of which nothing is believed. Once it `is_settled`, static shapes learn
    what is known, and of nodes that are `looked_at` nothing else is asked unless an input is a new one."""

    def __init__(
        self,
        fed: Mapping[PlanOutput, Any],
        stored: StoredValues | None,
        believed: Mapping[PlanNode, Any],
        values: Mapping[PlanOutput, Any] = MappingProxyType({}),
    ) -> None:
        self.stored, self.believed, self.is_settled = stored, believed, False
        self.dims: dict[PlanOutput, Any] = dict(fed)
        self.values: dict[PlanOutput, np.ndarray[Any, Any]] = dict(values)
        self.looked_at: set[PlanNode] = set()
        self.asked: list[Any] = []  # sizes that inference took for a shape

    def of(self, x: PlanOutput) -> Any:
        """The shape of an output."""
        return self.dims.get(x, x.dims)

    def add(self, node: PlanNode) -> None:
        """Infers what is known of a node's outputs."""
        if self.is_settled and node in self.looked_at:
            if is_head(node) or all([x.op in self.looked_at for x in node.inputs]):
                for x in node.outputs:
                    self._tell(x)
                return
            self.looked_at.discard(node)  # and so are those that take its outputs
        elif not self.is_settled:
            self.looked_at.add(node)
        if is_head(node):
            self._enter(node)
        elif self.stored is not None and is_taken(node):
            self._take(node, self.stored)
        elif node.declaration.container == "size":
            self._count(node)
        elif any([x in self.dims or x in self.values for x in node.inputs]):
            self._infer(node)

    def _infer(self, node: PlanNode) -> None:
        shadow = shadow_of(node, self)
        inferred = tried(lambda: _inferred(shadow))
        for x, dims in zip(node.outputs, inferred if type(inferred) is list else [inferred]):
            self.note(x, dims)
        for x in node.outputs if self._may_give_sizes(node) else ():
            value = tried(lambda x=x: self._value(node, shadow, x.value_index))  # type: ignore[misc]
            dims = self.of(x)
            if value is not None and dims is not None and len(dims) == value.ndim:
                self.values[x] = value

    def note(self, x: PlanOutput, dims: Any) -> None:
        """Takes down a shape that is inferred for an output."""
        merged = _merged(x.dims, dims)
        if merged is None or merged == x.dims:
            return
        self.dims[x] = merged
        self._tell(x)

    def _tell(self, x: PlanOutput) -> None:
        """Has the static shape of an output say what is settled."""
        if self.is_settled and x in self.dims:
            x.dims = tuple([None if isinstance(n, Size) else n for n in self.dims[x]])

    def is_same(self, x: PlanOutput, y: PlanOutput) -> bool:
        """Whether two outputs have one shape, of known or equal sizes."""
        a, b = self.of(x), self.of(y)
        return a is not None and b is not None and None not in a and _are_equal(a, b)

    def tells_sizes(self, node: PlanNode) -> bool:
        """Whether the sizes that the second input tells a node to give its result are known, and the result's
        are these. Else what is inferred of the result may only hold if the step does not fail."""
        x, dims = node.inputs[1], self.of(node.outputs[0])
        told = self.values[x] if x in self.values else static_value(x)
        if not isinstance(told, np.ndarray) or dims is None or told.size != len(dims):
            return False
        return all([(type(n) is int and n < 0) or _is_equal(n, m) for n, m in zip(told.tolist(), dims)])

    # ---- loops

    def _enter(self, head: PlanNode) -> None:
        """A loop variable is believed to keep the shape that it enters with."""
        first = next(x for x in head.inputs if x.op.type not in NEXT_ITERATIONS)
        dims = self.believed[head] if head in self.believed else self.dims.get(first)
        if dims is not None:
            self.note(head.outputs[0], dims)

    def confirmed(self, head: PlanNode) -> Any:
        """The shape that a loop variable is believed to have, without the sizes that it does not enter with,
        or that an iteration does not give it."""
        x = head.outputs[0]
        dims = self.of(x)
        for each in head.inputs:
            dims = _common(dims, self.of(each))
        return _merged(x.dims, dims)

    def _take(self, node: PlanNode, stored: StoredValues) -> None:
        """What comes out of a stack or an array has the shape that all have that are put in; what comes out
        of a stack is also the sizes that all are."""
        written = stored.written_for(node)
        shapes = [self._element_dims(*each) for each in written]
        if not shapes or None in shapes or not all([_are_equal(dims, shapes[0]) for dims in shapes]):
            return
        x = node.outputs[0]
        if node.declaration.container == "gather":
            self.note(x, ((self.of(node.inputs[1]) or (None,))[0], *shapes[0]))
            return
        self.note(x, shapes[0])
        values = [self.values.get(value) for value, _ in written if value is not None]
        if is_pop(node) and values[0] is not None and all([_are_equal(v, values[0]) for v in values]):
            self.values[x] = values[0]

    def _count(self, node: PlanNode) -> None:
        """An array whose size is fixed has as many elements as it was made for."""
        creation = creation_of_fixed_size(node)
        value = None if creation is None else self.values.get(cast(PlanOutput, creation.inputs[0]))
        if value is not None:
            self.values[node.outputs[0]] = value

    def _element_dims(self, value: PlanOutput | None, is_element: bool) -> Any:
        """The shape of what is put into an array or, one by one, of its rows."""
        dims = None if value is None else self.of(value)
        return dims if is_element else dims[1:] if dims else None

    def _may_give_sizes(self, node: PlanNode) -> bool:
        return node.declaration.shape_only or any([x in self.values for x in node.inputs])

    def _value(self, node: PlanNode, shadow: _Shadow, index: int) -> Any:
        if node.declaration.shape_only and "out_type" in node.attributes:
            shadow.attributes = {**node.attributes, "out_type": _ANY_TYPE}
            sizes = node.declaration.static_value(shadow, index)
            return sizes if isinstance(sizes, np.ndarray) else None
        values = [self.values.get(x) for x in node.inputs]
        if node.declaration.moves:
            if node.outputs[0].dtype is dtypes.bool:
                return values[0] if node.declaration.role == "identity" else None
            return _moved(shadow, index)
        if node.declaration.role == "enter":
            return values[0]
        compute = node.declaration.sizes_function
        if compute is not None:
            parts = [static_value(x) if value is None else value for x, value in zip(node.inputs, values)]
            if any([part is None or None in part.ravel().tolist() for part in parts]):
                return None  # a size without a name is as large as any other
            return np.asarray(compute(*parts), object)
        is_kept = node.type == "Cast" and node.outputs[0].dtype in (dtypes.int32, dtypes.int64)
        return values[0] if is_kept else None


class _Shadow(PlanNode):
    """A node as its op's inference is to see it: `sizes` are the values of its inputs, where these are
    integers and `Size`s; `shows_numbers`: also single ones, and matrices."""

    __slots__ = ("asked", "shows_numbers", "sizes")
    asked: list[Any]
    sizes: list[Any]
    shows_numbers: bool

    def constant(self, i: int) -> Any:
        value = self.sizes[i]
        is_shown = self.shows_numbers and value is not None and value.ndim != 1
        return value if is_shown else super().constant(i)

    def constant_dims(self, i: int) -> Any:
        value = self.sizes[i]
        if value is None:
            return super().constant_dims(i)
        self.asked += value.tolist()
        return tuple([None if type(n) is int and n < 0 else n for n in value.tolist()])


def shadow_of(node: PlanNode, known: KnownSizes) -> _Shadow:
    shadow = _Shadow(node.declaration, node.name, [], node.attributes, node.group_sizes, [], "", 0)
    shadow.origin = node.origin
    shadow.shows_numbers = False
    shadow.sizes, shadow.asked = [], known.asked
    for x in node.inputs:
        value, static = known.values.get(x), static_value(x)
        if value is not None or x in known.dims:
            x = PlanOutput(x.op, x.value_index, x.dtype, known.of(x))
            x._static_value = static
        if value is not None and not has_sizes(value):
            x._static_value, value = value.astype(x.dtype.as_numpy_dtype), None
        elif value is not None:
            x._static_value = tuple(value.tolist()) if value.ndim == 1 else None
        shadow.inputs.append(x)
        shadow.sizes.append(value)
    for x in node.outputs:
        shadow.add_output(x.dtype, x.dims)
    return shadow


def _inferred(shadow: _Shadow) -> Any:
    """What the op's inference says, with single sizes where it can do with them."""
    infer = shadow.declaration.infer_function
    if infer is None:
        return None
    if any([value is not None and value.ndim != 1 for value in shadow.sizes]):
        shadow.shows_numbers = True
        found = tried(lambda: infer(shadow))
        shadow.shows_numbers = False
        if found is not None:
            return found
    return infer(shadow)


def has_sizes(value: np.ndarray[Any, Any]) -> bool:
    """Whether there is a `Size` among the elements."""
    return any([isinstance(n, Size) for n in value.ravel().tolist()])


def tried(compute: Callable[[], Any]) -> Any:
    """The result; None if it depends on how large a size is, or asks a `Size` for what it is not."""
    try:
        return compute()
    except (Undecided, TypeError, ValueError, AttributeError, LookupError):
        return None


def _merged(static: Dims, inferred: Any) -> Any:
    """What the static shape knows, and the inference with sizes."""
    if static is None or inferred is None or len(static) != len(inferred):
        return inferred if static is None else static
    return tuple([m if n is None else n for n, m in zip(static, inferred)])


def _common(dims: Any, other: Any) -> Any:
    """The first shape with None for sizes that are not known to be the other's."""
    if dims is None or other is None or len(dims) != len(other):
        return None
    return tuple([n if _is_equal(n, m) else None for n, m in zip(dims, other)])


def _is_equal(n: Any, m: Any) -> bool:
    """Whether a size is known to be another."""
    return m is not None and bool(tried(lambda: n == m))


def _are_equal(a: Any, b: Any) -> bool:
    """Whether two shapes, or arrays of sizes, are known to be the same."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and _are_equal(a.ravel().tolist(), b.ravel().tolist())
    return bool(tried(lambda: a == b))


def _moved(shadow: _Shadow, index: int) -> Any:
    """The value of an op that only moves integers, computed with numbers in the places of all of them."""
    count = len(input_positions(shadow, (0,)))
    if any([value is not None for value in shadow.sizes[count:]]):
        return None  # a size says where to
    coded: list[Any] = []
    for i, (x, sizes) in enumerate(zip(shadow.inputs[:count], shadow.sizes)):
        value = static_value(x) if sizes is None else sizes
        if not isinstance(value, np.ndarray) or value.size > _LARGEST:
            return None
        codes = np.arange(len(coded), len(coded) + value.size)
        coded += value.ravel().tolist()
        shadow.inputs[i] = copy = PlanOutput(x.op, x.value_index, x.dtype, value.shape)
        copy._static_value = codes.reshape(value.shape).astype(x.dtype.base_dtype.as_numpy_dtype)
    found = shadow.declaration.static_value(shadow, index)
    if not isinstance(found, np.ndarray):
        return None
    result = np.empty(found.shape, object)
    result.ravel()[:] = [coded[n] for n in found.ravel().tolist()]
    return result
