"""`Members`: nodes with the cluster that they are (`native/clusters`), or why they are none.

The largest shape of the nodes is that of the cluster. A reduction over trailing axes, or a program on rows,
makes the other axes rows: then a node on as many elements as there are rows is computed once a row, and may
feed nodes on elements. Reductions over the rows' axes, or over everything, end in results.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.framework.tensors.node import PlanData
from flowstone.framework.types.shape import Dims
from flowstone.lowering.clusters.node_steps import (
    Steps,
    axes_of,
    baked,
    dot_steps,
    element_of,
    kind_of,
    lead_of,
    row_steps,
    seen_as,
    sizes_of,
)
from flowstone.native.clusters.accumulators import Slot
from flowstone.native.clusters.clusters import OPEN, Array, Cluster, Result
from flowstone.native.clusters.loop_code import lanes_of

__all__ = ["Facts", "Members", "borders", "facts_of", "members_of"]

_MOST_IN_SLOT = 1 << 15  # bytes of reductions over columns, which are to stay in the first cache


class Members(PlanData):
    """The `nodes` that a cluster stands for, in order; `inputs`, what they take of others; `outputs`, what
    others take of them; `constants`, what the cluster has in its code; and the `cluster` that they are.
    """

    __slots__ = ("cluster", "constants", "inputs", "nodes", "outputs")

    def __init__(
        self,
        nodes: Sequence[PlanNode],
        inputs: Sequence[PlanOutput],
        outputs: Sequence[PlanOutput],
        constants: Sequence[PlanOutput],
        cluster: Cluster,
    ) -> None:
        self.nodes, self.inputs, self.outputs = nodes, inputs, outputs
        self.constants, self.cluster = constants, cluster


def borders(
    nodes: Sequence[PlanNode], consumers: Mapping[PlanOutput, Any], fetched: Collection[PlanOutput]
) -> tuple[list[PlanOutput], list[PlanOutput]]:
    """What the nodes take of others, and what others take of them."""
    inside = set(nodes)
    inputs = dict.fromkeys(x for node in nodes for x in node.inputs if x.op not in inside)
    outputs = [
        x
        for node in nodes
        for x in node.outputs
        if x in fetched or any(each not in inside for each in consumers.get(x, ()))
    ]
    return list(inputs), outputs


class Facts(NamedTuple):
    """Of a node that may be a member: its kind, the shape that it goes over, which is None for a view, the
    axes of a reduction, and the sizes that an open one stands for."""

    kind: str
    dims: tuple[int, ...] | None
    axes: list[int]
    lead: tuple[int, ...] = ()


def facts_of(node: PlanNode) -> Facts | None:
    """Those of a node, which do not change in a pass; None if it may be no member."""
    kind, lead = kind_of(node), lead_of(node)
    if not kind or lead is None:
        return None
    x = node.outputs[0] if kind == "element" else node.inputs[0]
    axes = axes_of(node) if kind == "reduction" else None
    return Facts(kind, None if kind == "view" else _known(x.dims), axes or [], lead)


def members_of(
    nodes: Sequence[PlanNode],
    facts: Mapping[PlanNode, Facts],
    consumers: Mapping[PlanOutput, Any],
    fetched: Collection[PlanOutput],
) -> Members | None:
    """The nodes, in an order of their edges, as a cluster; None if they are not one."""
    shape = _shape_of(nodes, facts)
    return None if shape is None else _Builder(nodes, facts, shape).members(consumers, fetched)


# ---- shapes


class _Shape(NamedTuple):
    """The cluster's shape, and how many of its axes are rows."""

    dims: tuple[int, ...]
    split: int | None

    @property
    def short(self) -> tuple[int, ...]:
        """The shape of results of rows without the axes that were reduced."""
        return self.dims[: self.split]

    @property
    def full(self) -> tuple[int, ...]:
        """The shape of results of rows with them."""
        return (*self.short, *[1] * (len(self.dims) - len(self.short)))

    def is_of_rows(self, dims: tuple[int, ...]) -> bool:
        """Whether these are results of rows."""
        return self.split is not None and dims in (self.short, self.full)


def _shape_of(nodes: Sequence[PlanNode], facts: Mapping[PlanNode, Facts]) -> _Shape | None:
    found = [facts[node].dims for node in nodes]
    dims = max([each for each in found if each is not None], key=_size, default=None)
    if dims is None or (dims[:1] == (OPEN,) and _size(dims)[1] < 2):
        return None
    splits = {
        _split_of(facts[node], dims)
        for node, each in zip(nodes, found)
        if each == dims and facts[node].kind in ("reduction", "row", "dot")
    } - {None}
    if len(splits) > 1:
        return None
    (split,) = splits or {None}
    if split is not None and math.prod(dims[split:]) < 2:
        return None
    return _Shape(dims, split)


def _size(dims: tuple[int, ...]) -> tuple[bool, int]:
    """A measure of which shape is larger."""
    return dims[:1] == (OPEN,), abs(math.prod(dims))


def _known(dims: Dims) -> tuple[int, ...]:
    return () if dims == () else sizes_of(dims) or (0,)


def _split_of(facts: Facts, dims: tuple[int, ...]) -> int | None:
    """How many axes are rows for a node on the cluster's shape; -1 if that makes none."""
    rank = len(dims)
    if facts.kind in ("row", "dot"):
        return rank - 1
    axes = facts.axes
    if len(axes) == rank:
        return None
    if axes == list(range(rank - len(axes), rank)):
        return rank - len(axes)
    return len(axes) if axes == list(range(len(axes))) else -1


def _wholes(dims: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """The shapes in which a node takes all of an array of these sizes: a product takes a row without a 1."""
    return (dims, dims[1:]) if dims[:1] == (1,) else (dims,)


# ---- steps


class _Place(NamedTuple):
    """A member's output: its array; whether it has elements, one number a row, or is a result only."""

    array: int
    level: str  # "element", "row" or "end"
    transposed: bool = False


class _Refusal(Exception):
    """The nodes are no cluster."""


class _Builder:
    def __init__(self, nodes: Sequence[PlanNode], facts: Mapping[PlanNode, Facts], shape: _Shape) -> None:
        self.nodes, self.facts, self.shape = nodes, facts, shape
        self.inside = set(nodes)
        self.arrays: dict[
            PlanOutput, tuple[int, ...]
        ] = {}  # the inputs, with the shapes that they are seen in
        self.constants: dict[PlanOutput, None] = {}
        self.places: dict[PlanOutput, _Place] = {}
        self.bounds: list[tuple[PlanOutput, int]] = []

    def members(self, consumers: Mapping[PlanOutput, Any], fetched: Collection[PlanOutput]) -> Members | None:
        """What `members_of` returns."""
        try:
            for node in self.nodes:
                self.look(node)
            self.steps = Steps(len(self.arrays))
            self.numbers = {x: i for i, x in enumerate(self.arrays)}
            self.places.clear()
            for node in self.nodes:
                self.add(node)
        except _Refusal:
            return None
        _, outputs = borders(self.nodes, consumers, fetched)
        outputs.sort(key=lambda x: self.places[x].level != "element")
        cluster = self.cluster(outputs)
        if cluster is None:
            return None
        return Members(self.nodes, list(self.arrays), outputs, list(self.constants), cluster)

    def cluster(self, outputs: Sequence[PlanOutput]) -> Cluster | None:
        arrays = tuple([Array(x.dtype.base_dtype.name, dims) for x, dims in self.arrays.items()])
        results = tuple([Result(x.dtype.name, _known(x.dims), self.places[x].transposed) for x in outputs])
        split = self.shape.split
        is_plain = all(each.dims == self.shape.dims and not each.transposed for each in results)
        cluster = Cluster(
            self.shape.dims,
            arrays,
            tuple(self.steps.steps),
            tuple([self.places[x].array for x in outputs]),
            split,
            () if is_plain else results,
            tuple([(self.numbers[x], bound) for x, bound in self.bounds]),
            next((lead for node in self.nodes if (lead := self.facts[node].lead)), (OPEN,)),
        )
        if not outputs or not arrays or not self.knows_size(arrays, results):
            return None
        if split is not None and len(_columns(cluster, split).loops().sizes) > 1:
            return None
        has_slot = any([step.over in ("columns", "all") for step in cluster.steps])
        if has_slot and Slot(cluster, lanes_of(cluster)).size > _MOST_IN_SLOT:
            return None
        return cluster

    def knows_size(self, arrays: Sequence[Array], results: Sequence[Result]) -> bool:
        """Whether an open size is that of an input, and of no transposed result."""
        if self.shape.dims[:1] != (OPEN,):
            return True
        return any(each.dims[:1] == (OPEN,) for each in arrays) and not any(
            each.transposed for each in results
        )

    # ---- what is taken of others

    def look(self, node: PlanNode) -> None:
        """Notes a node's inputs, and the levels of its outputs."""
        kind = self.facts[node].kind
        if kind == "element":
            self.look_at_element(node)
        elif kind == "view":
            level = self.level(node.inputs[0])
            if level != "row" or not self.shape.is_of_rows(_known(node.outputs[0].dims)):
                raise _Refusal
            self.drop(node.inputs[1:])
            self.places[node.outputs[0]] = _Place(0, "row")
        elif kind == "reduction":
            self.look_at_reduction(node)
        elif kind == "dot":
            self.look_at_dot(node)
        else:
            self.look_at_rows(node)

    def level(self, x: PlanOutput) -> str:
        return self.places[x].level if x in self.places else ""

    def drop(self, inputs: Sequence[PlanOutput]) -> None:
        """Notes constants that are in the code."""
        for x in inputs:
            if not x.op.is_constant:
                raise _Refusal
            self.constants[x] = None

    def take(self, x: PlanOutput, dims: tuple[int, ...]) -> None:
        """Notes an input from outside, seen in this shape."""
        if baked(x) is not None:
            self.constants[x] = None
        elif self.arrays.setdefault(x, dims) != dims:
            raise _Refusal

    def look_at_element(self, node: PlanNode) -> None:
        dims = _known(node.outputs[0].dims)
        count = element_of(node)[2]
        is_row = dims != self.shape.dims
        if is_row and not self.shape.is_of_rows(dims):
            raise _Refusal
        for x in node.inputs[:count]:
            level, own = self.level(x), seen_as(x, node) or ()
            if not level and x.op in self.inside:
                raise _Refusal
            if not level:
                is_short = is_row and dims == self.shape.short
                more = len(self.shape.dims) - len(dims) if is_short and own else 0
                self.take(x, (*own, *[1] * more))
            elif own not in _wholes(_known(x.dims)) or not self.may_take(x, level, dims if is_row else None):
                raise _Refusal
        self.drop(node.inputs[count:])
        self.places[node.outputs[0]] = _Place(0, "row" if is_row else "element")

    def may_take(self, x: PlanOutput, level: str, row: Any) -> bool:
        """Whether an element node may take a member's output; `row`: its shape if it is one of rows."""
        if level == "row":
            return _known(x.dims) == (row or self.shape.full)
        return level == "element" and not row and not self.places[x].transposed

    def over(self, node: PlanNode) -> str:
        """What a reduction goes over: row, columns, all, or rows for everything that has one number a row."""
        x = node.inputs[0]
        dims, axes = _known(x.dims), self.facts[node].axes
        split, rank = self.shape.split, len(self.shape.dims)
        if x in self.places and self.places[x].transposed:
            return "columns" if axes == [1] else ""
        if dims == self.shape.dims and self.level(x) in ("", "element"):
            if len(axes) == len(dims):
                return "all"
            if split is None:
                return ""
            if axes == list(range(split, rank)):
                return "row"
            return "columns" if axes == list(range(split)) else ""
        if self.shape.is_of_rows(dims) and self.level(x) in ("", "row") and len(axes) == len(dims):
            return "rows"
        return ""

    def look_at_reduction(self, node: PlanNode) -> None:
        x, over = node.inputs[0], self.over(node)
        if not over or (self.level(x) == "" and x.op in self.inside):
            raise _Refusal
        if node.type == "L2Loss" and over != "all":
            raise _Refusal
        if not self.level(x):
            self.take(x, self.shape.full if over == "rows" else _known(x.dims))
        self.drop(node.inputs[1:])
        self.places[node.outputs[0]] = _Place(0, "row" if over == "row" else "end")

    def look_at_dot(self, node: PlanNode) -> None:
        x, column, *added = node.inputs
        dims = _known(x.dims)
        if dims != self.shape.dims or self.level(x) not in ("", "element"):
            raise _Refusal
        if self.level(x) and self.places[x].transposed:
            raise _Refusal
        for each, own in [(x, dims), (column, dims[1:]), *[(one, (1,)) for one in added]]:
            if each is x and self.level(x):
                continue
            if self.level(each) or each.op in self.inside:
                raise _Refusal
            self.take(each, own)
        self.places[node.outputs[0]] = _Place(0, "row")

    def look_at_rows(self, node: PlanNode) -> None:
        for i, x in enumerate(node.inputs):
            dims = _known(x.dims)
            is_labels = i == 1 and "Sparse" in node.type
            if i == 1 and node.type.startswith("Arg"):
                self.drop([x])
                continue
            if is_labels:
                if self.level(x) or x.op in self.inside:
                    raise _Refusal  # their bounds are checked before
                self.arrays.setdefault(x, self.shape.full)
                if self.arrays[x] != self.shape.full:
                    raise _Refusal
                self.bounds.append((x, self.shape.dims[-1]))
                continue
            if dims != self.shape.dims or self.level(x) not in ("", "element"):
                raise _Refusal
            if not self.level(x):
                if x.op in self.inside:
                    raise _Refusal
                self.take(x, dims)
        self.place_rows(node, [0] * len(node.outputs))

    def place_rows(self, node: PlanNode, arrays: Sequence[int]) -> None:
        """Notes the outputs of a program on rows."""
        if node.type.startswith("Arg"):
            levels = ["row"]
        elif len(node.outputs) == 1:
            levels = ["element"]
        else:
            levels = ["end" if node.type.endswith("Total") else "row", "element"]
        for x, array, level in zip(node.outputs, arrays, levels):
            transposed = level == "element" and bool(node.attributes.get("transposed"))
            self.places[x] = _Place(array, level, transposed)

    # ---- what is computed

    def array(self, x: PlanOutput) -> int:
        if x in self.places:
            return self.places[x].array
        if x in self.numbers:
            return self.numbers[x]
        number = baked(x)
        assert number is not None
        self.steps.steps.append(number)
        self.numbers[x] = self.steps.first + len(self.steps.steps) - 1
        return self.numbers[x]

    def add(self, node: PlanNode) -> None:
        """Adds a node's steps."""
        kind = self.facts[node].kind
        if kind == "row":
            count = 1 if node.type.startswith("Arg") else len(node.inputs)
            self.place_rows(node, row_steps(node, self.steps, [self.array(x) for x in node.inputs[:count]]))
            return
        x = node.outputs[0]
        if kind == "dot":
            operands = [self.array(each) for each in node.inputs]
            self.places[x] = _Place(dot_steps(node, self.steps, operands), "row")
        elif kind == "view":
            self.places[x] = _Place(self.array(node.inputs[0]), "row")
        elif kind == "reduction":
            self.add_reduction(node)
        else:
            operation, attributes, count = element_of(node)
            operands = [self.array(each) for each in node.inputs[:count]]
            array = self.steps.add(operation, x.dtype.name, *operands, **attributes)
            self.places[x] = _Place(array, "row" if _known(x.dims) != self.shape.dims else "element")

    def add_reduction(self, node: PlanNode) -> None:
        x, dtype = node.inputs[0], node.outputs[0].dtype.name
        over, operand = self.over(node), self.array(node.inputs[0])
        attributes: dict[str, Any] = {"over": "all" if over == "rows" else over}
        if over == "rows":
            attributes["of"] = "rows"
        name = node.type
        if name == "L2Loss":
            operand, attributes["divisor"] = self.steps.add("Square", dtype, operand), 2
        if name == "Mean":
            dims = _known(x.dims)
            attributes["divisor"] = math.prod([dims[axis] for axis in self.facts[node].axes])
        name = "Sum" if name in ("Mean", "L2Loss", "BiasAddGrad") else name
        array = self.steps.add(name, dtype, operand, **attributes)
        self.places[node.outputs[0]] = _Place(array, "row" if over == "row" else "end")


def _columns(cluster: Cluster, split: int) -> Cluster:
    """The cluster of one row, to see how its columns are walked."""
    rank = len(cluster.dims)
    padded = [(*[1] * (rank - len(each.dims)), *each.dims) for each in cluster.inputs]
    arrays = tuple([Array(each.dtype, dims[split:]) for each, dims in zip(cluster.inputs, padded)])
    return Cluster(cluster.dims[split:], arrays, (), ())
