"""Pooling fusion: max pooling together with the activation before it and the gradients.

- An activation that never decreases may come after the pooling of its input: the maxima are the same, and
  there are fewer of them. In a training step its gradient moves along, before the pooling's.
  Windows of nothing but NaN then keep it: the activation shows that there were no numbers. The gradient of a
  window that begins with NaN goes there; the activation, which gives 0 for it, no longer comes after that.
- A pooling whose gradient is wanted keeps where its maxima were.

Among conditionals and loops the new nodes are alive where those were whose places they take: they have the
same sources.

Sigmoid, and Tanh of few elements, stay where they are: a convolution before does them in its own pass.
"""

from __future__ import annotations

from typing import NamedTuple

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.machine import machine
from flowstone.framework.machine.machine_profiles import NEVER
from flowstone.framework.types.shape import num_elements
from flowstone.lowering.convolutions.pooled_places import places_type, suits
from flowstone.rewriting.matching import Op, Pattern, Surroundings, Value
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


class _Pooled(NamedTuple):
    """An activation that is only pooled."""

    activation: PlanNode
    pool: PlanNode
    root: PlanNode


class _Trained(NamedTuple):
    """The same, and the gradients of both, of which the root is the activation's."""

    activation: PlanNode
    pool: PlanNode
    pool_gradient: PlanNode
    root: PlanNode


def _has_fewer_maxima(site: _Pooled | _Trained) -> bool:
    """Whether there are fewer maxima than elements, and activations of them have the same bits."""
    y, pooled = site.activation.outputs[0], site.pool.outputs[0]
    before, after = _elements_an_image(y), _elements_an_image(pooled)
    if not y.dtype.is_floating or before is None or after is None or after >= before:
        return False
    size, least = num_elements(pooled.dims) or 0, machine.current().profile.tanh_by_onednn
    return site.activation.type != "Tanh" or not size < least < NEVER  # exponentials round either way


def _is_of_one_kind(site: _Trained) -> bool:
    """Whether the gradients are of this activation and this pooling."""
    fits = site.root.type == _NEVER_DECREASING[site.activation.type]
    return fits and _have_same_windows(site.pool, site.pool_gradient)


def _elements_an_image(x: PlanOutput) -> int | None:
    """The number of elements of each image of a batch, whose size may be unknown."""
    return None if x.dims is None else num_elements(x.dims[1:])


def _have_same_windows(pool: PlanNode, gradient: PlanNode) -> bool:
    fits = gradient.type == _GRADIENTS[pool.type]
    return fits and all(pool.attributes[key] == gradient.attributes[key] for key in _WINDOW)


_Y = Value("y")
_POOL = Op(
    "|".join(_GRADIENTS),
    Op("|".join(_NEVER_DECREASING), Value(), node="activation", name="y", waits=False),
    node="pool",
    kept=True,
    waits=False,
    padding=lambda kind: kind != "EXPLICIT",  # a window of nothing but padding has its lowest number
)
_POOL_GRADIENT = Op("|".join(_GRADIENTS.values()), _Y, _POOL, Value(), node="pool_gradient", waits=False)
_GRADIENT = Op("|".join(_NEVER_DECREASING.values()), _POOL_GRADIENT, _Y, others="none", waits=False)
_SITES: tuple[Pattern[_Pooled] | Pattern[_Trained], ...] = (
    Pattern(_POOL, _Pooled, closed=True),
    Pattern(_GRADIENT, _Trained, _is_of_one_kind, closed=True),
)


def pool_first(subgraph: Subgraph) -> None:
    """Moves activations after the pooling that is their only consumer."""
    candidates = [node for node in subgraph.nodes if node.type in _NEVER_DECREASING]
    if not candidates or not any(node.type in _GRADIENTS for node in subgraph.nodes):
        return
    around = Surroundings.of(subgraph)
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    for node in candidates:
        for pattern in _SITES:
            for site in pattern.find_above("y", around, y=node.outputs[0]):  # at most one
                if _has_fewer_maxima(site) and not around.waiting.keys() & {site.pool, site.root}:
                    _move(subgraph, site, places, replaced)
                    reason = f"after {site.pool.name}: fewer elements"
                    subgraph.log.append(("pool_first", node.name, reason))
    substitute(subgraph, places, replaced)


def _move(
    subgraph: Subgraph,
    site: _Pooled | _Trained,
    places: dict[PlanNode, list[PlanNode]],
    replaced: dict[PlanOutput, PlanOutput],
) -> None:
    def like(node: PlanNode, *inputs: PlanOutput, **more: bool) -> PlanNode:
        return subgraph.new_node(node.declaration, list(inputs), {**node.attributes, **more}, like=node)

    x = site.activation.inputs[0]
    pool = like(site.pool, replaced.get(x, x), keeps_nan=True)
    activation = like(site.activation, pool.outputs[0])
    places[site.activation], places[site.pool] = [], [pool, activation]
    replaced[site.pool.outputs[0]] = activation.outputs[0]
    if isinstance(site, _Trained):
        dy = site.pool_gradient.inputs[2]
        y = site.activation.outputs[0]
        takes = {y: activation.outputs[0], site.pool_gradient.outputs[0]: replaced.get(dy, dy)}
        first = like(site.root, *[takes[x] for x in site.root.inputs])
        second = like(site.pool_gradient, pool.inputs[0], pool.outputs[0], first.outputs[0])
        places[site.pool_gradient], places[site.root] = [], [first, second]
        replaced[site.root.outputs[0]] = second.outputs[0]


class _Gradient(NamedTuple):
    """A gradient of a pooling, from that of the maxima."""

    pool: PlanNode
    dy: PlanOutput
    root: PlanNode


_POOLED = Op("|".join(_GRADIENTS), Value("x"), node="pool", where=suits)
_FROM_MAXIMA = Pattern(Op("|".join(_GRADIENTS.values()), Value("x"), _POOLED, Value("dy")), _Gradient)


def keep_places(subgraph: Subgraph) -> None:
    """Has MaxPool keep the places of the maxima for its gradient."""
    gradients: dict[PlanNode, list[_Gradient]] = {}
    for gradient in _FROM_MAXIMA.find(subgraph.nodes):
        gradients.setdefault(gradient.pool, []).append(gradient)
    if not gradients:
        return
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    for pool in subgraph.nodes:
        found = gradients.get(pool, [])
        if not found or not all(_have_same_windows(pool, each.root) for each in found):
            continue
        attributes = {key: pool.attributes[key] for key in (*_WINDOW, "keeps_nan") if key in pool.attributes}
        attributes["Tplaces"] = places_type(pool)
        new = subgraph.new_node(registry["_MaxPoolWithPlaces"], list(pool.inputs), attributes, like=pool)
        new.control_inputs = list(pool.control_inputs)
        places[pool], replaced[pool.outputs[0]] = [new], new.outputs[0]
        for _, dy, node in found:
            shaped = {**attributes, "shape": node.inputs[0].dims}
            inputs = [new.outputs[1], dy]
            at_places = subgraph.new_node(registry["_MaxPoolGradAtPlaces"], inputs, shaped, like=node)
            at_places.control_inputs = list(node.control_inputs)
            places[node], replaced[node.outputs[0]] = [at_places], at_places.outputs[0]
        subgraph.log.append(("keep_places", pool.name, "its gradient need not find the maxima again"))
    substitute(subgraph, places, replaced)
