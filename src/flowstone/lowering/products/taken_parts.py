"""Products of which only some columns are taken: those alone are computed.

    %3 = MatMul(%1, %2) transpose_b                %4 = Slice(%2, (64, 0), (128, -1))
    _, %5 = SplitV(%3, (64, 128), 1)    becomes    %5 = MatMul(%1, %4) transpose_b

The gradient of a concatenation is split, whoever wants the parts: that of a recurrence's first layer has no
use for the part of its inputs, which is half of the product. The rows of the second matrix are a view, made
where the matrix is: of one that all iterations of a loop take, outside of the loop.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.branches import TRUE, Liveness
from flowstone.rewriting.analyses.frames import Frames, order_by_frames
from flowstone.rewriting.analyses.loop_variables import entered
from flowstone.rewriting.matching import Number, Op, Pattern, Surroundings, Value
from flowstone.rewriting.patterns import remove_unneeded, substitute


class _Parts(NamedTuple):
    """A product, by `weights`, that is split into columns."""

    x: PlanOutput
    weights: PlanOutput
    product: PlanOutput
    sizes: Any
    root: PlanNode


_LAST = Number(where=lambda axis: axis in (1, -1))
_PRODUCT = Op(
    "MatMul", Value("x"), Value("weights"), name="product", alone=True, transpose_a=False, transpose_b=True
)
_PARTS = Pattern(Op("SplitV", _PRODUCT, Number("sizes"), _LAST), _Parts)


def compute_taken_parts(subgraph: Subgraph) -> None:
    """Replaces products that are split, and of which one part is taken, by the product that this part is."""
    if not any(node.type == "SplitV" for node in subgraph.nodes):
        return
    consumers, fetched = subgraph.consumers(), set(subgraph.fetches)
    rows = _Rows(subgraph)
    replaced: dict[PlanOutput, PlanOutput] = {}
    for found in _PARTS.find(subgraph.nodes, Surroundings(consumers)):
        split, product = found.root, found.product.op
        taken = [i for i, x in enumerate(split.outputs) if consumers.get(x) or x in fetched]
        sizes = [int(size) for size in found.sizes.ravel()]
        waits = any(node is not product for node in split.control_inputs)
        if len(taken) != 1 or waits or found.product in fetched or not _is_plain(found, sizes):
            continue
        (i,) = taken
        weights = rows.of(found.weights, sum(sizes[:i]), sizes[i])
        if weights is None:
            continue
        new = subgraph.new_node(
            product.declaration, [found.x, weights], product.attributes, product, name=product.name
        )
        new.control_inputs = list(product.control_inputs)
        rows.places[product], rows.places[split] = [new], []
        rows.replacements[product] = rows.replacements[split] = [new]
        replaced[split.outputs[i]] = new.outputs[0]
        reason = f"{sizes[i]} of {sum(sizes)} columns are taken"
        subgraph.log.append(("compute_taken_parts", product.name, reason))
    if replaced:
        substitute(subgraph, rows.places, replaced, rows.replacements)
        order_by_frames(subgraph)
        remove_unneeded(subgraph)


def _is_plain(found: _Parts, sizes: list[int]) -> bool:
    """Whether all sizes are known, and nothing else is in the same product."""
    dims, weights = found.product.dims, found.weights.dims
    if dims is None or weights is None or None in weights or min(sizes) <= 0:
        return False
    return not found.product.dtype.base_dtype.is_complex and sum(sizes) == weights[0]


class _Rows:
    """Some rows of matrices, each made once; `places` has what comes where a node was, `replacements` what
    those who waited for it wait for."""

    def __init__(self, subgraph: Subgraph) -> None:
        self._subgraph = subgraph
        self._frames, self._liveness = subgraph.analysis(Frames), subgraph.analysis(Liveness)
        self._made: dict[Any, PlanOutput] = {}
        self.places: dict[PlanNode, list[PlanNode]] = {}
        self.replacements: dict[PlanNode, list[PlanNode]] = {}

    def of(self, matrix: PlanOutput, start: int, size: int) -> PlanOutput | None:
        """These rows; None if the matrix is made in a loop or a branch."""
        source = entered(matrix)
        origin = matrix if source is None else source
        if self._frames.home(origin.op) is not None or self._liveness.node(origin.op) != TRUE:
            return None
        key = matrix, start, size
        if key not in self._made:
            self._made[key] = self._slice(matrix, origin, start, size)
        return self._made[key]

    def _slice(self, matrix: PlanOutput, origin: PlanOutput, start: int, size: int) -> PlanOutput:
        like = origin.op
        begin, count = (
            self._subgraph.new_constant(np.array(pair, np.int32), like, f"{like.name}/{word}")
            for word, pair in (("begin", (start, 0)), ("size", (size, -1)))
        )
        inputs = [origin, begin.outputs[0], count.outputs[0]]
        attributes = {"T": origin.dtype, "Index": begin.outputs[0].dtype}
        rows = self._subgraph.new_node(registry["Slice"], inputs, attributes, like, name=f"{like.name}/rows")
        new = [begin, count, rows]
        result: PlanOutput = rows.outputs[0]
        if matrix is not origin:
            enter = matrix.op
            entering = self._subgraph.new_node(enter.declaration, [result], enter.attributes, enter)
            entering.control_inputs = list(enter.control_inputs)
            self.places.setdefault(enter, [enter]).extend([*new, entering])
            self.replacements.setdefault(enter, [enter])
            return entering.outputs[0]
        self.places.setdefault(like, [like]).extend(new)
        self.replacements.setdefault(like, [like])
        return result
