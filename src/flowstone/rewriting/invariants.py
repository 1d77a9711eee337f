"""What every subgraph must satisfy between passes, and what a pass must keep; errors name the pass.

`check` looks at one subgraph, `check_kept` at what its results depended on before and after a pass
(`dependences.py`).
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.node import Output
from flowstone.framework.subgraph import Subgraph
from flowstone.rewriting.dependences import Dependences
from flowstone.rewriting.frames import NEXT_ITERATIONS


def check(subgraph: Subgraph, pass_name: str = "") -> None:
    """Raises AssertionError unless:

    - every input, control input, fetch and target is computed by a node of the subgraph, before its use (but
      for what a loop's next iteration begins with);
    - a node's inputs are as many and of such types as its declaration says;
    - feeds are the outputs of ``_Arg`` nodes, numbered in order.
    """
    where = f" after {pass_name}" if pass_name else ""
    known: set[Output] = set()
    seen = set()
    for node in subgraph.nodes:
        for x in node._inputs:
            if x not in known and x._op.type not in NEXT_ITERATIONS:
                raise AssertionError(f"{node.name} takes {x.name}, which is not computed before it{where}")
        for control in node._control_inputs:
            if control not in seen:
                raise AssertionError(
                    f"{node.name} waits for {control.name}, which does not run before it{where}"
                )
        declared = [
            dtype for argument in node.declaration.inputs for dtype in argument.types(node.attributes)
        ]
        if len(declared) != len(node._inputs):
            raise AssertionError(
                f"{node.name} has {len(node._inputs)} inputs, declared are {len(declared)}{where}"
            )
        for x, dtype in zip(node._inputs, declared):
            if x.dtype.base_dtype is not dtype.base_dtype:
                raise AssertionError(
                    f"{node.name} takes {x.name} as {dtype.name}, but it is {x.dtype.name}{where}"
                )
        known.update(node._outputs)
        seen.add(node)
    for i, feed in enumerate(subgraph.feeds):
        if feed.op.type != "_Arg" or feed.op.attributes["index"] != i:
            raise AssertionError(f"feed {i} is {feed.op.type}{where}")
    for fetch in subgraph.fetches:
        if fetch not in known:
            raise AssertionError(f"the fetch {fetch.name} is not computed{where}")
    for target in subgraph.targets:
        if target not in seen:
            raise AssertionError(f"the target {target.name} is not in the subgraph{where}")


def check_kept(before: Dependences, after: Dependences, pass_name: str, loses: bool, joins: bool) -> None:
    """Raises AssertionError unless results depend on the same after a pass as before.

    `loses`: the pass finds out that something does not matter (a branch that is not taken, a product with
    zero), so that a dependence may be gone. `joins`: it makes one value of several, whose parts then depend
    on what the others do.
    """
    fewer = _less_often_changed(before, after) if loses else frozenset()
    for result, wanted in before.items():
        found = after.get(result)
        if result[0] == "change" and result[1] in fewer:
            continue
        if found is None:
            raise AssertionError(f"{_words(result)} is gone after {pass_name}")
        lost, gained = wanted - found, found - wanted
        if lost and not loses:
            raise AssertionError(
                f"{_words(result)} does not depend on {_listed(lost)} any more after {pass_name}"
            )
        gained = frozenset([each for each in gained if each[0] not in fewer])
        if joins:
            states = {state for state, _ in wanted}
            gained = frozenset([each for each in gained if each[0] in states and not _is_there(each, before)])
        if gained:
            raise AssertionError(f"{_words(result)} depends on {_listed(gained)} after {pass_name}")


def _less_often_changed(before: Dependences, after: Dependences) -> frozenset[Any]:
    """The states of which a change lay on a branch that is not taken."""
    return frozenset(
        [
            state
            for kind, *rest in before
            if kind == "change"
            for state in rest[:1]
            if ("change", *rest) not in after
        ]
    )


def _is_there(dependence: Any, before: Dependences) -> bool:
    return any(dependence in each for each in before.values())


def _words(result: Any) -> str:
    kind, *rest = result
    return f"fetch {rest[0]}" if kind == "fetch" else f"change {rest[1]} of {rest[0]}"


def _listed(dependences: frozenset[Any]) -> str:
    return ", ".join(sorted(f"{name} (version {version})" for name, version in dependences))
