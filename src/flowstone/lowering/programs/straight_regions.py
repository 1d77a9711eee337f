"""Programs of straight-line code: many nodes on small arrays become few, whatever they compute.

    %2 = MatMul(%0, %1) : float32[1,4]
    %3 = Max(%2, …) : float32[]
    %4 = Sub(%2, %3) : float32[1,4]
    %5 = ConcatV2(%4, %2, …) : float32[1,8]

becomes

    %5 = _Program(%0, %1) operations='MatMul+Reduce+Sub+Copy+Copy' : float32[1,8]

A call of a kernel costs about a microsecond, however small the array. What machine code has (`STATEMENTS`)
on arrays of few elements is *joinable*. Nodes are looked at in an order of their edges in which the joinable
ones come together: all that are ready, then all others, and so on. What stands together in such an order may
be one node, related or not. Regions end where they hold as many statements as LLVM compiles in a bounded
time; what passes from one to the next does so in one array (`ProgramMembers`). A region pays if it saves many
calls beyond those that clusters (`clusters/element_clusters.py`) save too.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types.shape import num_elements
from flowstone.lowering.programs.array_statements import WEIGHTS, terms_of_products
from flowstone.lowering.programs.convolution_statements import CONVOLUTIONS
from flowstone.lowering.programs.loop_bodies import exact_in_bodies
from flowstone.lowering.programs.movement_statements import MOVEMENTS
from flowstone.lowering.programs.node_statements import STATEMENTS
from flowstone.lowering.programs.program_limits import Untranslatable
from flowstone.lowering.programs.program_members import Packed, ProgramMembers
from flowstone.lowering.programs.program_nodes import put_in
from flowstone.lowering.programs.region_translation import RegionTranslation, is_part_of_code, translated
from flowstone.lowering.programs.repetitions import ends
from flowstone.native.clusters import kernels
from flowstone.native.codegen.emitter import SIZES
from flowstone.native.numerics.elements import ELEMENTS
from flowstone.rewriting.analyses.arrivals import arrivals, is_in_pieces
from flowstone.rewriting.analyses.branches import TRUE, Liveness
from flowstone.rewriting.analyses.frames import NEXT_ITERATIONS, Frame, Frames
from flowstone.rewriting.analyses.state_versions import References, changed_by
from flowstone.rewriting.patterns import remove_unneeded

__all__ = ["join_straight_programs"]

_MOST_ELEMENTS = 1024  # of an array; beyond, kernels take longer than their calls
_MOST_CONVOLVED = 4096  # of an array that is convolved, which takes a library longer
_MOST_PRODUCTS = 1 << 13  # of a matrix product, the same
_MOST_STATEMENTS = 300  # of a region
_MOST_BYTES = 1 << 17  # of the values of a region
_MOST_IN_LOOP = 1 << 18  # the same of a loop's body, whose arrays may be larger
_ITERATIONS = 16  # that a loop is taken to have
_FEWEST_CALLS = 32  # that regions save
_CONVOLUTION = 3  # calls that one takes as long as, with its views
_CALLS_IN_LOOP = 2  # which a program's own call there is worth, with what it takes and gives
_CLUSTER = 24  # element-wise nodes that a cluster is taken to join


def join_straight_programs(subgraph: Subgraph) -> None:
    """Replaces nodes on small arrays by programs, where that saves calls."""
    if not kernels.is_on():
        return
    for takes_states in (True, False):
        found = _Finder(subgraph, takes_states)
        if sum(found.times(node) for node in found.sizes) < _FEWEST_CALLS:
            return
        regions = found.programs(found.regions())
        if not regions or put_in(subgraph, regions, "join_straight_programs"):
            break
    remove_unneeded(subgraph)


class _Finder:
    """Finds regions; `sizes`: the joinable nodes, with the statements and the bytes that they are."""

    def __init__(self, subgraph: Subgraph, takes_states: bool) -> None:
        self.subgraph = subgraph
        self.place = {node: i for i, node in enumerate(subgraph.nodes)}
        self.consumers, self.fetched = subgraph.consumers(), set(subgraph.fetches)
        self.sizes: dict[PlanNode, tuple[int, int]] = {}
        self.late = arrivals(subgraph) if is_in_pieces(subgraph) else None
        self.constants = {node for node in subgraph.nodes if self._is_free(node)}
        self.frames = subgraph.analysis(Frames)
        self._find(takes_states)

    def _is_free(self, node: PlanNode) -> bool:
        """Whether the node is a constant that waits for nothing."""
        return node.is_constant and not node.control_inputs

    def times(self, node: PlanNode) -> int:
        """How often a node is taken to run in a step."""
        return 1 if self.frames.home(node) is None else _ITERATIONS

    def _find(self, takes_states: bool) -> None:
        """Tries to translate each node by itself."""
        subgraph, trial = self.subgraph, RegionTranslation(self.subgraph, (), ())
        liveness, frames = subgraph.analysis(Liveness), self.frames
        targets, references = set(subgraph.targets), References(memory=True)
        in_loops = exact_in_bodies(subgraph, frames, self.consumers)
        changed: set[Any] = set()
        if not takes_states:
            changed = {state for node in subgraph.nodes for state in changed_by(node, references)}
        for node in subgraph.nodes:
            if node.type not in STATEMENTS or node in targets or liveness.node(node) != TRUE:
                continue
            if node not in in_loops and (frames.home(node) is not None or not _is_small(node)):
                continue
            if changed and any(not changed.isdisjoint(references[x]) for x in node.inputs):
                continue
            try:
                self.sizes[node] = self._size(node, trial)
            except Untranslatable:
                continue

    def _size(self, node: PlanNode, trial: RegionTranslation) -> tuple[int, int]:
        """The statements and the bytes that a node is. Raises Untranslatable."""
        builder = trial.builder
        first, statements = len(builder.values), builder.statements
        for x in node.inputs:
            if trial.knows(x):
                continue
            if x.op in self.constants and is_part_of_code(x.op):
                trial.block([x.op], None)
            else:
                trial.take(x, node)
        trial.block([node], self.frames.home(node))
        made = [each for i, each in enumerate(builder.values[first:], first) if each.memory == i]
        weight = WEIGHTS.get(node.type, 1)
        return (builder.statements - statements) * weight, sum(x.size * SIZES[x.dtype] for x in made)

    # ---- regions

    def regions(self) -> list[list[PlanNode]]:
        """The joinable nodes that become one, in order, where it pays."""
        takers: dict[PlanNode | Frame, list[PlanNode | Frame]] = {}
        waiting: dict[PlanNode | Frame, int] = {}
        loops: dict[Frame, list[PlanNode]] = {}
        entered: dict[Frame, set[PlanNode]] = {}
        for node in self.subgraph.nodes:
            if node in self.constants:
                continue
            loop = self._loop(node)
            sources = {x for x in node.sources() if x not in self.constants and x.type not in NEXT_ITERATIONS}
            if loop is not None:  # a loop is one: it begins when all is there that any of it takes
                loops.setdefault(loop, []).append(node)
                entering = {x for x in sources if self._loop(x) is not loop}
                known = entered.setdefault(loop, set())
                self._wait(loop, entering - known, takers, waiting)
                known |= entering
                sources -= entering
            self._wait(node, sources, takers, waiting)
        for loop, nodes in loops.items():
            if waiting[loop]:
                takers.setdefault(loop, []).extend(nodes)
                for node in nodes:
                    waiting[node] += 1
        others: list[int] = []
        joinable: dict[Any, list[int]] = {}

        def ready(node: PlanNode) -> None:
            heap = joinable.setdefault(self._key(node), []) if node in self.sizes else others
            heapq.heappush(heap, self.place[node])

        def done(each: PlanNode | Frame) -> None:
            for taker in takers.get(each, ()):
                waiting[taker] -= 1
                if not waiting[taker]:
                    done(taker) if isinstance(taker, Frame) else ready(taker)

        def run(heap: list[int]) -> PlanNode:
            node = self.subgraph.nodes[heapq.heappop(heap)]
            done(node)
            return node

        for each, count in waiting.items():
            if not count and not isinstance(each, Frame):
                ready(each)
        found: list[list[PlanNode]] = []
        while others or any(joinable.values()):
            while others:
                run(others)
            heap = min((heap for heap in joinable.values() if heap), default=None)
            if heap:
                regions = self._cut(heap, run)
                times = self.times(regions[0][0])
                least = 1 if times == 1 else _CALLS_IN_LOOP
                if times * sum(self._calls(nodes) for nodes in regions) >= _FEWEST_CALLS:
                    found += [nodes for nodes in regions if self._calls(nodes) > least]
        return [self._with_constants(nodes) for nodes in found]

    def _loop(self, node: PlanNode) -> Frame | None:
        """The outermost loop that the node is in."""
        frame = self.frames.home(node)
        while frame is not None and frame.parent is not None:
            frame = frame.parent
        return frame

    @staticmethod
    def _wait(each: Any, sources: set[PlanNode], takers: Any, waiting: Any) -> None:
        """Notes that a node or a loop waits for these, too."""
        waiting[each] = waiting.get(each, 0) + len(sources)
        for source in sources:
            takers.setdefault(source, []).append(each)

    def _cut(self, heap: list[int], run: Any) -> list[list[PlanNode]]:
        """All joinable nodes that become ready, as regions that are not too large."""
        nodes = []
        while heap:
            nodes.append(run(heap))
        weights = []
        for node in nodes:
            statements, memory = self.sizes[node]
            most = _MOST_BYTES if self.times(node) == 1 else _MOST_IN_LOOP
            weights.append(max(statements, -(-memory * _MOST_STATEMENTS // most)))
        keys = [(node.type, *[x.dims for x in (*node.inputs, *node.outputs)]) for node in nodes]
        found = ends(keys, weights, _MOST_STATEMENTS)
        return [nodes[start:end] for start, end in zip([0, *found], found)]

    def _key(self, node: PlanNode) -> Any:
        return self.frames.home(node), node.device, 0 if self.late is None else self.late(node)

    def _calls(self, nodes: Sequence[PlanNode]) -> float:
        """How many calls a region stands for, where clusters join what is element-wise."""
        calls = 0.0
        for node in nodes:
            if node.type in ELEMENTS:
                calls += 1 / _CLUSTER
            elif node.type in CONVOLUTIONS:
                calls += _CONVOLUTION
            elif node.type not in MOVEMENTS or self.sizes[node][0]:
                calls += 1
        return calls

    def _with_constants(self, nodes: list[PlanNode]) -> list[PlanNode]:
        taken = {x.op for node in nodes for x in node.inputs if x.op in self.constants}
        return sorted({*nodes, *[x for x in taken if is_part_of_code(x)]}, key=self.place.__getitem__)

    # ---- programs

    def programs(self, regions: Sequence[Sequence[PlanNode]]) -> list[ProgramMembers]:
        """The regions as programs. What only other regions take passes between them in packs."""
        region_of = {node: i for i, nodes in enumerate(regions) for node in nodes if not node.is_constant}
        packs: list[list[Packed]] = []
        pack_of: dict[PlanOutput, Packed] = {}
        outputs: list[list[PlanOutput]] = []
        for i, nodes in enumerate(regions):
            taken = [x for x in _outputs(nodes) if self._leaves(x, i, region_of)]
            packed = _packs([x for x in taken if self._passes(x, region_of)])
            packs.append(packed)
            pack_of.update({x: pack for pack in packed for x in pack})
            outputs.append([x for x in taken if x not in pack_of])
        return [self._members(*each, pack_of) for each in zip(regions, outputs, packs)]

    def _leaves(self, x: PlanOutput, region: int, region_of: dict[PlanNode, int]) -> bool:
        """Whether somebody outside of the region takes the output."""
        return x in self.fetched or any(region_of.get(each) != region for each in self.consumers.get(x, ()))

    def _passes(self, x: PlanOutput, region_of: dict[PlanNode, int]) -> bool:
        """Whether only regions take the output."""
        return x not in self.fetched and all(each in region_of for each in self.consumers.get(x, ()))

    def _members(
        self,
        nodes: Sequence[PlanNode],
        outputs: Sequence[PlanOutput],
        packs: Sequence[Packed],
        pack_of: dict[PlanOutput, Packed],
    ) -> ProgramMembers:
        inside = set(nodes)
        taken = list(dict.fromkeys(x for node in nodes for x in node.inputs if x.op not in inside))
        inputs = [x for x in taken if x not in pack_of]
        taken_packs = list(dict.fromkeys(pack_of[x] for x in taken if x in pack_of))
        home = self.frames.home(next(node for node in nodes if node not in self.constants))
        program = translated(self.subgraph, nodes, inputs, outputs, taken_packs, packs, frame=home)
        reads = program.reads()
        read = [x for i, x in enumerate(inputs) if reads[i] or not x.op.is_constant]
        if len(read) < len(inputs):  # the others are shapes and axes, which are part of the code
            program = translated(self.subgraph, nodes, read, outputs, taken_packs, packs, frame=home)
        return ProgramMembers(nodes, read, outputs, program, taken_packs, packs)


def _outputs(nodes: Sequence[PlanNode]) -> list[PlanOutput]:
    return [x for node in nodes if not node.is_constant for x in node.outputs]


def _packs(outputs: Sequence[PlanOutput]) -> list[Packed]:
    """Outputs of a type together, where there are several."""
    by_type: dict[str, list[PlanOutput]] = {}
    for x in outputs:
        by_type.setdefault(x.dtype.base_dtype.name, []).append(x)
    return [tuple(each) for each in by_type.values() if len(each) > 1]


def _is_small(node: PlanNode) -> bool:
    if not node.outputs or any(x.dtype.is_ref for x in node.outputs):
        return False
    most = _MOST_CONVOLVED if node.type in CONVOLUTIONS else _MOST_ELEMENTS
    for x in (*node.inputs, *node.outputs):
        size = num_elements(x.dims)
        if x.dtype.name == "resource" or size is None or not 0 < size <= most:
            return False  # a sum of products is an object to the loop that adds to it
    return terms_of_products(node) <= _MOST_PRODUCTS
