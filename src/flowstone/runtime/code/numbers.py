"""Numbers: scalars of loops, and predicates of conditionals, that generated code keeps as Python numbers.

Counters, predicates and scalar sums are expensive as tensors: an ATen call takes 0.8 µs, Python's own
arithmetic a twentieth of that. Inside a loop on the CPU a scalar is a number if the ops that make it have
their arithmetic declared (`OpDeclaration.number`) and all its consumers take numbers: such ops, the loop's
predicate, a Switch, and arguments that a declaration names in ``numbers=``. Truths that a body makes as
tensors, ``All`` of an array for one, such ops ask for their value. Results are what the tensors would hold:
int32 and int64 wrap around, float32 is rounded after every operation (a float64 result of two float32
operands, rounded once more, is correctly rounded for + - and *).

A number is a copy. So a reference to a variable is not kept as a number in a loop that changes the variable:
its consumers must see the change (such as a predicate `n < 7` in a loop whose body increments ``n``). Outside
loops, a comparison is made on numbers if only Switches take its result, since they need a Python bool. This
includes Switches of the executor, for which a segment returns the result (`asked`).
"""

from __future__ import annotations

import math
from typing import Any

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.rewriting.analyses.branches import MERGES, SWITCHES
from flowstone.rewriting.analyses.frames import ENTERS, EXITS, Frame, Frames, is_head
from flowstone.rewriting.analyses.state_versions import References, changed_by

_BITS = {dtypes.int32: 32, dtypes.int64: 64}
_TYPES = frozenset((*_BITS, dtypes.float32, dtypes.bool))
_TRUTHS = frozenset({dtypes.bool})
_COMPARED = _TYPES | {dtypes.float64}
_CARRIERS = frozenset({"switch", "enter", "exit", "next_iteration", "identity"})  # roles
ROUNDING_CELL = "cell"  # the local name of the one-element float32 array that rounds


class Numbers:
    """Which outputs of a subgraph in frame order are numbers.

    `outputs`: those that are; `constants`: the literal of each constant scalar; `entered`: scalars that come
    into a loop, which are there as a number and as a tensor; `decisions`: outputs that only Switches take.
    """

    def __init__(
        self, subgraph: Subgraph, frames: Frames, asked: frozenset[PlanOutput] = frozenset()
    ) -> None:
        self._frames, self._asked = frames, asked
        self.outputs: set[PlanOutput] = set()
        self.entered: set[PlanOutput] = set()
        self.constants: dict[PlanOutput, str] = {}
        self.decisions: set[PlanOutput] = set()
        self._consumers: dict[PlanOutput, list[tuple[PlanNode, int]]] = {}
        self._changed: dict[Any, set[Frame]] = {}
        self._references = References()
        if not asked and not any(node.type in SWITCHES for node in subgraph.nodes):
            return
        for node in subgraph.nodes if frames.exist else ():
            self._note_changes(node)
        for node in subgraph.nodes:
            self._consider(node)
            for i, x in enumerate(node.inputs):
                self._consumers.setdefault(x, []).append((node, i))
        fetched = set(subgraph.fetches)
        self.outputs -= fetched
        for node in reversed(subgraph.nodes):
            if self._only_decides(node) and node.outputs[0] not in fetched - asked:
                self.decisions.add(node.outputs[0])
        while self._drop_unfit():
            pass
        self.entered = {x for x in self.outputs if self._is_constant_enter(x.op)}
        idle = {x for x in self.entered if not any(self._takes(*t) for t in self._consumers.get(x, ()))}
        self.outputs -= idle
        self.entered -= idle

    def __contains__(self, x: PlanOutput) -> bool:
        return x in self.outputs or x in self.constants

    # ---- reference variables that a loop changes

    def _note_changes(self, node: PlanNode) -> None:
        """Notes which states the node changes, and in which loops."""
        frame = self._frames.of.get(node)
        if frame is None or not node.declaration.mutates:
            return
        states = changed_by(node, self._references)
        while frame is not None:
            for state in states:
                self._changed.setdefault(state, set()).add(frame)
            frame = frame.parent

    def _shows_change(self, node: PlanNode) -> bool:
        """Whether the output refers to a variable that a loop around the node changes."""
        frame = self._frames.of[node]
        return any(frame in self._changed.get(state, ()) for state in self._references[node.outputs[0]])

    # ---- candidates

    def _consider(self, node: PlanNode) -> None:
        if node.is_constant and _is_scalar(node.outputs[0]):
            literal = _literal(node)
            if literal is not None:
                self.constants[node.outputs[0]] = literal
            return
        if self._frames.of.get(node) is None or not all(_is_scalar(x) for x in node.outputs):
            return  # outside all loops, as is the output of an outermost Exit
        if self._could_be(node) and not (self._changed and self._shows_change(node)):
            self.outputs.update(node.outputs[:1] if node.type in MERGES else node.outputs)

    def _could_be(self, node: PlanNode) -> bool:
        """Whether the node makes numbers if its inputs are numbers (at first assumed of a loop's head)."""
        if node.type in ENTERS or is_head(node):
            return _is_scalar(node.outputs[0])
        if node.type in MERGES:
            return all(x in self for x in node.inputs) and not self._consumers.get(node.outputs[1])
        if node.declaration.role in _CARRIERS:
            return node.inputs[0] in self
        declaration = node.declaration
        if not declaration.number_text or not all(x in self or self.asks(x) for x in node.inputs):
            return False
        return not (declaration.number_integers_only and node.dtype(0).is_floating)

    def asks(self, x: PlanOutput) -> bool:
        """Whether the output is a truth that a loop's body makes as a tensor: logic asks it for its value."""
        is_made = self._frames.of.get(x.op) is not None and x.op.declaration.role not in _CARRIERS
        return is_made and x.op.type not in MERGES and _is_scalar(x, _TRUTHS) and x not in self

    # ---- dropping those that do not fit

    def _drop_unfit(self) -> bool:
        """Drops outputs whose producer or consumers do not fit; returns whether there were any."""
        unfit = [x for x in self.outputs if not self._fits(x)]
        self.outputs.difference_update(unfit)
        return bool(unfit)

    def _fits(self, x: PlanOutput) -> bool:
        node = x.op
        if is_head(node):
            makes = all(self._could_enter(y) for y in node.inputs)
        else:
            makes = self._could_be(node)
        return makes and (
            self._is_constant_enter(node) or all(self._takes(*t) for t in self._consumers.get(x, ()))
        )

    def _could_enter(self, y: PlanOutput) -> bool:
        return y in self or y.op.type in ENTERS

    @staticmethod
    def _is_constant_enter(node: PlanNode) -> bool:
        """Whether the node is a scalar from outside the loop, which stays a tensor as well for consumers that
        need one."""
        return node.type in ENTERS and bool(node.attributes["is_constant"])

    def _takes(self, node: PlanNode, i: int) -> bool:
        """Whether input `i` of `node` may be a number."""
        if (
            node.declaration.role == "loop_condition"
            or node.type in EXITS
            or (node.type in SWITCHES and i == 1)
        ):
            return True
        if node.type in ENTERS:
            return True
        if node.input_argument(i).name in node.declaration.numbers:
            return True
        return bool(node.outputs) and node.outputs[0] in self.outputs

    # ---- decisions

    def _only_decides(self, node: PlanNode) -> bool:
        """Whether the node is a comparison, or logic, of scalars outside loops whose result only Switches
        take."""
        if not node.declaration.number_text or self._frames.of.get(node) is not None:
            return False
        (output,) = node.outputs
        if output.dtype is not dtypes.bool or not all(_is_scalar(x, _COMPARED) for x in node.inputs):
            return False
        consumers = self._consumers.get(output, [])
        return bool(consumers or output in self._asked) and all(
            self._asks(consumer, i) for consumer, i in consumers
        )

    def _asks(self, consumer: PlanNode, i: int) -> bool:
        """Whether input `i` is used only to decide, as a Switch's predicate: its value is not passed on to
        consumers."""
        if consumer.type not in SWITCHES:
            return bool(consumer.outputs) and consumer.outputs[0] in self.decisions
        if i == 1:
            return True
        pivots = [pivot for x in consumer.outputs for pivot, _ in self._consumers.get(x, [])]
        identities = all(pivot.declaration.role == "identity" for pivot in pivots)
        return identities and not any(self._consumers.get(pivot.outputs[0]) for pivot in pivots)

    # ---- as text

    def expression(self, node: PlanNode, arguments: list[str]) -> str:
        """The node's result as Python text, before rounding to float32 (see `needs_rounding`)."""
        text = node.declaration.number_text.format(*arguments)
        bits = _BITS.get(node.outputs[0].dtype)
        if bits is None or not node.declaration.number_overflows:
            return text
        half = 1 << (bits - 1)
        return f"({text} + {half} & {2 * half - 1}) - {half}"

    @staticmethod
    def needs_rounding(node: PlanNode) -> bool:
        """Whether the result must be rounded to float32."""
        return node.outputs[0].dtype is dtypes.float32 and node.declaration.number_overflows


def _is_scalar(x: PlanOutput, types: frozenset[Any] = _TYPES) -> bool:
    return x.dims == () and x.dtype in types


def _literal(node: PlanNode) -> str | None:
    value: Any = node.attributes["value"].item()
    return None if isinstance(value, float) and not math.isfinite(value) else repr(value)


_NO_NODES = Subgraph([], [], [], [])
NO_NUMBERS = Numbers(_NO_NODES, Frames(_NO_NODES))
