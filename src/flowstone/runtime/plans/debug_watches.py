"""Nodes of a debugger in a plan: each sends what a watched tensor is to a file, while the step goes on.

RunOptions name the tensors (`debug_options.debug_tensor_watch_opts`). A watch of node "*" is of all nodes, of
slot -1 of all outputs. Nodes within loops and branches are not watched, nor tensors that are handles. The
debugger's nodes are inserted before the plan is rewritten, so that what they watch is computed as the graph
says. An op may come with attributes: ``DebugNumericSummary(mute_if_healthy=true; lower_bound=-10.0)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from flowstone.framework import errors
from flowstone.framework.declarations.operation import OpDeclaration, registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph

__all__ = ["Watch", "insert_watches", "watches_of"]


class Watch(NamedTuple):
    """What to watch: a node by its name and the output's number, by which debug ops, and where it goes."""

    node: str
    slot: int
    ops: tuple[str, ...]
    urls: tuple[str, ...]


def watches_of(options: Any) -> tuple[Watch, ...]:
    """The watches that RunOptions (or None) ask for."""
    if options is None:
        return ()
    return tuple(
        Watch(each.node_name, each.output_slot, tuple(each.debug_ops), tuple(each.debug_urls))
        for each in options.debug_options.debug_tensor_watch_opts
    )


def insert_watches(subgraph: Subgraph, watches: Sequence[Watch], device: str) -> None:
    """Puts the debugger's nodes behind what they watch; they become targets.

    Args:
        subgraph: as pruned from the graph.
        watches: of its nodes; others watch nothing.
        device: the name of the device that dumps are filed under.

    Raises InvalidArgumentError for a debug op or attribute that does not exist.
    """
    by_name: dict[str, list[Watch]] = {}
    for watch in watches:
        by_name.setdefault(watch.node, []).append(watch)
    nodes: list[PlanNode] = []
    for node in subgraph.nodes:
        nodes.append(node)
        for watch in (*by_name.get("*", ()), *by_name.get(node.name, ())):
            made = list(_debug_nodes(subgraph, node, watch, device))
            nodes += made
            subgraph.targets += made
    subgraph.nodes = nodes


def _debug_nodes(subgraph: Subgraph, node: PlanNode, watch: Watch, device: str) -> Iterator[PlanNode]:
    origin = node.origin
    if getattr(origin, "_control_flow_context", None) is not None:
        return
    slots = range(len(node.outputs)) if watch.slot < 0 else [watch.slot]
    for slot in slots:
        if slot < len(node.outputs) and _is_shown(node.outputs[slot]):
            for text in watch.ops:
                yield _debug_node(subgraph, node, slot, text, watch.urls, device)


def _is_shown(output: PlanOutput) -> bool:
    return output.dtype.base_dtype.name not in ("resource", "variant")


def _debug_node(
    subgraph: Subgraph, node: PlanNode, slot: int, text: str, urls: tuple[str, ...], device: str
) -> PlanNode:
    declaration, given = _parsed(text)
    attributes: dict[str, Any] = {name: spec.default for name, spec in declaration.attributes.items()}
    attributes |= given
    attributes |= {"T": node.outputs[slot].dtype.base_dtype, "tensor_name": f"{node.name}:{slot}"}
    attributes |= {"device_name": device, "debug_urls": list(urls)}
    name = f"__dbg_{node.name}:{slot}_{declaration.name}"
    return subgraph.new_node(declaration, [node.outputs[slot]], attributes, node, name=name)


def _parsed(text: str) -> tuple[OpDeclaration, dict[str, Any]]:
    """The debug op and the attributes that a text names."""
    name, _, arguments = text.partition("(")
    declaration = registry.get(name) if name.startswith("Debug") else None
    if declaration is None:
        raise errors.InvalidArgumentError(None, None, f"There is no debug op {name!r}")
    given = {}
    for item in filter(None, arguments.rstrip(")").split(";")):
        key, _, value = (part.strip() for part in item.partition("="))
        if key not in declaration.attributes:
            raise errors.InvalidArgumentError(None, None, f"The debug op {name} has no attribute {key!r}")
        given[key] = (
            value.lower() in ("true", "1") if key in ("mute_if_healthy", "gated_grpc") else float(value)
        )
    return declaration, given
