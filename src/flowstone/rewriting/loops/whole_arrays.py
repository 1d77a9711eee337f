"""Replaces TensorArrays that are filled by one tensor, and read as a whole, by that tensor.

    Gather(array, [0, …, n - 1], Scatter(array, [0, …, n - 1], value, flow))  =  value

So it is with the arrays around a loop that `lstm_loops.py` has replaced, and with the arrays of their
gradients. An array that nobody reads any more goes with all that is written to it.
"""

from __future__ import annotations

from typing import NamedTuple

from flowstone.framework.graphs.subgraph import Consumers, PlanNode, PlanOutput, Subgraph
from flowstone.framework.types.shape import is_compatible
from flowstone.rewriting.analyses.branches import SWITCHES, Liveness
from flowstone.rewriting.analyses.frames import Frames
from flowstone.rewriting.analyses.loop_variables import constant_of
from flowstone.rewriting.patterns import remove_unneeded, substitute


class _Array(NamedTuple):
    """An array of fixed size, or one of its gradients: what looks it up, what writes and what reads it."""

    size: int
    source: PlanNode
    lookups: list[PlanNode]
    scatters: list[PlanNode]
    gathers: list[PlanNode]


def forward_whole_arrays(subgraph: Subgraph) -> None:
    """Takes what was written to arrays instead of reading them."""
    creations = [node for node in subgraph.nodes if node.type == "TensorArrayV3"]
    if not creations:
        return
    consumers, frames, liveness = subgraph.consumers(), subgraph.analysis(Frames), subgraph.analysis(Liveness)
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    replacements: dict[PlanNode, list[PlanNode]] = {}
    for creation in creations:
        arrays = _arrays(creation, consumers)
        if arrays is None:
            continue
        users = [node for each in arrays for node in (*each.lookups, *each.scatters, *each.gathers)]
        if any(frames.home(node) is not None for node in (creation, *users)):
            continue
        for each in arrays:
            value = _whole_value(each, creation)
            if value is None or liveness.output(value) != liveness.output(each.gathers[0].outputs[0]):
                continue
            if value.op.type in SWITCHES:
                continue  # who waits for it would run in the other branch, too
            (gather,) = each.gathers
            places[gather], replaced[gather.outputs[0]] = [], value
            replacements[gather] = [value.op, *gather.control_inputs]
            subgraph.log.append(
                ("forward_whole_arrays", gather.name, "is the tensor that was written as a whole")
            )
        if all(gather in places for each in arrays for gather in each.gathers):
            _drop(subgraph, creation, users, consumers, places, replacements)
    _resolve(replaced, places, replacements)
    substitute(subgraph, places, replaced, replacements)
    if places:
        remove_unneeded(subgraph)


def _resolve(
    replaced: dict[PlanOutput, PlanOutput],
    places: dict[PlanNode, list[PlanNode]],
    replacements: dict[PlanNode, list[PlanNode]],
) -> None:
    """Follows replacements that are replaced themselves to nodes that stay."""
    for x, y in replaced.items():
        while y in replaced:
            y = replaced[y]
        replaced[x] = y
    for node in replacements:
        found: dict[PlanNode, None] = {}
        waiting = list(replacements[node])
        while waiting:
            each = waiting.pop()
            if each in places:
                waiting += replacements[each]
            else:
                found[each] = None
        replacements[node] = list(found)


def _arrays(creation: PlanNode, consumers: Consumers) -> list[_Array] | None:
    """The array made here and those of its gradients; None if something else is done with one of them."""
    size = constant_of(creation.inputs[0])
    if size is None or creation.attributes["dynamic_size"]:
        return None
    found: dict[tuple[str, ...], _Array] = {(): _Array(int(size), creation, [], [], [])}
    waiting: list[tuple[tuple[str, ...], PlanNode]] = [((), creation)]
    while waiting:
        key, source = waiting.pop()
        each = found.setdefault(key, _Array(int(size), source, [], [], []))
        for node in consumers.get(source.outputs[0], ()):
            if node.type == "TensorArrayGradV3":
                each.lookups.append(node)
                waiting.append(((*key, node.attributes["source"]), node))
            elif node.type == "TensorArrayScatterV3" and node.inputs[2].op is not source:
                each.scatters.append(node)
            elif node.type == "TensorArrayGatherV3":
                each.gathers.append(node)
            else:
                return None
    return list(found.values())


def _whole_value(array: _Array, creation: PlanNode) -> PlanOutput | None:
    """What the array holds where it is read, if it is written and read once, and as a whole."""
    if len(array.scatters) != 1 or len(array.gathers) != 1:
        return None
    (scatter,), (gather,) = array.scatters, array.gathers
    value: PlanOutput = scatter.inputs[2]
    dims, kind = value.dims, creation.attributes["dtype"]
    if gather.inputs[2] is not scatter.outputs[0] or not dims or dims[0] != array.size:
        return None
    if value.dtype is not kind or gather.attributes["dtype"] is not kind:
        return None
    for shape in (creation.attributes["element_shape"], gather.attributes["element_shape"]):
        if None in dims or not is_compatible(shape, dims[1:]):
            return None
    everything = list(range(array.size))
    for node in (scatter, gather):
        places = node.constant(1)
        if places is None or places.tolist() != everything:
            return None
    return value


def _drop(
    subgraph: Subgraph,
    creation: PlanNode,
    users: list[PlanNode],
    consumers: Consumers,
    places: dict[PlanNode, list[PlanNode]],
    replacements: dict[PlanNode, list[PlanNode]],
) -> None:
    """Drops an array and all its users, unless somebody takes a flow or waits as a step's target."""
    gone = {creation, *users}
    wanted = {*(x.op for x in subgraph.fetches), *subgraph.targets} & gone - places.keys()
    if wanted or any(
        consumer not in gone and node not in places
        for node in gone
        for x in node.outputs
        for consumer in consumers.get(x, ())
    ):
        return
    for node in gone - places.keys():
        places[node] = []
        sources = dict.fromkeys(node.sources())
        replacements[node] = [x for x in sources if x.type not in SWITCHES]
