"""Segments: nodes as one generated Python function.

`compile_segment` turns a subgraph, in its order, into the source of a function with one line a node: a call
of the kernel that the node's factory returned at plan time, then ``del`` of what is not needed any more.
Constants, variables and kernels are globals of that function; values are its locals:

    def segment(step, a0):
        v1 = matmul_1(a0, W.tensor); del a0
        v2 = add_2(v1, b.tensor, out=v1)
        return (v2,)

A variable's buffer is read as ``W.tensor`` where it is consumed, so a consumer sees it as it is then.
Conditions (`rewriting/branches.py`) become ``if`` blocks; a Merge is a conditional expression. A loop
(`rewriting/frames.py`) becomes a ``while`` block over its variables, which its body assigns all at once:

    m3 = v2
    while True:
     v4 = less(m3, limit)
     if not v4: break
     v5 = add(m3, one)
     m3 = v5

A source line maps to its node, so naming the node in an error costs nothing until there is one
(`failures.py`). With `watched=True`, another compilation of the same nodes, the step's deadline is checked
before every node.
"""

from __future__ import annotations

import array
import keyword
import re
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.kernel import Call, Environment, Input, StepCall, Value
from flowstone.framework.node import Output
from flowstone.framework.subgraph import PlanNode, Subgraph
from flowstone.rewriting.branches import FALSE, MERGES, SWITCHES, TRUE, Liveness
from flowstone.rewriting.frames import (
    ENTERS,
    EXITS,
    LOOP_TYPES,
    NEXT_ITERATIONS,
    Frame,
    Frames,
    is_head,
    order_by_frames,
)
from flowstone.runtime.aliasing import Aliasing
from flowstone.runtime.failures import GENERATED_FILE, located
from flowstone.runtime.memory import Memory
from flowstone.runtime.numbers import ROUNDING_CELL, Numbers

_DEEPEST_NESTING = 60  # Python allows 100 levels of indentation
_count = 0


class Segment:
    """A compiled segment.

    `function(step, *feeds)` returns the fetches as a tuple; `source` is its text; `node_at(line)` the node of
    a line; `copied_fetches[i]` says whether fetch i must be copied before a user gets it;
    `arguments_at(line)` the local names of the node's inputs, for error messages.
    """

    __slots__ = ("arguments", "copied_fetches", "filename", "function", "globals", "lines", "source")

    def __init__(self) -> None:
        self.lines: list[PlanNode | None] = []
        self.arguments: list[list[str]] = []
        self.globals: dict[str, Any] = {}
        self.copied_fetches: list[bool] = []
        self.source = self.filename = ""
        self.function: Callable[..., Any] = lambda: None

    def node_at(self, line: int) -> PlanNode | None:
        """The node that this source line runs."""
        return self.lines[line - 1] if 0 < line <= len(self.lines) else None

    def arguments_at(self, line: int) -> list[str]:
        """The local names of the inputs of the node of this source line."""
        return self.arguments[line - 1]


def compile_segment(
    subgraph: Subgraph, environment: Environment, watched: bool = False, returns_references: bool = False
) -> Segment:
    """Compiles all nodes of `subgraph` for `environment`. Raises InvalidArgumentError where a kernel is
    missing.

    `returns_references`: a fetched reference is returned as the variable itself, not as its buffer.
    """
    return _Writer(subgraph, environment, watched, returns_references).write()


_NO_FRAMES = Frames(Subgraph([], [], [], []))
_WITHOUT_KERNEL = SWITCHES | MERGES | LOOP_TYPES | {"_Arg"}
_RENAMING = SWITCHES | ENTERS | EXITS  # the output is the input under another name


class _Loop:
    """A ``while`` block that is being written: its indentation, the tests and the condition that it lies in,
    its head's Merges and, as they come, its NextIterations."""

    def __init__(
        self, frame: Frame, depth: int, path: list[str], condition: Any, heads: list[PlanNode]
    ) -> None:
        self.frame, self.depth, self.path, self.condition, self.heads = frame, depth, path, condition, heads
        self.next_values: list[PlanNode] = []


class _Writer:
    def __init__(
        self, subgraph: Subgraph, environment: Environment, watched: bool, returns_references: bool
    ) -> None:
        self.subgraph, self.environment, self.watched = subgraph, environment, watched
        self.returns_references = returns_references
        self.segment = Segment()
        self.text: list[str] = []
        self.names: dict[Output, str] = {}
        self.constants: dict[Output, Any] = {}
        self.kernels: dict[PlanNode, Any] = {}
        self.path: list[str] = []
        self.predicate_names: dict[Output, str] = {}
        self.owners: dict[Output, Output] = {}  # of a Switch's outputs: whose local name they share
        self.owner_last_use: dict[Output, int] = {}
        self.targets: list[str] = []
        self.frames = order_by_frames(subgraph)
        self.liveness = Liveness(subgraph)
        self.loops: list[_Loop] = []
        on_cpu = environment.device.type == "cpu"
        self.numbers = Numbers(subgraph, self.frames if on_cpu else _NO_FRAMES)
        self.number_names: dict[Output, str] = {}
        self.rounds = False
        self.subgraph_enters: dict[Frame | None, list[Output]] = {}
        for node in subgraph.nodes if self.frames.exist else ():
            if node.type in ENTERS:
                self.subgraph_enters.setdefault(self.frames.of[node], []).append(node._outputs[0])
        self.loop_conditions: dict[Frame | None, Any] = {}
        self.heads: dict[Frame | None, list[PlanNode]] = {}
        for node in subgraph.nodes if self.frames.exist else ():
            if is_head(node):
                self.heads.setdefault(self.frames.of[node], []).append(node)
        self.memory = None if environment.device.type == "cpu" else Memory(environment, subgraph.feeds)

    # ---- the whole

    def write(self) -> Segment:
        subgraph = self.subgraph
        for node in subgraph.nodes:
            if node.type not in _WITHOUT_KERNEL:
                self._make_kernel(node)
        self.aliasing = Aliasing(subgraph, self.constants, self.frames)
        feeds = [f"a{i}" for i in range(len(subgraph.feeds))]
        for output, name in zip(subgraph.feeds, feeds):
            self.names[output] = name
        self._line(0, f"def segment(step{''.join(', ' + name for name in feeds)}):")
        for output in subgraph.feeds:
            self._note_predicate(output)
        for i, node in enumerate(subgraph.nodes):
            if self.frames.exist:
                self._end_loops_before(node, i)
            self._write_node(node, i)
        self._end_loops_before(None, len(subgraph.nodes))
        self._enter_path([])
        self._write_return()
        return self._finish()

    def _finish(self) -> Segment:
        global _count
        _count += 1
        segment = self.segment
        if self.rounds:
            self.text.insert(1, f" {ROUNDING_CELL} = {self._global('array', array.array)}('f', (0.0,))")
            segment.lines.insert(1, None)
            segment.arguments.insert(1, [])
        segment.source = "\n".join(self.text) + "\n"
        segment.filename = f"{GENERATED_FILE}{_count}>"
        exec(compile(segment.source, segment.filename, "exec"), segment.globals)
        segment.function = segment.globals.pop("segment")
        return segment

    def _line(
        self, depth: int, text: str, node: PlanNode | None = None, arguments: list[str] | None = None
    ) -> None:
        self.text.append(" " * depth + text)
        self.segment.lines.append(node)
        self.segment.arguments.append(arguments or [])

    # ---- kernels and names

    def _make_kernel(self, node: PlanNode) -> None:
        environment = self.environment if self.memory is None else self.memory.environment_for(node)
        factory = node.declaration.kernels.get(environment.device_type)
        if factory is None:
            raise errors.InvalidArgumentError(
                lambda: node.origin.node_def,
                node.origin,
                f"No kernel of op {node.type} for device type {environment.device_type} (node {node.name})",
            )
        try:
            kernel = factory(node, environment)
        except Exception as error:
            raise located(error, node) from error
        self.kernels[node] = kernel
        if isinstance(kernel, Value) and node._outputs:
            output = node._outputs[0]
            self.constants[output] = kernel.value
            self.names[output] = self._global(_identifier(node.name, "c"), kernel.value)

    def _global(self, name: str, value: Any) -> str:
        names = self.segment.globals
        if name in names and names[name] is not value:
            name = f"{name}_{len(names)}"
        names[name] = value
        return name

    def _constant_argument(self, value: Any) -> str:
        if value is None or isinstance(value, (bool, int, str)):
            return repr(value)
        if isinstance(value, (tuple, list)) and all(isinstance(item, int) for item in value):
            return repr(value)
        return self._global(f"k{len(self.segment.globals)}", value)

    def _input(self, node: PlanNode, i: int) -> str:
        """The expression for input `i`: a local, a constant, or a variable's buffer as it is now."""
        x = node._inputs[i]
        name = self.names[x] if self.memory is None else self._moved(node, i)
        if x.dtype.is_ref and not self._wants_reference(node, i):
            return f"{name}.tensor"
        return name

    def _moved(self, node: PlanNode, i: int) -> str:
        """The expression for input `i` in the memory, the host's or the device's, where the node wants it."""
        x = node._inputs[i]
        name = self.names[x]
        target = self.memory.target_of(node, i) if self.memory else None
        if target is None:
            return name
        if x in self.constants:
            return self._global(f"{name}_moved", self.constants[x].to(target))
        return f"{name}.to({self._global(target.type, target)})"

    @staticmethod
    def _wants_reference(node: PlanNode, i: int) -> bool:
        return bool(node.input_argument(i).is_ref)

    # ---- one node

    def _write_node(self, node: PlanNode, i: int) -> None:
        if node.type == "_Arg" or (node in self.kernels and isinstance(self.kernels[node], Value)):
            for output in node._outputs:
                self._note_predicate(output)
            return
        if node.type in SWITCHES or node.type in ENTERS or node.type in EXITS:
            for output in node._outputs:
                self._carry(node, output)
                self.owners[output] = self.owners.get(node._inputs[0], node._inputs[0])
            return
        if node.type in NEXT_ITERATIONS:
            self.loops[-1].next_values.append(node)
            return
        if is_head(node):
            self._write_head(node)
            return
        if self._needs_no_code(node):
            return
        depth = self._enter(node)
        if node.type == "LoopCond":
            self._line(depth, f"if not {self._number(node._inputs[0]) or self._input(node, 0)}: break", node)
            return
        if node._outputs and node._outputs[0] in self.numbers.outputs:
            self._write_number(node, depth)
            return
        if self.watched:
            self._line(depth, "step.check()", node)
        arguments = [self._argument(node, j) for j in range(len(node._inputs))]
        if node.type in MERGES:
            self._write_merge(node, i, depth, arguments)
        else:
            code = self._assigned(node, self._call(node, arguments))
            released = self._released(node, i)
            if released:
                code += f"; del {', '.join(released)}"
            self._line(depth, code, node, arguments)
        for output in node._outputs:
            self._note_predicate(output)

    def _needs_no_code(self, node: PlanNode) -> bool:
        """A node of a branch that is never taken, or the pivot of a branch, which is there only to be waited
        for.
        """
        if self.liveness.trivial:
            return False
        dead = self.liveness.node(node) == FALSE
        if not dead and not (node.type == "Identity" and node._outputs[0] not in self.aliasing.last_use):
            return False
        for output in node._outputs:
            self.names[output] = "None"
        return True

    def _call(self, node: PlanNode, arguments: list[str]) -> str:
        kernel = self.kernels[node]
        if isinstance(kernel, StepCall):
            function = self._kernel_name(node, kernel.function)
            return f"{function}({', '.join(['step', *arguments])})"
        if not isinstance(kernel, Call):
            return self._finished(node, f"{self._kernel_name(node, kernel)}({', '.join(arguments)})")
        for index, variant in kernel.overwrites.items():
            if self.aliasing.may_overwrite(node, index):
                kernel = variant
                break
        return self._finished(node, self._call_text(node, kernel, arguments))

    def _kernel_name(self, node: PlanNode, function: Any) -> str:
        """A global for the function, called as it is or, where that says nothing, as the op."""
        name = getattr(function, "__name__", "<")
        return self._global(_identifier(node.type.lower() if name[0] in "<_" else name, "k"), function)

    def _call_text(self, node: PlanNode, call: Call, arguments: list[str]) -> str:
        words = [self._argument_text(node, value, arguments) for value in call.arguments]
        words += [
            f"{key}={self._argument_text(node, value, arguments)}" for key, value in call.keywords.items()
        ]
        return f"{self._kernel_name(node, call.function)}({', '.join(words)})"

    def _argument_text(self, node: PlanNode, value: Any, arguments: list[str]) -> str:
        if type(value) is Input:
            return arguments[value.index]
        if type(value) is Call:
            return self._call_text(node, value, arguments)
        if type(value) is list and value and type(value[0]) in (Input, Call):
            return f"[{', '.join([self._argument_text(node, item, arguments) for item in value])}]"
        return self._constant_argument(value)

    def _finished(self, node: PlanNode, call: str) -> str:
        if node.declaration.aliases and node._outputs and self.aliasing.must_copy_read(node):
            return f"{call}.clone()"
        return call

    def _assigned(self, node: PlanNode, call: str) -> str:
        outputs = node._outputs
        self.targets = []
        if not outputs:
            return call
        for output in outputs:
            self.names[output] = f"v{len(self.names)}"
        targets = [self.names[o] if o in self.aliasing.last_use else "_" for o in outputs]
        if set(targets) == {"_"}:
            return call
        self.targets = targets
        trailing = "," if len(outputs) == 1 and node.declaration.outputs[0].is_list else ""
        return f"{', '.join(targets)}{trailing} = {call}"

    def _released(self, node: PlanNode, i: int) -> list[str]:
        names: dict[str, None] = {}
        last_use = self.aliasing.last_use
        condition = self.liveness.node(node)
        for x in node._inputs:
            name = self.names[x]
            if last_use[x] == i and name[0] in "va" and name[1:].isdigit():
                if self.liveness.trivial or self._may_release(x, i, condition):
                    names[name] = None
        if "_" in self.targets:
            names["_"] = None
        return list(names)

    def _may_release(self, x: Output, i: int, condition: Any) -> bool:
        """Among branches: nothing of the same local name (a Switch's outputs share it) is used later, and the
        name is set wherever this line runs."""
        owner = self.owners.get(x, x)
        if owner not in self.owner_last_use:
            self._find_owner_last_uses()
        return self.owner_last_use[owner] <= i and self._set_where(owner) in (condition, TRUE)

    def _set_where(self, owner: Output) -> Any:
        """The condition under which the name of `owner` is assigned."""
        if is_head(owner.op):
            return self.loop_conditions[self.frames.of[owner.op]]
        return self.liveness.output(owner)

    def _find_owner_last_uses(self) -> None:
        owner_of: dict[Output, Output] = {}
        for node in self.subgraph.nodes:
            for output in node._outputs:
                data = node._inputs[0] if node.type in _RENAMING else None
                owner = owner_of[output] = output if data is None else owner_of[data]
                used = self.aliasing.last_use.get(output, -1)
                self.owner_last_use[owner] = max(used, self.owner_last_use.get(owner, -1))

    # ---- branches

    def _switched(self, node: PlanNode, output: Output) -> str:
        data = node._inputs[0]
        if data.dtype.is_ref and not output.dtype.is_ref:
            return f"{self.names[data]}.tensor"
        return self.names[data]

    def _note_predicate(self, output: Output) -> None:
        if output in self.liveness.predicates and output not in self.predicate_names:
            name = f"p{len(self.predicate_names)}"
            self.predicate_names[output] = name
            value = self._number(output) or self.names[output] + (".tensor" if output.dtype.is_ref else "")
            self._line(self._enter(output.op), f"{name} = bool({value})", output.op)

    def _test(self, term: Any) -> list[str]:
        order = {output: i for i, output in enumerate(self.predicate_names)}
        literals = sorted(term, key=lambda item: order[item[0]])
        return [
            ("" if wanted else "not ") + self.predicate_names[predicate] for predicate, wanted in literals
        ]

    def _expression(self, condition: Any) -> str:
        if not condition:
            return "False"
        return " or ".join(sorted(f"({' and '.join(self._test(term)) or 'True'})" for term in condition))

    def _enter(self, node: PlanNode) -> int:
        condition = self.liveness.node(node)
        if self.loops:
            condition = _inside(condition, self.loops[-1].condition)
        if condition == TRUE:
            return self._enter_path([])
        if len(condition) == 1:
            (term,) = condition
            path = self._test(term)
            if len(path) > _DEEPEST_NESTING:
                path = [*path[: _DEEPEST_NESTING - 1], " and ".join(path[_DEEPEST_NESTING - 1 :])]
            return self._enter_path(path)
        return self._enter_path([self._expression(condition)])

    def _enter_path(self, path: list[str]) -> int:
        """Opens and closes ``if`` blocks until the tests in force are `path`; returns the depth inside."""
        base = self.loops[-1].depth + 1 if self.loops else 1
        if path == self.path:
            return base + len(path)
        common = 0
        while common < min(len(path), len(self.path)) and path[common] == self.path[common]:
            common += 1
        for depth in range(common, len(path)):
            self._line(base + depth, f"if {path[depth]}:")
        self.path = path
        return base + len(path)

    # ---- loops

    def _write_head(self, node: PlanNode) -> None:
        """A loop's variable before the first iteration; the first of them begins the loop."""
        frame = self.frames.of[node]
        assert frame is not None
        if not self.loops or self.loops[-1].frame is not frame:
            depth = self._enter(node)
            heads = self.heads[frame]
            for head in heads:
                name = f"v{len(self.names)}"
                self.names[head._outputs[0]] = name
                self.names[head._outputs[1]] = "None"
                if head._outputs[0] in self.numbers:
                    self.number_names[head._outputs[0]] = name
                    first = self._number(head._inputs[0]._op._inputs[0]) or f"{self._input(head, 0)}.item()"
                else:
                    first = self._input(head, 0)
                self._line(depth, f"{name} = {first}", head)
            self._write_entered_numbers(frame, depth)
            self._line(depth, "while True:", node)
            self.loops.append(_Loop(frame, depth, self.path, self.liveness.node(node), heads))
            self.loop_conditions[frame] = self.liveness.node(node)
            self.path = []
            if self.watched:
                self._line(depth + 1, "step.check()", node)

    def _write_entered_numbers(self, frame: Frame, depth: int) -> None:
        """Scalars that come into the loop from outside, as numbers."""
        for x in self.subgraph_enters.get(frame, ()):
            if x in self.numbers.entered and x not in self.number_names:
                outside = x.op._inputs[0]
                name = self._number(outside)
                if name is None:
                    name = f"n{len(self.number_names)}"
                    self._line(depth, f"{name} = {self._input(x.op, 0)}.item()", x.op)
                self.number_names[x] = name

    # ---- numbers

    def _number(self, x: Output, source: Output | None = None) -> str | None:
        """The text of a number: of `x`, or of `source` if `x` is one; None where `x` is a tensor."""
        if x not in self.numbers:
            return None
        x = x if source is None else source
        return self.numbers.constants.get(x) or self.number_names.get(x)

    def _argument(self, node: PlanNode, i: int) -> str:
        """The expression for input `i`, a number where the declaration takes one and there is one."""
        x = node._inputs[i]
        if self.frames.exist and node.input_argument(i).name in node.declaration.numbers:
            return self._number(x) or self._input(node, i)
        return self._input(node, i)

    def _write_number(self, node: PlanNode, depth: int) -> None:
        output = node._outputs[0]
        if node.type in MERGES:
            name = self.names[output] = self.number_names[output] = f"v{len(self.names)}"
            self.names[node._outputs[1]] = "None"
            conditions = [self.liveness.output(x) for x in node._inputs]
            live = [j for j, condition in enumerate(conditions) if condition != FALSE]
            words = [self._number(x) or "None" for x in node._inputs]
            self._line(depth, f"{name} = {self._choice(live, conditions, words)}", node)
            return
        arguments = [self._number(x) or "None" for x in node._inputs]
        if node.type == "Identity":
            self.names[output] = self.number_names[output] = arguments[0]
            return
        name = self.names[output] = self.number_names[output] = f"v{len(self.names)}"
        text = self.numbers.expression(node, arguments)
        if self.numbers.needs_rounding(node):
            text = f"{ROUNDING_CELL}[0] = {text}; {name} = {ROUNDING_CELL}[0]"
            self.rounds = True
        else:
            text = f"{name} = {text}"
        self._line(depth, text, node)
        self._note_predicate(output)

    def _carry(self, node: PlanNode, output: Output) -> None:
        """The output of a Switch, Enter or Exit is its input under another name, number or tensor."""
        data = node._inputs[0]
        number = self._number(data)
        if number is not None and output in self.numbers.outputs:
            self.number_names[output] = number
            if output not in self.numbers.entered:
                self.names[output] = number
                return
        if data in self.numbers.outputs and data not in self.numbers.entered:
            kind = self._global(output.dtype.name, output.dtype.torch)
            make = self._global("tensor", torch.tensor)
            self.names[output] = f"v{len(self.names)}"
            self._line(self._enter(node), f"{self.names[output]} = {make}({number}, dtype={kind})", node)
        else:
            self.names[output] = self._switched(node, output)

    def _end_loops_before(self, node: PlanNode | None, i: int) -> None:
        """Ends the loops that `node`, at place `i`, does not stand in."""
        home = None if node is None else self.frames.of[node]
        while self.loops and not _is_within(home, self.loops[-1].frame):
            loop = self.loops[-1]
            depth = self._enter_path([])
            self._write_next_values(loop, depth)
            self.loops.pop()
            self.path = loop.path
            released = self._released_after(loop)
            if released:
                self._line(loop.depth, f"del {', '.join(released)}")

    def _write_next_values(self, loop: _Loop, depth: int) -> None:
        """Assigns the loop's variables their next values, and lets go of the names that held these."""
        values = {node._outputs[0]: node for node in loop.next_values}
        targets, sources = [], []
        for head in loop.heads:
            node = next(values[x] for x in head._inputs if x in values)
            target, source = self.names[head._outputs[0]], self._number(head._outputs[0], node._inputs[0])
            source = source or self._input(node, 0)
            if target != source:
                targets.append(target)
                sources.append(source)
        if not targets:
            return
        kept = {self.names[head._outputs[0]] for head in loop.heads}
        owners = {self.owners.get(node._inputs[0], node._inputs[0]) for node in loop.next_values}
        own = [
            self.names[x]
            for x in owners
            if self.frames.of.get(x.op) is loop.frame and x not in self.constants
        ]
        done = [name for name in sorted(set(own) - kept) if name in sources]
        text = f"{', '.join(targets)} = {', '.join(sources)}"
        self._line(depth, text + (f"; del {', '.join(done)}" if done else ""), loop.heads[0])

    def _released_after(self, loop: _Loop) -> list[str]:
        """Names of values from outside that only the loop still held."""
        end = self.aliasing.spans[loop.frame][1]
        names: dict[str, None] = {}
        if not self.owner_last_use:
            self._find_owner_last_uses()
        for node in self.subgraph.nodes[self.aliasing.spans[loop.frame][0] : end + 1]:
            if node.type not in ENTERS or self.frames.of[node] is not loop.frame:
                continue
            owner = self.owners[node._outputs[0]]
            name, inner = self.names[owner], self.frames.of.get(owner.op)
            is_local = name[0] in "va" and name[1:].isdigit()
            if is_local and self.owner_last_use.get(owner, -1) == end and inner is loop.frame.parent:
                if self.liveness.output(owner) in (loop.condition, TRUE):
                    names[name] = None
        return list(names)

    def _write_merge(self, node: PlanNode, i: int, depth: int, arguments: list[str]) -> None:
        value, index = node._outputs
        self.names[value], self.names[index] = f"v{len(self.names)}", f"v{len(self.names) + 1}"
        conditions = [self.liveness.output(x) for x in node._inputs]
        live = [j for j, condition in enumerate(conditions) if condition != FALSE]
        code = f"{self.names[value]} = {self._choice(live, conditions, arguments)}"
        if index in self.aliasing.last_use:
            places = [
                self._global(f"i{j}", torch.tensor(j, dtype=torch.int32)) for j in range(len(arguments))
            ]
            code += f"; {self.names[index]} = {self._choice(live, conditions, places)}"
        self._line(depth, code, node, [])
        self._release_merged(node, i, depth)

    def _choice(self, live: list[int], conditions: list[Any], words: list[str]) -> str:
        """The word of the input that is alive; where the Merge is alive, one is, so the last needs no
        test.
        """
        text = words[live[-1]]
        for j in reversed(live[:-1]):
            text = f"{words[j]} if {self._expression(conditions[j])} else {text}"
        return text

    def _release_merged(self, node: PlanNode, i: int, depth: int) -> None:
        """Frees what only the Merge still held, on the branch that computed it."""
        done: set[str] = set()
        condition = self.liveness.node(node)
        for x in node._inputs:
            name, owner = self.names[x], self.owners.get(x, x)
            if name in done or name[0] not in "va" or not name[1:].isdigit():
                continue
            if owner not in self.owner_last_use:
                self._find_owner_last_uses()
            if self.owner_last_use[owner] == i:
                done.add(name)
                set_where = self._set_where(owner)
                if set_where in (condition, TRUE):
                    self._line(depth, f"del {name}", node)
                else:
                    self._line(depth, f"if {self._expression(set_where)}: del {name}", node)

    # ---- the end

    def _write_return(self) -> None:
        fetches = self.subgraph.fetches
        words = []
        for i, x in enumerate(fetches):
            name = self.names[x] + (".tensor" if x.dtype.is_ref and not self.returns_references else "")
            condition = self.liveness.output(x)
            if condition != TRUE:
                name = f"{name} if {self._expression(condition)} else {self._global('dead', dead)}()"
            self._line(1, f"f{i} = {name}", x.op, [])
            words.append(f"f{i}")
            self.segment.copied_fetches.append(self.aliasing.fetch_needs_copy(fetches, i))
        self._line(1, f"return ({', '.join(words)}{',' if len(words) == 1 else ''})")


def _inside(condition: Any, outer: Any) -> Any:
    """What is left to test of a condition where the outer one is known to hold."""
    if condition == outer:
        return TRUE
    if len(outer) != 1:
        return condition
    (known,) = outer
    return frozenset(term - known for term in condition)


def _is_within(frame: Frame | None, outer: Frame) -> bool:
    while frame is not None and frame is not outer:
        frame = frame.parent
    return frame is outer


def dead() -> Any:
    """Raises the error of a fetch on a branch that was not taken."""
    raise errors.InvalidArgumentError(
        None, None, "Retval does not have value: it lies on the branch of a conditional that was not taken"
    )


def _identifier(name: str, fallback: str) -> str:
    text = re.sub(r"\W", "_", name.rpartition("/")[2])
    if (
        not text
        or not text[0].isalpha()
        or keyword.iskeyword(text)
        or re.fullmatch(r"[vapfki]\d+|step|dead|segment|bool|cpu|cuda", text)
    ):
        text = f"{fallback}_{text}"
    return text
