"""What plans cost: about how long one takes to make, and what a step loses without one of its own.

Estimates by counts and static shapes, never by clocks, since the plan decides the last bits of results
(docs/design/038). A shape has its own plan once its steps have lost, with the wide plan, what
making one takes: as far as the estimates are right, steps never cost more than twice what they had to (the
classical rule of renting skis, docs/design/025).

>>> own = PlanCosts(planning_us=3000.0, calls=40, work_us=100.0)
>>> own.worthwhile_uses(PlanCosts(planning_us=2000.0, calls=55, work_us=100.0), size=1.0)
22
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from flowstone.framework.graphs.subgraph import Subgraph
from flowstone.native.programs.loop_functions import loops_apart
from flowstone.native.programs.programs import Program
from flowstone.placement.operation_cost import work
from flowstone.rewriting.analyses.frames import Frames

LEAST_USES = 2
MOST_USES = 100  # then the estimate is not believed
_NODE_CALLS = 150  # calls of kernels that take as long as planning for a node, or rewriting one
_CALL_CALLS = 6  # the same for a call that only a wide plan has, with what it does in Python
_LEAST_PART = 16  # a wide plan has at least one such call more for so many calls
_WORK_PART = 2  # one part of so many of the kernels' work is what fused, known kernels save
_CODE_CALLS = 4000  # calls that take as long as making the machine code that stands for a node
_STEP_CALLS = 4  # calls that one takes as long as in a wide plan, all in all
MOST_BY_ATEN = 500  # where the code is kept, that is what its steps lose
_KERNEL_CALLS, _BEST_CALLS = 7_000, 17_000  # calls that take as long as a kernel's code, quickly or well
PATIENCE = 1.5  # how many times as long as making a plan is estimated to take steps go on without it
_ITERATIONS = 16  # assumed of a loop
_LOOP_CALLS = 4  # as which calls in a loop count: they are small, and find nothing out about shapes


class PlanCosts(NamedTuple):
    """Of a plan: `planning_us`, what making it takes; `calls` of kernels in a step, and their `work_us`;
    whether a device repeats them as one (`is_recorded`); `code_us`, what making its machine code takes, and
    how much of that the `loops` do whose code plans share, by what these are alike in."""

    planning_us: float
    calls: int
    work_us: float
    call_us: float = 1.0
    is_recorded: bool = False
    code_us: float = 0.0
    loops: tuple[tuple[Hashable, float], ...] = ()

    def after(self, other: PlanCosts) -> PlanCosts:
        """What it costs where the other plan has been made."""
        made = dict(other.loops)
        return self._replace(code_us=self.code_us - sum([us for loop, us in self.loops if loop in made]))

    def worthwhile_uses(self, wide: PlanCosts, size: float) -> int:
        """How many steps with the `wide` plan lose as much as making a plan like this one takes, for values
        that are `size` times as large as this plan's."""
        more = self.calls if self.is_recorded else wide.calls - self.calls
        calls = max(more, self.calls / _LEAST_PART, 1)
        loss_us = _CALL_CALLS * self.call_us * calls + self.work_us * size / _WORK_PART
        return max(LEAST_USES, min(MOST_USES, math.ceil(self.planning_us / loss_us)))

    def steps_meanwhile(self, wide: PlanCosts, size: float) -> int:
        """How many steps with the `wide` plan, for values that are `size` times as large as this plan's, take
        as long as making a plan like this one and its code beside them."""
        step_us = _STEP_CALLS * self.call_us * wide.calls + self.work_us * size
        return math.ceil(PATIENCE * (self.planning_us + self.code_us) / max(step_us, 1.0))

    def steps_by_aten(self, kernels: int, much: int) -> int:
        """Twice as many steps of this plan as take as long as making, beside them, the code of so many
        kernels, and the best code of so many that do `much`."""
        step_us = _STEP_CALLS * self.call_us * self.calls + self.work_us
        code_us = self.call_us * (_KERNEL_CALLS * kernels + _BEST_CALLS * much)
        return min(MOST_BY_ATEN, math.ceil(PATIENCE * code_us / max(step_us, 1.0)))


def plan_costs(subgraph: Subgraph, is_recorded: bool = False) -> PlanCosts:
    """The costs of the plan that this rewritten subgraph, with its log, is of."""
    profile, frames = subgraph.machine.profile, subgraph.analysis(Frames)
    calls, work_us = 0, 0.0
    compiled, loops = dict[Hashable, float](), dict[Hashable, float]()
    for node in subgraph.nodes:
        if node.declaration.is_free:
            continue
        in_loop = frames.home(node) is not None
        if (members := node.attributes.get("members")) is not None:
            whole, apart = len(members.nodes), dict(_apart(members))
            compiled[getattr(members, "cluster", members)] = whole * (1 - sum(apart.values()))
            loops |= {loop: whole * part for loop, part in apart.items()}
        operations, size = work(node)
        calls += _LOOP_CALLS if in_loop else 1
        work_us += (_ITERATIONS if in_loop else 1) * max(
            operations / profile.operations_per_us, size / profile.bytes_per_us
        )
    planning_us = planning_time_us(len(subgraph.nodes) + len(subgraph.log), profile.call_us)
    node_us = _CODE_CALLS * profile.call_us
    code_us = node_us * sum([*compiled.values(), *loops.values()])
    shared = tuple([(loop, node_us * nodes) for loop, nodes in loops.items()])
    return PlanCosts(planning_us, calls, work_us, profile.call_us, is_recorded, code_us, shared)


def _apart(members: Any) -> Iterator[tuple[Hashable, float]]:
    """The loops that are code of their own, and what part of the members each is."""
    program: Program | None = getattr(members, "program", None)
    if program is not None and program.containers:
        whole = sum(1 for _ in program.statements())
        for loop, statements in loops_apart(program):
            yield loop, statements / whole


def planning_time_us(nodes: int, call_us: float) -> float:
    """About how long planning takes that ends with, or rewrites, so many nodes."""
    return _NODE_CALLS * call_us * nodes
