"""Units: what becomes part of a program whole or not at all; and the groups that they form.

A unit is a node outside of loops, or all nodes of a loop that is in no other. What a subgraph's units are,
and what they take of each other, is found once; groups are formed anew whenever fewer units may join.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.rewriting.analyses.arrivals import arrivals, is_in_pieces
from flowstone.rewriting.analyses.frames import Frame, Frames

__all__ = ["Group", "Unit", "Units"]


class Unit:
    """A node, or the nodes of a loop that is in no other; `place` is where it begins, `late` in which piece
    of the step it runs, `group` the one that it was put in last."""

    __slots__ = ("device", "first", "group", "is_loop", "late", "nodes", "place", "sources", "takers")

    def __init__(self, node: PlanNode, is_loop: bool, place: int) -> None:
        self.first, self.nodes, self.is_loop, self.place = node, [node], is_loop, place
        self.sources: dict[Unit, None] = {}
        self.takers: list[Unit] = []
        self.group: Group | None = None
        self.late, self.device = 0, node.device

    @property
    def makes_container(self) -> bool:
        """Whether it is a node whose first output is a stack or an array."""
        outputs = self.first.outputs
        return not self.is_loop and bool(outputs) and outputs[0].dtype.name == "resource"

    def has_one_device(self) -> bool:
        """Whether all nodes are on the same."""
        return all(node.device == self.device for node in self.nodes)


class Group:
    """Units that may become one node."""

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.is_open = True

    def takes(self, unit: Unit) -> bool:
        """Whether a unit that takes something of the group may be in it, too."""
        like = self.units[0]
        return self.is_open and (like.late, like.device) == (unit.late, unit.device)

    def add(self, unit: Unit) -> None:
        """The unit is in this group now."""
        unit.group = self
        self.units.append(unit)

    def absorb(self, other: Group) -> None:
        """The other group's units are in this one now."""
        for unit in other.units:
            self.add(unit)
        other.units = []


class Units:
    """The units of a subgraph, in the order in which they begin; `of`: the one that a node is in."""

    def __init__(self, subgraph: Subgraph) -> None:
        self.all: list[Unit] = []
        self.of: dict[PlanNode, Unit] = {}
        self._find(subgraph)
        for unit in self.all:
            for node in unit.nodes:
                for source in node.sources():
                    if self.of[source] is not unit:
                        unit.sources[self.of[source]] = None
        for unit in self.all:
            for other in unit.sources:
                other.takers.append(unit)
        if is_in_pieces(subgraph):
            coming = arrivals(subgraph)
            for unit in self.all:
                unit.late = max(coming(node) for node in unit.nodes)

    def _find(self, subgraph: Subgraph) -> None:
        frames, loops = subgraph.analysis(Frames), dict[Frame, Unit]()
        for node in subgraph.nodes:
            frame = frames.home(node)
            while frame is not None and frame.parent is not None:
                frame = frame.parent
            if frame is not None and frame in loops:
                unit = loops[frame]
                unit.nodes.append(node)
            else:
                unit = Unit(node, frame is not None, len(self.all))
                self.all.append(unit)
                if frame is not None:
                    loops[frame] = unit
            self.of[node] = unit

    def groups(self, may_join: Callable[[Unit], bool]) -> list[Group]:
        """The groups of those that may join, while nobody else has taken what they compute, but constants."""
        groups: list[Group] = []
        for unit in self.all:
            unit.group = None
        order = self._ordered(may_join)
        for unit, joins in order:
            chosen: Group | None = None
            for source in unit.sources:
                group = source.group
                if group is None or group is chosen:
                    continue
                if not (joins and group.takes(unit)):
                    group.is_open &= source.first.is_constant  # which others may have, too
                elif chosen is None:
                    chosen = group
                else:
                    chosen.absorb(group)
            if joins:
                if chosen is None:
                    chosen = Group()
                    groups.append(chosen)
                chosen.add(unit)
        for unit, joins in reversed(order):
            if joins and unit.makes_container:
                self._move_to_takers(unit)
        return [group for group in groups if group.units]

    def _move_to_takers(self, unit: Unit) -> None:
        """Containers are made where they are used: groups do not share them."""
        own, (later, *more) = unit.group, list(dict.fromkeys(each.group for each in unit.takers)) or [None]
        if own is None or later is None or later is own or more:
            return
        if (own.units[0].late, own.units[0].device) == (later.units[0].late, later.units[0].device):
            own.units.remove(unit)
            later.add(unit)

    def _ordered(self, may_join: Callable[[Unit], bool]) -> list[tuple[Unit, bool]]:
        """The units in an order of their edges, and whether each may join. Those that take anything of such
        as may, and may not themselves, come as late as they can."""
        waiting = [len(unit.sources) for unit in self.all]
        last = len(waiting)
        follows = [False] * last  # whether it comes after a unit that may join

        def place(unit: Unit) -> int:
            is_late = follows[unit.place] and not may_join(unit)
            return unit.place + last * is_late

        ready = [place(unit) for unit in self.all if not unit.sources]
        heapq.heapify(ready)
        result = []
        while ready:
            unit = self.all[heapq.heappop(ready) % last]
            joins = may_join(unit)
            result.append((unit, joins))
            for taker in unit.takers:
                follows[taker.place] |= follows[unit.place] or (joins and not unit.first.is_constant)
                waiting[taker.place] -= 1
                if not waiting[taker.place]:
                    heapq.heappush(ready, place(taker))
        return result
