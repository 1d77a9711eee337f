"""Profiles as files for other tools: traces for chrome://tracing and Perfetto, profiles for pprof."""

from __future__ import annotations

import gzip
from typing import Any

from flowstone.client.timeline import ChromeTrace
from flowstone.io.proto.pprof_pb2 import Profile
from flowstone.profiling.records import Line, Span
from flowstone.profiling.trees import Tree, walk

_UNITS = {"micros": "microseconds", "accelerator_micros": "microseconds", "cpu_micros": "microseconds"}


def nested_trace(root: Tree) -> str:
    """A tree of name scopes or lines as a trace: below each bar are those of what is below it.

    Widths are times, but where a bar begins says nothing: those of one node lie side by side. A level of the
    tree is a process of the trace. What took no time is left out.
    """
    trace = ChromeTrace()
    levels: set[int] = set()
    starts = {id(root): 0}
    for tree, depth in walk(root):
        if not tree.total.micros and not tree.is_root:
            continue
        if depth not in levels:
            levels.add(depth)
            trace.add_process(f"Scope:{depth}", depth)
        start = starts[id(tree)]
        names = {"name": tree.name, "op": tree.name}
        trace.add("X", "Op", tree.name, depth, 0, start, dur=tree.total.micros, args=names)
        for child in tree.children:
            starts[id(child)] = start
            start += child.total.micros
    return trace.format_to_string()


def step_trace(root: Tree, step: int) -> str:
    """The nodes of a tree as they ran in a step: a process of the trace is a device, and a row in it runs one
    node after the other."""
    trace = ChromeTrace()
    processes: dict[tuple[str, bool], int] = {}
    rows: dict[int, list[int]] = {}  # by process, when each row is free again
    for span, name in sorted(_spans(root, step), key=lambda item: item[0].start):
        key = (span.device, span.on_accelerator)
        pid = processes.get(key)
        if pid is None:
            pid = processes[key] = len(processes)
            what = "Kernels" if span.on_accelerator else "Op scheduling threads"
            trace.add_process(f"{what}: {span.device}", pid)
        ends = rows.setdefault(pid, [])
        row = next((i for i, end in enumerate(ends) if end <= span.start), len(ends))
        ends[row : row + 1] = [span.start + span.micros]
        trace.add("X", "Op", name, pid, row, span.start, dur=span.micros, args={"name": name})
    return trace.format_to_string()


def _spans(root: Tree, step: int) -> list[tuple[Span, str]]:
    found = []
    for tree, _ in walk(root):
        execution = None if tree.record is None else tree.record.executions.get(step)
        if execution is not None:
            found += [(span, tree.name) for span in execution.spans]
    return found


# ---- pprof


def pprof_profile(root: Tree, measure: str) -> bytes:
    """A tree of lines as a compressed profile: a sample for each node, with its line and those that called
    it. Its values are one, and what `measure` says."""
    writer = _ProfileWriter()
    writer.add_kind("count", "count")
    writer.add_kind(measure, _UNITS.get(measure, "bytes" if measure.endswith("bytes") else "count"))
    path: list[Line] = []
    for tree, depth in walk(root):
        if tree.line is None:
            continue
        path[depth - 1 :] = [tree.line]
        for record, costs in tree.members:
            writer.add_sample(path, record.name, int(getattr(costs, measure)))
    return gzip.compress(writer.profile.SerializeToString(), mtime=0)


class _ProfileWriter:
    def __init__(self) -> None:
        self.profile: Any = Profile(string_table=[""])
        self._texts = {"": 0}
        self._locations: dict[Line, int] = {}
        self._functions: dict[tuple[str, str], int] = {}

    def add_kind(self, kind: str, unit: str) -> None:
        self.profile.sample_type.add(type=self._text(kind), unit=self._text(unit))

    def add_sample(self, path: list[Line], node: str, value: int) -> None:
        sample = self.profile.sample.add(value=[1, value])
        sample.location_id.extend(self._location(line) for line in reversed(path))
        sample.label.add(key=self._text("graph node:"), str=self._text(node))

    def _text(self, text: str) -> int:
        number = self._texts.get(text)
        if number is None:
            number = self._texts[text] = len(self._texts)
            self.profile.string_table.append(text)
        return number

    def _location(self, line: Line) -> int:
        number = self._locations.get(line)
        if number is None:
            number = self._locations[line] = len(self._locations) + 1
            location = self.profile.location.add(id=number)
            location.line.add(function_id=self._function(line.file, line.function), line=line.line)
        return number

    def _function(self, file: str, function: str) -> int:
        number = self._functions.get((file, function))
        if number is None:
            number = self._functions[file, function] = len(self._functions) + 1
            module = file.rpartition("/")[2].removesuffix(".py")
            name = self._text(f"{module}:{function}")
            self.profile.function.add(id=number, name=name, system_name=name, filename=self._text(file))
        return number
