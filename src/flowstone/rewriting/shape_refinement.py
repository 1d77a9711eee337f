"""Static shapes, once the feeds' shapes are known.

A plan is made when the first values are fed, so its ``_Arg`` nodes may carry those values' shapes where the
placeholders leave dimensions open. `refine_shapes` infers the shapes of everything that follows again, with
which most shape arithmetic (batch sizes, reshapes, broadcasts of gradients) becomes constant. Raises
ValueError where the shapes contradict; the plan is then made without them and the step says what is wrong.
"""

from __future__ import annotations

from flowstone.framework.node import Output
from flowstone.framework.shape import merge
from flowstone.framework.subgraph import Subgraph


def refine_shapes(subgraph: Subgraph) -> None:
    """Infers again the shapes of all nodes that depend on a fed value, in order."""
    refined: set[Output] = set(subgraph.feeds)
    for node in subgraph.nodes:
        infer = node.declaration.infer_function
        if infer is None or not node._outputs or not any([x in refined for x in node._inputs]):
            continue
        inferred = infer(node)
        for output, dims in zip(node._outputs, inferred if type(inferred) is list else [inferred]):
            if dims != output._dims:
                merged = merge(output._dims, dims)
                if merged != output._dims:
                    output._dims = merged
            refined.add(output)
