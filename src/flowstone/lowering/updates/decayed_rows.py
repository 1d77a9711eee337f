"""Updates by gradients of some rows that change every row: the whole of such a step as one call.

Adam's step with a sparse gradient, as `tf.train` and programs write it, lets the averages of all rows decay:

    Assign(m, m * b1);  ScatterAdd(m, indices, g * (1 - b1))
    Assign(v, v * b2);  ScatterAdd(v, indices, g * g * (1 - b2))
    p -= rate * m / (sqrt(v) + epsilon)

becomes ``_DecayedRowUpdate(p, m, v; numbers; g, indices)``. Its machine code computes the rows that have a
gradient apart, passes once over all others, and puts the former in their places: memory is read and written
once instead of twice, and the bits are the same. Gradients of equal indices are summed there, too, in order
(`row_updates.py`). The last line is by now a `_ProgramUpdate` that takes ``m`` and ``v``
(`written_updates.py`).

Nobody else may take the averages, or the rows that are added to them, in the step. Indices that may repeat,
but are not summed before, stay as they are, and so does what has no machine code.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, Call, Input
from flowstone.framework.declarations.operation import op, registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.lowering.updates.native_rules import rule_of_program
from flowstone.lowering.updates.program_updates import in_blocks
from flowstone.lowering.updates.row_updates import SUMMED
from flowstone.lowering.updates.update_programs import in_places, instruction_of, read, run, written
from flowstone.lowering.updates.written_updates import put_updates
from flowstone.native.clusters import kernels
from flowstone.native.codegen import host
from flowstone.native.codegen.emitter import FLOATS
from flowstone.native.numerics.elements import suits
from flowstone.native.updates.row_update_code import row_update_kernel
from flowstone.native.updates.updates import RowUpdate, Rule
from flowstone.ops.arrays.selection import DISTINCT
from flowstone.ops.numbers.elementwise import FLOATS as FLOAT_TYPES
from flowstone.ops.variables.row_steps import PARTS, Repeats, checked_rows
from flowstone.ops.variables.stateful import handle_node
from flowstone.rewriting.analyses.arrivals import is_in_pieces
from flowstone.rewriting.analyses.branches import TRUE, Liveness
from flowstone.rewriting.analyses.frames import Frames
from flowstone.rewriting.analyses.state_access import UNKNOWN
from flowstone.rewriting.analyses.state_versions import StateVersions
from flowstone.rewriting.patterns import remove_unneeded

_UPDATES = ("_ProgramUpdate", "_ResourceProgramUpdate")
_SCATTERS = ("ScatterAdd", "ResourceScatterAdd")
_ASSIGNMENTS = ("Assign", "AssignVariableOp")
_READS = ("Identity", "ReadVariableOp")


def join_decayed_rows(subgraph: Subgraph) -> None:
    """Joins updates with the decay of what they take, and the rows that are added to it."""
    updates = [node for node in subgraph.nodes if node.type in _UPDATES and node.attributes["count"] == 1]
    if not updates or not kernels.is_on() or not host.variable_offset() or is_in_pieces(subgraph):
        return
    if not any([node.type in _SCATTERS for node in subgraph.nodes]):
        return
    graph = _Surroundings(subgraph)
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanNode, PlanNode] = {}
    for node in updates:
        try:
            new, own = _Step(graph, node).joined()
        except _Unsuitable:
            continue
        new.control_inputs = list(dict.fromkeys(replaced.get(x, x) for x in new.control_inputs))
        places.update({each: [] for each in own})
        places[node] = [new]
        replaced.update(dict.fromkeys(own, new))
        subgraph.log.append(("join_decayed_rows", node.name, "one pass over all rows"))
    if places:
        put_updates(subgraph, places, replaced)
        remove_unneeded(subgraph)


class _Unsuitable(Exception):
    """These nodes are no such step."""


class _Surroundings:
    """What is asked about all nodes of a subgraph."""

    def __init__(self, subgraph: Subgraph) -> None:
        self.subgraph, self.versions = subgraph, StateVersions(subgraph)
        self.consumers, self.fetched = subgraph.consumers(), set(subgraph.fetches)
        self.held = {control for node in subgraph.nodes for control in node.control_inputs}
        self.liveness, self.frames = subgraph.analysis(Liveness), subgraph.analysis(Frames)
        self.takers: dict[Any, list[PlanNode]] = {}  # of each state that is changed twice
        for node in subgraph.nodes:
            states = {state for x in node.inputs for state in self.versions.references[x]}
            for state in states:
                if len(self.versions.changes.get(state, ())) == 2:
                    self.takers.setdefault(state, []).append(node)

    def state_of(self, x: PlanOutput) -> Any:
        """The one state that `x` is a reference, a handle or a read value of."""
        states = self.versions.references[x.op.inputs[0] if x.op.type == "ReadVariableOp" else x]
        if len(states) != 1 or UNKNOWN in states or UNKNOWN in self.versions.changes:
            raise _Unsuitable
        return next(iter(states))


class _Step:
    """One such step: `own`, the nodes that it replaces; `tensors` and `numbers`, what it takes besides."""

    def __init__(self, graph: _Surroundings, update: PlanNode) -> None:
        self.graph, self.update = graph, update
        count = update.group_sizes[0]
        self.held = list(update.inputs[:count])
        self.own: dict[PlanNode, None] = {update: None}
        self.tensors: dict[PlanOutput, str] = {}
        self.numbers: dict[PlanOutput, str] = {}
        self.indices: PlanOutput | None = None

    def joined(self) -> tuple[PlanNode, list[PlanNode]]:
        """The node that does the step, and those that it replaces."""
        node, graph = self.update, self.graph
        held, given, _ = node.group_sizes
        numbers = node.inputs[held + given :]
        names: dict[str, Any] = {f"n{i}": self._number(x, node) for i, x in enumerate(numbers)}
        rest = dict(names)
        found = {f"h{held + i}": self._slot(x) for i, x in enumerate(node.inputs[held : held + given])}
        if not found:
            raise _Unsuitable
        self._take_in([scatter.inputs[2] for _, scatter in found.values()])
        slots = {}
        for i, (name, (factor, scatter)) in enumerate(found.items()):
            decayed = ("mul", name, factor)
            slots[name] = ("add", decayed, self._expression(scatter.inputs[2], scatter)), decayed
            names[f"x{i}"], rest[f"x{i}"] = slots[name]
        expressions = read(node.attributes["program"])
        programs = [
            written({name: _replaced(each, known) for name, each in expressions.items()} | also)
            for known, also in (
                (names, {name: pair[0] for name, pair in slots.items()}),
                (rest, {name: pair[1] for name, pair in slots.items()}),
            )
        ]
        self._check_order()
        return self._made(programs), [each for each in graph.subgraph.nodes if each in self.own]

    def _number(self, x: PlanOutput, consumer: PlanNode) -> str:
        self._check_operand(x, consumer)
        return self.numbers.setdefault(x, f"n{len(self.numbers)}")

    def _slot(self, x: PlanOutput) -> tuple[str, PlanNode]:
        """By what a slot, whose last value is `x`, is multiplied, and what adds to its rows."""
        graph = self.graph
        state = graph.state_of(x)
        takers = graph.takers.get(state, [])
        by_type = {kinds: [t for t in takers if t.type in kinds] for kinds in (_ASSIGNMENTS, _SCATTERS)}
        if any([len(found) != 1 for found in by_type.values()]):
            raise _Unsuitable
        (assignment,), (scatter,) = by_type.values()
        place = graph.versions.place
        if x.op.type not in (*_READS, "ScatterAdd") or place[assignment] > place[scatter]:
            raise _Unsuitable
        if place[x.op if x.op.type == "ReadVariableOp" else self.update] < place[scatter]:
            raise _Unsuitable
        if scatter.attributes.get("use_locking") or self.indices not in (None, scatter.inputs[1]):
            raise _Unsuitable
        decay: PlanNode = assignment.inputs[1].op
        if decay.type != "Mul" or decay.dtype(0).base_dtype is not self._dtype:
            raise _Unsuitable
        factors = [y for y in decay.inputs if y.dims == ()]
        kept = [y for y in decay.inputs if y.dims != ()]
        if len(factors) != 1 or graph.state_of(kept[0]) != state:
            raise _Unsuitable
        if kept[0].op.type == "ReadVariableOp" and place[kept[0].op] > place[assignment]:
            raise _Unsuitable
        self.held.append(assignment.inputs[0])
        self.indices = scatter.inputs[1]
        reads = [t for t in takers if t.type in _READS]
        self.own.update(dict.fromkeys([*reads, decay, assignment, scatter]))
        if not self.own.keys() >= set(takers):
            raise _Unsuitable
        return self._number(factors[0], decay), scatter

    def _take_in(self, added: list[PlanOutput]) -> None:
        """Has the step replace the element-wise nodes that compute what is added to rows."""
        candidates: dict[PlanNode, None] = {}
        waiting = list(added)
        while waiting:
            node = waiting.pop().op
            if node not in candidates and instruction_of(node) is not None:
                candidates[node] = None
                waiting += node.inputs
        graph = self.graph
        for node in sorted(candidates, key=graph.versions.place.__getitem__, reverse=True):
            x, dims = node.outputs[0], node.outputs[0].dims
            if (
                dims != ()
                and x not in graph.fetched
                and node not in graph.held
                and all([y.dims in ((), dims) for y in node.inputs])
                and all([taker in self.own for taker in graph.consumers.get(x, ())])
            ):
                self.own[node] = None

    def _expression(self, x: PlanOutput, consumer: PlanNode) -> Any:
        """What is added to rows, of the gradient and numbers."""
        if x.dims == ():
            return self._number(x, consumer)
        if x.op in self.own:
            return (instruction_of(x.op), *[self._expression(y, x.op) for y in x.op.inputs])
        self._check_operand(x, consumer)
        self.tensors.setdefault(x, "x0")
        if len(self.tensors) > 1:
            raise _Unsuitable
        return "x0"

    @property
    def _dtype(self) -> Any:
        return self.update.attributes["T"].base_dtype

    def _check_operand(self, x: PlanOutput, consumer: PlanNode) -> None:
        """An operand must be the same at the update, and no view of what is changed."""
        versions, last = self.graph.versions, self.update
        for state in versions.references[x]:
            if versions.is_changed(state) and versions.current(state, consumer) != versions.current(
                state, last
            ):
                raise _Unsuitable
        sharing = versions.sharing[x]
        if UNKNOWN in sharing or any([versions.is_changed(state) and x.dims != () for state in sharing]):
            raise _Unsuitable

    def _check_order(self) -> None:
        """All nodes must always run; nobody takes what they compute, or waits for them too early."""
        graph, own = self.graph, self.own
        place = graph.versions.place
        for node in own:
            if graph.liveness.node(node) != TRUE or graph.frames.home(node) is not None:
                raise _Unsuitable
            if node.device != self.update.device:
                raise _Unsuitable
            for x in node.outputs:
                if x in graph.fetched or any([y not in own for y in graph.consumers.get(x, ())]):
                    raise _Unsuitable
        nodes = graph.subgraph.nodes
        for node in nodes[min([place[x] for x in own]) : place[self.update]]:
            if node not in own and any([x in own for x in node.sources()]):
                raise _Unsuitable

    def _made(self, programs: list[str]) -> PlanNode:
        (gradient,) = self.tensors or (None,)
        update, indices, subgraph = self.update, self.indices, self.graph.subgraph
        is_resource = update.type == "_ResourceProgramUpdate"
        dims = [x.static_shape if x.dtype.is_ref else _handle_dims(x) for x in self.held]
        if gradient is None or indices is None or len(set(dims)) != 1 or not _are_known(dims[0]):
            raise _Unsuitable
        summed = SUMMED.match(gradient.op, indices=indices)
        if summed is not None and all([y in self.own for y in self.graph.consumers[gradient]]):
            gradient, indices = summed.rows, summed.repeated
            self._check_operand(gradient, summed.root)
            self._check_operand(indices, summed.distinct)
        elif indices.op.type in DISTINCT and indices.value_index == 0:
            summed = None
        else:
            raise _Unsuitable
        if self._dtype.name not in FLOATS or indices.dtype.name not in ("int32", "int64"):
            raise _Unsuitable
        attributes = {
            "T": self._dtype,
            "Tindices": indices.dtype,
            "programs": programs,
            "dims": dims[0],
            "sum_repeated": summed is not None,
            "M": len(self.held),
            "K": len(self.numbers),
        }
        if not _suits(programs, attributes):
            raise _Unsuitable
        sizes = (len(self.held), len(self.numbers), 1, 1)
        kind = registry["_DecayedResourceRowUpdate" if is_resource else "_DecayedRowUpdate"]
        inputs = [*self.held, *self.numbers, gradient, indices]
        new = subgraph.new_node(kind, inputs, attributes, like=update, group_sizes=sizes)
        waits = [x for node in self.own for x in node.control_inputs if x not in self.own]
        if summed is not None:
            waits += [*summed.distinct.control_inputs, *summed.root.control_inputs]
        new.control_inputs = list(dict.fromkeys(waits))
        return new


def _handle_dims(x: PlanOutput) -> Any:
    source = handle_node(x)
    return None if source is None else source.attributes["shape"]


def _are_known(dims: Any) -> bool:
    return bool(dims) and all([bool(n) for n in dims])


def _replaced(expression: Any, known: dict[str, Any]) -> Any:
    if isinstance(expression, str):
        return known.get(expression, expression)
    return (expression[0], *[_replaced(each, known) for each in expression[1:]])


def _rules(programs: list[str], attributes: dict[str, Any]) -> list[Rule]:
    """The rule of rows that have a gradient, and that of all others."""
    held, numbers = attributes["M"], attributes["K"]
    return [rule_of_program(text, held, given, numbers) for text, given in zip(programs, (1, 0))]


def _suits(programs: list[str], attributes: dict[str, Any]) -> bool:
    dtype = attributes["T"].name
    steps = [step for rule in _rules(programs, attributes) for step in rule.steps]
    return all([suits(name, [dtype] * len(operands), {}) for name, operands in steps])


# ---- the op


def _kernel(node: Any, env: Any) -> Any:
    attributes = node.attributes
    held, numbers = node.group_sizes[:2]
    dims = attributes["dims"]
    rule, rest = _rules(attributes["programs"], attributes)
    constants = [node.constant(held + i) for i in range(numbers)]
    update = RowUpdate(
        rule,
        attributes["T"].name,
        dims[0],
        math.prod(dims[1:]),
        attributes["Tindices"].name,
        attributes["sum_repeated"],
        attributes["sum_repeated"],
        tuple([each is not None for each in constants]),
        len(dims) == 2,
        rest,
    )
    kernel = row_update_kernel(update, lambda *arguments: otherwise(*arguments))
    otherwise = _Otherwise(kernel, node, env.machine)
    arrays = [*map(Input, range(held)), Input(held + numbers), Input(held + numbers + 1)]
    words = [Input(held + i) if each is None else float(each.item()) for i, each in enumerate(constants)]
    return Call(kernel, *arrays, *words)


class _Otherwise:
    """What the machine code calls for arguments that it is not for: itself again with rows one behind the
    other, or else the same by ATen."""

    def __init__(self, kernel: Any, node: Any, machine: Any) -> None:
        attributes = node.attributes
        self._kernel, self._held, self._dtype = kernel, attributes["M"], attributes["T"].torch
        programs, numbers = attributes["programs"], attributes["K"]
        self._rows = in_places(programs[0], self._held, 1, numbers)
        self._rest = in_blocks(in_places(programs[1], self._held, 0, numbers), machine)
        self._parts = PARTS[Repeats.SUMMED if attributes["sum_repeated"] else Repeats.NEVER]

    def __call__(self, *arguments: Any) -> None:
        variables, (rows, indices, *numbers) = arguments[: self._held], arguments[self._held :]
        if self._kernel.is_compiled and not rows.is_contiguous():
            self._kernel(*variables, rows.contiguous(), indices, *numbers)
            return
        tensors = [variable.tensor for variable in variables]
        scalars = [x if torch.is_tensor(x) else torch.scalar_tensor(x, dtype=self._dtype) for x in numbers]
        places, rows = checked_rows(tensors[0], rows, indices)
        ((places, rows),) = self._parts(places, rows, tensors[0].shape[0])
        kept = [tensor.index_select(0, places) for tensor in tensors]
        room = [torch.empty_like(rows) for _ in range(self._rows.temporaries)]
        run(self._rows, [*kept, rows, *scalars, *room])
        self._rest([tensors], [[]], scalars)
        for tensor, part in zip(tensors, kept):
            tensor.index_copy_(0, places, part)


for _name, _held in (("_DecayedRowUpdate", "Ref(M*T)"), ("_DecayedResourceRowUpdate", "M*resource")):
    _declaration = op(
        _name,
        f"held: {_held}, numbers: K*T, rows: T, indices: Tindices ->",
        "programs: list(string) ; dims: shape ; sum_repeated: bool ; Tindices: type in [int32, int64] ; "
        "M: int >= 1 ; K: int >= 0",
        stateful=True,
        mutates=[0],
        T=FLOAT_TYPES,
    )
    _declaration.infer(lambda node: None)
    _declaration.kernel(CPU)(_kernel)
    _declaration.not_differentiable()
