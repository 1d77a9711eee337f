"""The trees of a profile as the messages that TensorFlow's profiler returns."""

from __future__ import annotations

from typing import Any

from flowstone.io.proto.tfprof_output_pb2 import GraphNodeProto, MultiGraphNodeProto
from flowstone.profiling.records import Costs, Record
from flowstone.profiling.trees import Tree


def node_message(root: Tree) -> Any:
    """The GraphNodeProto of a tree by name scope or data flow."""
    message = GraphNodeProto()
    waiting = [(root, message)]
    while waiting:
        tree, own = waiting.pop()
        _write_costs(tree, own)
        own.total_run_count, own.total_definition_count = tree.total.runs, tree.total.definitions
        if not tree.is_root:
            own.run_count = tree.own.runs
        if tree.record is not None:
            own.devices.extend(tree.record.devices)
            _write_input_shapes(tree.record, own)
        waiting += [(child, own.children.add()) for child in tree.children]
    return message


def lines_message(root: Tree) -> Any:
    """The MultiGraphNodeProto of a tree by lines of Python."""
    message = MultiGraphNodeProto()
    waiting = [(root, message)]
    while waiting:
        tree, own = waiting.pop()
        _write_many(tree, own)
        waiting += [(child, own.children.add()) for child in tree.children]
    return message


def kinds_message(listed: list[Tree]) -> Any:
    """The MultiGraphNodeProto of the kinds of ops: the root, in which each kind is the child of the one
    before."""
    message = own = MultiGraphNodeProto()
    for tree in listed:
        if not tree.is_root:
            own = own.children.add()
        _write_many(tree, own)
    return message


def _write_many(tree: Tree, message: Any) -> None:
    _write_costs(tree, message)
    for record, costs in tree.members:
        node = message.graph_nodes.add(name=record.name, run_count=costs.runs, total_run_count=costs.runs)
        node.total_definition_count = 1
        _write(costs, "", node)
        _write(costs, "total_", node)
        node.devices.extend(record.devices)
        _write_input_shapes(record, node)


def _write_costs(tree: Tree, message: Any) -> None:
    message.name = tree.name
    if not tree.is_root:
        _write(tree.own, "", message)
    _write(tree.total, "total_", message)


def _write(costs: Costs, prefix: str, message: Any) -> None:
    setattr(message, f"{prefix}exec_micros", costs.micros)
    setattr(message, f"{prefix}accelerator_exec_micros", costs.accelerator_micros)
    setattr(message, f"{prefix}cpu_exec_micros", costs.cpu_micros)
    setattr(message, f"{prefix}requested_bytes", costs.bytes)
    setattr(message, f"{prefix}peak_bytes", costs.peak_bytes)
    setattr(message, f"{prefix}residual_bytes", costs.residual_bytes)
    setattr(message, f"{prefix}output_bytes", costs.output_bytes)
    setattr(message, f"{prefix}parameters", costs.params)
    setattr(message, f"{prefix}float_ops", costs.float_ops)


def _write_input_shapes(record: Record, message: Any) -> None:
    for index, dims in record.input_shapes.items():
        shape = message.input_shapes[index]
        shape.unknown_rank = dims is None
        for n in dims or ():
            shape.dim.add(size=-1 if n is None else n)
