"""A profile as a ProfileProto, which TensorFlow's profiling tool reads: nodes, runs, lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flowstone.framework.types.tensor_proto import messages
from flowstone.profiling.records import Execution, Record


def profile_message(graph: Any, records: Mapping[str, Record], steps: Iterable[int]) -> Any:
    """The ProfileProto of a graph's records, with the numbers of the steps that were added."""
    message = messages("tfprof_log_pb2").ProfileProto()
    message.steps.extend(sorted(steps))
    numbers = {name: number for number, name in enumerate(records)}
    definitions = {node.name: node for node in graph.as_graph_def(add_shapes=True).node}
    texts: dict[str, int] = {}
    for name, record in records.items():
        node = message.nodes[numbers[name]]
        node.name, node.op, node.id = name, record.op, numbers[name]
        node.float_ops = record.float_ops
        node.op_types.extend(sorted(record.types))
        for index, source in enumerate(record.inputs):
            if source in numbers:
                node.inputs[index] = numbers[source]
        if name in definitions:
            _add_definition(node, definitions[name])
        _add_lines(node, record, texts)
        for step, execution in record.executions.items():
            _add_execution(node, step, execution)
    message.has_trace = any(record.lines for record in records.values())
    for text, number in texts.items():
        message.id_to_string[number] = text
    return message


def _add_definition(node: Any, definition: Any) -> None:
    for key, value in definition.attr.items():
        node.attrs[key].CopyFrom(value)
    for index, shape in enumerate(definition.attr["_output_shapes"].list.shape):
        node.output_shapes[index].int64_values.extend(dim.size for dim in shape.dim)
    if definition.device:
        node.canonical_device = definition.device


def _add_lines(node: Any, record: Record, texts: dict[str, int]) -> None:
    for line in record.lines:
        trace = node.trace.traces.add(lineno=line.line)
        trace.file_id = texts.setdefault(line.file, len(texts) + 1)
        trace.function_id = texts.setdefault(line.function, len(texts) + 1)


def _add_execution(node: Any, step: int, execution: Execution) -> None:
    costs, own = execution.costs, node.execs[step]
    own.run_count = costs.runs
    own.devices.extend(execution.devices)
    if execution.spans:
        own.all_start_micros = min(span.start for span in execution.spans)
        own.latest_end_micros = max(span.start + span.micros for span in execution.spans)
    for span in execution.spans:
        times = own.accelerator_execs if span.on_accelerator else own.cpu_execs
        times[span.device].times.add(int64_values=[span.start, span.micros])
    own.memory_execs.add(
        requested_bytes=costs.bytes,
        peak_bytes=costs.peak_bytes,
        residual_bytes=costs.residual_bytes,
        output_bytes=costs.output_bytes,
    )
