"""`Subgraph`: the nodes that one step needs, private to its plan, in topological order.

Rewriting replaces nodes in it, placement names their devices, segments compile it. Its nodes are plain
`Node`s made from the user's operations, so nothing done here touches the user's graph. A fed tensor is the
output of an ``_Arg`` node.

What an analysis finds out about a subgraph is kept while it stays as it is: `subgraph.analysis(Liveness)` is
computed by the first who asks and shared by all. Setting `nodes` invalidates it. Whoever changes the edges of
nodes in place calls `invalidate` afterwards. ``FLOWSTONE_CHECK=1`` finds out who forgets.

Printed, one line a node, it is stable text:

    %0 = _Arg() index=0 : float32[?,784]        # x
    %1 = Const() : float32[784,10]              # W
    %2 = MatMul(%0, %1) : float32[?,10]         # MatMul
    return %2
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from flowstone.framework import flags
from flowstone.framework.declarations.operation import OpDeclaration, registry
from flowstone.framework.errors import InvalidArgumentError
from flowstone.framework.graphs.device_name import canonical_name
from flowstone.framework.machine import machine
from flowstone.framework.machine.machine import Machine
from flowstone.framework.tensors.node import Node, Output, PlanData
from flowstone.framework.types.dtypes import DType, as_dtype
from flowstone.framework.types.shape import format_dims


class PlanOutput(Output):
    """An output of a plan's node."""

    __slots__ = ()

    op: PlanNode


class PlanNode(Node):
    """A plan's own node. `origin` is the user's operation that it stands for (or was made from)."""

    __slots__ = ("origin",)

    inputs: list[PlanOutput]
    control_inputs: list[PlanNode]
    outputs: list[PlanOutput]
    origin: Any

    if TYPE_CHECKING:

        def sources(self) -> Sequence[PlanNode]: ...
        def group(self, argument: int) -> Sequence[PlanOutput]: ...

    def add_output(self, dtype: DType, dims: tuple[int | None, ...] | None) -> PlanOutput:
        """Appends an output."""
        output = PlanOutput(self, len(self.outputs), dtype, dims)
        self.outputs.append(output)
        return output


Consumers = Mapping[PlanOutput, Sequence[PlanNode]]  # the nodes that take each output, once an input
_Result = TypeVar("_Result")


def requested_device(operation: Any) -> str:
    """The device that an operation asks for, in its canonical form. InvalidArgumentError if malformed."""
    if not operation.device:
        return ""
    try:
        return canonical_name(operation.device)
    except ValueError as error:
        raise InvalidArgumentError(
            operation.node_def,
            operation,
            f"Malformed device specification '{operation.device}' in node: {operation.name}. {error}",
        ) from None


class StaleAnalysisError(AssertionError):
    """What an analysis found was kept although the subgraph changed, or was changed itself."""


class Subgraph:
    """The nodes of one step.

    Fields: `nodes`, in topological order; `feeds` (outputs of ``_Arg`` nodes, in the order they will be
    passed); `fetches` (outputs); `targets` (nodes run for their effect); `log` (what rewriting did: (pass,
    node, reason)); `in_pieces`: it is going to be several functions, which edges alone hold in order;
    `code_first`: its steps begin when the best machine code is there; `named_sizes`: the feeds' shapes, and
    values of theirs that are known, where the same negative number stands for equal sizes.
    """

    __slots__ = ("_analyses", "_nodes", "code_first", "feeds", "fetches", "in_pieces", "log",
                 "named_sizes", "targets")  # fmt: skip

    def __init__(
        self,
        nodes: list[PlanNode],
        feeds: list[PlanOutput],
        fetches: list[PlanOutput],
        targets: list[PlanNode],
    ) -> None:
        self._analyses: dict[Callable[[Subgraph], Any], Any] = {}
        self._nodes, self.feeds, self.fetches, self.targets = nodes, feeds, fetches, targets
        self.log: list[tuple[str, str, str]] = []
        self.in_pieces = self.code_first = False
        self.named_sizes: tuple[Sequence[Any], Mapping[PlanOutput, Any]] | None = None

    @property
    def machine(self) -> Machine:
        """The machine that the step is planned for."""
        return machine.current()

    @property
    def nodes(self) -> list[PlanNode]:
        """The nodes, in topological order. Setting them invalidates what analyses found."""
        return self._nodes

    @nodes.setter
    def nodes(self, nodes: list[PlanNode]) -> None:
        self._nodes = nodes
        self._analyses.clear()

    def analysis(self, analyse: Callable[[Subgraph], _Result]) -> _Result:
        """What `analyse`, a class or a function of a module, finds out about this subgraph.

        It must follow from the nodes, their order, attributes and edges alone. The result is kept until these
        change; those who ask share it, and none of them may change it. Results compare by value.
        StaleAnalysisError, under ``FLOWSTONE_CHECK=1``, if a kept one is not what `analyse` finds now.
        """
        found: _Result | None = self._analyses.get(analyse)
        if found is None:
            found = self._analyses[analyse] = analyse(self)
        elif flags.CHECK:
            self._check(analyse, found, "")
        return found

    def drop(self, gone: Collection[PlanNode]) -> None:
        """Drops nodes whose outputs no other takes, and for which no other waits.

        Of what analyses found is kept what the result's method ``without(gone)`` says: what they would find
        of the nodes that are left, or None.
        """
        kept = {}
        for analyse, found in self._analyses.items():
            without = getattr(found, "without", None)
            if without is not None and (rest := without(gone)) is not None:
                kept[analyse] = rest
        self.nodes = [node for node in self._nodes if node not in gone]
        self._analyses.update(kept)

    def invalidate(self) -> None:
        """Forgets what analyses found: to be called when nodes, or their list, were changed in place."""
        self._analyses.clear()

    def check_analyses(self, where: str = "") -> None:
        """StaleAnalysisError, which says `where`, unless all analyses would find what is kept of them."""
        for analyse, kept in self._analyses.items():
            self._check(analyse, kept, where)

    def _check(self, analyse: Callable[[Subgraph], Any], kept: Any, where: str) -> None:
        if analyse(self) != kept:
            name = analyse.__qualname__
            raise StaleAnalysisError(f"{name} is stale{where}: the subgraph, or the result, was changed")

    def new_node(
        self,
        declaration: OpDeclaration,
        inputs: list[PlanOutput],
        attributes: dict[str, Any],
        like: Node,
        group_sizes: tuple[int, ...] | None = None,
        name: str | None = None,
    ) -> PlanNode:
        """A node (not yet in `nodes`) that takes name, order, device and origin from `like`; outputs are
        inferred. Of a reference's type among the attributes the base type is taken.
        """
        if any(type(value) is DType and value.is_ref for value in attributes.values()):
            attributes = {
                key: value.base_dtype if type(value) is DType else value for key, value in attributes.items()
            }
        sizes = (1,) * len(declaration.inputs) if group_sizes is None else group_sizes
        node = PlanNode(
            declaration, name or like.name, inputs, attributes, sizes, [], like.device, like.order
        )
        node.origin = getattr(like, "origin", like)
        dtypes = [dtype for argument in declaration.outputs for dtype in argument.types(attributes)]
        for dtype in dtypes:
            node.add_output(dtype, None)
        dims = declaration.infer_function(node) if declaration.infer_function and dtypes else None
        for output, shape in zip(node.outputs, dims if isinstance(dims, list) else [dims]):
            output.dims = shape
        return node

    def new_constant(self, value: np.ndarray[Any, Any], like: Node, name: str) -> PlanNode:
        """A constant (not yet in `nodes`) beside `like`, called by its name and this one."""
        attributes = {"value": value, "dtype": as_dtype(value.dtype)}
        return self.new_node(registry["Const"], [], attributes, like, name=f"{like.name}/{name}")

    def consumers(self) -> Consumers:
        """Who takes each output, by data edges; an analysis like others, which nobody may change."""
        return self.analysis(_consumers)

    def __str__(self) -> str:
        number = {node: i for i, node in enumerate(self.nodes)}

        def text(x: PlanOutput) -> str:
            return f"%{number[x.op]}" + (f":{x.value_index}" if x.value_index else "")

        lines = []
        for node in self.nodes:
            words = [text(x) for x in node.inputs] + [
                f"^%{number[c]}" for c in node.control_inputs if c in number
            ]
            attributes = "".join(f" {k}={_attribute_text(v)}" for k, v in sorted(_shown(node)))
            types = ", ".join(x.dtype.name + format_dims(x.dims).replace(" ", "") for x in node.outputs)
            body = f"%{number[node]} = {node.type}({', '.join(words)}){attributes}"
            lines.append(f"{body} : {types}  # {node.name}" if types else f"{body}  # {node.name}")
        results = [text(x) for x in self.fetches] + [f"^%{number[t]}" for t in self.targets]
        return "\n".join([*lines, f"return {', '.join(results)}"])


def _consumers(subgraph: Subgraph) -> Consumers:
    found: dict[PlanOutput, list[PlanNode]] = {}
    for node in subgraph.nodes:
        for x in node.inputs:
            found.setdefault(x, []).append(node)
    return found


def _shown(node: Node) -> Iterable[tuple[str, Any]]:
    """The attributes worth printing: those that neither inputs nor defaults give."""
    specs = node.declaration.attributes
    for key, value in node.attributes.items():
        spec = specs.get(key)
        if isinstance(value, PlanData):
            continue
        if spec is None and not key.startswith("_"):
            yield key, value  # a rewriting pass's
            continue
        if (
            spec is None
            or key in node.declaration.inferred
            or (spec.kind == "type" and key in ("dtype", "T"))
        ):
            continue
        if spec.kind != "tensor" and spec.default == value:
            continue
        yield key, value


def _attribute_text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return (
            np.array2string(value, threshold=8, edgeitems=2, separator=",").replace("\n", "")
            if value.size < 9
            else "[…]"
        )
    if isinstance(value, DType):
        return value.name
    return repr(value).replace(" ", "")
