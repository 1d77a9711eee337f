"""Compares GraphDefs node by node, in any order."""

from __future__ import annotations

from typing import Any

__all__ = ["assert_equal_graph_def"]


def assert_equal_graph_def(
    actual: Any, expected: Any, checkpoint_v2: bool = False, hash_table_shared_name: bool = False
) -> None:
    """Checks that two GraphDefs have the same nodes; their order does not matter.

    `checkpoint_v2`: ignores the temporary names that saving makes. `hash_table_shared_name`: ignores the
    shared names of tables. Raises AssertionError that names the first difference, TypeError for an argument
    that is no GraphDef.
    """
    for what, message in (("actual", actual), ("expected", expected)):
        if type(message).__name__ != "GraphDef":
            raise TypeError(f"Expected tf.GraphDef for {what}, got {type(message).__name__}")
    left, right = _nodes(actual), _nodes(expected)
    _check_names(left, right)
    for name, node in left.items():
        first, second = (
            _comparable(node, checkpoint_v2, hash_table_shared_name),
            _comparable(right[name], checkpoint_v2, hash_table_shared_name),
        )
        if first != second:
            raise AssertionError(
                f"GraphDefs differ at node '{name}':\nActual:\n{node}\nExpected:\n{right[name]}"
            )
    if actual.library != expected.library:
        raise AssertionError("GraphDefs differ in their function libraries.")


def _nodes(graph_def: Any) -> dict[str, Any]:
    nodes: dict[str, Any] = {}
    for node in graph_def.node:
        if node.name in nodes:
            raise AssertionError(f"Duplicate node '{node.name}' in a GraphDef.")
        nodes[node.name] = node
    return nodes


def _check_names(left: dict[str, Any], right: dict[str, Any]) -> None:
    extra, missing = [n for n in left if n not in right], [n for n in right if n not in left]
    if extra:
        raise AssertionError(f"Found unexpected node '{left[extra[0]]}' (and {len(extra) - 1} more).")
    if missing:
        raise AssertionError(
            f"Not found, although expected: node '{right[missing[0]]}' (and {len(missing) - 1} more)."
        )


def _comparable(node: Any, checkpoint_v2: bool, hash_table_shared_name: bool) -> Any:
    copy = type(node)()
    copy.CopyFrom(node)
    # Control inputs come after the data inputs in no particular order.
    data = [name for name in node.input if not name.startswith("^")]
    control = sorted(name for name in node.input if name.startswith("^"))
    del copy.input[:]
    copy.input.extend([*data, *control])
    if checkpoint_v2:
        _forget_temporary_name(copy)
    if hash_table_shared_name and "shared_name" in copy.attr and "HashTable" in copy.op:
        copy.attr["shared_name"].s = b""
    return copy


def _forget_temporary_name(node: Any) -> None:
    """A sharded save writes to a name with a random part: ``_temp_<32 hexadecimal digits>/part``."""
    if node.op != "Const" or "value" not in node.attr:
        return
    values = node.attr["value"].tensor.string_val
    for i, value in enumerate(values):
        if value.startswith(b"_temp_"):
            values[i] = b"_temp_"
