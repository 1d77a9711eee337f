"""What transforms of GraphDefs (`graph_transforms.py`) share: arguments, nodes by name, changed copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.framework import errors

__all__ = ["Arguments", "invalid", "node_of", "one", "rewired", "with_nodes"]

Arguments = dict[str, list[str]]


def invalid(text: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, text)


def one(arguments: Arguments, name: str, default: str | None = None) -> str:
    values = arguments.get(name, [] if default is None else [default])
    if len(values) != 1:
        raise invalid(f"The transform needs one argument {name}, and has {len(values)}.")
    return values[0]


def node_of(name: str) -> str:
    return name.lstrip("^").partition(":")[0]


def with_nodes(graph: Any, nodes: Sequence[Any]) -> Any:
    made = tf.GraphDef()
    made.CopyFrom(graph)
    del made.node[:]
    made.node.extend(nodes)
    return made


def rewired(node: Any, source: Callable[[str], str]) -> Any:
    made = tf.NodeDef()
    made.CopyFrom(node)
    del made.input[:]
    made.input.extend(source(name) for name in node.input)
    return made
