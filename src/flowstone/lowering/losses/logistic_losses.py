"""Logistic losses: sigmoid cross entropy and its gradient, which programs spell out, in a few nodes.

For logits x and labels z, ``tf.nn.sigmoid_cross_entropy_with_logits`` builds, with p for ``x >= 0``,

    loss = (Select(p, x, 0) - x z) + log1p(e)        where e = exp(Select(p, -x, x)) = exp(-|x|)

and ``tf.gradients`` the gradient with respect to x, from the gradient dy by the loss, as the sum of four
terms,

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

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.matching import Either, Number, Op, Pattern, Surroundings, Value
from flowstone.rewriting.patterns import remove_unneeded, substitute

_SELECT, _ADD = "Select|SelectV2", "Add|AddV2"
_TYPES = (dtypes.float32, dtypes.float64)


# ---- what is there


def _constant(x: PlanOutput) -> Any:
    node = x.op
    return node.attributes["value"] if node.is_constant else None


def _is_one(x: PlanOutput) -> bool:
    value = _constant(x)
    return value is not None and bool(np.all(value == 1))


def _have_one_shape(node: PlanNode) -> bool:
    """Whether a choice, its condition and its operands have the same known shape."""
    shapes = {x.static_shape for x in (node.inputs[0], node.inputs[2], node.outputs[0])}
    return len(shapes) == 1 and None not in shapes


_X = Value("x")
_ZERO = Either(
    Number(where=lambda value: not np.any(value), read=_constant),
    Value(where=lambda x: x.op.type == "ZerosLike"),
)
_ONE = Value(where=_is_one)
_POSITIVE = Op("GreaterEqual", _X, _ZERO, name="positive")
_EXPONENTIAL = Op(
    "Exp",
    Op(_SELECT, _POSITIVE, Op("Neg", _X), _X, where=_have_one_shape),
    where=lambda node: node.inputs[0].dtype in _TYPES,
    name="exponential",
)
_RECIPROCAL = Op("Reciprocal|Inv", Op(_ADD, _EXPONENTIAL, _ONE))
_B = Op("Mul", _EXPONENTIAL, Either(_RECIPROCAL, Op("Mul", _RECIPROCAL, Value("factor"))), name="b")


class _Loss(NamedTuple):
    """The loss of logits x, with ``x >= 0``, exp(-|x|) and its labels (None: ones, whose product is not
    there)."""

    x: PlanOutput
    positive: PlanOutput
    exponential: PlanOutput
    labels: PlanOutput | None
    root: PlanNode
    nodes: tuple[PlanNode, ...]


class _Gradient(NamedTuple):
    """A sum with the three terms that are dy sigmoid(x), and the `rest`. dy is what `factor` repeats or is
    repeated from (None: ones, of which the product is not there); `given` is it as the first term has it."""

    x: PlanOutput
    positive: PlanOutput
    exponential: PlanOutput
    factor: PlanOutput | None
    given: PlanOutput
    rest: tuple[PlanOutput, ...]
    root: PlanNode
    nodes: tuple[PlanNode, ...]

    @property
    def dy(self) -> PlanOutput:
        """The gradient with respect to the loss."""
        return _unrepeated(self.given)


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


_CHOSEN = Value("positive")
_LOSS = Pattern(
    Op(
        _ADD,
        Op("Log1p", _EXPONENTIAL),
        Op("Sub", Op(_SELECT, _CHOSEN, _X, _ZERO), Either(_X, Op("Mul", _X, Value("labels"), kept=True))),
    ),
    _Loss,
    where=lambda loss: loss.labels is None or loss.labels.dims == loss.x.dims,
)
_GRADIENT = Pattern(
    Op(
        "AddN",
        Op("Neg", Op(_SELECT, _CHOSEN, _B, _ZERO)),
        Op(_SELECT, _CHOSEN, Value("given"), _ZERO),
        Op(_SELECT, _CHOSEN, _ZERO, Value("b")),
        others="rest",
    ),
    _Gradient,
    where=lambda found: _is_one(found.given) if found.factor is None else _same(found.given, found.factor),
)


def simplify_logistic_losses(subgraph: Subgraph) -> None:
    """Replaces logistic losses by softplus, and their gradients by sigmoid."""
    sites = _sites(subgraph)
    if not sites:
        return
    around, liveness = Surroundings(subgraph.consumers(), subgraph.fetches), subgraph.analysis(Liveness)
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    for site in sites:
        alive = liveness.node(site[0].positive.op)
        if _is_closed(site, around) and all(liveness.node(each.root) == alive for each in site):
            _Simplified(subgraph, site, places, replaced)
    if places:
        replacements = {old.op: [new.op] for old, new in replaced.items()}
        substitute(subgraph, places, replaced, replacements)
        remove_unneeded(subgraph)


def _sites(subgraph: Subgraph) -> list[list[_Loss | _Gradient]]:
    """What is made of each exp(-|x|): losses, then gradients."""
    exponentials = [node.outputs[0] for node in subgraph.nodes if node.type == "Exp"]
    if not exponentials:
        return []
    found: dict[PlanOutput, list[_Loss | _Gradient]] = {}
    for loss in _LOSS.find(subgraph.nodes):
        found.setdefault(loss.exponential, []).append(loss)
    for gradient in _GRADIENT.find(subgraph.nodes):
        found.setdefault(gradient.exponential, []).append(gradient)
    return [found[x] for x in exponentials if x in found]


def _is_closed(site: list[_Loss | _Gradient], around: Surroundings) -> bool:
    """Whether nobody else takes what is inside, and nothing inside waits."""
    ends = {each.root for each in site}
    inside = {node for each in site for node in each.nodes} - ends
    return around.are_closed(inside, ends, ("ZerosLike",)) and not any(node.control_inputs for node in inside)


# ---- what is made


class _Simplified:
    """The nodes that stand for a site's losses and gradients; the logits with their signs come first."""

    def __init__(
        self,
        subgraph: Subgraph,
        found: list[_Loss | _Gradient],
        places: dict[PlanNode, list[PlanNode]],
        replaced: dict[PlanOutput, PlanOutput],
    ) -> None:
        self.subgraph, self.x, site = subgraph, found[0].x, found[0].positive.op
        self.first: list[PlanNode] = []  # where the site begins
        self.nodes: list[PlanNode] = []  # where the loss or gradient was
        self.like = site
        self.signed: dict[bytes, PlanOutput] = {}
        for each in found:
            self.nodes, self.like, self.waits = [], each.root, list(each.root.control_inputs)
            new = self.loss(each.labels) if isinstance(each, _Loss) else self.gradient(each)
            new.op.control_inputs = list(dict.fromkeys(self.waits))
            places[each.root], replaced[each.root.outputs[0]] = self.nodes, new
            reason = "softplus of the logits" if isinstance(each, _Loss) else "the sigmoid of the logits"
            subgraph.log.append(("simplify_logistic_losses", each.root.name, reason))
        places[site] = [*self.first, site]

    def loss(self, labels: PlanOutput | None) -> PlanOutput:
        x, value = self.x, self.label_values(labels)
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
        dy, rest = each.dy, list(each.rest)
        value = labels = None
        for term in rest:
            value, labels = self.labels_of(term, dy)
            if value is not None or labels is not None:
                rest.remove(term)
                self.waits += term.op.control_inputs
                break
        dy = self.without_infinities(dy)
        if value is not None:
            signs = 1 - 2 * value
            sigmoid = self.add("Sigmoid", self.with_signs(signs))
            result = self.times_signs(sigmoid, dy, signs)
        else:
            factor = self.add("Sigmoid", self.x)
            if labels is not None:
                factor = self.add("Sub", factor, labels)
            result = self.times(factor, dy)
        if rest:
            result = self.add("AddN", result, *rest)
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
        if node.type == "Mul":
            for factor in node.inputs:
                labels = node.inputs[1] if factor is node.inputs[0] else node.inputs[0]
                if self.is_negated(factor, dy) and labels.dims == self.x.dims:
                    value = self.label_values(labels)
                    return value, None if value is not None else labels
        given = _constant(dy)
        if constant is not None and given is not None and constant.shape == self.x.dims:
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
        dtype = self.x.dtype.base_dtype.as_numpy_dtype
        if labels is None:
            return np.ones(self.x.dims, dtype)
        value = _constant(labels)
        return value if value is not None and np.isin(value, (0, 1)).all() else None

    def with_signs(self, signs: Any) -> PlanOutput:
        """The logits times these signs."""
        key = signs.tobytes()
        if key not in self.signed:
            nodes, self.nodes = self.nodes, []
            self.signed[key] = self.times(self.x, self.constant(signs))
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
        attributes: dict[str, Any] = {"T": self.x.dtype.base_dtype}
        sizes: tuple[int, ...] | None = None
        if kind == "AddN":
            attributes["N"], sizes = len(inputs), (len(inputs),)
        node = self.subgraph.new_node(registry[kind], list(inputs), attributes, self.like, sizes)
        self.nodes.append(node)
        output: PlanOutput = node.outputs[0]
        return output
