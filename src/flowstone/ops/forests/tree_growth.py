"""How a tree of `tf.contrib.boosted_trees` is split, and how splits that lose are taken back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from flowstone.ops.arrays.arrays import invalid

__all__ = ["NodeSplit", "prune", "split_layer", "split_nodes"]


class NodeSplit(NamedTuple):
    """A split of a node that a handler, of this number, found; `message` is SplitInfo,
    or of a whole layer ObliviousSplitInfo.
    """

    node: int
    gain: float
    handler: int
    message: Any


def _merged(leaf: Any, parent: Any) -> None:
    """Adds to a leaf what its parent said."""
    kind = parent.WhichOneof("leaf")
    if kind is None:
        return
    if leaf.WhichOneof("leaf") is None:
        leaf.CopyFrom(parent)
    elif kind != leaf.WhichOneof("leaf"):
        raise invalid("a leaf with all outputs and one with some of them cannot be added")
    elif kind == "vector":
        both = np.asarray(parent.vector.value, np.float32) + np.asarray(leaf.vector.value, np.float32)
        leaf.vector.value[:] = both.tolist()
    else:
        sums = dict(zip(parent.sparse_vector.index, parent.sparse_vector.value, strict=True))
        for index, value in zip(leaf.sparse_vector.index, leaf.sparse_vector.value, strict=True):
            sums[index] = float(np.float32(sums.get(index, 0.0)) + np.float32(value))
        leaf.sparse_vector.index[:], leaf.sparse_vector.value[:] = list(sums), list(sums.values())


def _add_leaf(tree: Any, leaf: Any, parent: Any) -> int:
    """The number of a new leaf; `parent` is the leaf that it adds to, or None."""
    node = tree.nodes.add()
    node.leaf.CopyFrom(leaf)
    if parent is not None:
        _merged(node.leaf, parent)
    return len(tree.nodes) - 1


def split_nodes(tree: Any, splits: Sequence[NodeSplit], merge: bool, keep: bool) -> None:
    """Splits leaves of a tree.

    Args:
        merge: whether new leaves add to what the leaf that was split said.
        keep: whether a node's metadata keeps the leaf that it was.

    InvalidArgumentError for nodes that are no leaves.
    """
    for split in splits:
        if not 0 <= split.node < len(tree.nodes):
            raise invalid(f"Invalid node {split.node} to split.")
        if tree.nodes[split.node].WhichOneof("node") != "leaf":
            raise invalid(f"Unexpected node type to split: node {split.node} is no leaf")
        leaf = type(tree.nodes[split.node].leaf)()
        leaf.CopyFrom(tree.nodes[split.node].leaf)
        parent = leaf if merge else None
        sides = split.message.left_child, split.message.right_child
        left, right = (_add_leaf(tree, side, parent) for side in sides)
        node = tree.nodes[split.node]
        node.CopyFrom(split.message.split_node)
        children = _children(node)
        if children is None:
            raise invalid(f"Unexpected node type: {node.WhichOneof('node')}")
        children.left_id, children.right_id = left, right
        node.node_metadata.gain = split.gain
        if keep:
            node.node_metadata.original_leaf.CopyFrom(leaf)


def _children(node: Any) -> Any:
    """What has the numbers of a node's children; None of a leaf, and of a question of a whole layer."""
    kind = node.WhichOneof("node")
    if kind in (None, "leaf") or kind.startswith("oblivious"):
        return None
    question = getattr(node, kind)
    return question.split if kind.startswith("sparse_float") else question


def prune(tree: Any) -> None:
    """Takes back splits of negative gain whose children are leaves, from the bottom, and forgets what was
    kept for that.
    """
    gone: set[int] = set()
    for number in reversed(range(len(tree.nodes))):  # children have greater numbers than their parents
        node = tree.nodes[number]
        children = _children(node)
        if children is None:
            continue
        below = children.left_id, children.right_id
        if node.node_metadata.gain < 0 and all(tree.nodes[at].WhichOneof("node") == "leaf" for at in below):
            gone.update(below)
            leaf = type(node.node_metadata.original_leaf)()
            leaf.CopyFrom(node.node_metadata.original_leaf)
            node.Clear()
            node.leaf.CopyFrom(leaf)
        else:
            node.node_metadata.ClearField("original_leaf")
    kept = [number for number in range(len(tree.nodes)) if number not in gone]
    places = {number: place for place, number in enumerate(kept)}
    for number in sorted(gone, reverse=True):
        del tree.nodes[number]
    for node in tree.nodes:
        children = _children(node)
        if children is not None:
            children.left_id, children.right_id = places[children.left_id], places[children.right_id]


def split_layer(tree: Any, split: NodeSplit, merge: bool) -> None:
    """Splits all leaves of a tree whose layers ask one question each.

    A leaf that the split does not name becomes two of what it was; with `merge`, new leaves add to it.
    """
    message = split.message
    questions = [node for node in tree.nodes if node.WhichOneof("node") != "leaf"]
    leaves = [node.leaf for node in tree.nodes[len(questions) :]]
    pairs = zip(message.children[0::2], message.children[1::2], strict=True)
    children = dict(zip(message.children_parent_id, pairs, strict=True))
    grown = type(tree)()
    grown.nodes.extend(questions)
    question = grown.nodes.add()
    question.CopyFrom(message.split_node)
    question.node_metadata.gain = split.gain
    question.node_metadata.original_oblivious_leaves.extend(leaves)
    for number, leaf in enumerate(leaves, len(questions)):
        for side in children.get(number, (leaf, leaf)):
            _add_leaf(grown, side, leaf if merge and number in children else None)
    tree.CopyFrom(grown)
