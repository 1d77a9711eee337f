"""Fusion: several nodes as one kernel that makes one pass over the data.

A matrix product or convolution, the addition of a bias to its columns or channels, and the activation after
that; or the addition of a matrix to a product that BLAS makes. The rows of a product may be seen in more
dimensions before the bias comes, as those of sequences are: they are after the fusion.
"""

from __future__ import annotations

from typing import NamedTuple

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.ops.algebra.matrices import accumulates
from flowstone.rewriting.matching import Either, Op, Pattern, Rules, Surroundings, Value
from flowstone.rewriting.patterns import Replacement, remove_unneeded, rewrite

_FUSED = {"MatMul": "_FusedMatMul", "Conv2D": "_BiasedConv2D"}


class _Sum(NamedTuple):
    """A product or a convolution, and what is added to it, or to a `view` of it in another shape."""

    product: PlanOutput
    added: PlanOutput
    root: PlanNode
    view: PlanOutput | None = None

    @property
    def is_of_matrices(self) -> bool:
        """Whether a matrix is added, where the product can be added up there."""
        x, node = self.product, self.product.op
        if (
            self.view is not None
            or x.static_shape is None
            or self.added.dims != x.dims
            or node.type != "MatMul"
        ):
            return False
        return bool(accumulates(node))

    @property
    def is_of_vector(self) -> bool:
        """Whether a vector is added to the columns or channels."""
        layout = self.product.op.attributes.get("data_format", "NHWC")
        if self.root.type == "AddN" or layout != self.root.attributes.get("data_format", "NHWC"):
            return False
        channels = (self.product.dims or ())[1 if layout == "NCHW" else -1]
        if self.view is not None and not self._keeps_rows(self.view, channels):
            return False
        return channels is not None and self.added.dims == (channels,)

    def _keeps_rows(self, view: PlanOutput, channels: int | None) -> bool:
        """Whether the view's last dimension is the columns of a product of matrices."""
        if self.product.op.type != "MatMul" or view.op.control_inputs:
            return False
        return (view.dims or (None,))[-1] == channels is not None


class _Activated(NamedTuple):
    """An activation."""

    x: PlanOutput
    root: PlanNode


_PRODUCT = Op("MatMul|Conv2D", Value(), Value(), name="product")
_VIEW = Op("Reshape", _PRODUCT, Value(), name="view")
_SUM = Pattern(
    Op("Add|AddN|AddV2|BiasAdd", Either(_PRODUCT, _VIEW), Value("added")),
    _Sum,
    lambda found: (
        found.product.dtype.is_floating
        and found.product.dims is not None
        and (found.is_of_matrices or found.is_of_vector)
    ),
)
_ACTIVATION = Pattern(Op("Relu|Sigmoid|Tanh", Value("x")), _Activated)


def fuse_biases(subgraph: Subgraph) -> None:
    """Fuses a product or convolution with the vector that its only consumer adds to it, and with the
    activation after it."""
    if not any(node.type in _FUSED for node in subgraph.nodes):
        return
    around = Surroundings(subgraph.consumers(), subgraph.fetches)
    sums: dict[PlanNode, PlanOutput] = {}  # fused nodes, and the sums that they stand for

    def seen(fused: PlanNode, view: PlanNode | None) -> tuple[PlanNode, ...]:
        """A fused node, and after it the reshape that came before what is fused."""
        if view is None:
            return (fused,)
        inputs = [fused.outputs[0], view.inputs[1]]
        return fused, subgraph.new_node(view.declaration, inputs, view.attributes, like=view)

    def summed(found: _Sum) -> Replacement | None:
        product = found.product.op
        if not around.is_alone(found.product) or not (found.view is None or around.is_alone(found.view)):
            return None
        declaration = registry["_AddedMatMul" if found.is_of_matrices else _FUSED[product.type]]
        known = declaration.attributes.keys() | {"T"}
        attributes = {key: value for key, value in product.attributes.items() if key in known}
        if not found.is_of_matrices:
            attributes["activation"] = ""
        new = subgraph.new_node(declaration, [*product.inputs, found.added], attributes, like=found.root)
        new.control_inputs = list(product.control_inputs)
        if not found.is_of_matrices:
            sums[new] = found.root.outputs[0]
        what = "a product to a matrix" if found.is_of_matrices else "a vector to the rows of a product"
        nodes = seen(new, None if found.view is None else found.view.op)
        return Replacement([nodes[-1].outputs[0]], f"adds {what}", nodes)

    def activated(found: _Activated) -> Replacement | None:
        inner, node, view = found.x.op, found.root, None
        if inner.type == "Reshape" and inner.inputs[0].op in sums:
            inner, view = inner.inputs[0].op, inner
        if inner not in sums or inner.attributes["activation"] or not around.is_alone(sums[inner]):
            return None
        attributes = {**inner.attributes, "activation": node.type}
        new = subgraph.new_node(inner.declaration, list(inner.inputs), attributes, like=node)
        new.control_inputs = list(inner.control_inputs)
        sums[new] = node.outputs[0]
        nodes = seen(new, view)
        return Replacement([nodes[-1].outputs[0]], "is the product's only consumer, an activation", nodes)

    rewrite(subgraph, "fuse_biases", Rules(around, (_SUM, summed), (_ACTIVATION, activated)))
    remove_unneeded(subgraph)
