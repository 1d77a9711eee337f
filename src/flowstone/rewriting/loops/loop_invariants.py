"""Loop invariants: brings in once, or looks up once, what every iteration of a loop has the same.

- A variable that the body hands on unchanged, as it does the flow of an array that it only reads, is a
  constant of the loop.
- An array of gradients (`TensorArrayGradV3`) is looked up before the loop, not by each iteration.
- A part of what comes in is taken before the loop, not by each iteration.
- A variable that the body reads by its handle (`ReadVariableOp`) is read before the loop, if nothing changes
  it until the loop's end. If it has no value the step then fails, even if no iteration comes to the read.
- The flows of the writes that a loop makes to such an array, which gradients add up, are handed from each
  write to that of the next iteration instead. All flows are zero.
"""

from __future__ import annotations

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.rewriting.analyses.arrivals import is_in_pieces
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.analyses.frames import ENTERS, order_by_frames
from flowstone.rewriting.analyses.loop_variables import LoopVariable, constant_of, entered, loop_variables
from flowstone.rewriting.analyses.state_versions import StateVersions
from flowstone.rewriting.patterns import remove_unneeded, substitute

_WRITES = frozenset({"write", "scatter", "split"})
_PARTS = frozenset({"Slice", "Split", "SplitV", "StridedSlice", "Unpack"})
_OF = {"Split": 1}  # where these take what they take parts of, if not first
_FLOW = 3  # where these take their flow


def hold_invariants(subgraph: Subgraph) -> None:
    """Moves out of loops what is the same in all their iterations."""
    if not any(node.type in ENTERS for node in subgraph.nodes):
        return
    _chain_flows(subgraph)
    _bring_in_once(subgraph)
    while _look_up_once(subgraph):  # out of one loop more each time
        pass


# ---- variables


def _bring_in_once(subgraph: Subgraph) -> None:
    consumers = subgraph.consumers()
    waited = {c for node in subgraph.nodes for c in node.control_inputs} | set(subgraph.targets)
    replaced: dict[PlanOutput, PlanOutput] = {}
    places: dict[PlanNode, list[PlanNode]] = {}
    replacements: dict[PlanNode, list[PlanNode]] = {}
    variables = loop_variables(subgraph, consumers)
    place = {node: i for i, node in enumerate(subgraph.nodes)}
    unchanged = [each for each in variables if _is_unchanged(each) and each.next not in waited]
    for each in unchanged:
        heir = next((v for v in variables if v not in unchanged and _same_loop(v, each)), None)
        if heir is None or (waited & {each.merge, each.switch} and place[heir.merge] > place[each.merge]):
            continue  # who waits for it, as a Receive does, is in the loop by that alone
        constant = _enter(subgraph, each.enter, each.enter.inputs[0])
        places.update({each.merge: [constant], each.switch: [], each.next: []})
        replaced[each.value] = replaced[each.merge.outputs[0]] = constant.outputs[0]
        _wait(heir.next, each.next.control_inputs)
        for consumer in consumers[each.value]:
            _wait(consumer, [heir.switch])  # a constant is there before it is known that the loop goes on
        replacements[each.switch], replacements[each.merge] = [heir.switch], [heir.merge]
        subgraph.log.append(("hold_invariants", each.merge.name, "the same in every iteration"))
    if places:
        subgraph.invalidate()
        substitute(subgraph, places, replaced, replacements)
        order_by_frames(subgraph)
        remove_unneeded(subgraph)


def _is_unchanged(variable: LoopVariable) -> bool:
    if variable.exit is not None or variable.value.dtype.is_ref:
        return False
    return variable.next_value is variable.value


def _same_loop(a: LoopVariable, b: LoopVariable) -> bool:
    return a.switch.inputs[1] is b.switch.inputs[1]


def _enter(subgraph: Subgraph, like: PlanNode, x: PlanOutput, is_constant: bool = True) -> PlanNode:
    """What brings `x` into the loop of the Enter `like`, for all its iterations if it `is_constant`."""
    attributes = {**like.attributes, "is_constant": is_constant, "T": x.dtype}
    new = subgraph.new_node(registry["Enter"], [x], attributes, like)
    new.control_inputs = list(like.control_inputs)
    return new


def _wait(node: PlanNode, controls: list[PlanNode]) -> None:
    node.control_inputs = list(dict.fromkeys([*node.control_inputs, *controls]))


# ---- arrays of gradients, variables and parts


def _look_up_once(subgraph: Subgraph) -> bool:
    """Looks arrays and variables up, and takes parts, before a loop instead of in it; False if none."""
    is_whole = not is_in_pieces(subgraph)  # else other parts may go round with a variable's part of the loop
    found = [node for node in subgraph.nodes if _is_brought_in(node, is_whole)]
    if not found:
        return False
    liveness, versions = subgraph.analysis(Liveness), StateVersions(subgraph)
    consumers = subgraph.consumers()
    place = {node: i for i, node in enumerate(subgraph.nodes)}
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    replacements: dict[PlanNode, list[PlanNode]] = {}
    for node in found:
        last = max((x.op for x in node.inputs), key=place.__getitem__)
        if liveness.node(last) != liveness.node(node):
            continue
        sources = [entered(x) or x for x in node.inputs]
        lookup = subgraph.new_node(node.declaration, sources, node.attributes, node)
        versions.add(lookup, at=last)
        if versions.read_by(lookup) != versions.read_by(node):
            continue
        like = next(x.op for x in node.inputs if entered(x) is not None)
        enters = [_enter(subgraph, like, x) for x, y in zip(lookup.outputs, node.outputs) if y in consumers]
        replaced.update(zip([y for y in node.outputs if y in consumers], [x.outputs[0] for x in enters]))
        for x in node.outputs:
            for consumer in consumers.get(x, ()):
                _wait(consumer, node.control_inputs)
        places.setdefault(last, [last]).extend([lookup, *enters])
        places[node] = []
        replacements[node] = [*enters, *node.control_inputs]
        subgraph.log.append(("hold_invariants", node.name, "looked up before the loop"))
    if not places:
        return False
    subgraph.invalidate()
    substitute(subgraph, places, replaced, replacements)
    remove_unneeded(subgraph)  # what brought the handles in
    return not replacements.keys() <= set(subgraph.nodes)  # else nothing was admitted


def _is_brought_in(node: PlanNode, reads: bool) -> bool:
    takes_array = node.declaration.container == "gradient" and len(node.outputs) == 2  # a handle and a flow
    if takes_array or (reads and node.declaration.role == "read"):
        return all(entered(x) is not None for x in node.inputs)
    if not reads or node.type not in _PARTS or entered(node.inputs[_OF.get(node.type, 0)]) is None:
        return False
    if any(x.dims is None or None in x.dims for x in node.outputs):
        return False  # such a node could fail, where no iteration comes to it
    return all(entered(x) is not None or x.op.is_constant for x in node.inputs)


# ---- flows


def _is_write(node: PlanNode) -> bool:
    """Whether the node writes into an array by a handle that is a resource."""
    return node.declaration.container in _WRITES and node.inputs[0].dtype is dtypes.resource


def _chain_flows(subgraph: Subgraph) -> None:
    if not any(_is_write(node) for node in subgraph.nodes):
        return
    consumers = subgraph.consumers()
    places: dict[PlanNode, list[PlanNode]] = {}
    for variable in loop_variables(subgraph, consumers):
        total = variable.next_value.op
        if not total.declaration.adds or len(total.inputs) != 2 or consumers.get(variable.value) != [total]:
            continue
        flow = next((x for x in total.inputs if x is not variable.value), None)
        if flow is None or not _is_write(flow.op) or constant_of(variable.enter.outputs[0]) != 0:
            continue
        write = flow.op
        before = entered(write.inputs[_FLOW])
        if before is None or consumers[flow] != [total]:
            continue
        first = _enter(subgraph, variable.enter, before, is_constant=False)
        variable.merge.inputs[:] = [first.outputs[0], variable.next.outputs[0]]
        places[variable.merge] = [first, variable.merge]
        write.inputs[_FLOW] = variable.value
        variable.next.inputs[0] = flow
        subgraph.log.append(("hold_invariants", write.name, "passes its flow on to the next iteration's"))
    if places:
        subgraph.invalidate()
        substitute(subgraph, places, {}, {})
        order_by_frames(subgraph)  # the variables stand before the writes now
        remove_unneeded(subgraph)
