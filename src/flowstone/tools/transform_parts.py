"""What the transforms of `TransformGraph` share: their arguments, and nodes and graphs with other inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.framework import errors

__all__ = ["Arguments", "invalid", "node_name", "one", "rewired", "with_nodes"]

Arguments = dict[str, list[str]]
"""The values of each argument, in order."""


def invalid(text: str) -> errors.InvalidArgumentError:
    """The error to raise for a transform or an argument."""
    return errors.InvalidArgumentError(None, None, text)


def one(arguments: Arguments, name: str, default: str | None = None) -> str:
    """The value of an argument that is given once, or its default."""
    values = arguments.get(name, [] if default is None else [default])
    if len(values) != 1:
        raise invalid(f"The transform needs one argument {name}, and has {len(values)}.")
    return values[0]


def node_name(name: str) -> str:
    """The node of an input `node`, `node:1` or `^node`."""
    return name.lstrip("^").partition(":")[0]


def with_nodes(graph: Any, nodes: Sequence[Any]) -> Any:
    """A copy of the GraphDef with these nodes."""
    made = tf.GraphDef()
    made.CopyFrom(graph)
    del made.node[:]
    made.node.extend(nodes)
    return made


def rewired(node: Any, source: Callable[[str], str]) -> Any:
    """A copy of the node whose inputs are what `source` makes of their names."""
    made = tf.NodeDef()
    made.CopyFrom(node)
    del made.input[:]
    made.input.extend(source(name) for name in node.input)
    return made
