"""Predicates that are references: each Switch decides by the version that it sees.

A Switch that takes a reference variable reads it when it runs. Plans know conditions by the output that
decides them (`branches.py`), and one output must have one value. So where the subgraph changes such a
variable, its Switches take the value of their version instead, by one `_Value` node for all that see the
same.

    Switch(x, p)                       Switch(x, _Value(p))
    Assign(p, …)         becomes       Assign(p, …)
    Switch(y, p)                       Switch(y, _Value(p))
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.operation import registry
from flowstone.framework.subgraph import PlanNode, Subgraph
from flowstone.rewriting.branches import SWITCHES
from flowstone.rewriting.state_versions import References, StateVersions


def hold_predicates(subgraph: Subgraph) -> None:
    """Gives Switches the values of the changing references that they ask."""
    references = References()
    asking = [n for n in subgraph.nodes if n.type in SWITCHES and references[n._inputs[1]]]
    if not asking:
        return
    versions = StateVersions(subgraph, references)
    values: dict[Any, PlanNode] = {}
    places: dict[PlanNode, PlanNode] = {}
    for node in asking:
        predicate = node._inputs[1]
        seen = frozenset(
            (s, versions.current(s, node)) for s in references[predicate] if versions.is_changed(s)
        )
        if not seen:
            continue
        value = values.get((predicate, seen))
        if value is None:
            attributes = {"T": predicate.dtype.base_dtype}
            value = subgraph.new_node(registry["_Value"], [predicate], attributes, node)
            value._control_inputs = list(node._control_inputs)
            values[predicate, seen] = places[node] = value
        node._inputs[1] = value._outputs[0]
    subgraph.nodes = [
        new for node in subgraph.nodes for new in ([places[node], node] if node in places else [node])
    ]
