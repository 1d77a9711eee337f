"""Pooling fusion: max pooling together with the activation before it and the gradients.

- An activation that never decreases may come after the pooling of its input: the maxima are the same, and
  there are fewer of them. In a training step its gradient moves along, before the pooling's.
- A pooling whose gradient is wanted keeps where its maxima were.

Among conditionals and loops the new nodes are alive where those were whose places they take: they have the
same sources.

Sigmoid, and Tanh of few elements, stay where they are: a convolution before does them in its own pass.
"""

from __future__ import annotations

from typing import NamedTuple

from flowstone.framework import machine
from flowstone.framework.machine_profiles import NEVER
from flowstone.framework.operation import registry
from flowstone.framework.shape import num_elements
from flowstone.framework.subgraph import Consumers, PlanNode, PlanOutput, Subgraph
from flowstone.lowering.convolutions.pooled_places import places_type, suits
from flowstone.rewriting.patterns import substitute

_NEVER_DECREASING = {
    "Relu": "ReluGrad",
    "Relu6": "Relu6Grad",
    "Elu": "EluGrad",
    "Selu": "SeluGrad",
    "Tanh": "TanhGrad",
}


_GRADIENTS = {"MaxPool": "MaxPoolGrad", "MaxPool3D": "MaxPool3DGrad"}
_WINDOW = ("ksize", "strides", "padding", "data_format", "T")


class _Site(NamedTuple):
    """An activation that is only pooled, and in training the gradients of both."""

    activation: PlanNode
    pool: PlanNode
    pool_gradient: PlanNode | None
    activation_gradient: PlanNode | None


def pool_first(subgraph: Subgraph) -> None:
    """Moves activations after the pooling that is their only consumer."""
    candidates = [node for node in subgraph.nodes if node.type in _NEVER_DECREASING]
    if not candidates or not any(node.type in _GRADIENTS for node in subgraph.nodes):
        return
    consumers = subgraph.consumers()
    waited = {control for node in subgraph.nodes for control in node.control_inputs} | set(subgraph.targets)
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    for node in candidates:
        site = _site(node, consumers)
        if site is None or not _is_free(site, waited, subgraph):
            continue
        _move(subgraph, site, places, replaced)
        subgraph.log.append(("pool_first", node.name, f"after {site.pool.name}: fewer elements"))
    substitute(subgraph, places, replaced)


def _site(activation: PlanNode, consumers: Consumers) -> _Site | None:
    y = activation.outputs[0]
    by_type = {node.type: node for node in consumers.get(y, [])}
    kind = next((kind for kind in by_type if kind in _GRADIENTS), None)
    if len(by_type) != len(consumers.get(y, [])) or kind is None or not y.dtype.is_floating:
        return None
    pool = by_type.pop(kind)
    if pool.attributes["padding"] == "EXPLICIT":
        return None  # a window of nothing but padding has its lowest number, whatever the activation
    before, after = _elements_an_image(y), _elements_an_image(pool.outputs[0])
    if before is None or after is None or after >= before:
        return None
    size, least = num_elements(pool.outputs[0].dims) or 0, machine.current().profile.tanh_by_onednn
    if activation.type == "Tanh" and size < least < NEVER:  # exponentials round in either direction
        return None
    if not by_type:
        return _Site(activation, pool, None, None)
    pool_gradient = by_type.pop(_GRADIENTS[kind], None)
    gradient = by_type.pop(_NEVER_DECREASING[activation.type], None)
    if pool_gradient is None or gradient is None or by_type or not _have_same_windows(pool, pool_gradient):
        return None
    taken = {pool_gradient.outputs[0], y}  # in either order
    fits = pool_gradient.inputs[:2] == [y, pool.outputs[0]] and set(gradient.inputs) == taken
    alone = len(consumers[pool_gradient.outputs[0]]) == 1
    return _Site(activation, pool, pool_gradient, gradient) if fits and alone else None


def _elements_an_image(x: PlanOutput) -> int | None:
    """The number of elements of each image of a batch, whose size may be unknown."""
    return None if x.dims is None else num_elements(x.dims[1:])


def _have_same_windows(pool: PlanNode, gradient: PlanNode) -> bool:
    return all(pool.attributes[key] == gradient.attributes[key] for key in _WINDOW)


def _is_free(site: _Site, waited: set[PlanNode], subgraph: Subgraph) -> bool:
    """Whether nobody else looks at what the nodes make, or waits for them."""
    nodes = [node for node in site if node is not None]
    hidden = {site.activation.outputs[0]}
    if site.pool_gradient is not None:
        hidden.add(site.pool_gradient.outputs[0])
    return not hidden.intersection(subgraph.fetches) and not any(
        node in waited or node.control_inputs for node in nodes
    )


def _move(
    subgraph: Subgraph,
    site: _Site,
    places: dict[PlanNode, list[PlanNode]],
    replaced: dict[PlanOutput, PlanOutput],
) -> None:
    def like(node: PlanNode, *inputs: PlanOutput) -> PlanNode:
        return subgraph.new_node(node.declaration, list(inputs), node.attributes, like=node)

    x = site.activation.inputs[0]
    pool = like(site.pool, replaced.get(x, x))
    activation = like(site.activation, pool.outputs[0])
    places[site.activation], places[site.pool] = [], [pool, activation]
    replaced[site.pool.outputs[0]] = activation.outputs[0]
    if site.pool_gradient is not None and site.activation_gradient is not None:
        dy = site.pool_gradient.inputs[2]
        y = site.activation.outputs[0]
        takes = {y: activation.outputs[0], site.pool_gradient.outputs[0]: replaced.get(dy, dy)}
        first = like(site.activation_gradient, *[takes[x] for x in site.activation_gradient.inputs])
        second = like(site.pool_gradient, pool.inputs[0], pool.outputs[0], first.outputs[0])
        places[site.pool_gradient], places[site.activation_gradient] = [], [first, second]
        replaced[site.activation_gradient.outputs[0]] = second.outputs[0]


def keep_places(subgraph: Subgraph) -> None:
    """Has MaxPool keep the places of the maxima for its gradient."""
    gradients: dict[PlanOutput, list[PlanNode]] = {}
    for node in subgraph.nodes:
        if node.type in _GRADIENTS.values():
            gradients.setdefault(node.inputs[1], []).append(node)
    if not gradients:
        return
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    for pool in subgraph.nodes:
        consumers = gradients.get(pool.outputs[0], []) if pool.type in _GRADIENTS else []
        consumers = [node for node in consumers if node.inputs[0] is pool.inputs[0]]
        if not consumers or not suits(pool):
            continue
        if not all(_have_same_windows(pool, node) for node in consumers):
            continue
        attributes = {**{key: pool.attributes[key] for key in _WINDOW}, "Tplaces": places_type(pool)}
        new = subgraph.new_node(registry["_MaxPoolWithPlaces"], list(pool.inputs), attributes, like=pool)
        new.control_inputs = list(pool.control_inputs)
        places[pool], replaced[pool.outputs[0]] = [new], new.outputs[0]
        for node in consumers:
            inputs = [new.outputs[1], node.inputs[2]]
            shaped = {**attributes, "shape": node.inputs[0].dims}
            gradient = subgraph.new_node(registry["_MaxPoolGradAtPlaces"], inputs, shaped, like=node)
            gradient.control_inputs = list(node.control_inputs)
            places[node], replaced[node.outputs[0]] = [gradient], gradient.outputs[0]
        subgraph.log.append(("keep_places", pool.name, "its gradient need not find the maxima again"))
    substitute(subgraph, places, replaced)
