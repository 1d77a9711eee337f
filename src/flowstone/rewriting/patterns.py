"""The driver of rewriting rules: the one door through which nodes are replaced, absorbed or moved.

A rule looks at one node, whose inputs are already rewritten, and returns None or what stands for its outputs.
`rewrite` walks the subgraph once, in topological order, redirects later inputs and control edges, and keeps
the log; `substitute` does the same for passes that see more than one node at a time. A node that is replaced
stays only if it has effects; `remove_unneeded` drops what nothing needs afterwards.

What is put in the place of old nodes must read the versions of state that those read: `Admission`
(`admission.py`) decides, and a replacement that does not is refused. Rules hold no guards of their own.

Among conditionals (`branches.py`) a value may stand for another only if both are alive under the same
condition, and a node that others wait for is dropped only if its replacement is.

Changes that are made here invalidate what analyses found (`Subgraph.analysis`); what replaces nothing keeps
it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.admission import Admission
from flowstone.rewriting.analyses.branches import MERGES, TRUE, Liveness
from flowstone.rewriting.analyses.frames import Frames, is_loop_switch
from flowstone.rewriting.analyses.state_versions import StateVersions


class Replacement(NamedTuple):
    """What stands for a node's outputs: `outputs` (one each), `reason`, new `nodes` to insert before it, and
    `controls` that whoever takes the outputs must wait for from now on."""

    outputs: list[PlanOutput]
    reason: str
    nodes: tuple[PlanNode, ...] = ()
    controls: tuple[PlanNode, ...] = ()


Rule = Callable[[PlanNode], "Replacement | None"]


def rewrite(subgraph: Subgraph, pass_name: str, rule: Rule) -> None:
    """Applies `rule` to every node, inputs first; changes the subgraph in place."""
    replaced: dict[PlanOutput, PlanOutput] = {}
    carried: dict[PlanOutput, tuple[PlanNode, ...]] = {}
    gone: dict[
        PlanNode, list[PlanNode]
    ] = {}  # replaced nodes, and what those who waited for them now wait for
    nodes: list[PlanNode] = []
    liveness, admission = subgraph.analysis(Liveness), Admission(subgraph)
    if not liveness.trivial:
        liveness = liveness.copy()
    is_after_changes = False
    for node in subgraph.nodes:
        if not is_after_changes:
            is_after_changes = bool(node.declaration.mutates) or node.declaration.asynchronous
        if (replaced or gone) and _redirect(node, replaced, carried, gone):
            subgraph.invalidate()
        result = rule(node)
        if result is not None:
            for new in result.nodes:
                new.control_inputs = list(dict.fromkeys([*node.control_inputs, *new.control_inputs]))
        if result is None or not (liveness.trivial or _alive_together(liveness, node, result)):
            nodes.append(node)
            continue
        if not admission.admits_in_place(node, result.outputs, result.nodes, is_after_changes):
            nodes.append(node)
            continue
        nodes.extend(result.nodes)
        for old, new_output in zip(node.outputs, result.outputs):
            replaced[old] = new_output
            if result.controls:
                carried[old] = result.controls
        replacements = [*dict.fromkeys(output.op for output in result.outputs), *node.control_inputs]
        if liveness.trivial or _runs_where(liveness, replacements[:1], node):
            gone[node] = replacements
        else:
            nodes.append(node)
        subgraph.log.append((pass_name, node.name, result.reason))
    if replaced or nodes != subgraph.nodes:
        subgraph.nodes = nodes
    if replaced or gone:
        for node in nodes:  # what a loop's head takes from the iteration before comes after it
            if node.type in MERGES:
                node.inputs[:] = [replaced.get(x, x) for x in node.inputs]
        subgraph.fetches = [replaced.get(x, x) for x in subgraph.fetches]
        subgraph.targets = list(dict.fromkeys(_redirected(subgraph.targets, gone)))


def _redirect(
    node: PlanNode,
    replaced: dict[PlanOutput, PlanOutput],
    carried: dict[PlanOutput, tuple[PlanNode, ...]],
    gone: dict[PlanNode, list[PlanNode]],
) -> bool:
    """Redirects the node's inputs and control inputs; returns whether there was anything to redirect."""
    changed = False
    inputs = node.inputs
    for i, x in enumerate(inputs):
        if x in replaced:
            inputs[i] = replaced[x]
            changed = True
            if x in carried:
                node.control_inputs = list(dict.fromkeys([*node.control_inputs, *carried[x]]))
    if gone and node.control_inputs:
        controls = _redirected(node.control_inputs, gone)
        changed = changed or controls is not node.control_inputs
        node.control_inputs = controls
    return changed


def _alive_together(liveness: Liveness, node: PlanNode, result: Replacement) -> bool:
    if any(liveness.node(control) != TRUE for control in result.controls):
        return False  # carried to a Merge, it would kill the other branch's value
    for new in result.nodes:
        liveness.add(new)
    return all(liveness.output(old) == liveness.output(new) for old, new in zip(node.outputs, result.outputs))


def _runs_where(liveness: Liveness, replacements: list[PlanNode], node: PlanNode) -> bool:
    """Whether these nodes run where `node` does. A loop's Switch also runs when its body does not."""
    return all(liveness.node(x) == liveness.node(node) and not is_loop_switch(x) for x in replacements)


def _redirected(controls: list[PlanNode], gone: dict[PlanNode, list[PlanNode]]) -> list[PlanNode]:
    if not any(control in gone for control in controls):
        return controls
    result: dict[PlanNode, None] = {}
    for control in controls:
        for replacement in gone.get(control, (control,)):
            result[replacement] = None
    return list(result)


def substitute(
    subgraph: Subgraph,
    places: dict[PlanNode, list[PlanNode]],
    replaced: dict[PlanOutput, PlanOutput],
    replacements: dict[PlanNode, list[PlanNode]] | None = None,
    whole: bool = False,
) -> bool:
    """Puts new nodes in the places of old ones, for rewrites that see more than one node at a time.

    `places`: what comes where each old node was (maybe nothing); `replaced`: what stands for old outputs;
    `replacements`: what those who waited for an old node wait for, by default the last node in its place;
    of what goes itself without a place, the replacements in turn.
    Of changes that have nothing to do with each other, those that are not admitted are left out; all of them,
    if `whole`. Returns whether none was.
    """
    if not places:
        return True
    if replacements is None:
        replacements = {node: new[-1:] for node, new in places.items() if new}
    refused = Admission(subgraph).refused(places, replaced, replacements)
    if refused and whole:
        return False
    for node, new_nodes in places.items():
        for new in new_nodes:
            if new is not node:
                new.order = node.order
    if refused:
        places = {node: new for node, new in places.items() if node not in refused}
        replaced = {old: new for old, new in replaced.items() if old.op not in refused}
        replacements = {node: new for node, new in replacements.items() if node not in refused}
    replacements = _followed(replacements, {node for node, new in places.items() if not new})
    subgraph.nodes = [new for node in subgraph.nodes for new in places.get(node, [node])]
    for node in subgraph.nodes:
        node.inputs[:] = [replaced.get(x, x) for x in node.inputs]
        if node.control_inputs:
            node.control_inputs = _redirected(node.control_inputs, replacements)
    subgraph.fetches = [replaced.get(x, x) for x in subgraph.fetches]
    subgraph.targets = _redirected(subgraph.targets, replacements)
    return not refused


def _followed(
    replacements: dict[PlanNode, list[PlanNode]], going: set[PlanNode]
) -> dict[PlanNode, list[PlanNode]]:
    """The replacements, with what stands for `going` nodes in place of those."""
    if not any([each in going for stands in replacements.values() for each in stands]):
        return replacements
    followed: dict[PlanNode, list[PlanNode]] = {}
    begun: set[PlanNode] = set()
    for node in replacements:
        stack = [node]
        while stack:
            top = stack[-1]
            begun.add(top)
            inside = [each for each in replacements[top] if each in going and each in replacements]
            if waiting := [each for each in inside if each not in begun]:
                stack += waiting
                continue
            if stack.pop() not in followed:
                known = {each: followed[each] for each in inside if each in followed}
                followed[top] = _redirected(replacements[top], known)
    return followed


def substitute_in_order(
    subgraph: Subgraph,
    places: dict[PlanNode, list[PlanNode]],
    replaced: dict[PlanOutput, PlanOutput],
    replacements: dict[PlanNode, list[PlanNode]],
    arranged: Callable[[], None],
    whole: bool = False,
) -> bool:
    """`substitute` for new nodes that take what comes later: `arranged` then puts the nodes in order. Changes
    nothing, and returns False, where a node would so come to read another version of a state, or, if `whole`,
    where anything is not admitted.
    """
    versions = StateVersions(subgraph)
    before = {node: versions.read_by(node) for node in subgraph.nodes} if versions.changes else {}
    restore = restoring(subgraph)
    if not substitute(subgraph, places, replaced, replacements, whole) and whole:
        return False
    arranged()
    if before:
        after = StateVersions(subgraph)
        if any([after.read_by(node) != before[node] for node in subgraph.nodes if node in before]):
            restore()
            return False
    return True


def restoring(subgraph: Subgraph) -> Callable[[], None]:
    """A function that undoes what is put in the places of nodes from now on."""
    edges = [(node, list(node.inputs), list(node.control_inputs)) for node in subgraph.nodes]
    lists = subgraph.nodes, subgraph.fetches, subgraph.targets

    def restore() -> None:
        subgraph.nodes, subgraph.fetches, subgraph.targets = lists
        for node, inputs, controls in edges:
            node.inputs[:] = inputs
            node.control_inputs = controls

    return restore


def in_order(nodes: Iterable[PlanNode], edges: Iterable[tuple[PlanNode, PlanNode]] = ()) -> list[PlanNode]:
    """These nodes, each after all that it takes or waits for, and the later of each edge after the earlier;
    otherwise as they are. They must be without loops.
    """
    before: dict[PlanNode, list[PlanNode]] = {}
    for earlier, later in edges:
        before.setdefault(later, []).append(earlier)
    done: dict[PlanNode, None] = {}
    for node in nodes:
        stack = [node]
        while stack:
            top = stack[-1]
            sources = (*top.sources(), *before.get(top, ()))
            waiting = [source for source in sources if source not in done]
            if waiting:
                stack += reversed(waiting)
            else:
                done.setdefault(stack.pop())
    return list(done)


def remove_unneeded(subgraph: Subgraph) -> None:
    """Drops nodes that neither a fetch, a target nor an effect needs.

    A pure node that others only wait for need not run; those then wait for what it waited for. Among
    conditionals such edges also say when a node is alive, and in loops where it belongs: there they count as
    need, at the first node that a wait comes down to and that is not outside of both. So does a node that
    waits for many, lest edges multiply.
    """
    liveness, frames = subgraph.analysis(Liveness), subgraph.analysis(Frames)

    def only_orders(node: PlanNode) -> bool:
        if (frames.exist and frames.home(node) is not None) or len(node.control_inputs) > _MOST_REPLACEMENTS:
            return False
        return liveness.trivial or all([is_always(each) for each in (node, *node.sources())])

    def is_always(node: PlanNode) -> bool:
        condition = liveness.node(node)
        return condition is TRUE or condition == TRUE

    needed: set[PlanNode] = set()
    passed: set[PlanNode] = set()
    stack = [x.op for x in subgraph.fetches] + [x.op for x in subgraph.feeds] + _run_by_targets(subgraph)
    stack += [node for node in subgraph.nodes if not (node.declaration.is_pure or node.declaration.reads)]
    while stack:
        node = stack.pop()
        if node in needed:
            continue
        needed.add(node)
        stack.extend([x.op for x in node.inputs])
        waits = list(node.control_inputs)
        while waits:
            control = waits.pop()
            if control not in passed:
                passed.add(control)
                if only_orders(control):
                    waits.extend(control.sources())
                else:
                    stack.append(control)
    dropped: dict[PlanNode, list[PlanNode]] = {}
    if len(needed) == len(subgraph.nodes):
        return
    for node in subgraph.nodes:
        if dropped and node.control_inputs:
            node.control_inputs = _redirected(node.control_inputs, dropped)
        if node not in needed:
            dropped[node] = _redirected(list(dict.fromkeys(node.sources())), dropped)
    if dropped:
        subgraph.drop(dropped.keys())  # those who waited for one are alive, and in loops, as before


_MOST_REPLACEMENTS = 16  # of a node that is dropped


def _run_by_targets(subgraph: Subgraph) -> list[PlanNode]:
    """The targets and what they wait for, through no-ops: a group runs its members, whatever they are."""
    found: list[PlanNode] = []
    seen: set[PlanNode] = set()
    stack = list(subgraph.targets)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            found.append(node)
            if not node.outputs and not node.inputs:
                stack.extend(node.control_inputs)
    return found
