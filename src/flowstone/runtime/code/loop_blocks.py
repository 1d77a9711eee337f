"""Loop blocks: loops (`rewriting/analyses/frames.py`) as ``while`` in generated code.

    m3 = v2
    while step.error is None:
     v4 = less(m3, limit)
     if not v4: break
     v5 = add(m3, one)
     m3 = v5
    else: step.check()

The Merges of the head are locals that hold the loop's variables; the body ends with one assignment of all
their next values. A step that was cancelled, because its session was closed, ends before the next iteration.
The lines of scalars that `numbers.py` keeps as Python numbers are written here as well.
"""

from __future__ import annotations

import array

import torch

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.branches import MERGES, TRUE, Liveness
from flowstone.rewriting.analyses.frames import ENTERS, Frame, Frames, is_head
from flowstone.runtime.code.aliasing import Aliasing
from flowstone.runtime.code.conditional_blocks import ConditionalBlocks
from flowstone.runtime.code.generated_code import Code
from flowstone.runtime.code.local_names import LocalNames
from flowstone.runtime.code.numbers import ROUNDING_CELL, Numbers


class _Loop:
    """A ``while`` block that is being written: its depth, and its NextIterations so far."""

    def __init__(self, frame: Frame, depth: int) -> None:
        self.frame, self.depth = frame, depth
        self.next_values: list[PlanNode] = []


class LoopBlocks:
    """The ``while`` blocks that are open, and the numbers in them."""

    def __init__(
        self,
        subgraph: Subgraph,
        frames: Frames,
        numbers: Numbers,
        code: Code,
        names: LocalNames,
        blocks: ConditionalBlocks,
        liveness: Liveness,
    ) -> None:
        self._subgraph, self._frames, self._numbers = subgraph, frames, numbers
        self._code, self._names, self._blocks, self._liveness = code, names, blocks, liveness
        self._number_names: dict[PlanOutput, str] = {}
        self._rounds = False
        self._open: list[_Loop] = []
        self._heads: dict[Frame | None, list[PlanNode]] = {}
        self._enters: dict[Frame | None, list[PlanNode]] = {}
        for node in subgraph.nodes if frames.exist else ():
            if is_head(node):
                self._heads.setdefault(frames.of[node], []).append(node)
            elif node.type in ENTERS:
                self._enters.setdefault(frames.of[node], []).append(node)

    # ---- begin and end

    def is_begun_by(self, node: PlanNode) -> bool:
        """Whether this node is a head whose loop's block has not begun yet."""
        return not self._open or self._open[-1].frame is not self._frames.of[node]

    def begin(self, node: PlanNode, watched: bool) -> None:
        """Assigns first values to the variables of this head's loop, and opens its block."""
        frame = self._frames.of[node]
        assert frame is not None
        depth = self._blocks.enter(node)
        for head in self._heads[frame]:
            output = head.outputs[0]
            name = self._names.new(output)
            self._names.of[head.outputs[1]] = "None"
            first = self._names.expression(head, 0)
            if output in self._numbers:
                self._number_names[output] = name
                first = self.number(head.inputs[0].op.inputs[0]) or f"{first}.item()"
            self._code.line(depth, f"{name} = {first}", head)
        self._write_entered_numbers(frame, depth)
        self._code.line(depth, "while step.error is None:", node)
        self._open.append(_Loop(frame, depth))
        condition = self._names.loop_conditions[frame] = self._liveness.node(node)
        self._blocks.begin_loop(depth, condition)
        if watched:
            self._code.line(depth + 1, "step.check()", node)

    def add_next_value(self, node: PlanNode) -> None:
        """Notes a NextIteration of the innermost loop."""
        self._open[-1].next_values.append(node)

    def end_before(self, node: PlanNode | None, aliasing: Aliasing) -> None:
        """Ends the loops that `node` is not in; all of them if None."""
        home = None if node is None else self._frames.of[node]
        while self._open and not _is_within(home, self._open[-1].frame):
            loop = self._open.pop()
            self._write_next_values(loop, self._blocks.leave_all())
            self._blocks.end_loop()
            self._code.line(loop.depth, "else: step.check()")
            released = self._released_after(loop, aliasing)
            if released:
                self._code.line(loop.depth, f"del {', '.join(released)}")

    def finish(self) -> None:
        """Adds the preparation of numbers before the first line."""
        if self._rounds:
            self._code.insert_first(f"{ROUNDING_CELL} = {self._code.name('array', array.array)}('f', (0.0,))")

    def _write_next_values(self, loop: _Loop, depth: int) -> None:
        """Assigns the loop's variables their next values, and deletes the names that held these."""
        of = self._names.of
        heads = self._heads[loop.frame]
        values = {node.outputs[0]: node for node in loop.next_values}
        targets, sources = [], []
        for head in heads:
            node = next(values[x] for x in head.inputs if x in values)
            target, source = of[head.outputs[0]], self.number(head.outputs[0], node.inputs[0])
            source = source or self._names.expression(node, 0)
            if target != source:
                targets.append(target)
                sources.append(source)
        if not targets:
            return
        kept = {of[head.outputs[0]] for head in heads}
        owners = {self._names.owner(node.inputs[0]) for node in loop.next_values}
        own = [
            of[x]
            for x in owners
            if self._frames.of.get(x.op) is loop.frame and x not in self._names.constants
        ]
        done = [name for name in sorted(set(own) - kept - {"None"}) if name in sources]
        text = f"{', '.join(targets)} = {', '.join(sources)}"
        self._code.line(depth, text + (f"; del {', '.join(done)}" if done else ""), heads[0])

    def _released_after(self, loop: _Loop, aliasing: Aliasing) -> list[str]:
        """Names of values from outside that are not used after the loop."""
        end = aliasing.spans[loop.frame][1]
        condition = self._names.loop_conditions[loop.frame]
        released: dict[str, None] = {}
        for node in self._enters[loop.frame]:
            owner = self._names.owner(node.outputs[0])
            is_outside = self._frames.of.get(owner.op) is loop.frame.parent
            if is_outside and self._names.is_local(owner) and self._names.last_use(owner, aliasing) == end:
                if self._liveness.output(owner) in (condition, TRUE):
                    released[self._names.of[owner]] = None
        return list(released)

    # ---- numbers

    def is_number(self, output: PlanOutput) -> bool:
        """Whether the output is only a Python number."""
        return output in self._numbers.outputs

    def number(self, x: PlanOutput, source: PlanOutput | None = None) -> str | None:
        """The text of a number: of `x`, or of `source` if `x` is one; None where `x` is a tensor."""
        if x not in self._numbers:
            return None
        x = x if source is None else source
        return self._numbers.constants.get(x) or self._number_names.get(x)

    def argument(self, node: PlanNode, i: int) -> str | None:
        """The text of the number for input `i`, if the declaration takes one and there is one; else None."""
        if self._frames.exist and node.input_argument(i).name in node.declaration.numbers:
            return self.number(node.inputs[i])
        return None

    def write_number(self, node: PlanNode, depth: int) -> None:
        """Writes the line of a node that makes a number."""
        output = node.outputs[0]
        arguments = [self.number(x) or self._asked(node, i) for i, x in enumerate(node.inputs)]
        if node.declaration.role == "identity":
            self._names.of[output] = self._number_names[output] = arguments[0]
            return
        name = self._number_names[output] = self._names.new(output)
        if node.type in MERGES:
            self._names.of[node.outputs[1]] = "None"
            text = f"{name} = {self._blocks.choice(node.inputs, arguments)}"
        elif self._numbers.needs_rounding(node):
            text = f"{ROUNDING_CELL}[0] = {self._numbers.expression(node, arguments)}; "
            text += f"{name} = {ROUNDING_CELL}[0]"
            self._rounds = True
        else:
            text = f"{name} = {self._numbers.expression(node, arguments)}"
        self._code.computation(depth, text, node, [], [name])

    def _asked(self, node: PlanNode, i: int) -> str:
        """The truth of an input that is a tensor."""
        return f"bool({self._names.expression(node, i)})" if self._numbers.asks(node.inputs[i]) else "None"

    def hand_on(self, node: PlanNode, output: PlanOutput) -> None:
        """Makes the output of a Switch, Enter or Exit another name of its input, number or tensor."""
        data, names, numbers = node.inputs[0], self._names, self._numbers
        names.share(output, data)
        number = self.number(data)
        if number is not None and output in numbers.outputs:
            self._number_names[output] = number
            if output not in numbers.entered:
                names.of[output] = number
                return
        if data in numbers.outputs and data not in numbers.entered:
            depth = self._blocks.enter(node)
            kind = self._code.name(f"torch_{output.dtype.name}", output.dtype.torch)
            make = self._code.name("tensor", torch.tensor)
            self._code.line(depth, f"{names.new(output)} = {make}({number}, dtype={kind})", node)
        elif data.dtype.is_ref and not output.dtype.is_ref:
            names.of[output] = f"{names.of[data]}.tensor"
        else:
            names.of[output] = names.of[data]

    def _write_entered_numbers(self, frame: Frame, depth: int) -> None:
        """Reads scalars that come into the loop from outside as numbers."""
        for node in self._enters.get(frame, ()):
            x = node.outputs[0]
            if x in self._numbers.entered and x not in self._number_names:
                name = self.number(node.inputs[0])
                if name is None:
                    name = f"n{len(self._number_names)}"
                    self._code.line(depth, f"{name} = {self._names.expression(node, 0)}.item()", node)
                self._number_names[x] = name


def _is_within(frame: Frame | None, outer: Frame) -> bool:
    while frame is not None and frame is not outer:
        frame = frame.parent
    return frame is outer
