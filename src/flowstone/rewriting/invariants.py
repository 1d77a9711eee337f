"""What every subgraph must satisfy between passes, and what a pass must keep; errors name the pass.

`check` looks at one subgraph, `check_kept` at what its results depended on before and after a pass
(`dependences.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flowstone.framework.graphs.subgraph import PlanOutput, Subgraph
from flowstone.rewriting.analyses.dependences import Dependences
from flowstone.rewriting.analyses.frames import NEXT_ITERATIONS

if TYPE_CHECKING:
    from flowstone.rewriting.passes import Pass


def check(subgraph: Subgraph, pass_name: str = "") -> None:
    """Raises AssertionError unless:

    - every input, control input, fetch and target is computed by a node of the subgraph, before its use (but
      for what a loop's next iteration begins with);
    - a node's inputs are as many and of such types as its declaration says;
    - feeds are the outputs of ``_Arg`` nodes, numbered in order;
    - what the subgraph keeps of analyses is what they would find now.
    """
    where = f" after {pass_name}" if pass_name else ""
    subgraph.check_analyses(where)
    known: set[PlanOutput] = set()
    seen = set()
    for node in subgraph.nodes:
        for x in node.inputs:
            if x not in known and x.op.type not in NEXT_ITERATIONS:
                raise AssertionError(f"{node.name} takes {x.name}, which is not computed before it{where}")
        for control in node.control_inputs:
            if control not in seen:
                raise AssertionError(
                    f"{node.name} waits for {control.name}, which does not run before it{where}"
                )
        declared = [
            dtype for argument in node.declaration.inputs for dtype in argument.types(node.attributes)
        ]
        if len(declared) != len(node.inputs):
            raise AssertionError(
                f"{node.name} has {len(node.inputs)} inputs, declared are {len(declared)}{where}"
            )
        for x, dtype in zip(node.inputs, declared):
            if x.dtype.base_dtype is not dtype.base_dtype:
                raise AssertionError(
                    f"{node.name} takes {x.name} as {dtype.name}, but it is {x.dtype.name}{where}"
                )
        known.update(node.outputs)
        seen.add(node)
    for i, feed in enumerate(subgraph.feeds):
        if not feed.op.is_feed or feed.op.attributes["index"] != i:
            raise AssertionError(f"feed {i} is {feed.op.type}{where}")
    for fetch in subgraph.fetches:
        if fetch not in known:
            raise AssertionError(f"the fetch {fetch.name} is not computed{where}")
    for target in subgraph.targets:
        if target not in seen:
            raise AssertionError(f"the target {target.name} is not in the subgraph{where}")


def check_kept(before: Dependences, after: Dependences, done: Pass) -> None:
    """Raises AssertionError unless results depend on the same after a pass as before.

    Terms on which nothing depends any more have been replaced. A pass that `loses` finds out that something
    does not matter (a branch that is not taken, a product with zero), so that a dependence may be gone; one
    that replaces values `partly` may replace a term for the sum alone. A pass that `joins` makes one value of
    several, whose parts then depend on what the others do. One that `forwards` has results depend on what a
    version of a state was made of instead of the version. One that `condenses` makes one change of several.
    """
    fewer = _less_often_changed(before, after) if done.loses or done.condenses else frozenset()
    there = frozenset().union(*after.of.values())
    replaced = {each for each in before.all if each[0] == "term" and (done.partly or each not in there)}
    for result, wanted in before.of.items():
        found = after.of.get(result)
        if result[0] == "change" and result[1] in fewer:
            continue
        if found is None:
            raise AssertionError(f"{_words(result)} is gone after {done.name}")
        lost, gained = wanted - found - replaced, found - wanted
        if done.forwards:
            lost = frozenset([each for each in lost if not _is_made_of(each, before, found | replaced)])
        if lost and not done.loses:
            raise AssertionError(
                f"{_words(result)} does not depend on {_listed(lost)} any more after {done.name}"
            )
        gained = frozenset([each for each in gained if each[0] not in fewer and each[0] != "term"])
        if done.joins:
            states = {state for state, _ in wanted}
            gained = frozenset([each for each in gained if each[0] in states and each not in before.all])
        if gained:
            raise AssertionError(f"{_words(result)} depends on {_listed(gained)} after {done.name}")


def _is_made_of(version: Any, before: Dependences, found: frozenset[Any]) -> bool:
    """Whether all that this version of a state depended on is among what was found."""
    state, (count, _) = version
    made = before.of.get(("change", state, count - 1))
    return made is not None and all(
        [each in found or (each[0] != "term" and _is_made_of(each, before, found)) for each in made]
    )


def _less_often_changed(before: Dependences, after: Dependences) -> frozenset[Any]:
    """The states of which a change lay on a branch that is not taken, or became one with another."""
    return frozenset(
        [
            state
            for kind, *rest in before.of
            if kind == "change"
            for state in rest[:1]
            if ("change", *rest) not in after.of
        ]
    )


def _words(result: Any) -> str:
    kind, *rest = result
    return f"fetch {rest[0]}" if kind == "fetch" else f"change {rest[1]} of {rest[0]}"


def _listed(dependences: frozenset[Any]) -> str:
    return ", ".join(sorted(_named(each) for each in dependences))


def _named(dependence: Any) -> str:
    kind, which = dependence
    return f"the term {which}" if kind == "term" else f"{kind} (version {which})"
