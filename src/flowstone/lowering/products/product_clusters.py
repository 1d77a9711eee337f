"""Products of few rows, with the element-wise nodes after them, as one call of machine code.

    %2 = _FusedMatMul(%0, W, b) activation='Tanh'    becomes   %3 = _ProductCluster(%0, W, b, %1)
    %3 = _Cluster(%1, %2) operations='Mul+AddV2'                    operations='product+AddV2+Tanh+Mul+AddV2'

BLAS and oneDNN reach half of what the processor can do for the few rows that a step of a recurrence has, and
the cluster is a call of its own. The code (`native/products/products.py`) reads the second matrix as the step
has it, so weights may change. A cluster joins the last of the products that it is the first to take; products
that no cluster joins are calls of their own. Until the code is there, and for arguments that it is not for,
the kernels of the nodes compute it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flowstone.framework import dtypes, machine
from flowstone.framework.kernel import CPU, Call, Environment, Input, Kernel
from flowstone.framework.node import Node
from flowstone.framework.operation import Shapes, op
from flowstone.framework.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.lowering.clusters.cluster_kernel import by_members, cluster_op
from flowstone.lowering.clusters.members import Members
from flowstone.native.clusters import kernels
from flowstone.native.clusters.clusters import Array, Cluster, Step
from flowstone.native.numerics.elements import ELEMENTS
from flowstone.native.products.products import Product, is_suitable, product_kernel, suits_gradient
from flowstone.rewriting.analyses.arrivals import arrivals, is_in_pieces
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.analyses.frames import Frames
from flowstone.rewriting.patterns import remove_unneeded, substitute_in_order

__all__ = ["ProductMembers", "compile_products"]

_PRODUCTS = frozenset(("MatMul", "_FusedMatMul", "_AddedMatMul"))
_MOST_ARRAYS = 24  # inputs and outputs


class ProductMembers(Members):
    """The nodes of a product and of the cluster after it; `product` is what they compute."""

    __slots__ = ("product",)

    def __init__(
        self,
        nodes: Sequence[PlanNode],
        inputs: Sequence[PlanOutput],
        outputs: Sequence[PlanOutput],
        constants: Sequence[PlanOutput],
        product: Product,
    ) -> None:
        super().__init__(nodes, inputs, outputs, constants, product.after)
        self.product = product


product_cluster_op = op(
    "_ProductCluster",
    "inputs: *Tin -> outputs: *Tout",
    "operations: string ; Tin: list(type) >= 2 ; Tout: list(type) >= 1",
    cost=lambda node: float(node.attributes["members"].product.work),
)
product_cluster_op.not_differentiable()


@product_cluster_op.infer
def _(node: Node) -> Shapes:
    return [each.dims for each in node.attributes["members"].product.outputs]


@product_cluster_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    members: ProductMembers = node.attributes["members"]
    words = [Input(i) for i in range(len(node.inputs))]
    return Call(product_kernel(members.product, by_members(members, env)), *words)


# ---- the pass


def compile_products(subgraph: Subgraph) -> None:
    """Replaces products of few rows, with the clusters after them, where these can be compiled."""
    if not kernels.is_on() or not any(_suits(node) for node in subgraph.nodes):
        return
    found = _found(subgraph)
    if not _put_in(subgraph, found):
        _put_in(subgraph, {last: each for last, each in found.items() if last.declaration is not cluster_op})
    remove_unneeded(subgraph)


def _found(subgraph: Subgraph) -> dict[PlanNode, ProductMembers]:
    """What products become, none of them in two, by the node whose place it takes."""
    consumers, targets = subgraph.consumers(), set(subgraph.targets)
    awaited = {control for node in subgraph.nodes for control in node.control_inputs}
    fetched = set(subgraph.fetches)
    place = {node: i for i, node in enumerate(subgraph.nodes)}
    liveness, frames = subgraph.analysis(Liveness), subgraph.analysis(Frames)
    coming = arrivals(subgraph) if is_in_pieces(subgraph) else None

    def key(node: PlanNode) -> Any:
        late = 0 if coming is None else coming(node)
        return liveness.node(node), frames.home(node), late, node.device

    found: dict[PlanNode, ProductMembers] = {}
    for node in subgraph.nodes:
        if node in targets or not _suits(node):
            continue
        (x,) = node.outputs
        takers = sorted(set(consumers.get(x, ())), key=place.__getitem__)
        taker = takers[0] if takers and node not in awaited else node
        joined = None
        if taker.declaration is cluster_op and key(taker) == key(node):
            joined = _members(node, taker, len(takers) > 1 or x in fetched)
        if joined is None:
            found[node] = _alone(node)
            continue
        if taker in found:  # of two products that a cluster takes, the first is alone
            (first, *_) = found[taker].nodes
            found[first] = _alone(first)
        found[taker] = joined
    return found


def _suits(node: PlanNode) -> bool:
    """Whether a node is a product that machine code of ours computes faster."""
    if node.type not in _PRODUCTS:
        return False
    a, b, c = node.static_shape(0), node.static_shape(1), node.outputs[0].static_shape
    if a is None or b is None or c is None or node.dtype(0) not in (dtypes.float32, dtypes.float64):
        return False
    if machine.current().prefers_columns(*b):
        return False
    if len(node.inputs) > 2 and node.inputs[2].dims not in ((c[1],), c):
        return False
    if node.attributes["transpose_a"]:
        by_examples = not node.attributes["transpose_b"]
        return by_examples and suits_gradient(a[1], a[0], c[1], node.dtype(0).base_dtype.name)
    return is_suitable(a[0], a[1], c[1], node.attributes["transpose_b"], node.dtype(0).base_dtype.name)


class _Steps:
    """The steps after a product, whose number is 0; `result`: the number of what they compute so far."""

    def __init__(self, node: PlanNode, others: Sequence[Array]) -> None:
        self.dtype = node.outputs[0].dtype.name
        dims = node.outputs[0].static_shape or ()
        added = [Array(self.dtype, x.static_shape or ()) for x in node.inputs[2:]]
        self.inputs = (Array(self.dtype, dims), *added, *others)
        self.first_other = 1 + len(added)
        self.steps: list[Step] = []
        self.result = 0
        if added:
            self.add("AddV2", 0, 1)
        if node.attributes.get("activation"):
            self.add(node.attributes["activation"], self.result)

    def add(self, operation: str, *operands: int) -> None:
        self.steps.append(Step(operation, operands, self.dtype))
        self.result = len(self.inputs) + len(self.steps) - 1

    def product(self, node: PlanNode, outputs: Sequence[int]) -> Product:
        rows, columns = self.inputs[0].dims
        after = Cluster((rows, columns), self.inputs, tuple(self.steps), tuple(outputs))
        first, by_terms = node.static_shape(0) or (), bool(node.attributes["transpose_a"])
        by_columns = bool(node.attributes["transpose_b"])
        return Product(rows, first[not by_terms], columns, by_columns, after, by_terms=by_terms)


def _alone(node: PlanNode) -> ProductMembers:
    steps = _Steps(node, ())
    product = steps.product(node, [steps.result])
    return ProductMembers([node], list(node.inputs), list(node.outputs), [], product)


def _members(node: PlanNode, taker: PlanNode, is_kept: bool) -> ProductMembers | None:
    """A product and the first cluster that takes it, as one; `is_kept`: others take the product, too, the
    last output then. None where the cluster's steps cannot be those after a product."""
    members: Members = taker.attributes["members"]
    cluster, (x,) = members.cluster, node.outputs
    if cluster.dims != x.dims or not _is_plain(cluster, x.dtype.name):
        return None
    place = taker.inputs.index(x)
    if members.inputs[place] is not x:
        return None
    others = [i for i in range(len(cluster.inputs)) if i != place]
    steps = _Steps(node, [cluster.inputs[i] for i in others])
    numbers = {place: steps.result, **{old: new for new, old in enumerate(others, steps.first_other)}}
    for old, step in enumerate(cluster.steps, len(cluster.inputs)):
        numbers[old] = len(steps.inputs) + len(steps.steps)
        steps.steps.append(step._replace(operands=tuple([numbers[i] for i in step.operands])))
    outputs = [*members.outputs, *[x] * is_kept]
    results = [*[numbers[i] for i in cluster.outputs], *[numbers[place]] * is_kept]
    product = steps.product(node, results)
    if len(product.inputs) + len(product.outputs) > _MOST_ARRAYS:
        return None
    inputs = [*node.inputs, *[members.inputs[i] for i in others]]
    return ProductMembers([node, *members.nodes], inputs, outputs, members.constants, product)


def _is_plain(cluster: Cluster, dtype: str) -> bool:
    """Whether all of a cluster is element-wise, on vectors of as many elements as the product's."""
    if cluster.split is not None or cluster.results or cluster.bounds or cluster.is_open or cluster.pitched:
        return False
    if any(step.over or (step.op not in ELEMENTS and step.op != "Const") for step in cluster.steps):
        return False
    types = {each.dtype for each in cluster.inputs} | {step.dtype for step in cluster.steps}
    return types <= {dtype, "bool"} and all(len(each.dims) <= 2 for each in cluster.inputs)


def _put_in(subgraph: Subgraph, found: Mapping[PlanNode, ProductMembers]) -> bool:
    """Puts the calls in the places of these nodes; whether all nodes still read what they read."""
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    replacements: dict[PlanNode, list[PlanNode]] = {}
    for last, members in found.items():
        new = _node(subgraph, members, last)
        for old in (members.nodes[0], last):
            places[old], replacements[old] = [], [new]
        places[last] = [new]
        given = [*last.outputs, *members.nodes[0].outputs]
        replaced.update(zip(given, new.outputs))
    if not substitute_in_order(subgraph, places, replaced, replacements, lambda: None):
        return False
    for members in found.values():
        name = members.nodes[0].name
        subgraph.log.append(("compile_products", name, f"machine code: {members.product!r}"))
    return True


def _node(subgraph: Subgraph, members: ProductMembers, last: PlanNode) -> PlanNode:
    product = members.nodes[0]
    inputs = list(product.inputs)
    if last is not product:
        inputs += [x for x in last.inputs if x is not product.outputs[0]]
    attributes = {
        "Tin": [x.dtype.base_dtype for x in inputs],
        "Tout": [x.dtype for x in members.outputs],
        "operations": repr(members.product),
        "members": members,
    }
    new = subgraph.new_node(product_cluster_op, inputs, attributes, like=last, group_sizes=(len(inputs),))
    new.control_inputs = list(dict.fromkeys([*product.control_inputs, *last.control_inputs]))
    return new
