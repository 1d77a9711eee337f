"""The OpLogProto of a graph: its floating-point operations, types and lines, which no GraphDef holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorboard.compat.proto.tfprof_log_pb2 import OpLogProto

from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.process import logging
from flowstone.io.file_system import open_file
from flowstone.profiling.float_operations import IncompleteShape, Shape, float_operations

TRAINABLE = "_trainable_variables"
FILE_NAME = "tfprof_log"


class _Texts:
    """Numbers for texts, in the order in which they come; `given` are those that have numbers already."""

    def __init__(self, given: Mapping[int, str]) -> None:
        self.numbers = {text: number for number, text in given.items()}
        self._following = max(given, default=-1) + 1

    def number(self, text: str | None) -> int:
        number = self.numbers.setdefault(text or "none", self._following)
        self._following += number == self._following
        return number


def make_op_log(graph: Any, known: Mapping[str, Shape], given: Any = None, with_lines: bool = True) -> Any:
    """The OpLogProto of a graph.

    `known`: the shapes of a step by tensor name, for those that are not static. `given`: an OpLogProto whose
    entries go before our own; what they say of a node is kept. `with_lines`: also where each op was made.
    """
    log = OpLogProto()
    if given is not None:
        log.CopyFrom(given)
    entries = {entry.name: entry for entry in log.log_entries}
    texts = _Texts(log.id_to_string)
    texts.number(None)
    counts = _counts(graph, known)

    def entry_of(name: str) -> Any:
        entry = entries.get(name)
        if entry is None:
            entry = entries[name] = log.log_entries.add(name=name)
        return entry

    for op in graph.get_operations():
        count = counts.get(op.name)
        if count:
            entry = entry_of(op.name)
            entry.float_ops = entry.float_ops or count
        if with_lines and not entry_of(op.name).code_def.traces:
            _write_lines(op, entry_of(op.name), texts)
    for variable in graph.get_collection(GraphKeys.TRAINABLE_VARIABLES):
        entry = entry_of(variable.op.name)
        if TRAINABLE not in entry.types:
            entry.types.append(TRAINABLE)
    for text, number in texts.numbers.items():
        log.id_to_string[number] = text
    return log


def _counts(graph: Any, known: Mapping[str, Shape]) -> dict[str, int]:
    counts = {}
    incomplete = 0
    for op in graph.get_operations():
        try:
            count = float_operations(op, known)
        except IncompleteShape:
            incomplete += 1
            continue
        if count is not None:
            counts[op.name] = count
    if incomplete:
        logging.info("%d ops are not counted: their shapes are not complete.", incomplete)
    return counts


def _write_lines(op: Any, entry: Any, texts: _Texts) -> None:
    for file, line, function, text, start in op.traceback_with_start_lines:
        entry.code_def.traces.add(
            file_id=texts.number(file),
            lineno=line,
            function_id=texts.number(function),
            line_id=texts.number(text),
            func_start_line=start,
        )


def write(log: Any, log_dir: str) -> None:
    """Writes an OpLogProto into the file `tfprof_log` of a directory."""
    with open_file(f"{log_dir.rstrip('/')}/{FILE_NAME}", "wb") as file:
        file.write(log.SerializeToString())
