"""How long a node takes on a device: as measured in earlier steps, else estimated from its shapes.

White paper 3.2.1: "This cost model is either statically estimated based on heuristics associated with
different operation types, or is measured based on an actual set of placement decisions for earlier executions
of the graph."

The estimate is the time of a kernel launch plus the longer of arithmetic and memory traffic, at the rates of
the device's type, divided by its relative speed. Measurements are averaged for each node (by name) and
device. A measurement on another device of the same type counts too, scaled by the speeds. The links between
devices are measured too (`measured_links.py`), by the transfers of traced steps. Costs are written
and read as CostGraphDef (`compute_cost` in whole microseconds, sizes of outputs in bytes), also that of
TensorFlow's RunMetadata.

>>> costs = CostModel()
>>> costs.record("x", "/device:CPU:0", 10.0)
>>> costs.record("x", "/device:CPU:0", 20.0)
>>> costs.measured_us("x", "/device:CPU:0")
15.0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from flowstone.framework.declarations.kernel import CPU, GPU
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.framework.machine import machine
from flowstone.framework.tensors.node import Output
from flowstone.framework.types.tensor_proto import messages
from flowstone.placement.devices import Link, PlacementDevice, default_link
from flowstone.placement.measured_links import MeasuredLinks
from flowstone.placement.operation_cost import Work, state_size, tensor_size, work


class Rates(NamedTuple):
    """Rates of a usual device of a type: `launch_us` for a kernel, operations and bytes per microsecond."""

    launch_us: float
    operations_per_us: float
    bytes_per_us: float


_GPU_RATES = Rates(6.0, 10e6, 800e3)


def default_rates() -> dict[str, Rates]:
    """The rates by device type; those of CPUs are this machine's."""
    profile = machine.current().profile
    cpu = Rates(profile.call_us, profile.operations_per_us, profile.bytes_per_us)
    return {CPU: cpu, GPU: _GPU_RATES}


class _Mean:
    """A running mean."""

    __slots__ = ("count", "value")

    def __init__(self) -> None:
        self.count, self.value = 0, 0.0

    def add(self, x: float) -> None:
        self.count += 1
        self.value += (x - self.value) / self.count


class CostModel:
    """Static and measured costs; see the module.

    `rates`: by device type, in place of the defaults; types without an entry count as CPUs.
    """

    def __init__(self, rates: Mapping[str, Rates] | None = None) -> None:
        self.rates = {**default_rates(), **(rates or {})}
        self._times: dict[str, dict[str, _Mean]] = {}
        self._sizes: dict[str, dict[int, _Mean]] = {}
        self.links = MeasuredLinks()

    # ---- measured

    def record(self, name: str, device: str, time_us: float, sizes: Mapping[int, int] | None = None) -> None:
        """Adds one measurement of the node `name` on the device of that full name; `sizes`: bytes of each
        output.

        ValueError for a negative time or size.
        """
        if time_us < 0 or any(size < 0 for size in (sizes or {}).values()):
            raise ValueError(f"a cost of node {name} is negative: {time_us} us, {sizes}")
        self._times.setdefault(name, {}).setdefault(device, _Mean()).add(time_us)
        for port, size in (sizes or {}).items():
            self._sizes.setdefault(name, {}).setdefault(port, _Mean()).add(size)

    def measured_us(self, name: str, device: str) -> float | None:
        """The mean time of the node on the device, or None."""
        mean = self._times.get(name, {}).get(device)
        return None if mean is None else mean.value

    def measured_sizes(self, name: str) -> dict[int, int]:
        """The mean bytes of the node's outputs that were measured, by their numbers."""
        return {port: round(mean.value) for port, mean in self._sizes.get(name, {}).items()}

    def output_size(self, output: Output) -> int:
        """Bytes of an output's value: measured, else by its static shape."""
        if self._sizes:
            mean = self._sizes.get(output.op.name, {}).get(output.value_index)
            if mean is not None:
                return round(mean.value)
        return tensor_size(output)

    def link(self, source: PlacementDevice, target: PlacementDevice) -> Link:
        """The link between two devices: as measured, else guessed (`default_link`)."""
        return self.links.link(source.name, target.name) or default_link(source, target)

    # ---- time on devices

    def time_us(
        self, node: PlanNode, device: PlacementDevice, devices: Sequence[PlacementDevice] = ()
    ) -> float:
        """Microseconds of `node` on `device`; measurements on `devices` of the same type count too."""
        return self.times_us([node], [work(node)], [device, *devices])[0][0]

    def times_us(
        self, nodes: Sequence[PlanNode], works: Sequence[Work], devices: Sequence[PlacementDevice]
    ) -> list[list[float]]:
        """Microseconds of each node on each device: one list for each device. `works`: the nodes' `work`."""
        kinds: dict[tuple[str, float], list[float]] = {}
        for device in devices:
            kind = (device.device_type, device.relative_speed)
            if kind not in kinds:
                kinds[kind] = self._static(works, *kind)
        times = [kinds[device.device_type, device.relative_speed] for device in devices]
        return self._with_measured(nodes, devices, times) if self._times else times

    def _static(self, works: Sequence[Work], device_type: str, speed: float) -> list[float]:
        launch, operations, size = self.rates.get(device_type, self.rates[CPU])
        a, b, c = launch / speed, 1 / (operations * speed), 1 / (size * speed)
        return [0.0 if w[1] == 0 else a + max(w[0] * b, w[1] * c) for w in works]

    def _with_measured(
        self, nodes: Sequence[PlanNode], devices: Sequence[PlacementDevice], times: list[list[float]]
    ) -> list[list[float]]:
        times = [list(each) for each in times]
        by_name = {device.name: device for device in devices}
        for i, node in enumerate(nodes):
            means = self._times.get(node.name)
            if means is None:
                continue
            known = [(by_name[name], mean.value) for name, mean in means.items() if name in by_name]
            for each, device in zip(times, devices):
                own = means.get(device.name)
                alike = [
                    t * other.relative_speed for other, t in known if other.device_type == device.device_type
                ]
                if own is not None:
                    each[i] = own.value
                elif alike:
                    each[i] = sum(alike) / len(alike) / device.relative_speed
        return times

    # ---- as messages

    def cost_graph(self, subgraph: Subgraph, placement: Mapping[PlanNode, PlacementDevice]) -> Any:
        """A CostGraphDef of the placed nodes; what was not measured is estimated and marked `inaccurate`."""
        message = messages("cost_graph_pb2").CostGraphDef()
        number = {node: i for i, node in enumerate(subgraph.nodes)}
        final = {x.op for x in subgraph.fetches} | set(subgraph.targets)
        for node, i in number.items():
            device = placement[node]
            entry = message.node.add(name=node.name, device=device.name, id=i, is_final=node in final)
            measured = self.measured_us(node.name, device.name)
            entry.inaccurate = measured is None
            entry.compute_cost = round(self.time_us(node, device) if measured is None else measured)
            if node.declaration.holds_state:
                entry.persistent_memory_size = state_size(node)
            for x in node.inputs:
                entry.input_info.add(preceding_node=number[x.op], preceding_port=x.value_index)
            for x in node.outputs:
                self._write_output(x, entry.output_info.add())
            entry.control_input.extend(number[c] for c in node.control_inputs if c in number)
        return message

    def _write_output(self, output: Output, message: Any) -> None:
        message.size = self.output_size(output)
        message.alias_input_port = -1
        message.dtype = output.dtype.base_dtype.as_datatype_enum
        if output.dims is None:
            message.shape.unknown_rank = True
        else:
            for n in output.dims:
                message.shape.dim.add(size=-1 if n is None else n)

    def add_cost_graph(self, message: Any) -> None:
        """Adds the measurements of a CostGraphDef; entries marked `inaccurate` are estimates and left out."""
        for entry in message.node:
            if not entry.inaccurate:
                sizes = {port: info.size for port, info in enumerate(entry.output_info) if info.size >= 0}
                self.record(entry.name, entry.device, float(max(entry.compute_cost, 0)), sizes)
