"""A layer's gradient together with the descent of its weights, for few examples: one pass over the weights.

    %5 = MatMul(%4, W) transpose_b=True                  becomes    %5 = _JointDescent(W, rate, %0, %4)
    %6 = _ApplyProduct(W, rate, %0, %4) transpose_a=True

Weights that are in no cache are otherwise read twice and written once; and BLAS, and oneDNN, make half of
what the processor can do of products with so few rows. The code (`native/products/descent_kernels.py`) has
them read once. The update comes where the gradient was, which must read the weights as they were before and
be the last to do so. ``FLOWSTONE_PASSES=-join_descents`` switches it off.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, Call, Input
from flowstone.framework.declarations.operation import op, registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.native.clusters import kernels
from flowstone.native.products import descent_kernels
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.analyses.frames import Frames
from flowstone.rewriting.patterns import remove_unneeded, substitute_in_order

__all__ = ["join_descents"]

LEAST = 1 << 20
"""Elements of weights from which they are in no near cache."""
_MOST_ROWS = 8  # of examples, up to which reading the weights is most of the work
_UPDATES = {"_ApplyProduct": "_JointDescent", "_ResourceApplyProduct": "_ResourceJointDescent"}


def _kernel(node: Any, env: Any) -> Call:
    descent_kernels.prepare()
    known = node.constant(1)
    rate = Call(torch.Tensor.item, Input(1)) if known is None else known.item()
    return Call(_descend, Input(0), rate, Input(2), Input(3))


def _descend(variable: Any, rate: float, x: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    weights = variable.tensor
    if weights.is_contiguous() and 0 < abs(rate) < math.inf:
        return descent_kernels.descend(weights, rate, x.contiguous(), dy.contiguous())
    dx = torch.mm(dy, weights.t())
    weights.sub_(torch.mm(x.t(), dy), alpha=rate)
    return dx


def _cost(node: Any) -> float:
    return 2 * work.product_update(node)


for _prefix, _kind in (("_", "Ref(T)"), ("_Resource", "resource")):
    _declaration = op(
        f"{_prefix}JointDescent",
        f"var: {_kind}, rate: T, x: T, dy: T -> dx: T",
        "",
        T=[dtypes.float32],
        mutates=[0],
        stateful=True,
        cost=_cost,
    )
    _declaration.infer(lambda node: node.dims(2))
    _declaration.kernel(CPU)(_kernel)
    _declaration.not_differentiable()


# ---- the pass


class _Site(NamedTuple):
    """A gradient, and the update that takes the same flow."""

    gradient: PlanNode
    update: PlanNode


def join_descents(subgraph: Subgraph) -> None:
    """Joins the gradients of layers of few examples with their weights' descent."""
    if not kernels.is_on() or not any(node.type in _UPDATES for node in subgraph.nodes):
        return
    before = len(subgraph.log)
    for node in list(subgraph.nodes):
        site = _site(subgraph, node) if node.type in _UPDATES and _suits(node) else None
        if site is not None:
            _join(subgraph, site)
    if len(subgraph.log) > before:
        remove_unneeded(subgraph)


def _suits(node: PlanNode) -> bool:
    """Whether there is machine code for this update."""
    x, dy = node.static_shape(2), node.static_shape(3)
    if not node.attributes["transpose_a"] or node.attributes["transpose_b"] or x is None or dy is None:
        return False
    if node.dtype(2) is not dtypes.float32 or not 0 < x[0] <= _MOST_ROWS:
        return False
    return x[1] * dy[1] >= LEAST and descent_kernels.suits(dy[1])


def _site(subgraph: Subgraph, update: PlanNode) -> _Site | None:
    """The update with the gradient that it may be joined with, if there is one alone."""
    consumers, dy = subgraph.consumers(), update.inputs[3]
    found = [node for node in set(consumers.get(dy, ())) if _is_gradient(node, update)]
    if len(found) != 1 or any(consumers.get(x) or x in subgraph.fetches for x in update.outputs):
        return None
    (gradient,) = found
    place = {node: i for i, node in enumerate(subgraph.nodes)}
    liveness, frames = subgraph.analysis(Liveness), subgraph.analysis(Frames)
    if liveness.node(gradient) != liveness.node(update) or frames.home(gradient) or frames.home(update):
        return None
    rate, *others = [x.op for x in update.inputs[1:]]
    sources = [*others, *update.control_inputs, *([] if rate.is_constant else [rate])]
    if any(place.get(each, -1) >= place[gradient] for each in sources if each is not gradient):
        return None
    return _Site(gradient, update)


def _is_gradient(node: PlanNode, update: PlanNode) -> bool:
    """Whether a node multiplies the update's flow by its weights."""
    if node.type != "MatMul" or node.attributes["transpose_a"] or not node.attributes["transpose_b"]:
        return False
    return node.inputs[0] is update.inputs[3] and _held(node.inputs[1]) is _held(update.inputs[0])


def _held(x: PlanOutput) -> PlanOutput:
    """The variable, or its handle, that a value is read from."""
    while x.op.declaration.role in ("identity", "read"):
        x = x.op.inputs[0]
    return x


def _join(subgraph: Subgraph, site: _Site) -> None:
    gradient, update = site
    name, inputs, nodes = _UPDATES[update.type], list(update.inputs), []
    if (rate := inputs[1].op).is_constant:  # which may stand later
        nodes = [subgraph.new_node(rate.declaration, [], rate.attributes, like=rate)]
        inputs[1] = nodes[0].outputs[0]
    new = subgraph.new_node(registry[name], inputs, {"T": dtypes.float32}, like=gradient)
    waits = dict.fromkeys([*gradient.control_inputs, *update.control_inputs])
    new.control_inputs = [each for each in waits if each is not gradient]
    places: dict[PlanNode, list[PlanNode]] = {gradient: [*nodes, new], update: []}
    replaced = {gradient.outputs[0]: new.outputs[0]}
    replacements = {gradient: [new], update: [new]}
    if substitute_in_order(subgraph, places, replaced, replacements, lambda: None):
        subgraph.log.append(("join_descents", gradient.name, f"with {update.name}: few examples"))
