"""Predicates that are references: each conditional reads its own once.

A Switch that takes a reference variable reads it when it runs, and a conditional has many of them: one a
value, one for the pivots. Plans know conditions by the output that decides them (`branches.py`), and one
output must have one value. So where the subgraph changes such a variable, the Switches of one conditional
take one `_Value` of it instead, read when the conditional's control inputs say.

    Switch(x, p) … Assign(p) … Switch(x, p)    becomes
    Switch(x, _Value(p)) … Assign(p) … Switch(x, _Value(p))
"""

from __future__ import annotations

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.branches import SWITCHES
from flowstone.rewriting.analyses.frames import is_loop_switch
from flowstone.rewriting.analyses.state_versions import References, StateVersions

_Reading = tuple[PlanOutput, frozenset[PlanNode]]  # what is read, and after what


def hold_predicates(subgraph: Subgraph) -> None:
    """Gives Switches the values of the changing references that they ask."""
    references = References()
    asking = [
        n for n in subgraph.nodes if n.type in SWITCHES and references[n.inputs[1]] and not is_loop_switch(n)
    ]
    if not asking:
        return
    versions = StateVersions(subgraph, references)
    values: dict[_Reading, PlanNode] = {}
    places: dict[PlanNode, PlanNode] = {}
    for node in asking:
        if not any(versions.is_changed(state) for state in references[node.inputs[1]]):
            continue
        reading = _reading(node, references)
        value = values.get(reading)
        if value is None:
            value = values[reading] = places[node] = _value(subgraph, node, reading)
        node.inputs[1] = value.outputs[0]
    subgraph.nodes = [
        new for node in subgraph.nodes for new in ([places[node], node] if node in places else [node])
    ]


def _reading(switch: PlanNode, references: References) -> _Reading:
    """What the predicate of a Switch is and when it is there: equal for all Switches of one conditional, that
    of the pivots, which hands on the variable and waits itself, and those that take an Identity that waits.
    """
    data, predicate = switch.inputs
    controls = set(switch.control_inputs) if references[data] == references[predicate] else set()
    while predicate.op.declaration.role == "identity":
        controls.update(predicate.op.control_inputs)
        predicate = predicate.op.inputs[0]
    return predicate, frozenset(controls)


def _value(subgraph: Subgraph, switch: PlanNode, reading: _Reading) -> PlanNode:
    predicate, controls = reading
    attributes = {"T": predicate.dtype.base_dtype}
    value = subgraph.new_node(registry["_Value"], [predicate], attributes, switch)
    value.control_inputs = sorted(controls, key=lambda node: node.order)
    return value
