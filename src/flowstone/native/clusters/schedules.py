"""In which pass over a row each step of a cluster is computed.

A reduction over a row is known when a pass over the row's columns has ended; steps that use it belong to a
later pass. What an earlier pass computed of an element is computed again, or, where that costs more than a
few additions, kept in a buffer of one row. In a row of a few vectors, all values stay in registers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from flowstone.native.clusters.clusters import Cluster, Level, Step
from flowstone.native.codegen import host

__all__ = ["Pass", "Schedule", "schedule_of"]

_AGAIN = 4  # additions up to which something is computed again
_BUFFERS = 1 << 17  # bytes of a thread's stack for what is kept
_CHUNKS = 4  # vectors of a row that stays in registers
_MOST_IN_REGISTERS = 96  # vectors times steps of such a row: it is written out


class Pass(NamedTuple):
    """One pass over a row; numbers are those of arrays, those in `stores` places among the outputs."""

    before: list[int]
    """Steps once a row, in order, before it."""
    elements: list[int]
    """Inputs to read and steps to compute for each element, in order."""
    restored: list[int]
    """Values that an earlier pass has kept."""
    kept: list[int]
    reduced: list[int]
    """Reductions over the row."""
    ends: list[int]
    """Reductions over columns or everything."""
    stores: list[int]


class Schedule(NamedTuple):
    """The passes; `once`: steps before all rows; `after`, steps once a row after the passes; `row_ends` and
    `row_stores`: reductions of values of rows and outputs that have one element a row; `chunks`: of how many
    vectors in registers a row is, 0 for any."""

    once: list[int]
    passes: list[Pass]
    after: list[int]
    row_ends: list[int]
    row_stores: list[int]
    chunks: int

    def last_read(self, array: int) -> int:
        """The last pass that reads an input; -1 if none does."""
        return max([i for i, each in enumerate(self.passes) if array in each.elements], default=-1)

    def stored_in(self, output: int) -> int:
        """The pass that stores an output of elements; -1 if none does."""
        return max([i for i, each in enumerate(self.passes) if output in each.stores], default=-1)


def schedule_of(cluster: Cluster) -> Schedule:
    """The schedule of a cluster."""
    return _Scheduler(cluster).schedule()


class _Scheduler:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.levels = cluster, cluster.levels()
        self.count = len(cluster.inputs)
        self.stages = [0] * self.count
        for step in cluster.steps:
            stage = max([self.stages[i] for i in step.operands], default=0)
            self.stages.append(stage + 1 if step.over == "row" else stage)
        self.room = _BUFFERS // max(1, 8 * cluster.loops().columns)
        vectors = -(-cluster.loops().columns // host.lanes())
        is_short = vectors <= _CHUNKS and vectors * len(cluster.steps) <= _MOST_IN_REGISTERS
        self.chunks = vectors if is_short and any(step.over == "row" for step in cluster.steps) else 0
        self.kept: dict[int, list[int]] = {}  # by the pass that computes it

    def schedule(self) -> Schedule:
        steps = range(self.count, len(self.levels))
        values = [i for i in steps if not self._step(i).over]
        rows = [i for i in values if self.levels[i] == Level.ROW]
        reduced, ends, stores = self._by_pass()
        passes: list[Pass] = []
        last = max([0, *reduced, *ends, *stores])
        for stage in range(last, -1, -1):
            taken = [self._step(i).operands[0] for i in (*reduced.get(stage, ()), *ends.get(stage, ()))]
            stored = [self.cluster.outputs[i] for i in stores.get(stage, ())]
            elements, restored = self._needed(stage, [*taken, *stored, *self.kept.get(stage, ())])
            before = [i for i in rows if self.stages[i] == stage]
            own = [each.get(stage, []) for each in (self.kept, reduced, ends, stores)]
            passes.insert(0, Pass(before, elements, restored, *own))
        return Schedule(
            [i for i in values if self.levels[i] == Level.EVERYWHERE],
            passes,
            [i for i in rows if self.stages[i] > last],
            [i for i in steps if self._ends(i) and not self._takes_elements(i)],
            [i for i, result in enumerate(self.cluster.given()) if self._is_of_rows(i, result.dims)],
            self.chunks,
        )

    def _step(self, array: int) -> Step:
        return self.cluster.steps[array - self.count]

    def _ends(self, array: int) -> bool:
        return array >= self.count and self._step(array).over in ("columns", "all")

    def _takes_elements(self, array: int) -> bool:
        """Whether a reduction takes every element, not one a row."""
        step = self._step(array)
        return step.over != "all" or ("of", "rows") not in step.attributes

    def _is_of_rows(self, output: int, dims: tuple[int, ...]) -> bool:
        """Whether an output has one element a row."""
        array = self.cluster.outputs[output]
        if self._ends(array) or self.levels[array] == Level.ELEMENT:
            return False
        return math.prod(dims) != math.prod(self.cluster.dims)

    def _by_pass(self) -> tuple[dict[int, list[int]], ...]:
        """The reductions over rows, those over columns or everything, and the outputs, of each pass."""
        reduced: dict[int, list[int]] = {}
        ends: dict[int, list[int]] = {}
        stores: dict[int, list[int]] = {}
        for i, step in enumerate(self.cluster.steps, self.count):
            if step.over == "row":
                reduced.setdefault(self.stages[i] - 1, []).append(i)
            elif step.over and self._takes_elements(i):
                ends.setdefault(self.stages[i], []).append(i)
        for i, result in enumerate(self.cluster.given()):
            array = self.cluster.outputs[i]
            if not self._ends(array) and not self._is_of_rows(i, result.dims):
                stores.setdefault(self.stages[array], []).append(i)
        return reduced, ends, stores

    def _needed(self, stage: int, roots: Sequence[int]) -> tuple[list[int], list[int]]:
        """What a pass reads and computes for these values of elements, and what it takes of earlier ones."""
        found: set[int] = set()
        restored: set[int] = set()
        stack = list(roots)
        while stack:
            array = stack.pop()
            if array in found or array in restored or self.levels[array] != Level.ELEMENT:
                continue
            step = self.cluster.step(array)
            if step is not None and self.stages[array] < stage and self._keeps(array):
                restored.add(array)
                continue
            found.add(array)
            stack += step.operands if step is not None else ()
        return sorted(found), sorted(restored)

    def _keeps(self, array: int) -> bool:
        """Whether a value is kept for later passes, not computed again."""
        kept = self.kept.setdefault(self.stages[array], [])
        if array in kept:
            return True
        has_room = sum(map(len, self.kept.values())) < self.room
        if not self.chunks and (not has_room or self._cost(array) <= _AGAIN):
            return False
        kept.append(array)
        return True

    def _cost(self, array: int) -> int:
        step = self.cluster.step(array)
        if (
            step is None
            or self.levels[array] != Level.ELEMENT
            or array in self.kept.get(self.stages[array], ())
        ):
            return int(self.levels[array] == Level.ELEMENT)
        return step.cost + sum([self._cost(i) for i in step.operands])
