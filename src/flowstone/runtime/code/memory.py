"""Host and device memory: decides where the values of a step are, on a device other than the CPU.

Shapes, axes, strings and values computed from host values alone stay on the host, and are computed there; all
other values are on the device. An op's declaration names the arguments that it takes or leaves in host memory
(``host=``). Segments call `environment_for` in the order of the nodes and `target_of` for each input. It is
not known where a segment's arguments are, since they may come from another segment, a queue or another
device; but a session brings feeds to the device. Nor is it known where the values of branches and loops are,
except counters (`host_decisions.py`). Such values are moved to where a kernel takes them, which costs nothing
if they are there already.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.runtime.code.host_decisions import decided_on_host


class Memory:
    """Which outputs are on the host, in a plan whose device is `environment`'s; `feeds_are_there`: the
    numeric `feeds` are on that device. `nodes`: the plan's.
    """

    def __init__(
        self,
        environment: Environment,
        feeds: Iterable[PlanOutput],
        feeds_are_there: bool = False,
        nodes: Iterable[PlanNode] = (),
    ) -> None:
        self._device = environment
        self._host = Environment(CPU, torch.device("cpu"), environment.resources, environment.states)
        self._known: set[PlanOutput] = set()  # the outputs of nodes that `environment_for` was called for
        self._on_host = {output for output in feeds if output.dtype.torch is None}
        if feeds_are_there:
            self._known.update(feeds)
        decided = decided_on_host(nodes)
        self._on_host |= decided
        self._known |= decided

    def is_known(self, x: PlanOutput) -> bool:
        """Whether it is known where `x` is."""
        return x in self._known

    def environment_for(self, node: PlanNode) -> Environment:
        """The environment that `node` is computed in; notes that its outputs are there."""
        on_host = self._is_for_host(node)
        self._known.update(node.outputs)
        for output, argument in zip(node.outputs, node.declaration.outputs):
            if on_host or argument.name in node.declaration.host:
                self._on_host.add(output)
        return self._host if on_host else self._device

    def _is_for_host(self, node: PlanNode) -> bool:
        kernels, inputs, outputs = node.declaration.kernels, node.inputs, node.outputs
        if self._device.device_type not in kernels or any(x.dtype.name == "string" for x in outputs):
            return True
        if node.is_constant:
            return bool(outputs[0].dtype.is_integer and not outputs[0].dims)
        return bool(
            CPU in kernels and inputs and node.declaration.is_pure and all(x in self._on_host for x in inputs)
        )

    def target_of(self, node: PlanNode, i: int) -> torch.device | None:
        """The device that input `i` must be moved to for `node`; None if it may stay where it is."""
        x = node.inputs[i]
        if x.dtype.torch is None or x.dtype.is_ref:
            return None
        wants_host = node.input_argument(i).name in node.declaration.host or (
            bool(node.outputs) and all(output in self._on_host for output in node.outputs)
        )
        if x not in self._known:
            if x.dims == () and not wants_host:
                return None
        elif wants_host == (x in self._on_host) or (x in self._on_host and x.dims == ()):
            return None  # ATen takes host scalars on any device
        return self._host.device if wants_host else self._device.device
