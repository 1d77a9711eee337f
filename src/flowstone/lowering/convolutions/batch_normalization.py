"""Batch normalisation on a host as machine code, with the activation after it and the gradients of both.

    %1, ... = FusedBatchNormV3(%0, scale, offset)     becomes   %2, ... = _NormalizedBatch(%0, scale, offset)
    %2 = Relu(%1)                                                         activation='Relu'

and ``Relu(%1 + %3)``, where nothing else takes %1, likewise with %3 as a fourth input. FusedBatchNormGradV3
of a ReluGrad that nothing else takes becomes ``_NormalizedBatchGrad``. All that takes a normalisation's
reserve spaces must become so, since one of machine code has none. So does a gradient whose normalisation is
not in the step, by the moments that it is given. Of float32 images of known shape with
channels last, by the moments of the batch (`normalized_batches.py`). Where there is no machine code, and with
``FLOWSTONE_PASSES=-normalize_batches``, everything stays as it is.
"""

from __future__ import annotations

from typing import NamedTuple

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import num_elements
from flowstone.lowering.convolutions.normalized_batches import gradient_op, normalized_op
from flowstone.native.clusters import kernels
from flowstone.native.networks.normalization_code import ACTIVATIONS
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.analyses.frames import Frames
from flowstone.rewriting.patterns import remove_unneeded, substitute

WORTHWHILE = 2_000
"""Elements of images from which machine code is faster."""
_VERSIONS = ("", "V2", "V3")
_NORMALIZATIONS = frozenset(f"FusedBatchNorm{version}" for version in _VERSIONS)
_GRADIENTS = frozenset(f"FusedBatchNormGrad{version}" for version in _VERSIONS)
_SUMS = frozenset(("Add", "AddV2"))
_LAYOUTS = ("NHWC", "NDHWC")


class _Site(NamedTuple):
    """A normalisation, and the gradients that take its moments. `after`: the nodes after it that become part
    of it, the activation last; `added`: what one of them adds to it."""

    root: PlanNode
    gradients: tuple[PlanNode, ...]
    after: tuple[PlanNode, ...] = ()
    added: PlanOutput | None = None

    @property
    def activation(self) -> str:
        return self.after[-1].type if self.after else ""


def normalize_batches(subgraph: Subgraph) -> None:
    """Has machine code normalise batches, and compute the gradients."""
    concerned = _NORMALIZATIONS | _GRADIENTS
    if not kernels.is_on() or not any(node.type in concerned for node in subgraph.nodes):
        return
    around = _Surroundings(subgraph)
    sites = [site for node in subgraph.nodes if (site := around.site(node)) is not None]
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    for site in sites:
        _put(subgraph, around, site, places, replaced)
    for node in subgraph.nodes:
        if node not in places and around.is_alone(node):
            dy, x, scale, mean, variance, *_ = node.inputs
            inputs = [dy, x, scale, scale, mean, variance]  # no activation asks for the offset
            _put_gradient(subgraph, node, inputs, "", places, replaced)
    if places:
        substitute(subgraph, places, replaced)
        remove_unneeded(subgraph)


class _Surroundings:
    """What is around the nodes of a subgraph."""

    def __init__(self, subgraph: Subgraph) -> None:
        self.consumers, self.fetches = subgraph.consumers(), set(subgraph.fetches)
        self.awaited = {control for node in subgraph.nodes for control in node.control_inputs}
        self.awaited |= set(subgraph.targets)
        self.place = {node: i for i, node in enumerate(subgraph.nodes)}
        self.liveness, self.frames = subgraph.analysis(Liveness), subgraph.analysis(Frames)
        self.taken: set[PlanNode] = set()

    def takers(self, x: PlanOutput) -> list[PlanNode]:
        return sorted(set(self.consumers.get(x, ())), key=self.place.__getitem__)

    def only_taker(self, x: PlanOutput) -> PlanNode | None:
        """The node that alone takes a value, and takes it once, if it runs wherever the value is made."""
        found = list(self.consumers.get(x, ()))
        if len(found) != 1 or x in self.fetches or not self._run_together(x.op, found[0]):
            return None
        return found[0] if list(found[0].inputs).count(x) == 1 else None

    def _run_together(self, a: PlanNode, b: PlanNode) -> bool:
        alive = self.liveness.node(a) == self.liveness.node(b)
        return alive and self.frames.home(a) is self.frames.home(b) and a.device == b.device

    def site(self, node: PlanNode) -> _Site | None:
        """None where the normalisation stays as it is."""
        if node.type not in _NORMALIZATIONS or not _suits(node, (1, 2)):
            return None
        gradients = {taker for x in node.outputs[3:] for taker in self.takers(x)}
        if any(x in self.fetches for x in node.outputs[3:]):
            return None
        if not all(_is_gradient(each, node) and self._is_all_taken(each) for each in gradients):
            return None
        site = _Site(node, tuple(sorted(gradients, key=self.place.__getitem__)))
        after = self._after(site)
        return site if after is None else after

    def is_alone(self, node: PlanNode) -> bool:
        """Whether a node is the gradient of a normalisation that is not in the step."""
        if node.type not in _GRADIENTS or not _suits(node, (2, 3, 4)) or not self._is_all_taken(node):
            return False
        is_same_size = node.static_shape(1) == node.static_shape(0)
        return is_same_size and node.inputs[3].op.type not in _NORMALIZATIONS

    def _is_all_taken(self, gradient: PlanNode) -> bool:
        """Whether nobody takes more of a gradient than machine code gives."""
        return not any(self.consumers.get(x) or x in self.fetches for x in gradient.outputs[3:])

    def _after(self, site: _Site) -> _Site | None:
        """The site with the activation after it, if there is one."""
        root, (y, *_) = site.root, site.root.outputs
        taker = self.only_taker(y)
        if taker is None or taker.control_inputs or {root, taker} & self.awaited:
            return None
        if taker.type in ACTIVATIONS:
            return site._replace(after=(taker,))
        if taker.type not in _SUMS or taker in self.taken:
            return None
        (added,) = [x for x in taker.inputs if x is not y]
        last = self.only_taker(taker.outputs[0])
        if last is None or last.type not in ACTIVATIONS or last.control_inputs or taker in self.awaited:
            return None
        if added.dims != y.dims or added.dtype is not y.dtype or not self._comes_in_time(added, root):
            return None
        self.taken.add(taker)
        return site._replace(after=(taker, last), added=added)

    def _comes_in_time(self, added: PlanOutput, root: PlanNode) -> bool:
        """Whether what is added is there before the normalisation."""
        return self.place.get(added.op, len(self.place)) < self.place[root]


def _suits(node: PlanNode, vectors: tuple[int, ...]) -> bool:
    """Whether machine code does this, of images that are the first input; `vectors`: inputs a channel."""
    attributes, dims = node.attributes, node.static_shape(0)
    if not attributes["is_training"] or attributes["data_format"] not in _LAYOUTS or dims is None:
        return False
    if node.dtype(0) is not dtypes.float32 or attributes.get("exponential_avg_factor", 1.0) != 1.0:
        return False
    return (num_elements(dims) or 0) >= WORTHWHILE and all(node.static_shape(i) == dims[-1:] for i in vectors)


def _is_gradient(node: PlanNode, root: PlanNode) -> bool:
    """Whether a node is the gradient of this normalisation, by its own moments."""
    if node.type not in _GRADIENTS or list(node.inputs[1:3]) != list(root.inputs[:2]):
        return False
    same = all(
        node.attributes[key] == root.attributes[key] for key in ("epsilon", "data_format", "is_training")
    )
    return same and list(node.inputs[3:5]) == list(root.outputs[3:5]) and node.static_shape(0) is not None


def _put(
    subgraph: Subgraph,
    around: _Surroundings,
    site: _Site,
    places: dict[PlanNode, list[PlanNode]],
    replaced: dict[PlanOutput, PlanOutput],
) -> None:
    root = site.root
    added = [] if site.added is None else [site.added]
    attributes = {"T": dtypes.float32, "epsilon": root.attributes["epsilon"]}
    new = subgraph.new_node(
        normalized_op,
        [*root.inputs[:3], *added],
        {**attributes, "activation": site.activation, "NA": len(added)},
        like=root,
        group_sizes=(1, 1, 1, len(added)),
    )
    new.control_inputs = list(root.control_inputs)
    places[root] = [new]
    y, mean, variance, corrected = new.outputs
    replaced.update(zip(root.outputs, (y, mean, corrected, mean, variance)))
    for node in site.after:
        places[node] = []
        replaced[node.outputs[0]] = y
    what = " and ".join(["normalises", *[node.name for node in site.after]])
    subgraph.log.append(("normalize_batches", root.name, what))
    for node in site.gradients:
        dy, activation = _flow(around, site, node)
        inputs = [dy, *root.inputs[:3], mean, variance]
        _put_gradient(subgraph, node, inputs, activation, places, replaced)


def _put_gradient(
    subgraph: Subgraph,
    node: PlanNode,
    inputs: list[PlanOutput],
    activation: str,
    places: dict[PlanNode, list[PlanNode]],
    replaced: dict[PlanOutput, PlanOutput],
) -> None:
    attributes = {"T": dtypes.float32, "epsilon": node.attributes["epsilon"], "activation": activation}
    gradient = subgraph.new_node(gradient_op, inputs, attributes, like=node)
    gradient.control_inputs = list(node.control_inputs)
    places[node] = [gradient]
    replaced.update(zip(node.outputs, gradient.outputs))
    reason = f"with {node.inputs[0].op.name}" if activation else "by float64 sums"
    subgraph.log.append(("normalize_batches", node.name, reason))


def _flow(around: _Surroundings, site: _Site, gradient: PlanNode) -> tuple[PlanOutput, str]:
    """The flow that a gradient begins with, and the activation that it passes first."""
    dy = gradient.inputs[0]
    by = dy.op
    if not site.after or site.added is not None or by.type != ACTIVATIONS[site.activation]:
        return dy, ""
    if around.only_taker(dy) is not gradient or by in around.awaited or by.control_inputs:
        return dy, ""
    return (by.inputs[0], site.activation) if by.inputs[1] is site.after[-1].outputs[0] else (dy, "")
