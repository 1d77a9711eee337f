"""Max pooling by machine code, which keeps where in its window each maximum was in a byte.

    %1, %2 = _MaxPoolWithPlaces(%0) Tplaces=uint16    becomes    %1, %2 = _MaxPoolWithPlaces(%0) Tplaces=uint8
    %3 = _MaxPoolGradAtPlaces(%2, %9)                 becomes    the same with Tplaces=uint8
    %4 = MaxPool(%3)                                  becomes    %4, %5 = _MaxPoolWithPlaces(%3) Tplaces=uint8

for float32 images on a host, channels last, that are not small; likewise MaxPoolV2 of constant windows. The
values have the same bits. Where there is no machine code, and with ``FLOWSTONE_PASSES=-pool_in_bytes``,
everything stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import num_elements
from flowstone.lowering.convolutions.pooled_places import suits
from flowstone.native.clusters import kernels
from flowstone.native.networks import pool_kernels
from flowstone.ops.networks.pooling_windows import Window
from flowstone.rewriting.patterns import remove_unneeded, substitute

WORTHWHILE = 30_000
"""Elements of images from which machine code is faster."""
_POOLING = frozenset(("MaxPool", "MaxPoolV2", "_MaxPoolWithPlaces"))
_WINDOW = ("ksize", "strides", "padding", "data_format", "T", "keeps_nan")


def pool_in_bytes(subgraph: Subgraph) -> None:
    """Has machine code pool images and spread the gradients."""
    if not kernels.is_on() or not any(node.type in _POOLING for node in subgraph.nodes):
        return
    consumers = subgraph.consumers()
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    for node in subgraph.nodes:
        is_gradient = node.type == "_MaxPoolGradAtPlaces"
        if is_gradient and node.inputs[0] in replaced:
            kept = {**node.attributes, "Tplaces": dtypes.uint8}
            inputs = [replaced[node.inputs[0]], node.inputs[1]]
        elif node.type in _POOLING and _fits(node) and _are_gradients(consumers, node.outputs[1:]):
            kept = {**_windows(node), "Tplaces": dtypes.uint8}
            inputs = [node.inputs[0]]
        else:
            continue
        name = "_MaxPoolGradAtPlaces" if is_gradient else "_MaxPoolWithPlaces"
        new = subgraph.new_node(registry[name], inputs, kept, like=node)
        new.control_inputs = list(node.control_inputs)
        places[node] = [new]
        replaced.update(zip(node.outputs, new.outputs))
        subgraph.log.append(("pool_in_bytes", node.name, "windows of few positions"))
    if places:
        substitute(subgraph, places, replaced)
        remove_unneeded(subgraph)


def _are_gradients(consumers: Mapping[PlanOutput, Iterable[PlanNode]], places: Iterable[PlanOutput]) -> bool:
    """Whether only gradients take the places."""
    return all(node.type == "_MaxPoolGradAtPlaces" for x in places for node in consumers.get(x, ()))


def _windows(node: PlanNode) -> dict[str, Any]:
    """The attributes of the windows, which MaxPoolV2 takes as inputs; None there if they are not constant."""
    given = {key: node.attributes[key] for key in _WINDOW if key in node.attributes}
    for i, key in zip(range(1, len(node.inputs)), ("ksize", "strides")):
        value = node.constant(i)
        given[key] = None if value is None else value.tolist()
    return given


def _fits(node: PlanNode) -> bool:
    windows = _windows(node)
    if node.dtype(0) is not dtypes.float32 or None in windows.values() or not suits(node, windows):
        return False
    window = Window(windows, windows["ksize"], windows["strides"])
    few = math.prod(window.sizes) <= pool_kernels.MOST_PLACES
    return window.n == 2 and window.last and few and (num_elements(node.static_shape(0)) or 0) >= WORTHWHILE
