"""Channels last: has hosts compute images with channels first in the other layout.

oneDNN's kernels want the channels of a position beside each other; images with channels first are copied into
that order and back, or computed by slower kernels. So where there are convolutions of such images,

    %2 = Conv2D(%0, %1) data_format='NCHW'     becomes     %2 = Transpose(%0, [0,2,3,1])
                                                           %3 = Conv2D(%2, %1)
                                                           %4 = Transpose(%3, [0,3,1,2])

and likewise poolings, batch normalisations and the gradients of all these; `transposes.py` then lets the
transposes between them meet. Those that stay are views, and values keep the order in memory that their kernel
made, so that no image is copied but the first and, where the rows of a matrix are to be made of it, the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.framework.declarations.images import Images
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.ops.networks.windows import channels_first, channels_last
from flowstone.rewriting.patterns import Replacement, rewrite
from flowstone.rewriting.simplification.transposes import transpose

_LAST = {"NCHW": "NHWC", "NCDHW": "NDHWC"}
_BY_DIMENSION = ("strides", "dilations", "ksize")


def put_channels_last(subgraph: Subgraph) -> None:
    """Gives convolutions, and what is around them, images with channels last."""
    if not any(node.declaration.multiplies and _takes_channels_first(node) for node in subgraph.nodes):
        return

    def rule(node: PlanNode) -> Replacement | None:
        images = node.declaration.images
        if images is None or not _takes_channels_first(node):
            return None
        return _rewritten(subgraph, node, images)

    rewrite(subgraph, "put_channels_last", rule)


def _takes_channels_first(node: PlanNode) -> bool:
    return node.declaration.images is not None and node.attributes.get("data_format") in _LAST


def _rewritten(subgraph: Subgraph, node: PlanNode, images: Images) -> Replacement | None:
    """The node on transposed images; None where the rank of one, or a shape, is not known."""
    rank = len(node.attributes["data_format"])
    to_first, to_last = channels_first(rank), channels_last(rank)
    if any(len(node.inputs[i].dims or ()) != rank for i in images.inputs):
        return None
    inputs, added = list(node.inputs), []
    if images.shape is not None:
        shape = node.constant(images.shape)
        if shape is None or len(shape) != rank:
            return None
        constant = subgraph.new_constant(shape[list(to_last)], node, "shape")
        inputs[images.shape] = constant.outputs[0]
        added.append(constant)
    for i in images.inputs:
        nodes = transpose(subgraph, node, inputs[i], to_last, f"{node.name}/input_{i}")
        inputs[i] = nodes[-1].outputs[0]
        added += nodes
    new = subgraph.new_node(
        node.declaration, inputs, _permuted(node.attributes, to_last), node, tuple(node.group_sizes)
    )
    added.append(new)
    outputs = list(new.outputs)
    for i in images.outputs:
        nodes = transpose(subgraph, node, outputs[i], to_first, f"{node.name}/output_{i}")
        outputs[i] = nodes[-1].outputs[0]
        added += nodes
    return Replacement(outputs, "with channels last", tuple(added))


def _permuted(attributes: dict[str, Any], order: Sequence[int]) -> dict[str, Any]:
    """The attributes for images whose dimensions are in this order."""
    found = {**attributes, "data_format": _LAST[attributes["data_format"]]}
    for key in _BY_DIMENSION:
        if key in found:
            found[key] = tuple(found[key][axis] for axis in order)
    if found.get("explicit_paddings"):
        pairs = found["explicit_paddings"]
        found["explicit_paddings"] = tuple(n for axis in order for n in pairs[2 * axis : 2 * axis + 2])
    return found
