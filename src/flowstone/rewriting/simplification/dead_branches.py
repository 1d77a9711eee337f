"""Dead branches: of a conditional whose predicate is known before the step, keeps the branch that is taken.

    Merge(f(Switch(x, false):0), g(Switch(x, false):1))   becomes   f(x)

What can never be alive is dropped, with its effects. Switches and Merges that decide nothing become Identity
nodes, which keep what they wait for and the loop that they are in. What then is constant is folded, which may
decide the next conditional.
"""

from __future__ import annotations

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.branches import MERGES, SWITCHES, decisive, is_known
from flowstone.rewriting.analyses.frames import is_head, is_loop_switch
from flowstone.rewriting.simplification.constant_folding import fold_constants


def remove_dead_branches(subgraph: Subgraph) -> None:
    """Drops the branches that are never taken, until all predicates that are left depend on the step."""
    while any(_is_decided(node) for node in subgraph.nodes) and _prune(subgraph):
        fold_constants(subgraph)


def _is_decided(node: PlanNode) -> bool:
    return node.type in SWITCHES and is_known(decisive(node.inputs[1])[0])


def _prune(subgraph: Subgraph) -> bool:
    """Drops what is never alive; False if there is nothing, or it is fetched."""
    dead, empty = _never_alive(subgraph)
    if empty.intersection(subgraph.fetches) or dead.intersection(subgraph.targets):
        return False  # the step will say that it has no value
    if any(is_head(node) and node not in dead and empty.intersection(node.inputs) for node in subgraph.nodes):
        return False  # the loop waits for what never comes
    deciding = _deciding(subgraph, dead, empty)
    if deciding is None:
        return False
    places: dict[PlanNode, list[PlanNode]] = {node: [] for node in dead}
    replaced: dict[PlanOutput, PlanOutput] = {}
    for node, alive in deciding.items():
        is_switch = node.type in SWITCHES
        source, taken = (node.inputs[0], alive[0]) if is_switch else (alive[0], node.outputs[0])
        if node.outputs[0].dtype.is_ref:
            places[node], replaced[taken] = [], replaced.get(source, source)
            continue
        new = _passed_on(subgraph, node, source) if len(alive) == 1 else [_narrowed(subgraph, node, alive)]
        places[node] = new
        replaced[taken] = new[0].outputs[0]
        if len(new) == 2:
            replaced[node.outputs[1]] = new[1].outputs[0]
    for node in subgraph.nodes:
        if node in dead:
            subgraph.log.append(("remove_dead_branches", node.name, "is never alive"))
    _apply(subgraph, places, replaced)
    return bool(places)


def _deciding(
    subgraph: Subgraph, dead: set[PlanNode], empty: set[PlanOutput]
) -> dict[PlanNode, list[PlanOutput]] | None:
    """The Switches and Merges that lose ends, and those that stay; None if one of them must lose none."""
    wanted = {*subgraph.consumers(), *subgraph.fetches}
    waited = {control for node in subgraph.nodes for control in node.control_inputs} | set(subgraph.targets)
    deciding: dict[PlanNode, list[PlanOutput]] = {}
    for node in subgraph.nodes:
        ends = _ends(node)
        alive = [x for x in ends if x not in empty]
        if node not in dead and len(alive) < len(ends):
            deciding[node] = alive
            if node.outputs[0].dtype.is_ref and (node in waited or node.control_inputs or len(alive) > 1):
                return None  # no node but itself hands on a variable's buffer
            if len(alive) > 1 and node.outputs[1] in wanted:
                return None  # it says which of its inputs came, whose numbers would change
    return deciding


def _never_alive(subgraph: Subgraph) -> tuple[set[PlanNode], set[PlanOutput]]:
    """The nodes that never run, and the outputs that never have a value, whatever other predicates are."""
    dead: set[PlanNode] = set()
    empty: set[PlanOutput] = set()
    for node in subgraph.nodes:
        if node.declaration.role == "trigger":  # runs whether or not what it waits for does
            continue
        if is_head(node):
            lacks = node.inputs[0] in empty
        elif node.type in MERGES:
            lacks = empty.issuperset(node.inputs)
        else:
            lacks = not empty.isdisjoint(node.inputs)
        if lacks or not dead.isdisjoint(node.control_inputs):
            dead.add(node)
            empty.update(node.outputs)
        elif node.type in SWITCHES and not is_loop_switch(node):
            source, negated = decisive(node.inputs[1])
            if is_known(source):
                value = bool(np.all(source.op.attributes["value"])) != negated
                empty.add(node.outputs[0 if value else 1])
    return dead, empty


def _ends(node: PlanNode) -> list[PlanOutput]:
    """The outputs of a conditional's Switch, the inputs of its Merge: of which some may be dead."""
    if node.type in SWITCHES and not is_loop_switch(node):
        return node.outputs
    return node.inputs if node.type in MERGES and not is_head(node) else []


def _passed_on(subgraph: Subgraph, node: PlanNode, x: PlanOutput) -> list[PlanNode]:
    """`x`, waiting for what `node` waits for; and, of a Merge, which of its inputs it is."""
    chosen = subgraph.new_node(registry["Identity"], [x], {"T": x.dtype}, like=node)
    chosen.control_inputs = list(node.control_inputs)
    if node.type not in MERGES:
        return [chosen]
    index = subgraph.new_constant(np.array(node.inputs.index(x), np.int32), node, "value_index")
    index.control_inputs = [chosen]
    return [chosen, index]


def _narrowed(subgraph: Subgraph, node: PlanNode, values: list[PlanOutput]) -> PlanNode:
    """The Merge of these values alone."""
    attributes = {**node.attributes, "N": len(values)}
    new = subgraph.new_node(node.declaration, values, attributes, node, group_sizes=(len(values),))
    new.control_inputs = list(node.control_inputs)
    return new


def _apply(
    subgraph: Subgraph, places: dict[PlanNode, list[PlanNode]], replaced: dict[PlanOutput, PlanOutput]
) -> None:
    gone = {node for node, new in places.items() if not new}
    replacement = {node: new[0] for node, new in places.items() if new}
    subgraph.nodes = [new for node in subgraph.nodes for new in places.get(node, [node])]
    for node in subgraph.nodes:
        node.inputs[:] = [replaced.get(x, x) for x in node.inputs]
        controls = [control for control in node.control_inputs if control not in gone]
        node.control_inputs = [replacement.get(control, control) for control in controls]
    subgraph.fetches = [replaced.get(x, x) for x in subgraph.fetches]
    subgraph.targets = [replacement.get(target, target) for target in subgraph.targets]
