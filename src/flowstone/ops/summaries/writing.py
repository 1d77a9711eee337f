"""Writers of event files as resources of the graph, and the ops that write summaries, graphs and events.

A writer opens its file when CreateSummaryFileWriter runs, once; NotFoundError before.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, Environment, StepCall, Value
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.tensor_proto import array_proto, messages
from flowstone.framework.types.values import to_numpy
from flowstone.io.events import EventLog
from flowstone.ops.queues.queue_ops import find_resource

__all__ = ["WriterState"]


class WriterState:
    """The event file of a writer, once it has one; threads may share it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._log: EventLog | None = None
        self._lock = threading.Lock()

    def open(self, logdir: str, max_queue: int, flush_seconds: float, suffix: str) -> None:
        """Begins the file, if there is none."""
        with self._lock:
            if self._log is None:
                self._log = EventLog(logdir, max_queue, flush_seconds, suffix)

    def write(self, event: Any) -> None:
        """Adds an Event."""
        self._opened().add_event(event)

    def flush(self) -> None:
        """Returns when all events can be read."""
        self._opened().flush()

    def close(self) -> None:
        """Ends the file; the writer can be opened again."""
        with self._lock:
            if self._log is not None:
                self._log.close()
                self._log = None

    def _opened(self) -> EventLog:
        if self._log is None:
            raise errors.NotFoundError(
                None, None, f"The summary writer {self.name!r} does not exist: run its initializer first"
            )
        return self._log


summary_writer_op = op(
    "SummaryWriter", "-> writer: resource", "shared_name: string = '' ; container: string = ''", stateful=True
)
summary_writer_op.infer(lambda node: ())
summary_writer_op.not_differentiable()


@summary_writer_op.kernel(CPU)
def _(node: Node, env: Environment) -> Value:
    return Value(find_resource(node, env, "summary_writer", WriterState))


def _writing(name: str, inputs: str, **types: Any) -> OpDeclaration:
    declaration = op(name, f"writer: resource{inputs} ->", stateful=True, **types)
    declaration.infer(lambda node: None)
    declaration.not_differentiable()
    return declaration


def _text(value: Any) -> str:
    return bytes(value.item()).decode()


def _create(
    step: Any, writer: WriterState, logdir: Any, max_queue: Any, flush_millis: Any, filename_suffix: Any
) -> None:
    writer.open(_text(logdir), int(max_queue), int(flush_millis) / 1000, _text(filename_suffix))


def _write(step: Any, writer: WriterState, number: Any, tensor: Any) -> None:
    summary = messages("summary_pb2").Summary.FromString(bytes(tensor.item()))
    writer.write(messages("event_pb2").Event(wall_time=time.time(), step=int(number), summary=summary))


def _write_tensor(node: Node, env: Environment) -> StepCall:
    dtype = node.dtype(2).base_dtype

    def write(step: Any, writer: WriterState, number: Any, tensor: Any, tag: Any, metadata: Any) -> None:
        event = messages("event_pb2").Event(wall_time=time.time(), step=int(number))
        value = event.summary.value.add(tag=_text(tag), tensor=array_proto(to_numpy(tensor, dtype), dtype))
        value.metadata.ParseFromString(bytes(metadata.item()))
        writer.write(event)

    return StepCall(write)


def _write_graph(step: Any, writer: WriterState, number: Any, tensor: Any) -> None:
    graph = bytes(tensor.item())
    writer.write(messages("event_pb2").Event(wall_time=time.time(), step=int(number), graph_def=graph))


def _import(step: Any, writer: WriterState, event: Any) -> None:
    writer.write(messages("event_pb2").Event.FromString(bytes(event.item())))


create_op = _writing(
    "CreateSummaryFileWriter",
    ", logdir: string, max_queue: int32, flush_millis: int32, filename_suffix: string",
)
write_op = _writing("WriteRawProtoSummary", ", step: int64, tensor: string")
write_tensor_op = _writing(
    "WriteSummary", ", step: int64, tensor: T, tag: string, summary_metadata: string", T=None
)
write_graph_op = _writing("WriteGraphSummary", ", step: int64, tensor: string")
import_op = _writing("ImportEvent", ", event: string")
flush_op = _writing("FlushSummaryWriter", "")
close_op = _writing("CloseSummaryWriter", "")

create_op.kernel(CPU)(lambda node, env: StepCall(_create))
write_op.kernel(CPU)(lambda node, env: StepCall(_write))
write_tensor_op.kernel(CPU)(_write_tensor)
write_graph_op.kernel(CPU)(lambda node, env: StepCall(_write_graph))
import_op.kernel(CPU)(lambda node, env: StepCall(_import))
flush_op.kernel(CPU)(lambda node, env: StepCall(lambda step, writer: writer.flush()))
close_op.kernel(CPU)(lambda node, env: StepCall(lambda step, writer: writer.close()))
