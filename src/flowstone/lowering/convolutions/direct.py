"""Convolutions of small images on a host are left to machine code (`ops/networks/small_convolutions.py`).

    %2 = Conv2D(%0, W)    becomes    %2 = Conv2D(%0, W) direct=True

and both gradients likewise, where a call of a library takes longer. It comes before all that chooses kernels
and orders of memory for libraries: filters of such convolutions stay in the program's order.
``FLOWSTONE_PASSES=-convolve_directly`` switches it off.
"""

from __future__ import annotations

from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.framework.machine.network_code import Windows
from flowstone.native.networks.direct_kernels import pays, products
from flowstone.ops.networks.convolution_arrangement import Arrangement, arrange, arrange_gradient
from flowstone.ops.networks.convolution_geometry import Geometry
from flowstone.ops.networks.filter_gradients import shape_argument
from flowstone.ops.networks.small_convolutions import windows_of

_KINDS = {"Conv2D": "results", "Conv2DBackpropInput": "images", "Conv2DBackpropFilter": "filter"}


def convolve_directly(subgraph: Subgraph) -> None:
    """Marks convolutions, and gradients of them, of so few products that machine code is faster."""
    found = [node for node in subgraph.nodes if node.type in _KINDS and _pays(node)]
    if found:
        subgraph.invalidate()
    for node in found:
        node.attributes = {**node.attributes, "direct": True}
        subgraph.log.append(("convolve_directly", node.name, "its images are small"))


def direct_products(node: PlanNode) -> int | None:
    """The products of two vectors of a node that is left to machine code; None of others."""
    kind = _KINDS.get(node.type, "results")
    windows = _windows(node, kind) if node.attributes.get("direct") else None
    return None if windows is None else products(kind, windows)


def _pays(node: PlanNode) -> bool:
    kind = _KINDS[node.type]
    windows = _windows(node, kind)
    return windows is not None and pays(kind, windows)


def _windows(node: PlanNode, kind: str) -> Windows | None:
    seen = arranged(node, kind)
    return None if seen is None else windows_of(seen, node.outputs[0].dtype)


def arranged(node: PlanNode, kind: str) -> Arrangement | None:
    """How a convolution ("results"), or its gradient by "images" or "filter", is computed; None if its shapes
    are not known."""
    geometry = Geometry(node)
    if kind == "results":
        return arrange(geometry, node.static_shape(0), node.static_shape(1), False)
    if kind == "images":
        return arrange_gradient(
            geometry, shape_argument(node, 0), node.static_shape(1), node.static_shape(2), False
        )
    return arrange_gradient(
        geometry, node.static_shape(0), shape_argument(node, 1), node.static_shape(2), False
    )
