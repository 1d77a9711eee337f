"""Where a call stands in a plan, and what replaced it; see `function_inlining.py`."""

from __future__ import annotations

from typing import Any, NoReturn

from flowstone.framework import errors
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput


class Site:
    """Where a function's nodes go.

    `call`: the node that they replace, which gives name, device and origin. `controls`: what they wait for.
    `pivot`: a node that is alive where they are; None where everything is. `callers`: the functions being
    expanded, outermost first.
    """

    __slots__ = ("call", "callers", "controls", "library", "pivot", "prefix")

    def __init__(
        self, call: PlanNode, library: Any, callers: tuple[str, ...], pivot: PlanNode | None = None
    ) -> None:
        self.call, self.library, self.callers, self.pivot = call, library, callers, pivot
        self.controls: list[PlanNode] = list(call.control_inputs)
        self.prefix = call.name

    def branch(self, pivot: PlanNode, part: str) -> Site:
        """The same for a part of the call that runs where `pivot` does."""
        site = Site(self.call, self.library, self.callers, pivot)
        site.controls, site.prefix = [], f"{self.prefix}/{part}"
        return site

    def binding(self) -> list[PlanNode]:
        """What a node that is bound by nothing else must wait for."""
        return self.controls if self.pivot is None else [*self.controls, self.pivot]


class Expansion:
    """What replaced a call: `outputs`, and `effects`, the nodes to wait for besides those of the outputs."""

    __slots__ = ("effects", "outputs")

    def __init__(self, outputs: list[PlanOutput], effects: list[PlanNode]) -> None:
        self.outputs, self.effects = outputs, effects


def fail(node: PlanNode, message: str) -> NoReturn:
    """Raises InvalidArgumentError, naming the call."""
    text = f"{message}\n\t [[node {node.name} (op {node.type})]]"
    raise errors.InvalidArgumentError(lambda: node.origin.node_def, node.origin, text)
