"""What every subgraph must satisfy between passes; `check` names the pass that broke it."""

from __future__ import annotations

from flowstone.framework.node import Output
from flowstone.framework.subgraph import Subgraph
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
