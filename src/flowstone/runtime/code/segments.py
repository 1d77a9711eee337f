"""Segments: compiles nodes to one generated Python function.

`compile_segment` turns a subgraph, in its order, into the source of a function with a line for each node: a
call of the kernel that the node's factory returned at plan time, then ``del`` of values that are not needed
any more. Constants, variables and kernels are globals of that function; values are its locals:

    def segment(step, a0):
        v1 = matmul_1(a0, W.tensor); del a0
        v2 = add_2(v1, b.tensor, out=v1)
        return (v2,)

A variable's buffer is read as ``W.tensor`` where it is consumed, so a consumer sees its contents at that
time. Conditions become ``if`` blocks (`conditional_blocks.py`); a Merge is a conditional expression. Loops
become ``while`` blocks (`loop_blocks.py`). Two other compilations of the same nodes exist: with
`watched=True` the step's deadline is checked before every node, with `traced_device` a trace is recorded
(`tracing.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

import torch

from flowstone.framework import errors, flags
from flowstone.framework.declarations.kernel import AsyncCall, Call, Environment, Input, StepCall, Value
from flowstone.framework.declarations.operation import CONTROL_FLOW
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.process.denormals import flushing
from flowstone.lowering.packing.packed_weights import may_be_packed, unpack
from flowstone.rewriting.analyses.branches import FALSE, MERGES, TRUE, Liveness
from flowstone.rewriting.analyses.frames import NEXT_ITERATIONS, is_head, order_by_frames
from flowstone.rewriting.analyses.state_access import input_positions
from flowstone.runtime.code.aliasing import Aliasing
from flowstone.runtime.code.awaiting import awaited
from flowstone.runtime.code.conditional_blocks import ConditionalBlocks, truth
from flowstone.runtime.code.generated_code import Code, Segment, identifier
from flowstone.runtime.code.kernels import make_kernel
from flowstone.runtime.code.local_names import RENAMING, LocalNames
from flowstone.runtime.code.loop_blocks import LoopBlocks
from flowstone.runtime.code.memory import Memory
from flowstone.runtime.code.memory_check import Decisions, MemoryCheck
from flowstone.runtime.code.native_kernels import begin_kernels
from flowstone.runtime.code.numbers import NO_NUMBERS, Numbers
from flowstone.runtime.code.tracing import TracedCode

_WITHOUT_KERNEL = CONTROL_FLOW | {"feed"}  # roles


def compile_segment(
    subgraph: Subgraph,
    environment: Environment,
    watched: bool = False,
    returns_references: bool = False,
    traced_device: str = "",
    feeds_are_there: bool = False,
    asked: frozenset[PlanOutput] = frozenset(),
    shown: Mapping[PlanOutput, Collection[Any]] = MappingProxyType({}),
    changed_elsewhere: Collection[Any] = (),
) -> Segment:
    """Compiles all nodes of `subgraph` for `environment`. Raises InvalidArgumentError where a kernel is
    missing.

    `returns_references`: a fetched reference is returned as the variable itself, not as its buffer.
    `traced_device`: the steps are `TracedStep`s, and the segment runs on the device of this name.
    `feeds_are_there`: the caller has brought the feeds to the device. `asked`: fetches that are only
    predicates, which are returned as Python's True or False. `shown`: for each feed, the states whose memory
    it may share; `changed_elsewhere`: the states that other segments of the step change.
    """
    writer = _Writer(
        subgraph, environment, watched, traced_device, feeds_are_there, asked, shown, changed_elsewhere
    )
    return writer.write(returns_references)


def _computes_floats(subgraph: Subgraph) -> bool:
    """Whether a step does anything to floating-point numbers."""
    return any(
        x.dtype.base_dtype.is_floating or x.dtype.base_dtype.is_complex
        for node in subgraph.nodes
        if not (node.is_constant or node.is_feed or node.declaration.is_free or node.declaration.aliases)
        for x in (*node.inputs, *node.outputs)
    )


class _Writer:
    def __init__(
        self,
        subgraph: Subgraph,
        environment: Environment,
        watched: bool,
        traced_device: str,
        feeds_are_there: bool,
        asked: frozenset[PlanOutput],
        shown: Mapping[PlanOutput, Collection[Any]],
        changed_elsewhere: Collection[Any],
    ) -> None:
        self.shown, self.changed_elsewhere = shown, changed_elsewhere
        self.subgraph, self.environment, self.watched, self.asked = subgraph, environment, watched, asked
        on_cpu = environment.device.type == "cpu"
        self.memory = None if on_cpu else Memory(environment, subgraph.feeds, feeds_are_there, subgraph.nodes)
        self.kernels: dict[PlanNode, Any] = {}
        self.decisions = Decisions({}, set(), {}, set())
        self.frames = order_by_frames(subgraph)
        self.liveness = subgraph.analysis(Liveness)
        self.code = TracedCode(traced_device) if traced_device else Code()
        self.names = LocalNames(subgraph, self.code, self.liveness, self.frames, self.memory)
        self.blocks = ConditionalBlocks(self.code, self.liveness)
        self.numbers = Numbers(subgraph, self.frames, asked) if on_cpu else NO_NUMBERS
        self.loops = LoopBlocks(
            subgraph, self.frames, self.numbers, self.code, self.names, self.blocks, self.liveness
        )

    def write(self, returns_references: bool) -> Segment:
        subgraph = self.subgraph
        for node in subgraph.nodes:
            if node.declaration.role not in _WITHOUT_KERNEL:
                self._make_kernel(node)
        begin_kernels(self.kernels, subgraph)
        self.aliasing = Aliasing(
            subgraph, self.names.constants, self.frames, self.shown, self.changed_elsewhere
        )
        feeds = [f"a{i}" for i in range(len(subgraph.feeds))]
        self.names.of.update(zip(subgraph.feeds, feeds))
        self.code.line(0, f"def segment(step{''.join(', ' + name for name in feeds)}):")
        for output in subgraph.feeds:
            self._note_predicate(output)
        for i, node in enumerate(subgraph.nodes):
            if self.frames.exist:
                self.loops.end_before(node, self.aliasing)
            self._write_node(node, i)
        self.loops.end_before(None, self.aliasing)
        if flags.CHECK:
            spans, constants = self.aliasing.spans, self.names.constants
            MemoryCheck(subgraph, self.frames, spans, constants, self.shown, self.decisions).run()
        self.blocks.leave_all()
        self._write_return(returns_references)
        self.loops.finish()
        segment = self.code.finish()
        if self.memory is not None or not _computes_floats(subgraph):
            return segment
        return dataclasses.replace(segment, function=flushing(segment.function))

    def _make_kernel(self, node: PlanNode) -> None:
        environment = self.environment if self.memory is None else self.memory.environment_for(node)
        kernel = self.kernels[node] = make_kernel(node, environment)
        if isinstance(kernel, Value) and node.outputs:
            self.names.add_constant(node.outputs[0], kernel.value)

    # ---- one node

    def _write_node(self, node: PlanNode, i: int) -> None:
        if node.is_feed or (node in self.kernels and isinstance(self.kernels[node], Value)):
            for output in node.outputs:
                self._note_predicate(output)
        elif node.type in RENAMING:
            for output in node.outputs:
                self.loops.hand_on(node, output)
                self._note_predicate(output)
        elif node.type in NEXT_ITERATIONS:
            self.loops.add_next_value(node)
        elif is_head(node):
            if self.loops.is_begun_by(node):
                self.loops.begin(node, self.watched)
            self._note_predicate(node.outputs[0])
        elif not self._needs_no_code(node):
            self._write_computation(node, i)

    def _write_computation(self, node: PlanNode, i: int) -> None:
        depth = self.blocks.enter(node)
        if node.declaration.role == "loop_condition":
            condition = self.loops.number(node.inputs[0]) or self.names.expression(node, 0)
            if node.inputs[0].dims != ():
                condition = f"{self.code.name('truth', truth)}({condition})"
            self.code.line(depth, f"if not {condition}: break", node)
            return
        if node.outputs and self.loops.is_number(node.outputs[0]):
            self.loops.write_number(node, depth)
            self._note_predicate(node.outputs[0])
            return
        if self.watched:
            self.code.line(depth, "step.check()", node)
        arguments = [
            self.loops.argument(node, j) or self.names.expression(node, j) for j in range(len(node.inputs))
        ]
        if node.type in MERGES:
            self._write_merge(node, i, depth, arguments)
        else:
            if node.declaration.mutates:
                self._copy_operands(node, arguments)
            text, targets = self._assigned(node, self._computed(node, arguments))
            if node.declaration.mutates:
                text = self._unpacking(node, text, arguments)
            released = self._released(node, i, targets)
            if released:
                text += f"; del {', '.join(released)}"
            self.code.computation(depth, text, node, arguments, targets)
        for output in node.outputs:
            self._note_predicate(output)

    def _unpacking(self, node: PlanNode, text: str, arguments: list[str]) -> str:
        """The statement; if it changes state, with code before and after it that invalidates packed copies of
        that state."""
        voided = []
        for i in input_positions(node, node.declaration.mutates):
            if may_be_packed(x := node.inputs[i]):
                known = x.dtype.is_ref or x in self.names.constants
                holder = arguments[i]
                voided.append(
                    f"{holder}.packed = None" if known else f"{self.code.name('unpack', unpack)}({holder})"
                )
        return "; ".join([*voided, text, *voided])

    def _needs_no_code(self, node: PlanNode) -> bool:
        """Whether the node is in a branch that is never taken, or is the pivot of a branch, which other nodes
        only wait for.
        """
        if self.liveness.trivial:
            return False
        dead = self.liveness.node(node) == FALSE
        if not dead and (node.declaration.role != "identity" or node.outputs[0] in self.aliasing.last_use):
            return False
        self.decisions.without_code.add(node)
        for output in node.outputs:
            self.names.of[output] = "None"
        return True

    def _note_predicate(self, output: PlanOutput) -> None:
        if self.blocks.is_new_predicate(output):
            value = self.names.of[output] + (".tensor" if output.dtype.is_ref else "")
            number = self.loops.number(output)
            if number is None and output not in self.numbers.decisions:
                ask = "bool" if output.dims == () else self.code.name("truth", truth)
                value = f"{ask}({value})"
            self.blocks.read_predicate(output, number or value)

    # ---- calls

    def _computed(self, node: PlanNode, arguments: list[str]) -> str:
        if not node.outputs or node.outputs[0] not in self.numbers.decisions:
            return self._call(node, arguments)
        numbers = [
            self.numbers.constants.get(x) or (words if x in self.numbers.decisions else f"{words}.item()")
            for x, words in zip(node.inputs, arguments)
        ]
        return self.numbers.expression(node, numbers)

    def _call(self, node: PlanNode, arguments: list[str]) -> str:
        kernel = self.kernels[node]
        if isinstance(kernel, AsyncCall):
            return self._awaited(node, kernel, arguments)
        if isinstance(kernel, StepCall):
            function = self._kernel_name(node, kernel.function)
            self.code.waits |= kernel.keeps
            if node.declaration.asynchronous:
                self._copy_kept(node, arguments)
            return f"{function}({', '.join(['step', *arguments])})"
        if not isinstance(kernel, Call):
            return self._finished(node, f"{self._kernel_name(node, kernel)}({', '.join(arguments)})")
        for index, variant in kernel.overwrites.items():
            if self.aliasing.may_overwrite(node, index):
                kernel = variant
                self.decisions.overwritten[node] = index
                break
        return self._finished(node, self._call_text(node, kernel, arguments))

    def _awaited(self, node: PlanNode, kernel: AsyncCall, arguments: list[str]) -> str:
        self.code.waits = True
        self._copy_kept(node, arguments)
        waiting = f"{self.code.name('awaited', awaited)}({self._kernel_name(node, kernel.function)}, step"
        waiting = f"{', '.join([waiting, *arguments])})"
        if kernel.at_once is None:
            return waiting
        return f"{self._kernel_name(node, kernel.at_once)}({', '.join(arguments)}) or {waiting}"

    def _copy_operands(self, node: PlanNode, arguments: list[str]) -> None:
        """Copies operands that share memory with the state that the node changes."""
        for i in self.aliasing.copied_operands(node):
            self.decisions.copied_inputs.setdefault(node, []).append(i)
            arguments[i] += ".copy()" if node.inputs[i].dtype.torch is None else ".clone()"

    def _copy_kept(self, node: PlanNode, arguments: list[str]) -> None:
        """Copies inputs that the node keeps and other nodes may change."""
        for i, x in enumerate(node.inputs):
            if self.aliasing.must_copy_kept(node, i):
                self.decisions.copied_inputs.setdefault(node, []).append(i)
                arguments[i] += ".copy()" if x.dtype.torch is None else ".clone()"

    def _kernel_name(self, node: PlanNode, function: Any) -> str:
        """A global for the function, with the function's name or, if that says nothing, the op's."""
        name = getattr(function, "__name__", "<")
        return self.code.name(identifier(node.type.lower() if name[0] in "<_" else name, "k"), function)

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
        return self.code.literal(value)

    def _finished(self, node: PlanNode, call: str) -> str:
        if node.declaration.aliases and node.outputs and self.aliasing.must_copy_read(node):
            self.decisions.copied.add(node)
            is_tuple = len(node.outputs) > 1 or node.declaration.outputs[0].is_list
            return f"[each.clone() for each in {call}]" if is_tuple else f"{call}.clone()"
        return call

    def _assigned(self, node: PlanNode, call: str) -> tuple[str, list[str]]:
        """The statement, and the names that it assigns."""
        outputs = node.outputs
        for output in outputs:
            self.names.new(output)
        targets = [self.names.of[o] if o in self.aliasing.last_use else "_" for o in outputs]
        if set(targets) <= {"_"}:
            return call, []
        is_tuple = node.declaration.outputs[0].is_list or node.declaration.asynchronous
        trailing = "," if len(outputs) == 1 and is_tuple else ""
        return f"{', '.join(targets)}{trailing} = {call}", targets

    def _released(self, node: PlanNode, i: int, targets: list[str]) -> list[str]:
        """The names that nothing needs after this line."""
        names: dict[str, None] = {}
        condition = self.liveness.node(node)
        for x in node.inputs:
            if self.aliasing.last_use[x] == i and self.names.is_local(x):
                if self.liveness.trivial or self.names.may_release(x, i, condition, self.aliasing):
                    names[self.names.of[x]] = None
        if "_" in targets:
            names["_"] = None
        return list(names)

    # ---- Merges

    def _write_merge(self, node: PlanNode, i: int, depth: int, arguments: list[str]) -> None:
        value, index = node.outputs
        chosen = self.names.new(value)
        text = f"{chosen} = {self.blocks.choice(node.inputs, arguments)}"
        place = self.names.new(index)
        if index in self.aliasing.last_use:
            places = [
                self.code.name(f"i{j}", torch.tensor(j, dtype=torch.int32)) for j in range(len(arguments))
            ]
            text += f"; {place} = {self.blocks.choice(node.inputs, places)}"
        else:
            place = "_"
        self.code.computation(depth, text, node, [], [chosen, place])
        self._release_merged(node, i, depth)

    def _release_merged(self, node: PlanNode, i: int, depth: int) -> None:
        """Deletes inputs that are used by the Merge last, on the branch that computed them."""
        done: set[str] = set()
        condition = self.liveness.node(node)
        for x in node.inputs:
            name, owner = self.names.of[x], self.names.owner(x)
            if name in done or not self.names.is_local(x):
                continue
            if self.names.last_use(owner, self.aliasing) == i:
                done.add(name)
                set_where = self.names.set_where(owner)
                if set_where in (condition, TRUE):
                    self.code.line(depth, f"del {name}", node)
                else:
                    self.code.line(depth, f"if {self.blocks.expression(set_where)}: del {name}", node)

    # ---- the end

    def _write_return(self, returns_references: bool) -> None:
        fetches = self.subgraph.fetches
        words = []
        for i, x in enumerate(fetches):
            name = self.names.of[x] + (".tensor" if x.dtype.is_ref and not returns_references else "")
            if x in self.asked and x not in self.numbers.decisions:
                name = f"bool({name})"
            condition = self.liveness.output(x)
            if condition != TRUE:
                name = f"{name} if {self.blocks.expression(condition)} else {self.code.name('dead', dead)}()"
            self.code.line(1, f"f{i} = {name}", x.op, [])
            words.append(f"f{i}")
        self.code.copied_fetches.extend(self.aliasing.copied_fetches(fetches))
        self.code.line(1, f"return ({', '.join(words)}{',' if len(words) == 1 else ''})")


def dead() -> Any:
    """Raises the error of a fetch on a branch that was not taken."""
    raise errors.InvalidArgumentError(
        None, None, "Retval does not have value: it lies on the branch of a conditional that was not taken"
    )
