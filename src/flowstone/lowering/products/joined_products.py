"""Joined products: computes independent products by the same matrix as one product of all their rows.

An unrolled network multiplies each time step's inputs, and what it makes of each time step's state, by the
same weights; so do their gradients. Each of these small products reads all weights, and none fills the
machine. Joined, they are one large product:

    %4 = MatMul(%0, %3)                    %4 = ConcatV2(%0, %1, %2, 0)
    %5 = MatMul(%1, %3)          becomes   %5 = MatMul(%4, %3)
    %6 = MatMul(%2, %3)                    %6, %7, %8 = Split(0, %5)

What follows them row by row in each time step (a bias, an activation, the soft-max cross entropy, its
gradient) is joined as well, and the gradients' products then find their operands joined. A concatenation
that the program or another pass makes of the same rows is used, in its order, and nothing is split that is
only wanted whole.

Products that wait for one another, as a recurrence's do, stay. Nothing moves across a change of what it
reads. Steps with loops or conditionals are left alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.machine import machine
from flowstone.framework.types import dtypes
from flowstone.lowering.products.sums import concatenation
from flowstone.rewriting.analyses.arrivals import arrivals, is_in_pieces
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.analyses.frames import is_head
from flowstone.rewriting.analyses.state_access import order_edges
from flowstone.rewriting.matching import Op, Pattern, Value
from flowstone.rewriting.memory.memory_schedule import arrange
from flowstone.rewriting.patterns import in_order
from flowstone.rewriting.simplification.common_subexpression import attribute_key

_LARGEST = 1 << 22  # elements of a joined result: a bound of memory


class _Place(NamedTuple):
    """Where an output is among those of joined nodes."""

    join: _Join
    output: int


class _Join:
    """Nodes that become one, in the order of their rows: its `results`, and all `nodes` that are made for it.

    `shared`: which of the inputs is the same for all.
    """

    def __init__(self, members: list[PlanNode], shared: list[bool]) -> None:
        self.members, self.shared = members, shared
        self.results: list[PlanOutput] = []
        self.nodes: list[PlanNode] = []

    def parts(self, index: int) -> list[PlanOutput]:
        """This output of every member."""
        return [node.outputs[index] for node in self.members]


def join_products(subgraph: Subgraph) -> None:
    """Makes one product of small independent ones by the same matrix, and one node of what follows each."""
    candidates = _candidates(subgraph)
    if candidates and subgraph.analysis(Liveness).trivial and not any(map(is_head, subgraph.nodes)):
        joins = _Joins(subgraph)
        for nodes in candidates:
            joins.add_products(nodes)
        if joins.found:
            _Change(subgraph, joins).make()


class _Product(NamedTuple):
    """A product of few rows."""

    weights: PlanOutput
    root: PlanNode


def _is_product_of_few_rows(node: PlanNode) -> bool:
    rows = node.static_shape(0)
    return (
        rows is not None
        and 0 < rows[0] <= machine.current().profile.joined_rows
        and _is_known(node.outputs[0])
    )


def _is_known(x: PlanOutput) -> bool:
    return x.static_shape is not None


_PRODUCT = Pattern(
    Op(
        "MatMul",
        Value(where=lambda x: not x.dtype.base_dtype.is_complex),
        Value("weights"),
        transpose_a=False,
        where=_is_product_of_few_rows,
    ),
    _Product,
)


def _candidates(subgraph: Subgraph) -> list[list[PlanNode]]:
    """Products of as many rows by the same matrix."""
    groups: dict[Any, list[PlanNode]] = {}
    for weights, node in _PRODUCT.find(subgraph.nodes):
        key = weights, node.attributes["transpose_b"], node.static_shape(0), node.device
        groups.setdefault(key, []).append(node)
    return [nodes for nodes in groups.values() if len(nodes) >= machine.current().profile.joined_products]


class _Joins:
    """What may be joined in a subgraph: `found`, in the order in which it was."""

    def __init__(self, subgraph: Subgraph) -> None:
        self.found: list[_Join] = []
        self.places: dict[PlanOutput, _Place] = {}
        self.consumers = subgraph.consumers()
        self.order = order_edges(subgraph.nodes)
        self._arrivals = arrivals(subgraph) if is_in_pieces(subgraph) else None
        self._of: dict[PlanNode, _Join] = {}
        self._followers: dict[PlanNode, list[PlanNode]] = {}
        self._new: list[_Join] = []
        for node in subgraph.nodes:
            for source in dict.fromkeys(node.sources()):
                self._followers.setdefault(source, []).append(node)
        for earlier, later in self.order:
            self._followers.setdefault(earlier, []).append(later)

    def add_products(self, products: list[PlanNode]) -> None:
        """Joins products, if none waits for another, and what follows them."""
        self._add(self._as_concatenated(products), [False, True])
        while self._new:
            join = self._new.pop()
            for index in range(len(join.members[0].outputs)):
                self._follow(join.parts(index))

    def _add(self, members: list[PlanNode], shared: list[bool]) -> None:
        size = sum(math.prod(x.static_shape or ()) for node in members for x in node.outputs)
        if size > _LARGEST or self._wait_for_one_another(members):
            return
        if self._arrivals is not None and len({self._arrivals(node) for node in members}) > 1:
            return
        join = _Join(members, shared)
        self.found.append(join)
        self._new.append(join)
        for node in members:
            self._of[node] = join
            self.places.update((x, _Place(join, x.value_index)) for x in node.outputs)

    def _as_concatenated(self, products: list[PlanNode]) -> list[PlanNode]:
        """The products in the order in which their rows are joined already, if they are."""
        by_rows = {node.inputs[0]: node for node in products}
        first = self.places.get(products[0].inputs[0])
        if first is not None:
            rows = first.join.parts(first.output)
            if by_rows.keys() == set(rows):
                return [by_rows[x] for x in rows]
        for consumer in self.consumers[products[0].inputs[0]]:
            if is_joining_rows(consumer) and by_rows.keys() == set(consumer.inputs[:-1]):
                return [by_rows[x] for x in consumer.inputs[:-1]]
        return products

    def _wait_for_one_another(self, members: list[PlanNode]) -> bool:
        own, seen = set(members), set(members)
        stack = list(members)
        while stack:
            for follower in self._followers.get(stack.pop(), ()):
                join = self._of.get(follower)
                for node in (follower,) if join is None else join.members:
                    if node in own:
                        return True
                    if node not in seen:
                        seen.add(node)
                        stack.append(node)
        return False

    def _follow(self, outputs: list[PlanOutput]) -> None:
        """Joins those that take the outputs of joined nodes and go row by row."""
        kinds: list[dict[Any, list[PlanNode]]] = []
        for x in outputs:
            kinds.append({})
            for consumer in dict.fromkeys(self.consumers.get(x, ())):
                if consumer not in self._of and consumer.type != "MatMul":
                    kinds[-1].setdefault(self._kind(consumer, x), []).append(consumer)
        for kind in kinds[0]:
            alike = [each.get(kind, []) for each in kinds]
            if kind is None or any(len(nodes) != 1 for nodes in alike):
                continue
            members = [nodes[0] for nodes in alike]
            shared = [len(set(values)) == 1 for values in zip(*[node.inputs for node in members])]
            if len(set(members)) == len(members) and goes_by_rows(members[0], shared):
                self._add(members, shared)

    def _kind(self, node: PlanNode, x: PlanOutput) -> Any:
        """What nodes that take joined outputs must share to be joined, too."""
        if not node.declaration.is_pure or not all(map(_is_known, (*node.inputs, *node.outputs))):
            return None
        sources = []
        for each in node.inputs:
            place = self.places.get(each)
            sources.append((each.dims, place and (id(place.join), place.output)))
        key = node.type, attribute_key(node), node.device, tuple(sources), node.inputs.index(x)
        try:
            hash(key)
        except TypeError:
            return None
        return key


def is_joining_rows(node: PlanNode) -> bool:
    """Whether it concatenates its operands along their first axis."""
    if node.type != "ConcatV2" or node.control_inputs:
        return False
    axis = node.constant(len(node.inputs) - 1)
    return axis is not None and int(axis) in (0, -len(node.inputs[0].dims or ()))


def goes_by_rows(node: PlanNode, shared: list[bool]) -> bool:
    """Whether each row of the results needs only the same row of the inputs that are not shared."""
    rows: list[Any] = [x.dims for x, is_shared in zip(node.inputs, shared) if not is_shared]
    result: Any = node.outputs[0].dims
    if not rows or not all(rows) or not result or any(dims[0] != result[0] for dims in rows):
        return False
    if node.declaration.reduces:
        return _reduces_rows(node, shared, rows)
    if node.declaration.row_wise:
        return not any(shared) and len(rows[0]) == 2 and all(rows[0][: len(dims)] == dims for dims in rows)
    if node.type == "BiasAdd":
        return shared == [False, True] and node.attributes["data_format"] != "NCHW"
    return _broadcasts_rows(node, shared, rows, result)


_Dims = tuple[int, ...]


def _broadcasts_rows(node: PlanNode, shared: list[bool], rows: list[_Dims], result: _Dims) -> bool:
    if not (node.declaration.elementwise or node.declaration.broadcasts):
        return False
    if any(len(dims) != len(result) for dims in rows) or (any(shared) and not node.declaration.broadcasts):
        return False
    operands = [x for x, is_shared in zip(node.inputs, shared) if is_shared]
    return all(_is_same_for_rows(x, result) or _one_number(x) is not None for x in operands)


def _reduces_rows(node: PlanNode, shared: list[bool], rows: list[_Dims]) -> bool:
    axes = node.constant(1)
    return shared == [False, True] and axes is not None and not np.any(axes % len(rows[0]) == 0)


def _is_same_for_rows(x: PlanOutput, dims: Any) -> bool:
    """Whether an operand of a broadcasting op with this result is the same for all rows by its shape."""
    own: Any = x.dims
    return len(own) < len(dims) or own[0] == 1


def _one_number(x: PlanOutput) -> Any:
    """The one number that a constant repeats."""
    value = x.op.attributes["value"] if x.op.is_constant else None
    if value is None or not value.size or value.dtype.hasobject:
        return None
    number = np.array(value.flat[0])
    return number if value.tobytes() == number.tobytes() * value.size else None  # 0.0 is not -0.0


class _Change:
    """The subgraph with joined nodes."""

    def __init__(self, subgraph: Subgraph, joins: _Joins) -> None:
        self.subgraph, self.joins = subgraph, joins
        self.fetched = set(subgraph.fetches)
        self.replaced: dict[PlanOutput, PlanOutput] = {}
        self.instead: dict[PlanNode, list[PlanNode]] = {}  # of old nodes: who is waited for
        self.concatenations: dict[tuple[PlanOutput, ...], PlanOutput] = {}
        for node in subgraph.nodes:
            if is_joining_rows(node):
                self.concatenations.setdefault(tuple(node.inputs[:-1]), node.outputs[0])

    def make(self) -> None:
        """Makes it."""
        added: list[PlanNode] = []
        for join in self.joins.found:
            self._join(join)
        for join in self.joins.found:
            self._hand_out(join)
        for join in self.joins.found:
            added += join.nodes
        nodes = [node for node in [*self.subgraph.nodes, *added] if node not in self.instead]
        edges = [(a, b) for old, new in self.joins.order for a in self._of(old) for b in self._of(new)]
        for node in nodes:
            node.inputs[:] = [self._final(x) for x in node.inputs]
            if node.control_inputs:
                node.control_inputs = self._waits(node.control_inputs)
        self.subgraph.fetches = [self._final(x) for x in self.subgraph.fetches]
        self.subgraph.targets = self._waits(self.subgraph.targets)
        arrange(self.subgraph, in_order(nodes, edges))

    def _of(self, node: PlanNode) -> list[PlanNode]:
        return self.instead.get(node, [node])

    def _waits(self, nodes: Iterable[PlanNode]) -> list[PlanNode]:
        return list(dict.fromkeys(new for node in nodes for new in self._of(node)))

    def _final(self, x: PlanOutput) -> PlanOutput:
        while x in self.replaced:
            x = self.replaced[x]
        return x

    def _join(self, join: _Join) -> None:
        """Makes the one node of a join, and those that it takes."""
        if join.results:
            return
        members = join.members
        first = members[0]
        inputs = []
        for i, is_shared in enumerate(join.shared):
            values = [node.inputs[i] for node in members]
            inputs.append(self._shared(join, values[0]) if is_shared else self._rows(join, values))
        node = self.subgraph.new_node(
            first.declaration, inputs, first.attributes, first, tuple(first.group_sizes), f"{first.name}/all"
        )
        waits = [control for member in members for control in member.control_inputs]
        node.control_inputs = list(dict.fromkeys(waits))
        join.nodes.append(node)
        join.results = node.outputs
        for member in members:
            self.instead[member] = [node]
        reason = f"one of {len(members)} independent nodes, joined"
        self.subgraph.log += [("join_products", member.name, reason) for member in members]

    def _shared(self, join: _Join, x: PlanOutput) -> PlanOutput:
        """A shared operand, whatever the number of rows."""
        first = join.members[0]
        if not first.declaration.broadcasts or _is_same_for_rows(x, first.outputs[0].dims):
            return x
        constant = self.subgraph.new_constant(_one_number(x), first, "number")
        join.nodes.append(constant)
        number: PlanOutput = constant.outputs[0]
        return number

    def _rows(self, join: _Join, values: list[PlanOutput]) -> PlanOutput:
        """The values one below another."""
        whole = self._whole(values)
        if whole is not None:
            return whole
        found: PlanOutput | None = self.concatenations.get(tuple(values))
        if found is None:
            found = concatenation(self.subgraph, join.members[0], values, 0, join.nodes)
            self.concatenations[tuple(values)] = found
        return found

    def _whole(self, values: list[PlanOutput]) -> PlanOutput | None:
        """The result of a join, if these are the parts of it."""
        place = self.joins.places.get(values[0])
        if place is None or values != place.join.parts(place.output):
            return None
        self._join(place.join)
        return place.join.results[place.output]

    def _hand_out(self, join: _Join) -> None:
        """Gives those who take joined outputs the result, or their part of it."""
        for index, result in enumerate(join.results):
            parts = join.parts(index)
            consumers = dict.fromkeys(consumer for x in parts for consumer in self.joins.consumers.get(x, ()))
            left = [consumer for consumer in consumers if consumer not in self.instead]
            left = [consumer for consumer in left if not self._take_whole(join, consumer, parts, result)]
            if left or not self.fetched.isdisjoint(parts):
                attributes = {"num_split": len(parts), "T": result.dtype}
                own = self._add(join, "Split", [self._axis(join), result], attributes, (1, 1))
                self.replaced.update(zip(parts, own))

    def _take_whole(
        self, join: _Join, consumer: PlanNode, parts: list[PlanOutput], result: PlanOutput
    ) -> bool:
        """Puts what is made of the whole result in the place of what joins or adds up all parts."""
        dims: Any = (len(parts), *parts[0].dims)  # type: ignore[misc]
        if consumer.control_inputs:
            return False
        if is_joining_rows(consumer) and consumer.inputs[:-1] == parts:
            new = result
        elif (
            consumer.type == "Pack"
            and consumer.inputs == parts
            and consumer.attributes["axis"] in (0, -len(dims))
        ):
            new = self._reshaped(join, result, dims)
        elif (
            consumer.type == "AddN"
            and len(parts) == len(consumer.inputs)
            and set(parts) == set(consumer.inputs)
        ):
            attributes = {"T": result.dtype, "Tidx": dtypes.int32, "keep_dims": False}
            inputs = [self._reshaped(join, result, dims), self._axis(join)]
            new = self._add(join, "Sum", inputs, attributes, (1, 1))[0]
        else:
            return False
        self.replaced[consumer.outputs[0]] = new
        self.instead[consumer] = [new.op]
        return True

    def _reshaped(self, join: _Join, x: PlanOutput, dims: tuple[int, ...]) -> PlanOutput:
        shape = self.subgraph.new_constant(np.array(dims, np.int64), join.members[0], "shape")
        join.nodes.append(shape)
        attributes = {"T": x.dtype, "Tshape": dtypes.int64}
        return self._add(join, "Reshape", [x, shape.outputs[0]], attributes, (1, 1))[0]

    def _axis(self, join: _Join) -> PlanOutput:
        axis = self.subgraph.new_constant(np.array(0, np.int32), join.members[0], "axis")
        join.nodes.append(axis)
        number: PlanOutput = axis.outputs[0]
        return number

    def _add(
        self,
        join: _Join,
        kind: str,
        inputs: list[PlanOutput],
        attributes: dict[str, Any],
        sizes: tuple[int, ...],
    ) -> list[PlanOutput]:
        like = join.members[0]
        name = f"{like.name}/{kind.lower()}"
        node = self.subgraph.new_node(registry[kind], inputs, attributes, like, sizes, name)
        join.nodes.append(node)
        return node.outputs
