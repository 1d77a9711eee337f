"""Tells what a file of a model holds: a GraphDef, a MetaGraphDef, a SavedModel or a checkpoint.

    flowstone inspect [options] FILE

Of a graph: its ops, and, for each name scope, the number of parameters, their bytes and the floating-point
operations of one run. Of a checkpoint: its tensors. Unknown dimensions count as 1024 in operations.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from flowstone.framework.errors import OpError
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.graphs.import_graph import import_graph_def
from flowstone.placement.operation_cost import state_size, work
from flowstone.tools.model_files import read
from flowstone.training.checkpoints.checkpoint_reading import NewCheckpointReader

NAME = "inspect"
SUMMARY = "tell what a graph, a saved model or a checkpoint holds"


def declare(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `flowstone inspect`."""
    parser.add_argument("file", metavar="FILE", help="a file, a model's folder or a checkpoint's prefix")
    parser.add_argument("--depth", type=int, default=1, metavar="N", help="levels of name scopes (1)")
    parser.add_argument("--nodes", action="store_true", help="also list every node with its shapes")


def execute(options: argparse.Namespace) -> int:
    """Prints what the file holds; returns the exit status, 2 if it cannot be read."""
    try:
        held = read(options.file)
        lines = [f"{options.file}: {held.kind}"]
        for meta in held.graphs:
            lines += ["", *_about_graph(meta, options.depth, options.nodes)]
        if held.checkpoint:
            lines += ["", *_about_checkpoint(held.checkpoint)]
    except (OpError, ValueError) as error:
        print(f"flowstone inspect: {options.file}: {getattr(error, 'message', error)}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0


class Costs(NamedTuple):
    """What a scope has: nodes, parameters, their bytes, operations of one run."""

    nodes: int = 0
    parameters: int = 0
    size: int = 0
    operations: float = 0.0


def _table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Lines of columns: the first to the left, numbers to the right."""
    cells = [list(header), *([f"{x:,}" if isinstance(x, int) else str(x) for x in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


# ---- graphs


def _about_graph(meta: Any, depth: int, with_nodes: bool) -> list[str]:
    graph = Graph()
    with graph.as_default():
        import_graph_def(meta.graph_def, name="")
    operations = graph.get_operations()
    versions = meta.graph_def.versions
    lines = [f"{len(operations):,} nodes, {len(meta.graph_def.library.function):,} functions"]
    lines[0] += f", producer {versions.producer}, min consumer {versions.min_consumer}"
    if meta.meta_info_def.tags:
        lines.append(f"tags: {', '.join(meta.meta_info_def.tags)}")
    lines += _signatures(meta)
    lines += ["", *_table(["op", "nodes"], Counter(op.type for op in operations).most_common()), ""]
    scopes = scope_costs(graph, depth)
    rows = [(name, each.nodes, each.parameters, each.size, round(each.operations)) for name, each in scopes]
    lines += _table(["scope", "nodes", "parameters", "bytes", "operations"], rows)
    if with_nodes:
        lines += ["", *_table(["node", "op", "outputs"], [_node_row(op) for op in operations])]
    return lines


def _node_row(op: Any) -> tuple[str, str, str]:
    return op.name, op.type, " ".join(f"{x.dtype.name}{x.shape}" for x in op.outputs)


def _signatures(meta: Any) -> list[str]:
    lines = []
    for key in sorted(meta.signature_def):
        signature = meta.signature_def[key]
        lines.append(f"signature {key}: {signature.method_name}")
        for word, infos in (("input", signature.inputs), ("output", signature.outputs)):
            lines += [f"  {word} {name}: {infos[name].name}" for name in sorted(infos)]
    return lines


def scope_costs(graph: Graph, depth: int) -> list[tuple[str, Costs]]:
    """The costs of each name scope of `depth` levels, in the order of their first nodes; last the whole."""
    found: dict[str, Costs] = {}
    whole = Costs()
    for op in graph.get_operations():
        scope = "/".join(op.name.split("/")[:-1][:depth]) or "."
        own = _costs(op)
        found[scope] = _sum(found.get(scope, Costs()), own)
        whole = _sum(whole, own)
    return [*found.items(), ("in all", whole)]


def _sum(x: Costs, y: Costs) -> Costs:
    return Costs(x.nodes + y.nodes, x.parameters + y.parameters, x.size + y.size, x.operations + y.operations)


def _costs(op: Any) -> Costs:
    parameters = size = 0
    if op.type in ("VarHandleOp", "Variable", "VariableV2"):
        size = state_size(op)
        dtype = op.attributes["dtype"]
        parameters = size // (dtype.size or 8)
    return Costs(1, parameters, size, work(op).operations)


# ---- checkpoints


def _about_checkpoint(prefix: str) -> list[str]:
    reader = NewCheckpointReader(prefix)
    shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    rows = []
    total = 0
    for name in sorted(shapes):
        count = 1
        for dim in shapes[name]:
            count *= int(dim)
        total += count
        rows.append((name, dtypes[name].name, str([int(dim) for dim in shapes[name]]), count))
    rows.append(("in all", "", "", total))
    return [f"checkpoint {prefix}", *_table(["tensor", "dtype", "shape", "elements"], rows)]
