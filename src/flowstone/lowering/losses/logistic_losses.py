"""Logistic losses: sigmoid cross entropy and its gradient, which programs spell out, in a few nodes.

For logits x and labels z, ``tf.nn.sigmoid_cross_entropy_with_logits`` builds, with p for ``x >= 0``,

    loss = (Select(p, x, 0) - x z) + log1p(e)        where e = exp(Select(p, -x, x)) = exp(-|x|)

and ``tf.gradients`` the gradient by x, from the gradient dy by the loss, as the sum of four terms,

    Select(p, dy, 0), Select(p, 0, b), -Select(p, b, 0), -dy z        where b = dy (1 / (1 + e)) e

The first three are dy sigmoid(x). So here

    loss = (relu(x) - x z) + softplus(-|x|)          and its gradient (sigmoid(x) - z) dy

and where the labels are constants, each 0 or 1, with s = 1 - 2 z,

    loss = softplus(s x) + 0 x                       and its gradient sigmoid(s x) (s dy)

which no cancellation makes less exact. Products with zero are there for infinities alone, of which the
program makes NaN: 0 min(s x, 0) where z is 1, and dy + 0 dy for a dy that is no finite constant.
(``softplus(x) - x z`` and ATen's own binary cross entropy are as fast, but make the loss of a logit of 10
that is right, 4.5e-5, wrong by 4e-7 for one of the two labels.)

What takes part is recognised by its structure alone; where something else takes an inner value, all stays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flowstone.framework import dtypes
from flowstone.framework.operation import registry
from flowstone.framework.subgraph import Consumers, PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.patterns import remove_unneeded, substitute

_TYPES = (dtypes.float32, dtypes.float64)
_SELECTS = ("Select", "SelectV2")
_ADDITIONS = ("Add", "AddV2")


class _Loss(NamedTuple):
    """The node of a loss, its labels (None: ones, of which the product is not there), and what is inside."""

    node: PlanNode
    labels: PlanOutput | None
    inside: tuple[PlanNode, ...]


class _Gradient(NamedTuple):
    """A sum with the gradient's terms: dy, the three positions that are dy sigmoid(x), and what is inside."""

    node: PlanNode
    dy: PlanOutput
    terms: tuple[int, int, int]
    inside: tuple[PlanNode, ...]


class _Site:
    """Logits x, ``x >= 0`` and exp(-|x|), and the losses and gradients that are made of these."""

    def __init__(
        self, x: PlanOutput, positive: PlanNode, exponential: PlanNode, inside: list[PlanNode]
    ) -> None:
        self.x, self.positive, self.exponential, self.inside = x, positive, exponential, inside
        self.losses: list[_Loss] = []
        self.gradients: list[_Gradient] = []

    @property
    def found(self) -> list[_Loss | _Gradient]:
        return [*self.losses, *self.gradients]

    @property
    def ends(self) -> list[PlanNode]:
        return [each.node for each in self.found]

    def is_closed(self, subgraph: Subgraph, consumers: Consumers) -> bool:
        """Whether nobody else takes what is inside, and nothing inside waits."""
        inside = {*self.inside, *(n for each in self.found for n in each.inside)}
        known = inside.union(self.ends)
        return not any(
            node.control_inputs
            or node.outputs[0] in subgraph.fetches
            or any(taker not in known and taker.type != "ZerosLike" for taker in consumers[node.outputs[0]])
            for node in inside
        )


def simplify_logistic_losses(subgraph: Subgraph) -> None:
    """Puts softplus and sigmoid in the places of logistic losses and their gradients."""
    sites = {site.exponential: site for node in subgraph.nodes if (site := _site(node)) is not None}
    if not sites:
        return
    for node in subgraph.nodes:
        if node.type in _ADDITIONS:
            _find_loss(node, sites)
        elif node.type == "AddN":
            _find_gradient(node, sites)
    consumers, liveness = subgraph.consumers(), subgraph.analysis(Liveness)
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    for site in sites.values():
        alive = liveness.node(site.positive)
        if site.ends and site.is_closed(subgraph, consumers):
            if all(liveness.node(node) == alive for node in site.ends):
                _Simplified(subgraph, site, places, replaced)
    if places:
        stand_ins = {old.op: [new.op] for old, new in replaced.items()}
        substitute(subgraph, places, replaced, stand_ins)
        remove_unneeded(subgraph)


# ---- what is there


def _site(node: PlanNode) -> _Site | None:
    """The site whose exponential is `node`."""
    if node.type != "Exp" or node.inputs[0].dtype not in _TYPES:
        return None
    chosen = node.inputs[0].op
    if chosen.type not in _SELECTS:
        return None
    positive, negated = chosen.inputs[0].op, chosen.inputs[1].op
    x = chosen.inputs[2]
    if positive.type != "GreaterEqual" or negated.type != "Neg" or negated.inputs[0] is not x:
        return None
    if positive.inputs[0] is not x or not _is_zero(positive.inputs[1]):
        return None
    shapes = {y.static_shape for y in (x, positive.outputs[0], chosen.outputs[0])}
    if len(shapes) != 1 or None in shapes:
        return None
    return _Site(x, positive, node, [positive, negated, chosen, node])


def _find_loss(node: PlanNode, sites: dict[PlanNode, _Site]) -> None:
    """Notes `node` if it is the loss of a site."""
    for linear, logarithm in (node.inputs, node.inputs[::-1]):
        if logarithm.op.type != "Log1p" or linear.op.type != "Sub":
            continue
        site = sites.get(logarithm.op.inputs[0].op)
        if site is None:
            continue
        rectified, product = linear.op.inputs
        if not _is_selection(rectified, site, lambda y, site=site: y is site.x, _is_zero):
            continue
        if product is site.x:
            labels = None
        elif product.op.type == "Mul" and site.x in product.op.inputs:
            labels = _other(product.op, site.x)
            if labels.dims != site.x.dims:
                continue
        else:
            continue
        site.losses.append(_Loss(node, labels, (logarithm.op, linear.op, rectified.op)))
        return


def _find_gradient(node: PlanNode, sites: dict[PlanNode, _Site]) -> None:
    """Notes `node` if it adds up the terms of a site's gradient."""
    for i, term in enumerate(node.inputs):
        if term.op.type != "Neg" or term.op.inputs[0].op.type not in _SELECTS:
            continue
        negated = term.op.inputs[0]
        product = negated.op.inputs[1]
        found = _quotient(product, sites)
        if found is None or not _is_selection(negated, found[0], lambda y, b=product: y is b, _is_zero):
            continue
        site, dy, inside = found
        tests = (
            (_is_one if dy is None else lambda y, dy=dy: _same(y, dy), _is_zero),
            (_is_zero, lambda y, b=product: y is b),
        )
        others = [
            next((j for j, x in enumerate(node.inputs) if j != i and _is_selection(x, site, *test)), None)
            for test in tests
        ]
        if None not in others:
            selected = [node.inputs[j].op for j in others]  # type: ignore[index]
            inside = (*inside, product.op, negated.op, term.op, *selected)
            dy = _unrepeated(selected[0].inputs[1])
            site.gradients.append(_Gradient(node, dy, (i, *others), inside))  # type: ignore[arg-type]
            return


_Quotient = tuple[_Site, "PlanOutput | None", tuple[PlanNode, ...]]


def _quotient(b: PlanOutput, sites: dict[PlanNode, _Site]) -> _Quotient | None:
    """Of ``b = dy (1 / (1 + e)) e``: the site of e, dy (None: ones, of which the product is not there), and
    the nodes between."""
    if b.op.type != "Mul":
        return None
    for e in b.op.inputs:
        site = sites.get(e.op)
        if site is None:
            continue
        rest = _other(b.op, e)
        if _is_reciprocal(rest, e):
            return site, None, (rest.op, rest.op.inputs[0].op)
        for reciprocal in rest.op.inputs if rest.op.type == "Mul" else ():
            if _is_reciprocal(reciprocal, e):
                inside = (rest.op, reciprocal.op, reciprocal.op.inputs[0].op)
                return site, _other(rest.op, reciprocal), inside
    return None


def _is_reciprocal(x: PlanOutput, e: PlanOutput) -> bool:
    """Whether it is 1 / (1 + e)."""
    if x.op.type not in ("Reciprocal", "Inv"):
        return False
    increased = x.op.inputs[0].op
    return increased.type in _ADDITIONS and e in increased.inputs and _is_one(_other(increased, e))


def _is_selection(x: PlanOutput, site: _Site, first: Any, second: Any) -> bool:
    """Whether `x` is one of two values, of which the tests hold, by the sign of the site's logits."""
    node = x.op
    return (
        node.type in _SELECTS
        and node.inputs[0].op is site.positive
        and first(node.inputs[1])
        and second(node.inputs[2])
    )


def _other(node: PlanNode, x: PlanOutput) -> PlanOutput:
    first: PlanOutput
    second: PlanOutput
    first, second = node.inputs
    return second if first is x else first


def _constant(x: PlanOutput) -> Any:
    node = x.op
    return node.attributes["value"] if node.type == "Const" else None


def _is_zero(x: PlanOutput) -> bool:
    value = _constant(x)
    return x.op.type == "ZerosLike" or (value is not None and not np.any(value))


def _is_one(x: PlanOutput) -> bool:
    value = _constant(x)
    return value is not None and bool(np.all(value == 1))


def _unrepeated(x: PlanOutput) -> PlanOutput:
    while x.op.type == "BroadcastTo" and not x.op.control_inputs:
        x = x.op.inputs[0]
    return x


def _same(x: PlanOutput, y: PlanOutput) -> bool:
    """Whether two outputs have the same elements, repeated or not."""
    x, y = _unrepeated(x), _unrepeated(y)
    if x is y:
        return True
    values = _constant(x), _constant(y)
    return all(value is not None for value in values) and np.array_equal(*values)


# ---- what is made


class _Simplified:
    """The nodes that stand for a site's losses and gradients; the logits with their signs come first."""

    def __init__(
        self,
        subgraph: Subgraph,
        site: _Site,
        places: dict[PlanNode, list[PlanNode]],
        replaced: dict[PlanOutput, PlanOutput],
    ) -> None:
        self.subgraph, self.site = subgraph, site
        self.first: list[PlanNode] = []  # where the site begins
        self.nodes: list[PlanNode] = []  # where the loss or gradient was
        self.like = site.positive
        self.signed: dict[bytes, PlanOutput] = {}
        for each in site.found:
            self.nodes, self.like = [], each.node
            new = self.loss(each.labels) if isinstance(each, _Loss) else self.gradient(each)
            new.op.control_inputs = list(each.node.control_inputs)
            places[each.node], replaced[each.node.outputs[0]] = self.nodes, new
            reason = "softplus of the logits" if isinstance(each, _Loss) else "the sigmoid of the logits"
            subgraph.log.append(("simplify_logistic_losses", each.node.name, reason))
        places[site.positive] = [*self.first, site.positive]

    def loss(self, labels: PlanOutput | None) -> PlanOutput:
        x, value = self.site.x, self.label_values(labels)
        if value is not None:
            signed = self.with_signs(1 - 2 * value)
            return self.add("AddV2", self.add("Softplus", signed), self.infinities(signed, value))
        linear = self.add("Sub", self.add("Relu", x), self.add("Mul", x, labels))
        return self.add("AddV2", linear, self.add("Softplus", self.add("Neg", self.add("Abs", x))))

    def infinities(self, signed: PlanOutput, labels: Any) -> PlanOutput:
        """Zeros, but NaN where the logits times their signs are infinite and the loss is NaN."""
        if labels.any():
            highest = np.where(labels == 1, 0, np.inf).astype(labels.dtype)
            signed = self.add("Minimum", signed, self.constant(highest))
        return self.add("Mul", signed, self.constant(np.zeros((), labels.dtype)))

    def gradient(self, each: _Gradient) -> PlanOutput:
        inputs, dy = each.node.inputs, each.dy
        rest = [i for i in range(len(inputs)) if i not in each.terms]
        value = labels = None
        for i in rest:
            value, labels = self.labels_of(inputs[i], dy)
            if value is not None or labels is not None:
                rest.remove(i)
                break
        dy = self.without_infinities(dy)
        if value is not None:
            signs = 1 - 2 * value
            sigmoid = self.add("Sigmoid", self.with_signs(signs))
            result = self.times_signs(sigmoid, dy, signs)
        else:
            factor = self.add("Sigmoid", self.site.x)
            if labels is not None:
                factor = self.add("Sub", factor, labels)
            result = self.times(factor, dy)
        if rest:
            result = self.add("AddN", result, *(inputs[i] for i in rest))
        return result

    def without_infinities(self, dy: PlanOutput) -> PlanOutput:
        """The same with NaN in the places of infinities."""
        given = _constant(dy)
        if given is not None and np.isfinite(given).all():
            return dy
        zero = np.zeros((), dy.dtype.base_dtype.as_numpy_dtype)
        return self.add("AddV2", dy, self.add("Mul", dy, self.constant(zero)))

    def labels_of(self, term: PlanOutput, dy: PlanOutput) -> tuple[Any, PlanOutput | None]:
        """Of a term -dy z: z as constant zeros and ones, or else as an output; (None, None) of others."""
        node, constant = term.op, _constant(term)
        if self.is_negated(term, dy):
            return self.label_values(None), None
        if node.type == "Mul" and not node.control_inputs:
            for factor in node.inputs:
                labels = _other(node, factor)
                if self.is_negated(factor, dy) and labels.dims == self.site.x.dims:
                    value = self.label_values(labels)
                    return value, None if value is not None else labels
        given = _constant(dy)
        if constant is not None and given is not None and constant.shape == self.site.x.dims:
            is_one = constant != 0
            if np.array_equal(np.where(is_one, -given, 0), constant):
                return is_one.astype(constant.dtype), None
        return None, None

    def is_negated(self, x: PlanOutput, dy: PlanOutput) -> bool:
        if x.op.type == "Neg":
            return _same(x.op.inputs[0], dy)
        values = _constant(x), _constant(dy)
        return all(value is not None for value in values) and np.array_equal(values[0], -values[1])

    def label_values(self, labels: PlanOutput | None) -> Any:
        """The labels if they are constants, each zero or one."""
        dtype = self.site.x.dtype.base_dtype.as_numpy_dtype
        if labels is None:
            return np.ones(self.site.x.dims, dtype)
        value = _constant(labels)
        return value if value is not None and np.isin(value, (0, 1)).all() else None

    def with_signs(self, signs: Any) -> PlanOutput:
        """The logits times these signs."""
        key = signs.tobytes()
        if key not in self.signed:
            nodes, self.nodes = self.nodes, []
            self.signed[key] = self.times(self.site.x, self.constant(signs))
            self.first += self.nodes
            self.nodes = nodes
        return self.signed[key]

    def times_signs(self, x: PlanOutput, dy: PlanOutput, signs: Any) -> PlanOutput:
        """x times dy and the signs."""
        given = _constant(dy)
        if given is not None:
            return self.times(x, self.constant(given * signs))
        return self.times(self.times(x, self.constant(signs)), dy)

    def times(self, x: PlanOutput, y: PlanOutput) -> PlanOutput:
        """The product, of which `y` may be the constant one or minus one."""
        value = _constant(y)
        if value is not None and (np.abs(value) == 1).all() and len(np.unique(value)) == 1:
            return x if value.flat[0] == 1 else self.add("Neg", x)
        return self.add("Mul", x, y)

    def constant(self, value: Any) -> PlanOutput:
        node = self.subgraph.new_constant(value, self.like, "signs")
        self.nodes.append(node)
        output: PlanOutput = node.outputs[0]
        return output

    def add(self, kind: str, *inputs: Any) -> PlanOutput:
        """A node of this op that takes these outputs."""
        attributes: dict[str, Any] = {"T": self.site.x.dtype.base_dtype}
        sizes: tuple[int, ...] | None = None
        if kind == "AddN":
            attributes["N"], sizes = len(inputs), (len(inputs),)
        node = self.subgraph.new_node(registry[kind], list(inputs), attributes, self.like, sizes)
        self.nodes.append(node)
        output: PlanOutput = node.outputs[0]
        return output
