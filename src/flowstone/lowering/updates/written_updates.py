"""Updates written as assignments: finds what a program does to a variable and its slots, as one program.

An optimiser that is not one of `tf.train` writes its rule with the ops at hand:

    new_m = b * m + c * g
    Assign(m, new_m), Assign(p, p - r * new_m)      become   _ProgramUpdate(p, m; g; b, c, r) program="…"

Assignments belong together that take nodes from each other. A node belongs to them if it computes element by
element, of operands of the variable's shape and scalars, and only they take it. What it takes besides is an
operand: a gradient, a rate. A variable may be read before its assignment, by its reference or a handle, or
after it; `state_versions.py` tells which, and a read afterwards is the value that was assigned. The rule
may stand in any form: what is found is an expression for each variable (`update_programs.py`).

The new node stands where the last assignment was. So all reads of state must be the same there, nobody may
see the others' values before, and every variable is changed once in the step, and reads itself. A variable
that only descends, ``p - r * g``, gets `ApplyGradientDescent`, which other passes know (`update_fusion.py`).

A read that nobody takes, of what was just assigned, is left out first: libraries make one for each update.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.lowering.updates.update_programs import instruction_of, read, written
from flowstone.ops.variables.stateful import handle_dims
from flowstone.rewriting.analyses.arrivals import is_in_pieces
from flowstone.rewriting.analyses.branches import TRUE, Liveness
from flowstone.rewriting.analyses.frames import Frames
from flowstone.rewriting.analyses.state_access import UNKNOWN
from flowstone.rewriting.analyses.state_versions import StateVersions
from flowstone.rewriting.patterns import remove_unneeded

_ASSIGNMENTS = {
    "Assign": "", "AssignAdd": "add", "AssignSub": "sub",
    "AssignVariableOp": "", "AssignAddVariableOp": "add", "AssignSubVariableOp": "sub",
}  # fmt: skip
_READS = ("Identity", "ReadVariableOp")
_TYPES = (dtypes.float32, dtypes.float64)
_DESCENT = ("sub", "h0", ("mul", "n0", "x0"))


def join_written_updates(subgraph: Subgraph) -> None:
    """Replaces the assignments of each parameter by one update."""
    if not any(node.type in _ASSIGNMENTS for node in subgraph.nodes) or is_in_pieces(subgraph):
        return
    _forget_reads(subgraph)
    finder = _Finder(subgraph)
    places: dict[PlanNode, list[PlanNode]] = {}
    for members in finder.groups():
        reader = _Reader(finder, members)
        update = reader.update()
        if update is not None:
            places.update({node: [] for node in reader.own})
            places[members[-1]] = [update]
            finder.stand_for(members, update)
            names = ", ".join(member.name for member in members[:-1])
            reason = f"one update with {names}" if names else "an update by a program"
            subgraph.log.append(("join_written_updates", members[-1].name, reason))
    if places:
        put_updates(subgraph, places, finder.replaced)
        remove_unneeded(subgraph)


def put_updates(
    subgraph: Subgraph, places: dict[PlanNode, list[PlanNode]], replaced: dict[PlanNode, PlanNode]
) -> None:
    subgraph.nodes = [new for node in subgraph.nodes for new in places.get(node, [node])]
    for node in subgraph.nodes:
        if any([control in replaced for control in node.control_inputs]):
            controls = [replaced.get(control, control) for control in node.control_inputs]
            node.control_inputs = list(dict.fromkeys(controls))
    references = {x: node.inputs[0] for node in replaced for x in node.outputs}
    subgraph.fetches = [references.get(x, x) for x in subgraph.fetches]
    subgraph.targets = list(dict.fromkeys(replaced.get(node, node) for node in subgraph.targets))


def _forget_reads(subgraph: Subgraph) -> None:
    """Has groups wait for assignments instead of reads of what these assigned."""
    taken = {x for node in subgraph.nodes for x in node.inputs} | set(subgraph.fetches)

    def is_idle(node: PlanNode) -> bool:
        return (
            node.type == "ReadVariableOp"
            and node.outputs[0] not in taken
            and any([x.type in _ASSIGNMENTS and x.inputs[0] is node.inputs[0] for x in node.control_inputs])
        )

    changed = False
    for node in subgraph.nodes:
        if not node.inputs and not node.outputs and any([is_idle(x) for x in node.control_inputs]):
            waits = [y for x in node.control_inputs for y in (x.control_inputs if is_idle(x) else [x])]
            node.control_inputs, changed = list(dict.fromkeys(waits)), True
    if changed:
        subgraph.invalidate()
        remove_unneeded(subgraph)


class _Finder:
    """The assignments of a subgraph that may become updates, and the nodes that only they take.

    Fields: `assigning`, the assignment of each state; `inside`, the elementwise nodes; `replaced`, what the
    assignments that are gone became.
    """

    def __init__(self, subgraph: Subgraph) -> None:
        self.subgraph, self.versions = subgraph, StateVersions(subgraph)
        self.consumers = subgraph.consumers()
        self.held = {control for node in subgraph.nodes for control in node.control_inputs}
        self.replaced: dict[PlanNode, PlanNode] = {}
        self.assigning: dict[Any, PlanNode] = {}
        self._liveness, self._frames = subgraph.analysis(Liveness), subgraph.analysis(Frames)
        self._leader: dict[PlanNode, PlanNode] = {}
        fetched = set(subgraph.fetches)
        for node in subgraph.nodes:
            if node.type in _ASSIGNMENTS and self._is_plain(node):
                state = self.state_of(node.inputs[0])
                if state is not None and len(self.versions.changes.get(state, ())) == 1:
                    self.assigning[state] = node
        self.assignments = set(self.assigning.values())
        self.inside: dict[PlanNode, PlanNode] = {}  # each with an assignment that it belongs to
        for node in reversed(subgraph.nodes):
            self._consider(node, fetched)

    def state_of(self, reference: PlanOutput) -> Any:
        """The one state that an output is a reference or a handle of, or None."""
        states = self.versions.references[reference]
        return next(iter(states)) if len(states) == 1 and UNKNOWN not in states else None

    def assigned_before(self, x: PlanOutput, consumer: PlanNode) -> tuple[PlanNode, bool] | None:
        """Of the value of a variable: its assignment, and whether the value is the one that this assigns."""
        is_read = x.op.type == "ReadVariableOp"
        state = self.state_of(x.op.inputs[0] if is_read else x)
        assignment = self.assigning.get(state)
        if assignment is None:
            return None
        place = self.versions.place
        return assignment, place[x.op if is_read else consumer] > place[assignment]

    def groups(self) -> list[list[PlanNode]]:
        """The assignments that take nodes from each other, in order."""
        for node in self.assignments:
            self._join_reads(node, node)
        for node, assignment in self.inside.items():
            self._join_reads(node, assignment)
        found: dict[PlanNode, list[PlanNode]] = {}
        for node in self.subgraph.nodes:
            if node in self.assignments:
                found.setdefault(self._find(node), []).append(node)
        return list(found.values())

    def stand_for(self, members: list[PlanNode], update: PlanNode) -> None:
        """Notes that these assignments have become an update."""
        self.replaced.update(dict.fromkeys(members, update))

    def _is_plain(self, node: PlanNode) -> bool:
        if node.attributes.get("use_locking") and node.type != "Assign":
            return False
        held, value = node.inputs[0], node.inputs[1]
        dims = held.static_shape if held.dtype.is_ref else handle_dims(node)
        return bool(dims) and value.dims == dims and self._is_of_a_type(node, value)

    def _is_of_a_type(self, node: PlanNode, x: PlanOutput) -> bool:
        always = self._liveness.node(node) == TRUE and self._frames.home(node) is None
        return always and x.dtype.base_dtype in _TYPES

    def _consider(self, node: PlanNode, fetched: set[PlanOutput]) -> None:
        """Puts a node inside, if all who take it are."""
        if instruction_of(node) is None or node in self.held:
            return
        x = node.outputs[0]
        dims, takers = x.static_shape, self.consumers.get(x, ())
        if not dims or not takers or x in fetched or not self._is_of_a_type(node, x):
            return
        if any([operand.dims not in ((), dims) for operand in node.inputs]):
            return
        owners = [self._owner(taker, x) for taker in takers]
        if None in owners or any([dims != taker.inputs[-1].dims != () for taker in takers]):
            return
        for owner in owners[1:]:
            self._join(owners[0], owner)
        self.inside[node] = owners[0]  # type: ignore[assignment]

    def _owner(self, taker: PlanNode, x: PlanOutput) -> PlanNode | None:
        if taker in self.assignments:
            return taker if taker.inputs[0] is not x else None
        return self.inside.get(taker)

    def _join_reads(self, node: PlanNode, assignment: PlanNode) -> None:
        for x in node.inputs[1:] if node in self.assignments else node.inputs:
            found = self.assigned_before(x, node)
            if found is not None and found[1]:
                self._join(assignment, found[0])

    def _find(self, node: PlanNode) -> PlanNode:
        while self._leader.setdefault(node, node) is not node:
            self._leader[node] = node = self._leader[self._leader[node]]
        return node

    def _join(self, a: Any, b: Any) -> None:
        self._leader[self._find(a)] = self._find(b)


class _Unsuitable(Exception):
    """These assignments are no program."""


class _Reader:
    """Reads assignments that belong together as a program."""

    def __init__(self, finder: _Finder, members: list[PlanNode]) -> None:
        self.finder, self.members = finder, members
        self.names = {member: f"h{i}" for i, member in enumerate(members)}
        self.tensors: dict[PlanOutput, str] = {}
        self.numbers: dict[PlanOutput, str] = {}
        self.own: dict[PlanNode, None] = dict.fromkeys(members)  # with the nodes inside and idle reads
        self._reads: dict[PlanNode, None] = {}  # of what the variables held before
        self._values: dict[PlanNode, Any] = {}  # what is assigned
        self._known: dict[PlanOutput, Any] = {}  # expressions of nodes inside
        self._read: set[str] = set()

    def update(self) -> PlanNode | None:
        """The node that does what the assignments do; None if no node may."""
        members = self.members
        if len({(x.inputs[0].dtype.is_ref, x.inputs[1].dtype, x.inputs[1].dims) for x in members}) > 1:
            return None
        if len({x.device for x in members}) > 1:
            return None
        try:
            results = {self.names[member]: self._value(member) for member in members}
        except (_Unsuitable, RecursionError):
            return None
        is_worth_it = any([self._is_worth_it(member, results) for member in members])
        if not is_worth_it or not self._read.issuperset(results) or not self._keeps_versions():
            return None
        program = written(results)
        return self._made(program, read(program))

    def _is_worth_it(self, member: PlanNode, results: dict[str, Any]) -> bool:
        """Whether there is more to do than the assignment does itself."""
        expression = results[self.names[member]]
        return not _ASSIGNMENTS[member.type] or any([isinstance(x, tuple) for x in expression[1:]])

    def _value(self, member: PlanNode) -> Any:
        if member not in self._values:
            self._values[member] = None  # while it is being found
            value, kind = self._expression(member.inputs[1], member), _ASSIGNMENTS[member.type]
            if kind:
                self._read.add(self.names[member])
                value = (kind, self.names[member], value)
            self._values[member] = value
        value = self._values[member]
        if not isinstance(value, tuple):
            raise _Unsuitable
        return value

    def _expression(self, x: PlanOutput, consumer: PlanNode) -> Any:
        if x in self._known:
            return self._known[x]
        node = x.op
        if node in self.finder.inside:
            self.own[node] = None
            operands = [self._expression(y, node) for y in node.inputs]
            found = self._known[x] = (instruction_of(node), *operands)
            return found
        state = self.finder.assigned_before(x, consumer)
        if state is not None and state[0] in self.names:
            return self._held(x, *state)
        dims = self.members[0].inputs[1].dims
        if x.dims not in ((), dims):
            raise _Unsuitable
        names, letter = (self.numbers, "n") if x.dims == () else (self.tensors, "x")
        self._check_operand(x, consumer)
        return names.setdefault(x, f"{letter}{len(names)}")

    def _held(self, x: PlanOutput, member: PlanNode, is_assigned: bool) -> Any:
        """A value of a variable of these assignments."""
        if not is_assigned:
            self._read.add(self.names[member])
            if x.op.type in _READS:
                self._reads[x.op] = None
            return self.names[member]
        if x.op.type in _READS:
            self.own.setdefault(x.op)
        return self._value(member)

    def _check_operand(self, x: PlanOutput, consumer: PlanNode) -> None:
        """An operand must be the same at the last assignment, and no view of what is changed."""
        versions, last = self.finder.versions, self.members[-1]
        for state in versions.references[x]:
            if versions.is_changed(state) and versions.current(state, consumer) != versions.current(
                state, last
            ):
                raise _Unsuitable
        changed = {self.finder.state_of(member.inputs[0]) for member in self.members}
        if changed & versions.sharing[x] or UNKNOWN in versions.sharing[x]:
            raise _Unsuitable

    def _keeps_versions(self) -> bool:
        """Whether nobody between the first assignment and the last, or instead of them, sees a difference."""
        finder, members = self.finder, self.members
        fetched = set(finder.subgraph.fetches)
        for node in self.own:
            takers = [y for x in node.outputs for y in finder.consumers.get(x, ())]
            if any([taker not in self.own for taker in takers]):
                return False
            if node not in self.names and (node in finder.held or fetched.intersection(node.outputs)):
                return False
        nodes, place = finder.subgraph.nodes, finder.versions.place
        before: set[PlanNode] = set()
        states: set[Any] = set()
        for node in nodes[place[members[0]] : place[members[-1]]]:
            if node in self.names:
                before.add(node)
                states.add(finder.state_of(node.inputs[0]))
            elif node not in self.own:
                if before.intersection(node.sources()):
                    return False
                if any([states & finder.versions.references[x] for x in node.inputs]):
                    return False
        return True

    def _made(self, program: str, results: dict[str, Any]) -> PlanNode:
        """The node in the place of the last assignment."""
        members, last = self.members, self.members[-1]
        reference = last.inputs[0].dtype.is_ref
        held = [member.inputs[0] for member in members]
        inputs = [*held, *self.tensors, *self.numbers]
        subgraph, dtype = self.finder.subgraph, last.inputs[1].dtype.base_dtype
        if results == {"h0": _DESCENT}:
            name = "ApplyGradientDescent" if reference else "ResourceApplyGradientDescent"
            operands = [held[0], *self.numbers, *self.tensors]
            new = subgraph.new_node(registry[name], operands, {"T": dtype, "use_locking": False}, like=last)
        else:
            sizes = (len(held), len(self.tensors), len(self.numbers))
            attributes = {"program": program, "count": 1, "T": dtype}
            attributes.update(zip("MNK", sizes))
            kind = registry["_ProgramUpdate" if reference else "_ResourceProgramUpdate"]
            new = subgraph.new_node(kind, inputs, attributes, like=last, group_sizes=sizes)
        gone = [*self.own, *self._reads]  # what the reads waited for, the update waits for in their place
        waits = dict.fromkeys(x for node in gone for x in node.control_inputs if x not in self.own)
        replaced = self.finder.replaced
        new.control_inputs = list(dict.fromkeys(replaced.get(x, x) for x in waits))
        return new
