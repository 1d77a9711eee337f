"""Tensors on their way from task to task, as rows of a traced step.

A row is a NodeExecStats named ``RecvTensor`` among those of the receiving device, as TensorFlow's are, from
when the Send began until the tensor was there:

    [4000B] [320.0Mb/s] y:0 from /job:ps/replica:0/task:0/device:CPU:0 to /job:worker/replica:0/task:1/…

A worker knows when tensors came (`write_arrivals`: a row without a length, labelled with the rendezvous key);
the master, which has every worker's trace with clocks aligned, finds the Sends (`complete_transfers`). Values
of several iterations are matched in their order.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from flowstone.partition.send_receive import SEND_TYPES

__all__ = ["RECV_TENSOR", "SeenTransfer", "complete_transfers", "seen_transfers", "write_arrivals"]

RECV_TENSOR = "RecvTensor"
_LABEL = re.compile(r"\[(\d+)B\](?: \[[\d.]+Mb/s\])? (\S+) from (\S+) to (\S+)$")
Way = tuple[str, str, str]  # the tensor's name, the sending and the receiving device


class SeenTransfer(NamedTuple):
    """A row: the tensor, its bytes, the devices, and when it began and ended in nanoseconds of the epoch."""

    tensor: str
    size: int
    source: str
    target: str
    start: int
    end: int


def write_arrivals(arrivals: Mapping[str, tuple[int, int]], epoch: int, step_stats: Any) -> None:
    """Adds rows to StepStats. `arrivals`: when tensors came, by rendezvous key, in nanoseconds since `epoch`,
    and their bytes."""
    by_device: defaultdict[str, list[tuple[int, str, int]]] = defaultdict(list)
    for key, (at, size) in arrivals.items():
        by_device[key.split(";")[2]].append((at, key, size))
    for device, found in sorted(by_device.items()):
        own = step_stats.dev_stats.add(device=device)
        for at, key, size in sorted(found):
            row = own.node_stats.add(node_name=RECV_TENSOR, timeline_label=key)
            _write_times(row, at + epoch, at + epoch)
            allocation = row.output.add().tensor_description.allocation_description
            allocation.requested_bytes = allocation.allocated_bytes = size


def complete_transfers(step_stats: Any, graphs: Iterable[Any]) -> None:
    """Gives each row of `write_arrivals` its beginning and its label. `graphs`: the GraphDefs of all devices,
    which say what Sends send."""
    runs = _send_runs(step_stats, graphs)
    waiting: defaultdict[Way, list[tuple[list[int], Any]]] = defaultdict(list)
    for device in step_stats.dev_stats:
        for row in device.node_stats:
            parts = row.timeline_label.split(";")
            if row.node_name == RECV_TENSOR and len(parts) == 5:
                way = (parts[3], parts[0], parts[2])
                waiting[way].append(([int(number) for number in re.findall(r":(\d+)", parts[4])], row))
    for way, rows in waiting.items():
        rows.sort(key=lambda each: each[0])
        for i, (_, row) in enumerate(rows):
            sent = runs.get(way, [])[i : i + 1]
            _complete(row, way, sent[0] if sent else row.all_start_nanos)


def _send_runs(step_stats: Any, graphs: Iterable[Any]) -> dict[Way, list[int]]:
    """When each Send began, in order."""
    ways: dict[tuple[str, str], Way] = {}
    for graph in graphs:
        for node in graph.node:
            if node.op in SEND_TYPES:
                names = [node.attr[key].s.decode() for key in ("tensor_name", "send_device", "recv_device")]
                ways[node.device, node.name] = (names[0], names[1], names[2])
    found: defaultdict[Way, list[int]] = defaultdict(list)
    for device in step_stats.dev_stats:
        for run in device.node_stats:
            way = ways.get((device.device, run.node_name))
            if way is not None:
                found[way].append(run.all_start_nanos)
    return {way: sorted(starts) for way, starts in found.items()}


def _complete(row: Any, way: Way, sent: int) -> None:
    tensor, source, target = way
    arrived = row.all_start_nanos
    start = min(sent, arrived)  # clocks are aligned to some microseconds
    size = row.output[0].tensor_description.allocation_description.requested_bytes if row.output else 0
    rate = f" [{size * 8e3 / (arrived - start):.1f}Mb/s]" if arrived > start else ""
    row.timeline_label = f"[{size}B]{rate} {tensor} from {source} to {target}"
    _write_times(row, start, arrived)


def _write_times(row: Any, start: int, end: int) -> None:
    row.scheduled_nanos = row.all_start_nanos = start
    row.scheduled_micros = row.all_start_micros = start // 1000
    row.op_end_rel_nanos = row.all_end_rel_nanos = end - start
    row.op_end_rel_micros = row.all_end_rel_micros = end // 1000 - start // 1000


def seen_transfers(step_stats: Any) -> list[SeenTransfer]:
    """The completed rows of StepStats."""
    found = []
    for device in step_stats.dev_stats:
        for row in device.node_stats:
            label = _LABEL.match(row.timeline_label) if row.node_name == RECV_TENSOR else None
            if label is not None:
                start = row.all_start_nanos
                size, tensor, source, target = label.groups()
                end = start + row.all_end_rel_nanos
                found.append(SeenTransfer(tensor, int(size), source, target, start, end))
    return found
