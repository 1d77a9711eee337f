"""Which tensors of a run are dumped: RunOptions filled from a graph, by names, ops and types of tensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

__all__ = [
    "add_debug_tensor_watch",
    "reconstruct_non_debug_graph_def",
    "watch_graph",
    "watch_graph_with_blacklists",
]


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or [])


def add_debug_tensor_watch(
    run_options: Any,
    node_name: str,
    output_slot: int = 0,
    debug_ops: Any = "DebugIdentity",
    debug_urls: Any = None,
    tolerate_debug_op_creation_failures: bool = False,
    global_step: int = -1,
) -> None:
    """Has a run with these RunOptions dump one output of a node.

    Args:
        run_options: the RunOptions to add to.
        node_name: the node; "*" is all.
        output_slot: the number of the output; -1 is all.
        debug_ops: names of debug ops, with attributes in brackets if need be.
        debug_urls: where to: `file://FOLDER`, one or several.
        tolerate_debug_op_creation_failures, global_step: noted in the options.
    """
    watch = run_options.debug_options.debug_tensor_watch_opts.add(
        node_name=node_name,
        output_slot=output_slot,
        tolerate_debug_op_creation_failures=tolerate_debug_op_creation_failures,
    )
    run_options.debug_options.global_step = global_step
    watch.debug_ops.extend(_listed(debug_ops))
    watch.debug_urls.extend(_listed(debug_urls))


def watch_graph(
    run_options: Any,
    graph: Any,
    debug_ops: Any = "DebugIdentity",
    debug_urls: Any = None,
    node_name_regex_whitelist: str | None = None,
    op_type_regex_whitelist: str | None = None,
    tensor_dtype_regex_whitelist: str | None = None,
    tolerate_debug_op_creation_failures: bool = False,
    global_step: int = -1,
    reset_disk_byte_usage: bool = False,
) -> None:
    """Has a run with these RunOptions dump the graph's tensors, those whose node, op and type match.

    The patterns are regular expressions for the beginning of the text; None takes all.
    """
    patterns = (node_name_regex_whitelist, op_type_regex_whitelist, tensor_dtype_regex_whitelist)
    _watch(
        run_options,
        graph,
        debug_ops,
        debug_urls,
        lambda texts: all(p is None or re.match(p, text) for p, text in zip(patterns, texts)),
        tolerate_debug_op_creation_failures,
        global_step,
    )


def watch_graph_with_blacklists(
    run_options: Any,
    graph: Any,
    debug_ops: Any = "DebugIdentity",
    debug_urls: Any = None,
    node_name_regex_blacklist: str | None = None,
    op_type_regex_blacklist: str | None = None,
    tensor_dtype_regex_blacklist: str | None = None,
    tolerate_debug_op_creation_failures: bool = False,
    global_step: int = -1,
    reset_disk_byte_usage: bool = False,
) -> None:
    """Has a run with these RunOptions dump the graph's tensors, but for those that match."""
    patterns = (node_name_regex_blacklist, op_type_regex_blacklist, tensor_dtype_regex_blacklist)
    _watch(
        run_options,
        graph,
        debug_ops,
        debug_urls,
        lambda texts: not any(p is not None and re.match(p, text) for p, text in zip(patterns, texts)),
        tolerate_debug_op_creation_failures,
        global_step,
    )


def _watch(
    run_options: Any,
    graph: Any,
    debug_ops: Any,
    debug_urls: Any,
    is_wanted: Callable[[Sequence[str]], bool],
    tolerates: bool,
    global_step: int,
) -> None:
    for operation in graph.get_operations():
        for output in operation.outputs:
            if is_wanted((operation.name, operation.type, output.dtype.name)):
                add_debug_tensor_watch(
                    run_options,
                    operation.name,
                    output.value_index,
                    debug_ops,
                    debug_urls,
                    tolerates,
                    global_step,
                )


_DEBUG_NODE = re.compile(r"__(dbg|copy)_")


def reconstruct_non_debug_graph_def(debug_graph_def: Any) -> Any:
    """The graph without the nodes that a debugger put in: their consumers take what they copied."""
    nodes = {node.name: node for node in debug_graph_def.node}
    graph = type(debug_graph_def)(versions=debug_graph_def.versions, library=debug_graph_def.library)

    def original(name: str) -> str:
        control, bare = ("^", name[1:]) if name.startswith("^") else ("", name)
        node, _, _slot = bare.partition(":")
        while _DEBUG_NODE.match(node) and node in nodes:
            bare = nodes[node].input[0]
            node = bare.partition(":")[0]
        return f"{control}{node if control else bare}"

    for node in debug_graph_def.node:
        if not _DEBUG_NODE.match(node.name):
            copy = graph.node.add()
            copy.CopyFrom(node)
            copy.input[:] = [original(name) for name in node.input]
    return graph
