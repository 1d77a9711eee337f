"""What a profile says is slow: checkers, each with its reports.

`AcceleratorUtilizationChecker` tells what part of a step each accelerator was busy, `OperationChecker` of
images in an order that is slow on a GPU, `ExpensiveOperationChecker` which ops, nodes and lines took longest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from flowstone.framework import errors
from flowstone.io.proto.tfprof_output_pb2 import AdviceProto
from flowstone.profiling.options import Options, ProfileOptionBuilder
from flowstone.profiling.report import time
from flowstone.profiling.trees import Records, Tree, code_view, op_view, scope_view

_NAMED = 3  # ops, nodes and lines in a report
_SHORT, _SHORT_LINE = 100, 1000  # microseconds: nodes and lines that take less are not reported
_BUSY = 0.5  # the part of a step that an accelerator should work


def advise(records: Records, wanted: Iterable[str]) -> Any:
    """The AdviceProto of the checkers `wanted`. InvalidArgumentError if there is no such checker."""
    message = AdviceProto()
    for name in wanted:
        if name == "JobChecker":  # in TensorFlow's list of all, and never in what its users have
            continue
        if name not in CHECKERS:
            raise errors.InvalidArgumentError(
                None, None, f"There is no checker {name}. There are {', '.join(CHECKERS)}."
            )
        message.checkers[name].reports.extend(CHECKERS[name](records))
    return message


def advice_text(message: Any) -> str:
    """The reports of an AdviceProto below the names of their checkers."""
    lines = []
    for name in sorted(message.checkers):
        lines += ["", f"{name}:", *message.checkers[name].reports]
    return "\n".join(lines) + "\n"


# ---- checkers


def _check_utilization(records: Records) -> list[str]:
    busy: dict[str, int] = {}
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for record in records.values():
        for execution in record.executions.values():
            for span in execution.spans:
                device = span.device.partition("/stream:")[0]
                busy[device] = busy.get(device, 0) + (span.micros if span.on_accelerator else 0)
                first[device] = min(first.get(device, span.start), span.start)
                last[device] = max(last.get(device, 0), span.start + span.micros)
    reports = []
    for device in sorted(device for device in busy if busy[device]):
        part = busy[device] / max(last[device] - first[device], 1)
        low = "" if part >= _BUSY else "low "
        reports.append(f"device: {device} {low}utilization: {part:.2f}")
    return reports


def _check_operations(records: Records) -> list[str]:
    for record in records.values():
        if record.data_format == "NHWC" and any("gpu" in device for device in record.devices):
            return ["Images have their channels last (NHWC) on a GPU. Channels first (NCHW) may be faster."]
    return []


def _check_expensive(records: Records) -> list[str]:
    options = Options(
        ProfileOptionBuilder(ProfileOptionBuilder.time_and_memory(min_bytes=0)).with_empty_output().build()
    )
    kinds = op_view(records, options)
    if len(kinds) == 1:
        return []
    whole = kinds[0].total.micros
    reports = [
        "\n".join(
            f"top {i} operation type: {_times(tree)} ({100 * tree.own.micros / whole:.2f}%)"
            for i, tree in enumerate(kinds[1 : _NAMED + 1], 1)
        )
    ]
    nodes = _longest(scope_view(records, options), _SHORT)
    if nodes:
        reports.append("\n".join(f"top {i} graph node: {_times(tree)}" for i, tree in enumerate(nodes, 1)))
    lines: Tree | None = code_view(records, options)
    while lines is not None and len(lines.children) < 2:
        lines = lines.children[0] if lines.children else None
    if lines is not None:
        reports.append("\n".join(_times(tree, with_below=True) for tree in _longest(lines, _SHORT_LINE)))
    return reports


def _longest(tree: Tree, least: int) -> list[Tree]:
    return [child for child in tree.children if child.total.micros >= least][:_NAMED]


def _times(tree: Tree, with_below: bool = False) -> str:
    costs = tree.total if with_below else tree.own
    times = f"cpu: {time(costs.cpu_micros)}, accelerator: {time(costs.accelerator_micros)}"
    return f"{tree.name}, {times}, total: {time(costs.micros)}"


CHECKERS: Mapping[str, Callable[[Records], list[str]]] = {
    "AcceleratorUtilizationChecker": _check_utilization,
    "ExpensiveOperationChecker": _check_expensive,
    "OperationChecker": _check_operations,
}
