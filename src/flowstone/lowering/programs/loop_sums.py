"""Sums of products that a loop of a program adds to: rows are kept and multiplied later.

Where a recurrence has few rows, the gradient by its weights is a sum as large as these, to which an iteration
adds a few terms. `LoopSums` finds the variables that are such sums (`products/loop_accumulators.py`), and
writes the statements of `native/programs/summed_products.py` for them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.framework.types.shape import fully_known
from flowstone.lowering.products.loop_accumulators import Accumulator, accumulator
from flowstone.lowering.programs.program_limits import Untranslatable, kind_of, static_dims
from flowstone.lowering.programs.translation import Translation
from flowstone.native.codegen.emitter import FLOATS
from flowstone.native.programs.open_sizes import typical
from flowstone.native.programs.programs import Container
from flowstone.rewriting.analyses.loop_variables import LoopVariable, loop_variables
from flowstone.rewriting.matching import Surroundings

__all__ = ["LoopSums"]

_FEWEST = 512  # elements of a sum; one of fewer lies in registers, or nearly


class _Sum(NamedTuple):
    """A variable that is a sum, the value that it is in the program, and how its statements are written."""

    found: Accumulator
    value: int
    attributes: dict[str, Any]


class LoopSums:
    """The sums of products of a translation's loops."""

    def __init__(self, t: Translation, subgraph: Subgraph, nodes: Sequence[PlanNode]) -> None:
        self._t, self._subgraph, self._nodes = t, subgraph, nodes
        self._products = set[PlanNode]()
        self._by_addition: dict[PlanNode, _Sum] = {}

    @functools.cached_property
    def variables(self) -> dict[PlanNode, LoopVariable]:
        """The variables of the loops by their heads."""
        inside, found = set(self._nodes), loop_variables(self._subgraph, self._subgraph.consumers())
        return {each.merge: each for each in found if each.merge in inside}

    @functools.cached_property
    def found(self) -> dict[LoopVariable, Accumulator]:
        """Those that are sums of products whose rows are worth keeping."""
        around = Surroundings(self._subgraph.consumers())
        pairs = [(each, accumulator(each, around)) for each in self.variables.values()]
        return {each: found for each, found in pairs if found is not None and self._is_worth_it(found)}

    @functools.cached_property
    def zeros(self) -> set[PlanNode]:
        """The Enters, and the constants, that nothing but sums begins with."""
        consumers, fetched = self._subgraph.consumers(), set(self._subgraph.fetches)
        heads = {each.merge for each in self.found}
        ours = {each.enter for each, found in self.found.items() if found.begins_with_zero}
        ours = {enter for enter in ours if heads.issuperset(consumers[enter.outputs[0]])}
        first = {enter.inputs[0] for enter in ours}
        kept = {x.op for x in first if x in fetched or not ours.issuperset(consumers[x])}
        return ours | ({x.op for x in first} - kept)

    def _is_worth_it(self, found: Accumulator) -> bool:
        product, frames = found.product, self._t.frames
        transposed = product.attributes["transpose_a"], product.attributes["transpose_b"]
        if transposed != (True, False) or product.dtype(0).name not in FLOATS:
            return False
        inside = (product, found.add, found.variable.next)
        if len({(frames.home(node), self._t.liveness.node(node)) for node in inside}) > 1:
            return False
        a, b = (fully_known(product.inputs[i].dims) for i in (0, 1))
        if a is None or b is None or found.variable.enter.outputs[0].dims != product.outputs[0].dims:
            return False
        return typical(a[1] * b[1]) >= max(_FEWEST, typical(a[0] * (a[1] + b[1])))

    def begin(self, found: Accumulator) -> int:
        """Writes the sum's first value, before the loop; returns the value that it will be."""
        product, t = found.product, self._t
        rows, m = static_dims(product, product.inputs[0].dims)
        n = static_dims(product, product.inputs[1].dims)[1]
        dtype = kind_of(product, product.inputs[0])
        if typical(rows * m * n) > t.limits_of(product).terms:
            raise Untranslatable(product, "the product is large")
        value = t.builder.value(dtype, (m, n))
        containers = t.builder.containers
        containers += [Container("rows", dtype, width) for width in (m, n)]
        numbers = len(containers) - 2, len(containers) - 1
        attributes = {"rows": rows, "m": m, "n": n, "containers": numbers}
        first = [] if found.begins_with_zero else [t.of(found.variable.enter.inputs[0])]
        t.add("BeginSum", first, None, into=value, **attributes)
        self._products.add(product)
        self._by_addition[found.add] = _Sum(found, value, attributes)
        return value

    def write(self, node: PlanNode) -> bool:
        """Writes the statement of a node that has a part in a sum; whether it has."""
        if node in self._products:
            return True
        mine = self._by_addition.get(node)
        if mine is None:
            return False
        operands = [self._t.of(x) for x in mine.found.product.inputs]
        self._t.add("AddProduct", operands, None, into=mine.value, **mine.attributes)
        self._t.set(node.outputs[0], mine.value)
        return True

    def end(self, found: Accumulator) -> None:
        """Writes what completes the sum, behind the loop."""
        mine = self._by_addition[found.add]
        self._t.add("EndSum", [], None, into=mine.value, **mine.attributes)
