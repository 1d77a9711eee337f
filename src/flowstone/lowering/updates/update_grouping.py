"""Grouping of updates: small variables that one optimiser updates with the same numbers get one call.

A training step ends in an update a variable; for small ones the calls cost more than the arithmetic. An
update may join an earlier one if nothing between the two waits for that one, takes its variable or changes
what it takes. The group runs where the first of those comes who do, or at the end. Large variables stay
alone: their gradients are better released at once. Where ATen has no step on lists, variables are joined,
which pays for fewer elements, and in groups that fit in a cache. Updates by programs
(`program_updates.py`) are alike if their programs are.

`compile_updates` does the same where updates become machine code: of one or many, and of any size, since
memory is passed over once. There, gradients that a number scales, as those are that
`tf.clip_by_global_norm` gives, are scaled by the update itself, with the same bits:

    ApplyMomentum(v, m, rate, Mul(g, scale), k)   becomes   _GroupedUpdate(v, m; rate, k, scale; g) scaled
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any, NamedTuple

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.machine import machine
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import num_elements
from flowstone.lowering.updates.grouped_updates import GROUPED, Grouped
from flowstone.lowering.updates.native_rules import rule_of
from flowstone.native.clusters import kernels
from flowstone.ops.variables.stateful import handle_dims
from flowstone.rewriting.analyses.arrivals import arrivals, is_in_pieces
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.analyses.state_access import UNKNOWN
from flowstone.rewriting.analyses.state_versions import References, changed_by
from flowstone.rewriting.match_terms import constant_value
from flowstone.rewriting.patterns import remove_unneeded

# Of one call of a group, in calls by themselves: a large update, one that is copied, and all that are copied.
_LARGEST, _LARGEST_JOINED, _JOINED_IN_ALL = 16, 1, 8
_LARGEST_COMPILED = 1 << 20  # elements of a step that ATen has too: memory's speed is the limit of both
_PROGRAMS = frozenset(("_ProgramUpdate", "_ResourceProgramUpdate"))
_TYPES = frozenset(("float32", "float64"))


def group_updates(subgraph: Subgraph) -> None:
    """Replaces runs of equal small updates by one node each."""
    _group(subgraph, False)


def compile_updates(subgraph: Subgraph) -> None:
    """Replaces updates that machine code can do (`native_rules.py`), of any size and number, by one node for
    those that are equal."""
    if kernels.is_on():
        _group(subgraph, True)


def _group(subgraph: Subgraph, compiled: bool) -> None:
    used = {x for node in subgraph.nodes for x in node.inputs} | set(subgraph.fetches)
    collector = _Collector(subgraph, compiled)
    if compiled:
        collector.note_scales()
    for node in subgraph.nodes:
        collector.end_groups_before(node)
        if not _may_join(node, used, compiled, node in collector.scaled):
            collector.nodes.append(node)
        elif compiled and _size(node) > machine.current().elements(_LARGEST):
            collector.add_alone(node)
        else:
            collector.add(node)
    collector.end_all()


class _Collector:
    """The nodes so far, and the updates that are put off, by what they share."""

    def __init__(self, subgraph: Subgraph, compiled: bool) -> None:
        self.subgraph, self.liveness = subgraph, subgraph.analysis(Liveness)
        self.compiled = compiled
        self.arrivals = arrivals(subgraph) if is_in_pieces(subgraph) else None
        self.nodes: list[PlanNode] = []
        self.groups: dict[Any, list[PlanNode]] = {}
        self.key_of: dict[PlanNode, Any] = {}  # of put-off updates
        self.references = References(memory=True)
        self.changed: dict[Any, set[Any]] = {}  # keys of put-off updates by the states that they change
        self.taken: dict[Any, set[Any]] = {}  # the same by states of which they take something
        self.replacements: dict[PlanNode, PlanNode] = {}
        self.scaled: dict[PlanNode, _Scaled] = {}

    def note_scales(self) -> None:
        """Notes the gradients that are scaled by a number of the step: all by the same one, or large ones."""
        consumers, fetched = self.subgraph.consumers(), set(self.subgraph.fetches)
        held = {control for node in self.subgraph.nodes for control in node.control_inputs}
        found = {}
        for node in self.subgraph.nodes:
            if node.type.removeprefix("Resource") in GROUPED:
                gradient = node.inputs[_gradient_position(node)]
                if len(consumers[gradient]) == 1 and gradient not in fetched and gradient.op not in held:
                    found[node] = self._scaled_by(node, gradient)
        times = Counter(each.scale for each in found.values() if each is not None)
        least = machine.current().elements(_LARGEST)
        for node, scaled in found.items():
            if scaled is not None and (times[scaled.scale] > 1 or _size(node) > least):
                self.scaled[node] = scaled

    def _scaled_by(self, node: PlanNode, gradient: PlanOutput) -> _Scaled | None:
        product = gradient.op
        if product.type != "Mul" or product.device != node.device:
            return None
        if self.liveness.node(product) != self.liveness.node(node):
            return None
        for (x, scale), i in ((product.inputs, 1), (product.inputs[::-1], 0)):
            is_number = scale.dims == () and product.constant(i) is None
            if is_number and x.dims == gradient.dims and not self._is_state(x, scale):
                return _Scaled(product, x, scale)
        return None

    def _is_state(self, *tensors: PlanOutput) -> bool:
        """Whether one of them changes when a variable does."""
        return any([self.references[x] for x in tensors])

    def _numbers(self, node: PlanNode) -> list[PlanOutput]:
        scaled = self.scaled.get(node)
        return _numbers(node) if scaled is None else [*_numbers(node), scaled.scale]

    def add(self, node: PlanNode) -> None:
        slots, numbers = _slots(node), self._numbers(node)
        key = (
            node in self.scaled,
            node.type,
            node.device,
            node.inputs[0].dtype,
            node.attributes.get("use_nesterov", False),
            node.attributes.get("program"),
            tuple(numbers),
            self.liveness.node(node),
            0 if self.arrivals is None else self.arrivals(node),
        )
        self.groups.setdefault(key, []).append(node)
        self.key_of[node] = key
        for i, x in enumerate(node.inputs):
            for state in self.references[x]:
                (self.changed if i <= slots else self.taken).setdefault(state, set()).add(key)

    def add_alone(self, node: PlanNode) -> None:
        """Puts a large update in its place, as a group of its own."""
        self._join([node], _slots(node), self._numbers(node))

    def end_groups_before(self, node: PlanNode) -> None:
        """Runs the groups that `node` waits for, whose variables it takes or changes what they take."""
        if self.groups:
            for other in node.sources():
                if other in self.key_of:
                    self._end(self.key_of[other])
            used = {state for x in node.inputs for state in self.references[x]}
            changed = changed_by(node, self.references)
            for key in [*_keys(used, self.changed), *_keys(changed, self.taken)]:
                self._end(key)
        if self.replacements:
            controls = [self.replacements.get(control, control) for control in node.control_inputs]
            node.control_inputs = list(dict.fromkeys(controls))

    def end_all(self) -> None:
        for key in list(self.groups):
            self._end(key)
        subgraph = self.subgraph
        if self.nodes != subgraph.nodes:
            subgraph.nodes = self.nodes
        subgraph.targets = list(dict.fromkeys(self.replacements.get(node, node) for node in subgraph.targets))
        if self.scaled:
            remove_unneeded(subgraph)

    def _end(self, key: Any) -> None:
        members = self.groups.pop(key, [])
        if not members:
            return
        slots, numbers = _slots(members[0]), self._numbers(members[0])
        for node in members:
            del self.key_of[node]
        for keys in (*self.changed.values(), *self.taken.values()):
            keys.discard(key)
        fewest = 1 if self.compiled else self.subgraph.machine.profile.grouped_updates
        for group in [members] if self.compiled else _in_parts(members):
            if len(group) < fewest:
                self.nodes += group
            else:
                self._join(group, slots, numbers)

    def _join(self, members: list[PlanNode], slots: int, numbers: list[PlanOutput]) -> None:
        """One node for these updates."""
        numbers = [self._of_type(x, members[0].attributes["T"].base_dtype, members[0]) for x in numbers]
        if members[0].type in _PROGRAMS:
            group = _one_program(self.subgraph, members, slots, numbers)
        else:
            group = _one_update(self.subgraph, members, slots, numbers, self.scaled)
        products = [self.scaled[node].product for node in members if node in self.scaled]
        controls = [control for node in [*members, *products] for control in node.control_inputs]
        group.control_inputs = list(dict.fromkeys(controls))
        for node in members:
            self.replacements[node] = group
            name = "compile_updates" if self.compiled else "group_updates"
            reason = f"one of {len(members)} equal updates"
            if node in self.scaled:
                reason += f", scales its gradient by {self.scaled[node].scale.op.name}"
            self.subgraph.log.append((name, node.name, reason))
        self.nodes.append(group)

    def _of_type(self, x: PlanOutput, dtype: DType, like: PlanNode) -> PlanOutput:
        """A number in the type of the update: of one optimiser it is a count of steps."""
        if x.dtype.base_dtype == dtype:
            return x
        value = constant_value(x)
        if value is not None:
            new = self.subgraph.new_constant(value.astype(dtype.as_numpy_dtype), like, "number")
        else:
            attributes = {"SrcT": x.dtype, "DstT": dtype, "Truncate": False}
            new = self.subgraph.new_node(registry["Cast"], [x], attributes, like, name=f"{like.name}/number")
        self.nodes.append(new)
        return new.outputs[0]


class _Scaled(NamedTuple):
    """A gradient that is a product of an array `x` and a number."""

    product: PlanNode
    x: PlanOutput
    scale: PlanOutput


def _one_update(
    subgraph: Subgraph,
    members: list[PlanNode],
    slots: int,
    numbers: list[PlanOutput],
    scaled: dict[PlanNode, _Scaled],
) -> PlanNode:
    first = members[0]
    is_resource = first.type.startswith("Resource")
    held = [node.inputs[i] for i in range(slots + 1) for node in members]
    grads = [scaled[node].x if node in scaled else node.inputs[_gradient_position(node)] for node in members]
    attributes = {
        "update": first.type.removeprefix("Resource"),
        "use_nesterov": first.attributes.get("use_nesterov", False),
        "scaled": first in scaled,
        "T": grads[0].dtype.base_dtype,
        "M": len(held),
        "K": len(numbers),
        "N": len(grads),
    }
    return subgraph.new_node(
        registry["_GroupedResourceUpdate" if is_resource else "_GroupedUpdate"],
        [*held, *numbers, *grads],
        attributes,
        like=first,
        group_sizes=(len(held), len(numbers), len(grads)),
    )


def _one_program(
    subgraph: Subgraph, members: list[PlanNode], slots: int, numbers: list[PlanOutput]
) -> PlanNode:
    first = members[0]
    arrays = len(first.inputs) - len(numbers)
    held = [node.inputs[i] for i in range(slots + 1) for node in members]
    tensors = [node.inputs[i] for i in range(slots + 1, arrays) for node in members]
    sizes = (len(held), len(tensors), len(numbers))
    attributes = {**first.attributes, "count": len(members)}
    attributes.update(zip("MNK", sizes))
    inputs = [*held, *tensors, *numbers]
    return subgraph.new_node(first.declaration, inputs, attributes, like=first, group_sizes=sizes)


def _keys(states: Collection[Any], by_state: dict[Any, set[Any]]) -> list[Any]:
    """The keys of those who may have to do with one of these states."""
    if states and (UNKNOWN in states or UNKNOWN in by_state):
        return [key for keys in by_state.values() for key in keys]
    return [key for state in states for key in by_state.get(state, ())]


def _grouped(node: PlanNode) -> Grouped:
    return GROUPED[node.type.removeprefix("Resource")]


def _slots(node: PlanNode) -> int:
    if node.type in _PROGRAMS:
        return node.group_sizes[0] - 1
    return _grouped(node).slots


def _gradient_position(node: PlanNode) -> int:
    return 1 + _grouped(node).slots + _grouped(node).before


def _in_parts(members: list[PlanNode]) -> list[list[PlanNode]]:
    """The members of one group, or of several that are joined in a cache."""
    if members[0].type in _PROGRAMS or _grouped(members[0]).together is not None:
        return [members]
    parts: list[list[PlanNode]] = []
    room = 0
    for node in members:
        size = num_elements(node.inputs[_gradient_position(node)].dims) or 0
        if size > room or not parts:
            parts.append([])
            room = machine.current().elements(_JOINED_IN_ALL)
        parts[-1].append(node)
        room -= size
    return parts


def _numbers(node: PlanNode) -> list[PlanOutput]:
    if node.type in _PROGRAMS:
        return node.inputs[len(node.inputs) - node.group_sizes[2] :]
    at = _gradient_position(node)
    return [*node.inputs[_slots(node) + 1 : at], *node.inputs[at + 1 :]]


def _size(node: PlanNode) -> int:
    """How many elements the update's variable has; 0 if that is not known."""
    held = node.inputs[0].static_shape if node.inputs[0].dtype.is_ref else handle_dims(node)
    return num_elements(held) or 0


def _may_join(node: PlanNode, used: set[PlanOutput], compiled: bool, is_scaled: bool) -> bool:
    if node.type in _PROGRAMS:
        if compiled:
            return node.attributes["count"] == 1 and _given_as_held(node)
        return node.attributes["count"] == 1 and _size(node) <= machine.current().elements(_LARGEST)
    if node.type.removeprefix("Resource") not in GROUPED or node.attributes["use_locking"]:
        return False
    if (node.outputs and node.outputs[0] in used) or not node.attributes.get("update_slots", True):
        return False
    grad = node.inputs[_gradient_position(node)]
    size = num_elements(grad.dims)
    calls = _LARGEST if _grouped(node).together is not None else _LARGEST_JOINED
    if size is None or grad.dtype.base_dtype.name not in _TYPES:
        return False
    most = machine.current().elements(calls)
    if compiled:
        most = _LARGEST_COMPILED if _grouped(node).together is not None and not is_scaled else size
    if size > most:
        return False
    held = node.inputs[0].dims if node.inputs[0].dtype.is_ref else handle_dims(node)
    return bool(held == grad.dims) and (not compiled or (size > 0 and _has_rule(node)))


def _has_rule(node: PlanNode) -> bool:
    """Whether there is machine code for this update by itself."""
    first, at = _slots(node) + 1, _gradient_position(node)
    numbers = [node.constant(i) for i in range(first, len(node.inputs)) if i != at]
    nesterov = node.attributes.get("use_nesterov", False)
    return rule_of(node.type.removeprefix("Resource"), nesterov, numbers) is not None


def _given_as_held(node: PlanNode) -> bool:
    """Whether a program takes tensors, and all are of the variables' static shape."""
    first, count = node.group_sizes[:2]
    dims = [x.dims for x in node.inputs[first : first + count]]
    return bool(dims) and all([num_elements(each) for each in dims])
