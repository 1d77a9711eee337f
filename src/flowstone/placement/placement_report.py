"""Shows a placement: a table as text, and a picture of the simulated step.

`placement_table` lists the devices, then the nodes in the order in which the simulation starts them:

    device                                     nodes   busy us  share  peak bytes
    /job:localhost/replica:0/task:0/device:…       3      12.0    60%        4096
    …
    makespan 20.0 us, 1 transfer of 1024 bytes

`draw_placement` draws a bar for each node against time, in a row for each device (matplotlib; ``pip install
flowstone[pictures]``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, BinaryIO

from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.placement.cluster_simulator import Simulation, simulate
from flowstone.placement.cost_model import CostModel
from flowstone.placement.devices import Links, PlacementDevice
from flowstone.placement.task_graph import TaskGraph, placed_task_graph


def placement_table(
    subgraph: Subgraph,
    placement: Mapping[PlanNode, PlacementDevice],
    costs: CostModel | None = None,
    links: Links | None = None,
    nodes: bool = True,
) -> str:
    """The devices of a placement and (with `nodes`) where and when each node runs, as text."""
    tasks, chosen = placed_task_graph(subgraph, placement, costs, links)
    step = simulate(tasks, chosen)
    lines = _device_lines(tasks, chosen, step)
    plural = "" if step.transfers == 1 else "s"
    lines.append(
        f"makespan {step.makespan_us:.1f} us, {step.transfers} transfer{plural} of {step.moved_bytes} bytes"
    )
    if nodes:
        lines += ["", *_node_lines(subgraph, tasks, chosen, step)]
    return "\n".join(lines)


def _device_lines(tasks: TaskGraph, chosen: list[int], step: Simulation) -> list[str]:
    rows = [("device", "nodes", "busy us", "share", "peak bytes")]
    for d, device in enumerate(tasks.devices):
        share = step.busy_us[d] / step.makespan_us if step.makespan_us else 0.0
        count = chosen.count(d)
        rows.append(
            (device.name, str(count), f"{step.busy_us[d]:.1f}", f"{share:.0%}", str(step.peak_bytes[d]))
        )
    return _aligned(rows, left=1)


def _node_lines(subgraph: Subgraph, tasks: TaskGraph, chosen: list[int], step: Simulation) -> list[str]:
    rows = [("node", "op", "device", "start us", "us")]
    for i in sorted(range(len(chosen)), key=lambda i: (step.start_us[i], i)):
        node, start = subgraph.nodes[i], step.start_us[i]
        length = step.finish_us[i] - start
        rows.append((node.name, node.type, tasks.devices[chosen[i]].name, f"{start:.1f}", f"{length:.1f}"))
    return _aligned(rows, left=3)


def _aligned(rows: Sequence[tuple[str, ...]], left: int) -> list[str]:
    """Columns of equal width, the first `left` of them flush left."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [
        "  ".join(
            word.ljust(width) if k < left else word.rjust(width)
            for k, (word, width) in enumerate(zip(row, widths))
        )
        for row in rows
    ]


def draw_placement(
    subgraph: Subgraph,
    placement: Mapping[PlanNode, PlacementDevice],
    path: str | PathLike[str] | BinaryIO,
    costs: CostModel | None = None,
    links: Links | None = None,
    format: str | None = None,
) -> None:
    """Writes a picture of the simulated step to `path` (PNG, SVG, PDF by its ending, or by `format`).

    There is a row for each device, a bar for each node, and a colour for each op type. The twelve types that
    take longest are in the legend. ImportError without matplotlib.
    """
    from matplotlib.figure import Figure  # an optional dependency
    from matplotlib.patches import Patch

    tasks, chosen = placed_task_graph(subgraph, placement, costs, links)
    step = simulate(tasks, chosen)
    colours = _colours(subgraph, step)
    figure = Figure(figsize=(12, 1.5 + 0.6 * len(tasks.devices)), layout="constrained")
    axes: Any = figure.subplots()
    for d in range(len(tasks.devices)):
        own = [i for i, at in enumerate(chosen) if at == d and step.finish_us[i] > step.start_us[i]]
        axes.broken_barh(
            [(step.start_us[i], step.finish_us[i] - step.start_us[i]) for i in own],
            (d - 0.4, 0.8),
            facecolors=[colours.get(subgraph.nodes[i].type, "lightgrey") for i in own],
        )
    axes.set_yticks(range(len(tasks.devices)), [device.name for device in tasks.devices])
    axes.invert_yaxis()
    axes.set_xlabel("simulated time (µs)")
    axes.set_title(f"{len(chosen)} nodes, makespan {step.makespan_us:.0f} µs")
    patches = [Patch(color=colour, label=kind) for kind, colour in colours.items()]
    if patches:
        figure.legend(handles=patches, loc="outside lower center", ncols=6, fontsize="small")
    figure.savefig(path, format=format)


_MOST_COLOURS = 12


def _colours(subgraph: Subgraph, step: Simulation) -> dict[str, str]:
    """op type -> colour, of those that take the most time."""
    total: dict[str, float] = {}
    for node, start, finish in zip(subgraph.nodes, step.start_us, step.finish_us):
        total[node.type] = total.get(node.type, 0.0) + finish - start
    longest = sorted((kind for kind in total if total[kind] > 0), key=lambda kind: -total[kind])
    return {
        kind: f"C{k}" if k < 10 else ("gold", "navy")[k - 10]
        for k, kind in enumerate(longest[:_MOST_COLOURS])
    }
