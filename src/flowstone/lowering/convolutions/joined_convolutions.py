"""Joined convolutions: computes gradients of convolutions of the same images as those of one convolution.

Blocks of Inception convolve the same images by several 1x1 filters. Each gradient with respect to a filter
reads the images again, and the gradients with respect to the images are added up. With the filters side by
side, both are one:

    %4 = ReluGrad(%0, %1)                               %4 = _JoinedReluGrad(%0, %2, %1, %3)
    %5 = ReluGrad(%2, %3)                               %5 = Conv2DBackpropFilter(x, shape, %4)
    %6 = Conv2DBackpropInput(shape, V, %4)              %6, %7 = SplitV(%5)
    %7 = Conv2DBackpropInput(shape, W, %5)   becomes    %8 = _JoinedFilters(V, W)
    %8 = AddN(%6, %7, …)                                %9 = Conv2DBackpropInput(shape, %8, %4)
    %9 = Conv2DBackpropFilter(x, shape, %4)             %10 = AddN(%9, …)
    %10 = Conv2DBackpropFilter(x, shape, %5)

and the gradients with respect to the biases likewise. Each filter's gradient lies in one piece in the joint
one. Gradients that do not come from relus alone are concatenated. It is done where what need not be read and
added exceeds what is copied. Steps with loops or conditionals are left alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import Consumers, PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import num_elements
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.patterns import remove_unneeded, substitute

_BY_INPUT, _BY_FILTER, _BY_BIAS = "Conv2DBackpropInput", "Conv2DBackpropFilter", "BiasAddGrad"
_ADDING = 3  # passes over memory of a sum of two: two are read, one is written
_GAIN = 2  # times as many bytes are to be saved as copied


class _Branch(NamedTuple):
    """Of a convolution: the gradients with respect to its input and its filter; that by its bias, if there is
    one."""

    by_input: PlanNode
    by_filter: PlanNode
    by_bias: PlanNode | None

    @property
    def gradient(self) -> PlanOutput:
        """By the convolution's result."""
        result: PlanOutput = self.by_filter.inputs[2]
        return result

    def nodes(self) -> list[PlanNode]:
        """Those that there are."""
        return [node for node in self if node is not None]


class _Walk(NamedTuple):
    """`place` of each node in the order; who takes each value; who waits for a node; what is fetched."""

    place: dict[PlanNode, int]
    consumers: Consumers
    waiting: dict[PlanNode, list[PlanNode]]
    fetched: set[PlanOutput]


def join_convolutions(subgraph: Subgraph) -> None:
    """Joins the gradients of convolutions by 1x1 filters that have images and windows in common."""
    groups: dict[Any, list[PlanNode]] = {}
    for node in subgraph.nodes:
        key = _key(node) if node.type == _BY_FILTER else None
        if key is not None:
            groups.setdefault(key, []).append(node)
    groups = {key: nodes for key, nodes in groups.items() if len(nodes) > 1}
    if not groups or not subgraph.analysis(Liveness).trivial:
        return
    walk = _walk(subgraph)
    for nodes in groups.values():
        branches = _branches(nodes, walk)
        if len(branches) > 1 and _pays(branches, walk) and _can_wait(subgraph, branches, walk):
            _join(subgraph, branches, walk)
            walk = _walk(subgraph)
    remove_unneeded(subgraph)


def _walk(subgraph: Subgraph) -> _Walk:
    waiting: dict[PlanNode, list[PlanNode]] = {}
    for node in subgraph.nodes:
        for control in node.control_inputs:
            waiting.setdefault(control, []).append(node)
    place = {node: i for i, node in enumerate(subgraph.nodes)}
    return _Walk(place, subgraph.consumers(), waiting, set(subgraph.fetches))


def _key(node: PlanNode) -> Any:
    """What convolutions that are joined have in common; None for one that is not."""
    images, sizes, results = node.static_shape(0), node.constant(1), node.static_shape(2)
    if images is None or sizes is None or results is None or node.dtype(0) is not dtypes.float32:
        return None
    if sizes[:2].tolist() != [1, 1] or sizes[2] != images[3] or node.attributes["data_format"] != "NHWC":
        return None
    geometry = [
        tuple(node.attributes[key]) for key in ("strides", "dilations", "padding", "explicit_paddings")
    ]
    return node.inputs[0], results[:3], node.device, *geometry


def _branches(nodes: list[PlanNode], walk: _Walk) -> list[_Branch]:
    """Those of the convolutions whose gradients with respect to the images are terms of the same sum."""
    found: dict[Any, list[_Branch]] = {}
    for node in nodes:
        consumers = walk.consumers[node.inputs[2]]
        images = [x for x in consumers if x.type == _BY_INPUT]
        filters = [x for x in consumers if x.type == _BY_FILTER]
        biases = [x for x in consumers if x.type == _BY_BIAS and x.attributes["data_format"] == "NHWC"]
        if len(images) != 1 or len(filters) != 1 or len(biases) > 1 or _differs(images[0], node):
            continue
        dx = images[0].outputs[0]
        sums = walk.consumers.get(dx, [])
        if len(sums) == 1 and sums[0].type == "AddN" and dx not in walk.fetched:
            branch = _Branch(images[0], node, biases[0] if biases else None)
            found.setdefault((sums[0], bool(biases)), []).append(branch)
    return max(found.values(), key=len, default=[])


def _differs(by_input: PlanNode, by_filter: PlanNode) -> bool:
    """Whether these are not gradients of one convolution by a filter of a known shape."""
    keys = ("strides", "dilations", "padding", "explicit_paddings", "data_format")
    if any(by_input.attributes[key] != by_filter.attributes[key] for key in keys):
        return True
    same = (
        by_input.inputs[2] is by_filter.inputs[2]
        and by_input.outputs[0].dims == by_filter.static_shape(0)
        and by_input.static_shape(1) == by_filter.outputs[0].dims
        and by_input.device == by_filter.device
    )
    return not same


def _pays(branches: list[_Branch], walk: _Walk) -> bool:
    """Whether the images that are not read again, and sums that are not made, outweigh what is copied."""
    saved = (len(branches) - 1) * _elements(branches[0].by_input) * (1 + _ADDING)
    filters = sum(_elements(branch.by_filter) for branch in branches)
    gradients = sum(num_elements(branch.gradient.dims) or 0 for branch in branches)
    copied = filters + (0 if _are_relus(branches, walk) else gradients)
    return saved >= _GAIN * 2 * copied


def _elements(node: PlanNode) -> int:
    return num_elements(node.outputs[0].dims) or 0


def _are_relus(branches: list[_Branch], walk: _Walk) -> bool:
    """Whether the gradients with respect to the results are those of relus that nothing but the branches
    takes."""
    for branch in branches:
        x, node = branch.gradient, branch.gradient.op
        if node.type != "ReluGrad" or node.control_inputs or walk.waiting.get(node):
            return False
        if x in walk.fetched or set(walk.consumers[x]) != set(branch.nodes()):
            return False
        if node.device != branch.by_filter.device or any(y.dims != x.dims for y in node.inputs):
            return False
    return True


def _can_wait(subgraph: Subgraph, branches: list[_Branch], walk: _Walk) -> bool:
    """Whether all may be computed where the last is: nobody needs one before."""
    members = {node for branch in branches for node in branch.nodes()}
    last = max(walk.place[node] for node in members)
    if any(node in subgraph.targets for node in members):
        return False
    for node in members:
        users = [user for x in node.outputs for user in walk.consumers.get(x, ())] + walk.waiting.get(
            node, []
        )
        if any(walk.place[user] < last for user in users if user not in members):
            return False
    return True


class _Joining:
    """One rewrite: the new nodes, in order, and what stands for the old ones."""

    def __init__(self, subgraph: Subgraph, members: list[PlanNode], like: PlanNode) -> None:
        self.subgraph, self.members, self.like = subgraph, members, like
        self.nodes: list[PlanNode] = []
        self.replaced: dict[PlanOutput, PlanOutput] = {}
        self.replacements: dict[PlanNode, list[PlanNode]] = {}

    def add(
        self,
        kind: str,
        inputs: list[PlanOutput],
        attributes: dict[str, Any],
        like: PlanNode,
        sizes: Any = None,
    ) -> PlanNode:
        """A new node of this op, named like another."""
        name = f"{like.name}/joined"
        self.nodes.append(self.subgraph.new_node(registry[kind], inputs, attributes, like, sizes, name))
        return self.nodes[-1]

    def constant(self, value: Any, name: str) -> PlanOutput:
        """The output of a new constant."""
        self.nodes.append(self.subgraph.new_constant(value, self.like, name))
        result: PlanOutput = self.nodes[-1].outputs[0]
        return result

    def stands_for(self, whole: PlanNode, old: list[PlanNode], parts: list[PlanOutput]) -> None:
        """Says that these parts of a node's result are those of old nodes."""
        controls = dict.fromkeys(x for node in old for x in node.control_inputs)
        whole.control_inputs = [x for x in controls if x not in self.members]
        for node, part in zip(old, parts):
            self.replaced[node.outputs[0]], self.replacements[node] = part, [whole]

    def parts(self, x: PlanOutput, like: list[PlanNode]) -> list[PlanOutput]:
        """The parts of a joint result, along its last dimension, of which old nodes made each one."""
        dims: list[Any] = [node.outputs[0].dims for node in like]
        lengths = self.constant(np.array([each[-1] for each in dims], np.int64), "sizes")
        axis = self.constant(np.array(len(dims[0]) - 1, np.int32), "axis")
        attributes = {"T": x.dtype, "Tlen": dtypes.int64, "num_split": len(like)}
        return self.add("SplitV", [x, lengths, axis], attributes, like[0]).outputs


def _join(subgraph: Subgraph, branches: list[_Branch], walk: _Walk) -> None:
    """Puts the joint gradients in the place of the last of the branches'."""
    members = [node for branch in branches for node in branch.nodes()]
    last = max(members, key=walk.place.__getitem__)
    joining = _Joining(subgraph, members, last)
    gradient = _joint_gradient(joining, branches, _are_relus(branches, walk))
    _join_by_filter(joining, branches, gradient)
    if biases := [branch.by_bias for branch in branches if branch.by_bias is not None]:
        _join_by_bias(joining, biases, gradient)
    by_input = _join_by_input(joining, branches, gradient)
    places: dict[PlanNode, list[PlanNode]] = {node: [] for node in members if node in joining.replacements}
    places[last] = joining.nodes
    total = walk.consumers[branches[0].by_input.outputs[0]][0]
    old = {branch.by_input.outputs[0] for branch in branches}
    terms = [by_input.outputs[0], *[x for x in total.inputs if x not in old]]
    places[total] = []
    if len(terms) == 1 and not total.control_inputs:
        joining.stands_for(by_input, [total], terms)
    else:
        attributes = {**total.attributes, "N": len(terms)}
        new = subgraph.new_node(total.declaration, terms, attributes, total, (len(terms),))
        new.control_inputs = list(total.control_inputs)
        places[total].append(new)
        joining.replaced[total.outputs[0]] = new.outputs[0]
        joining.replacements[total] = [new]
    names = ", ".join(branch.by_filter.name for branch in branches)
    subgraph.log.append(("join_convolutions", last.name, f"of the same images: {names}"))
    substitute(subgraph, places, joining.replaced, joining.replacements)


def _joint_gradient(joining: _Joining, branches: list[_Branch], are_relus: bool) -> PlanOutput:
    number, attributes = len(branches), {"T": dtypes.float32, "N": len(branches)}
    if are_relus:
        relus = [branch.gradient.op for branch in branches]
        inputs = [node.inputs[i] for i in (0, 1) for node in relus]
        node = joining.add("_JoinedReluGrad", inputs, attributes, relus[0], (number, number))
    else:
        axis = joining.constant(np.array(3, np.int32), "axis")
        inputs = [*[branch.gradient for branch in branches], axis]
        attributes["Tidx"] = dtypes.int32
        node = joining.add("ConcatV2", inputs, attributes, branches[0].by_filter, (number, 1))
    result: PlanOutput = node.outputs[0]
    return result


def _join_by_filter(joining: _Joining, branches: list[_Branch], gradient: PlanOutput) -> None:
    old = [branch.by_filter for branch in branches]
    dims: list[Any] = [node.outputs[0].dims for node in old]
    whole_dims = [*dims[0][:-1], sum(each[-1] for each in dims)]
    sizes = joining.constant(np.array(whole_dims, np.int32), "shape")
    inputs = [old[0].inputs[0], sizes, gradient]
    whole = joining.add(_BY_FILTER, inputs, old[0].attributes, old[0])
    joining.stands_for(whole, old, joining.parts(whole.outputs[0], old))


def _join_by_bias(joining: _Joining, old: list[PlanNode], gradient: PlanOutput) -> None:
    whole = joining.add(_BY_BIAS, [gradient], old[0].attributes, old[0])
    joining.stands_for(whole, old, joining.parts(whole.outputs[0], old))


def _join_by_input(joining: _Joining, branches: list[_Branch], gradient: PlanOutput) -> PlanNode:
    old = [branch.by_input for branch in branches]
    filters, attributes = [node.inputs[1] for node in old], {"T": dtypes.float32, "N": len(old)}
    joint = joining.add("_JoinedFilters", filters, attributes, old[0], (len(old),)).outputs[0]
    whole = joining.add(_BY_INPUT, [old[0].inputs[0], joint, gradient], old[0].attributes, old[0])
    joining.stands_for(whole, old, [])
    for node in old:
        joining.replacements[node] = [whole]
    return whole
