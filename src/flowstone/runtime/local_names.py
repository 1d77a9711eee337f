"""Local names: what generated code calls each output, and when the name may be deleted.

A name is a local (``v3``, or ``a0`` for a feed), a global (constants and variables) or, for what is never
computed, ``None``. A Switch, Enter or Exit hands its input on, so several outputs share a name: the name
belongs to their *owner*, which is the output that was computed, and lives as long as any of them is used.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.values import to_runtime
from flowstone.rewriting.analyses.branches import SWITCHES, TRUE, Liveness
from flowstone.rewriting.analyses.frames import ENTERS, EXITS, Frame, Frames, is_head
from flowstone.runtime.aliasing import Aliasing
from flowstone.runtime.generated_code import Code
from flowstone.runtime.memory import Memory

RENAMING = SWITCHES | ENTERS | EXITS  # the output is the input under another name


class LocalNames:
    """`of`: the name of each output so far; `constants`: the values of those that are globals;
    `loop_conditions`: of each loop, the condition under which it runs.
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
        """The output is this object in every step."""
        self.constants[output] = value
        self.of[output] = self._code.constant(output, value)

    def owner(self, output: PlanOutput) -> PlanOutput:
        """The output that was computed, of those that share its name."""
        return self._owners.get(output, output)

    def share(self, output: PlanOutput, data: PlanOutput) -> None:
        """`output` is `data` under another name."""
        self._owners[output] = self.owner(data)

    def is_local(self, output: PlanOutput) -> bool:
        """Whether its name is a local, which can be deleted."""
        name = self.of[output]
        return name[0] in "va" and name[1:].isdigit()

    def expression(self, node: PlanNode, i: int) -> str:
        """Input `i`: a local, a constant, or a variable's buffer as it is now; where `node` wants it."""
        x = node.inputs[i]
        name = self.of[x] if self._memory is None else self._moved(node, i, self._memory)
        if x.dtype.is_ref and not node.input_argument(i).is_ref:
            return f"{name}.tensor"
        return name

    def _moved(self, node: PlanNode, i: int, memory: Memory) -> str:
        """Input `i` in the memory, the host's or the device's, where the node wants it."""
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
        """A constant in another memory; to the host it comes from the node, not from the device."""
        if target.type == "cpu" and x.op.type == "Const":
            return to_runtime(x.op.attributes["value"], x.dtype)
        return self.constants[x].to(target)

    # ---- ends of lives

    def last_use(self, owner: PlanOutput, aliasing: Aliasing) -> int:
        """The place of the last node that uses `owner` under any name; -1 if none does."""
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
        """Among branches: nothing of the same name is used after node `i`, and the name is set wherever a
        line under this condition runs."""
        owner = self.owner(x)
        return self.last_use(owner, aliasing) <= i and self.set_where(owner) in (condition, TRUE)
