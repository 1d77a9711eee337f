"""Local names: the name of each output in generated code, and when the name may be deleted.

A name is a local (``v3``, or ``a0`` for a feed), a global (constants and variables) or, for outputs that are
never computed, ``None``. A Switch, Enter or Exit passes on its input, so several outputs share a name. The
name belongs to their *owner*, the output that was computed, and lives until the last use of any of them.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types.values import to_runtime
from flowstone.rewriting.analyses.branches import SWITCHES, TRUE, Liveness
from flowstone.rewriting.analyses.frames import ENTERS, EXITS, Frame, Frames, is_head
from flowstone.runtime.code.aliasing import Aliasing
from flowstone.runtime.code.generated_code import Code
from flowstone.runtime.code.memory import Memory

RENAMING = SWITCHES | ENTERS | EXITS  # the output is the input under another name


class LocalNames:
    """`of`: the name of each output so far; `constants`: the values of those that are globals;
    `loop_conditions`: the condition under which each loop runs.
    """

    def __init__(
        self, subgraph: Subgraph, code: Code, liveness: Liveness, frames: Frames, memory: Memory | None
    ) -> None:
        self.of: dict[PlanOutput, str] = {}
        self.constants: dict[PlanOutput, Any] = {}
        self.loop_conditions: dict[Frame | None, Any] = {}
        self._subgraph, self._code, self._liveness, self._frames = subgraph, code, liveness, frames
        self._memory = memory
        self._owners: dict[PlanOutput, PlanOutput] = {}
        self._last_uses: dict[PlanOutput, int] = {}  # of owners

    # ---- naming

    def new(self, output: PlanOutput) -> str:
        """A fresh local for the output."""
        name = self.of[output] = f"v{len(self.of)}"
        return name

    def add_constant(self, output: PlanOutput, value: Any) -> None:
        """Notes that the output is this object in every step."""
        self.constants[output] = value
        self.of[output] = self._code.constant(output, value)

    def owner(self, output: PlanOutput) -> PlanOutput:
        """The output that was computed, of those that share the name of `output`."""
        return self._owners.get(output, output)

    def share(self, output: PlanOutput, data: PlanOutput) -> None:
        """Gives `output` the name of `data`, whose value it has."""
        self._owners[output] = self.owner(data)

    def is_local(self, output: PlanOutput) -> bool:
        """Whether its name is a local, which can be deleted."""
        name = self.of[output]
        return name[0] in "va" and name[1:].isdigit()

    def expression(self, node: PlanNode, i: int) -> str:
        """The text of input `i`: a local, a constant, or a variable's current buffer, in the memory that
        `node` needs."""
        x = node.inputs[i]
        name = self.of[x] if self._memory is None else self._moved(node, i, self._memory)
        if x.dtype.is_ref and not node.input_argument(i).is_ref:
            return f"{name}.tensor"
        return name

    def _moved(self, node: PlanNode, i: int, memory: Memory) -> str:
        """The text of input `i`, moved to the host's or device's memory if the node needs it there."""
        x = node.inputs[i]
        name = self.of[x]
        target = memory.target_of(node, i)
        if target is None:
            return name
        if x in self.constants:
            return self._code.name(f"{name}_moved", self._constant_at(target, x))
        if memory.is_known(x):
            self._code.moves.append(node)
        return f"{name}.to({self._code.name(target.type, target)})"

    def _constant_at(self, target: torch.device, x: PlanOutput) -> Any:
        """A constant in another memory; for the host it is made from the node, not copied from the device."""
        if target.type == "cpu" and x.op.is_constant:
            return to_runtime(x.op.attributes["value"], x.dtype)
        return self.constants[x].to(target)

    # ---- ends of lives

    def last_use(self, owner: PlanOutput, aliasing: Aliasing) -> int:
        """The position of the last node that uses `owner` under any name; -1 if none does."""
        if not self._last_uses:
            self._find_last_uses(aliasing)
        return self._last_uses.get(owner, -1)

    def _find_last_uses(self, aliasing: Aliasing) -> None:
        owner_of: dict[PlanOutput, PlanOutput] = {}
        for node in self._subgraph.nodes:
            for output in node.outputs:
                data = node.inputs[0] if node.type in RENAMING else None
                owner = owner_of[output] = output if data is None else owner_of[data]
                used = aliasing.last_use.get(output, -1)
                self._last_uses[owner] = max(used, self._last_uses.get(owner, -1))

    def set_where(self, owner: PlanOutput) -> Any:
        """The condition under which the name of `owner` is assigned."""
        if is_head(owner.op):
            return self.loop_conditions[self._frames.of[owner.op]]
        return self._liveness.output(owner)

    def may_release(self, x: PlanOutput, i: int, condition: Any, aliasing: Aliasing) -> bool:
        """Whether a line under this condition may delete the name of `x` after node `i`: no output with this
        name is used later, and the name is set wherever the line runs."""
        owner = self.owner(x)
        return self.last_use(owner, aliasing) <= i and self.set_where(owner) in (condition, TRUE)
