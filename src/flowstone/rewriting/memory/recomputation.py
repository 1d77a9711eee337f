"""Recomputation of activations: memory for time (white paper 4.1).

Chen et al., "Training deep nets with sublinear memory cost", 2016; Griewank & Walther's checkpointing, one
level of it. The forward part of the step is cut into segments of about equal stashes (`stashes.py`), where
the fewest bytes cross from one to the next. What crosses is kept; the other stashes of a segment are freed
after the forward part and computed again, all together, before the first gradient that uses one of them. The
last segment is kept. Several numbers of segments are tried, each with products and convolutions computed
again and with these kept (*cheap*), and the cheapest plan is used whose estimated peak is within 5 % of the
lowest. Products and convolutions are computed again only where the share that they add to the step's
operations takes nearly as large a share off the peak, beyond what cheap plans do.

Only pure nodes are computed again, from the same values: random numbers, reads of state and other effects are
not, and nothing that depends on a state which has been changed in between. So results are the same bit for
bit. Steps with loops or conditionals are left alone.

The clones are named after their originals:

    %3 = Relu(%2) : float32[10,10]  # Relu
    …
    %9 = Relu(%2) : float32[10,10]  # Relu/recomputed
    %10 = ReluGrad(%8, %9) : float32[10,10]  # gradients/Relu_grad/ReluGrad
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.memory_estimate import peak_memory, size_of
from flowstone.rewriting.analyses.stashes import Stash, Stashes, is_gradient
from flowstone.rewriting.analyses.state_versions import StateVersions
from flowstone.rewriting.memory.memory_schedule import arrange

WORTHWHILE = 4 << 20  # bytes of stashes, below which a step is left alone
HINT = "_recompute_hint"
_SEGMENTS = (2, 3, 4, 6, 8, 12, 16, 24, 32)
_LEAST_SAVING = 0.03  # of the peak
_AS_GOOD_AS_LOWEST = 1.05
_LEAST_EFFICIENCY = 0.25  # bytes saved an operation, of the average, for which a product is computed again
_LEAST_GAIN = 0.7  # of the peak's share that products save, over that of the step's operations that they add
_BYTE = 10  # operations while a byte of an operand comes from memory: what products of few rows wait for


def recompute_activations(subgraph: Subgraph) -> None:
    """Computes stashes again where that lowers the estimated peak."""
    _recompute(subgraph, hinted=False)


def recompute_hinted(subgraph: Subgraph) -> None:
    """The same for the nodes that have an attribute ``_recompute_hint``, and for no others."""
    if any(HINT in node.attributes for node in subgraph.nodes):
        _recompute(subgraph, hinted=True)


def _recompute(subgraph: Subgraph, hinted: bool) -> None:
    stashes = Stashes(subgraph)
    if sum([stash.size for stash in stashes.found]) < WORTHWHILE:
        return
    before = peak_memory(subgraph)
    versions = StateVersions(subgraph)
    plans = []
    for cheap in (True, False):
        for count in _SEGMENTS:
            plan = _Plan(subgraph, stashes, versions, count, cheap, hinted)
            if plan.clones:
                plans.append((plan.peak(), plan))
    good = _paying([each for each in plans if each[0] <= (1 - _LEAST_SAVING) * before], before)
    if not good:
        return
    enough = _AS_GOOD_AS_LOWEST * min(peak for peak, _ in good)
    peak, plan = min(
        [(peak, plan) for peak, plan in good if peak <= enough], key=lambda each: (each[1].cost(), each[0])
    )
    plan.apply()
    reason = (
        f"{len(plan.clones)} nodes recomputed in {plan.count} segments: an estimated peak of {peak:,} bytes"
    )
    name = "recompute_hinted" if hinted else "recompute_activations"
    subgraph.log.append((name, "the step", f"{reason} instead of {before:,}"))


def _paying(plans: list[tuple[int, _Plan]], before: int) -> list[tuple[int, _Plan]]:
    """The plans whose products cost less than they save, by their peaks."""
    lowest = min([peak for peak, plan in plans if plan.cheap], default=before)

    def pays(peak: int, plan: _Plan) -> bool:
        added = plan.cost()[0] / max(1.0, plan.step_operations())
        return (lowest - peak) / before > _LEAST_GAIN * added

    return [(peak, plan) for peak, plan in plans if plan.cheap or pays(peak, plan)]


class _Plan:
    """What is computed again if the forward part is cut into `count` segments.

    Fields: `cuts`, the places of the segments' last nodes; `clones`, each with the place of the node before
    which it comes; `redirects`, (node, input position, new input). Nothing is changed before `apply`.
    """

    def __init__(
        self,
        subgraph: Subgraph,
        stashes: Stashes,
        versions: StateVersions,
        count: int,
        cheap: bool,
        hinted: bool,
    ) -> None:
        self.subgraph, self.stashes, self.versions = subgraph, stashes, versions
        self.count, self.cheap, self.hinted = count, cheap, hinted
        self.nodes = subgraph.nodes
        self.clones: list[tuple[int, PlanNode]] = []
        self.redirects: list[tuple[PlanNode, int, PlanOutput]] = []
        self._last_forward_use = self._find_last_forward_uses()
        self.cuts = self._find_cuts()
        segments = self._segments()
        wanted = [self._worthwhile(segment) for segment in segments]
        for segment in self._efficient(wanted):
            if segment:
                self._clone(segment)

    # ---- segments

    def _find_last_forward_uses(self) -> dict[PlanOutput, int]:
        root, found = self.stashes.root, {}
        for i, node in enumerate(self.nodes[: self.stashes.turn + 1]):
            for x in node.inputs:
                home = root.get(x)
                if home is not None:
                    found[home] = i
        return found

    def _segments(self) -> list[list[Stash]]:
        """The stashes of each segment that are freed: all but those of the last and those that cross."""
        ends = self.cuts
        segments: list[list[Stash]] = [[] for _ in ends]
        at = 0
        for stash in self.stashes.found:
            while at < len(ends) and stash.start > ends[at]:
                at += 1
            if at == len(ends):
                break
            if self._last_forward_use.get(stash.value, stash.start) <= ends[at]:
                segments[at].append(stash)
        return segments

    def _find_cuts(self) -> list[int]:
        """The places of the last nodes of all segments but the last."""
        turn, found = self.stashes.turn, self.stashes.found
        crossing, stashed = [0] * (turn + 2), [0] * (turn + 2)
        for value, last in self._last_forward_use.items():
            crossing[self.stashes.place[value.op]] += size_of(value)
            crossing[last] -= size_of(value)
        for stash in found:
            stashed[stash.start] += stash.size
        for i in range(turn + 1):
            crossing[i] += crossing[i - 1] if i else 0
            stashed[i] += stashed[i - 1] if i else 0
        share = stashed[turn] / self.count
        cuts: list[int] = []
        for k in range(1, self.count):
            first = max(cuts[-1] + 1 if cuts else 0, _first_above(stashed, (k - 0.5) * share, turn))
            last = _first_above(stashed, (k + 0.5) * share, turn)
            if first < last:
                cuts.append(min(range(first, last), key=lambda i: (crossing[i], abs(stashed[i] - k * share))))
        return cuts

    # ---- what is worth computing again

    def _may_clone(self, node: PlanNode, before: int) -> bool:
        """Whether the node gives the same values if it runs again before the node at place `before`."""
        if not node.declaration.is_pure or node.is_feed or node.is_constant:
            return False
        if any(x.dtype.is_ref or x.dtype.torch is None for x in node.outputs):
            return False
        if self.cheap and _operations(node):
            return False
        if self.hinted and HINT not in node.attributes and not node.declaration.aliases:
            return False
        current, there = self.versions.current, self.nodes[before]
        return all([current(state, there) == version for state, version in self.versions.in_memory_for(node)])

    def _needed(self, segment: list[Stash]) -> tuple[list[PlanNode], set[PlanOutput]]:
        """The nodes to run again for these stashes, in order, and the other values that they take."""
        if not segment:
            return [], set()
        before, start = min(s.late for s in segment), min(s.start for s in segment)
        begin = max([cut + 1 for cut in self.cuts if cut < start], default=0)
        root, place = self.stashes.root, self.stashes.place
        again = {stash.value for stash in segment}
        kept = {stash.value for stash in self.stashes.found} - again
        needed: set[PlanNode] = set()
        taken: set[PlanOutput] = set()
        stack = [stash.value for stash in segment]
        while stack:
            x = stack.pop()
            node, home = x.op, root.get(x)
            if node in needed or (home is None and x not in root):
                continue
            comes_in = home is None or home in kept or place[home.op] < begin
            if (comes_in and home not in again) or not self._may_clone(node, before):
                taken.add(x if home is None else home)
                continue
            needed.add(node)
            stack += node.inputs
        return sorted(needed, key=lambda node: place[node]), taken

    def _worthwhile(self, segment: list[Stash]) -> list[Stash]:
        """The segment without stashes that cannot be computed again, or none if nothing is saved."""
        while segment:
            needed, taken = self._needed(segment)
            computed = set(needed)
            possible = [stash for stash in segment if stash.value.op in computed]
            if len(possible) == len(segment):
                held = {stash.value for stash in self.stashes.found} - {s.value for s in segment}
                extra = sum([size_of(x) for x in taken - held])
                return segment if extra < sum([stash.size for stash in segment]) else []
            segment = possible
        return []

    def _efficient(self, segments: list[list[Stash]]) -> list[list[Stash]]:
        """The segments without the stashes for which a product costs far more than elsewhere."""
        if self.cheap:
            return segments
        saved: dict[PlanNode, int] = {}
        costs: dict[PlanOutput, list[PlanNode]] = {}
        for segment in segments:
            needed = set(self._needed(segment)[0])
            for stash in segment:
                costs[stash.value] = products = _products_behind(stash.value.op, needed)
                for node in products:
                    saved[node] = saved.get(node, 0) + stash.size
        work = sum([_operations(node) for node in saved])
        if not work:
            return segments
        average = sum([stash.size for segment in segments for stash in segment]) / work
        dear = {n for n, size in saved.items() if size / _operations(n) < _LEAST_EFFICIENCY * average}
        if not dear:
            return segments
        return [
            self._worthwhile([stash for stash in segment if not dear.intersection(costs[stash.value])])
            for segment in segments
        ]

    # ---- clones

    def _clone(self, segment: list[Stash]) -> None:
        needed, _ = self._needed(segment)
        before = min(stash.late for stash in segment)
        copies: dict[PlanOutput, PlanOutput] = {}
        clones: dict[PlanNode, PlanNode] = {}
        for node in needed:
            controls = [clones.get(c, c) for c in node.control_inputs]
            clones[node] = clone = _copy(node, [copies.get(x, x) for x in node.inputs], controls)
            copies.update(zip(node.outputs, clone.outputs))
            self.clones.append((before, clone))
        root = self.stashes.root
        again = {stash.value for stash in segment}
        views: dict[PlanOutput, PlanOutput] = dict(copies)
        for i in range(self.stashes.turn + 1, len(self.nodes)):
            node = self.nodes[i]
            for j, x in enumerate(node.inputs):
                if root.get(x) in again:
                    self.redirects.append((node, j, self._view(x, views, before)))

    def _view(self, x: PlanOutput, views: dict[PlanOutput, PlanOutput], before: int) -> PlanOutput:
        """What stands for a value that lies in a stash's buffer: views of it are made again, too."""
        if x in views or x not in self.stashes.root:
            return views.get(x, x)
        node = x.op
        if self.stashes.place[node] > self.stashes.turn:  # a gradient's own view, of what is redirected
            return x
        inputs = [self._view(y, views, before) for y in node.inputs]
        clone = _copy(node, inputs, list(node.control_inputs))
        views.update(zip(node.outputs, clone.outputs))
        self.clones.append((before, clone))
        return views[x]

    # ---- the result

    def cost(self) -> tuple[float, int]:
        """Operations of products and bytes written by what is computed again."""
        operations = sum([_operations(clone) for _, clone in self.clones])
        return operations, sum([size_of(x) for _, clone in self.clones for x in clone.outputs])

    def step_operations(self) -> float:
        """Operations of products in the whole step, of which gradients have twice the forward part's."""
        return 3 * sum([_operations(node) for node in self.nodes if not is_gradient(node)])

    def order(self) -> list[PlanNode]:
        """The nodes with the clones among them."""
        at: dict[int, list[PlanNode]] = {}
        for before, clone in self.clones:
            at.setdefault(before, []).append(clone)
        return [each for i, node in enumerate(self.nodes) for each in (*at.get(i, ()), node)]

    def peak(self) -> int:
        """The estimated peak if this plan were applied."""
        old = [(node, i, node.inputs[i]) for node, i, _ in self.redirects]
        _redirect(self.redirects)
        self.subgraph.nodes = self.order()
        try:
            return peak_memory(self.subgraph)
        finally:
            self.subgraph.nodes = self.nodes
            _redirect(old)

    def apply(self) -> None:
        """Changes the subgraph."""
        _redirect(self.redirects)
        arrange(self.subgraph, self.order())


def _copy(node: PlanNode, inputs: list[PlanOutput], controls: list[PlanNode]) -> PlanNode:
    name, attributes, sizes = f"{node.name}/recomputed", node.attributes, node.group_sizes
    copy = PlanNode(node.declaration, name, inputs, attributes, sizes, controls, node.device, node.order)
    copy.origin = node.origin
    for output in node.outputs:
        copy.add_output(output.dtype, output.dims)
    return copy


def _redirect(redirects: Iterable[tuple[PlanNode, int, PlanOutput]]) -> None:
    for node, i, x in redirects:
        node.inputs[i] = x


def _first_above(totals: list[int], wanted: float, end: int) -> int:
    return next((i for i in range(end) if totals[i] >= wanted), end)


def _products_behind(node: PlanNode, inside: set[PlanNode]) -> list[PlanNode]:
    """The nearest products and convolutions of `inside` that a node's value comes from."""
    found: list[PlanNode] = []
    seen: set[PlanNode] = set()
    stack = [node]
    while stack:
        node = stack.pop()
        if node not in inside or node in seen:
            continue
        seen.add(node)
        if _operations(node):
            found.append(node)
        else:
            stack += [x.op for x in node.inputs]
    return found


def _operations(node: PlanNode) -> float:
    """What a product or a convolution takes, in floating-point operations; 0 for all else, which is cheap."""
    kind = node.declaration.multiplies
    if kind in ("product", "contraction"):
        counts: Any = [_count(x) for x in (*node.inputs[:2], node.outputs[0])]
        return float(2.0 * math.sqrt(math.prod(counts)) + _BYTE * 4 * sum(counts))
    if kind in ("convolution", "depthwise"):
        return 2.0 * _count(node.outputs[0]) * _count(node.inputs[1]) / _channels(node)
    return 0.0


def _channels(node: PlanNode) -> int:
    """Of a convolution's result; filters may lie in any order."""
    dims = node.outputs[0].dims or (1,)
    return dims[1 if node.attributes.get("data_format", "NHWC").startswith("NC") else -1] or 1


def _count(x: PlanOutput) -> int:
    return max(1, math.prod([n or 1 for n in x.dims or ()]))
