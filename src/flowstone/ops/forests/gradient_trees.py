"""The trees of an ensemble of `tf.contrib.boosted_trees`, and how examples go through them.

A tree is the message DecisionTreeConfig; `TreeArrays` has what leaves say side by side. Examples are parted
from the root on, each node asking the examples that came to it. In a tree whose layers ask one question each,
nodes are the questions, then the leaves, whose number is the answers' bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from flowstone.ops.arrays.arrays import invalid

__all__ = ["GradientExamples", "TreeArrays"]

Array = np.ndarray[Any, Any]
_OBLIVIOUS = ("oblivious_dense_float_binary_split", "oblivious_categorical_id_binary_split")


class GradientExamples:
    """A batch: dense float columns, sparse float columns and sparse columns of ids.

    Args:
        dense: float32 [examples, 1] each.
        sparse, ids: (indices [values, 2], values, shape) of each column.
    """

    def __init__(
        self,
        dense: Sequence[Array],
        sparse: Sequence[tuple[Array, Array, Array]],
        ids: Sequence[tuple[Array, Array, Array]],
    ) -> None:
        sizes = [len(column) for column in dense]
        for kind, columns in (("float", sparse), ("int", ids)):
            for _, _, shape in columns:
                if len(shape) != 2:
                    raise invalid(
                        f"Sparse {kind} feature column must be two-dimensional, not {shape.tolist()}"
                    )
                sizes.append(int(shape[0]))
        if not sizes:
            raise invalid("there are no features: no example has a leaf")
        if len(set(sizes)) > 1:
            raise invalid(f"feature columns have {sizes} examples: the batch size must be that of all")
        self._dense = [column.reshape(len(column), -1) for column in dense]
        self._sparse, self._ids, self._size = sparse, ids, sizes[0]
        self._column = lru_cache(maxsize=None)(self._dense_of_sparse)
        self._has = lru_cache(maxsize=None)(self._with_id)

    def __len__(self) -> int:
        return self._size

    def _dense_of_sparse(self, column: int, dimension: int) -> tuple[Array, Array]:
        """The values of a dimension of a sparse column, and which examples have one."""
        indices, values, _ = _at(self._sparse, column, "sparse float")
        rows = indices[:, 1] == dimension
        found, there = np.zeros(self._size, np.float32), np.zeros(self._size, bool)
        found[indices[rows, 0]], there[indices[rows, 0]] = values[rows], True
        return found, there

    def _with_id(self, column: int, feature_id: int) -> Array:
        """Which examples have an id in a column."""
        indices, values, _ = _at(self._ids, column, "sparse int")
        found = np.zeros(self._size, bool)
        found[indices[values == feature_id, 0]] = True
        return found

    def go_left(self, kind: str, question: Any, rows: Array) -> Array:
        """Which of these examples go left."""
        if kind in ("dense_float_binary_split", "oblivious_dense_float_binary_split"):
            column = _at(self._dense, question.feature_column, "dense float")
            dimension = getattr(question, "dimension_id", 0)
            below: Array = column[rows, dimension] <= np.float32(question.threshold)
            return below
        if kind.startswith("sparse_float"):
            split = question.split
            values, there = self._column(split.feature_column, split.dimension_id)
            below = values[rows] <= np.float32(split.threshold)
            return np.where(there[rows], below, kind.endswith("left"))
        if kind == "categorical_id_set_membership_binary_split":
            found = np.zeros(len(rows), bool)
            for feature_id in question.feature_ids:
                found |= self._has(question.feature_column, feature_id)[rows]
            return found
        return self._has(question.feature_column, question.feature_id)[rows]


def _at(columns: Sequence[Any], column: int, kind: str) -> Any:
    if not 0 <= column < len(columns):
        raise invalid(f"a tree asks for {kind} column {column} of {len(columns)}")
    return columns[column]


class TreeArrays:
    """A tree's questions as (kind, message), None for a leaf, and its leaves' numbers [nodes, outputs]."""

    def __init__(self, tree: Any) -> None:
        kinds = [node.WhichOneof("node") for node in tree.nodes]
        self._questions = [
            None if kind in (None, "leaf") else (kind, getattr(node, kind))
            for kind, node in zip(kinds, tree.nodes, strict=True)
        ]
        self._layers = sum(kind in _OBLIVIOUS for kind in kinds)
        self._leaves = [node.leaf for node in tree.nodes]
        self.values = lru_cache(maxsize=2)(self._values)

    def _values(self, outputs: int) -> Array:
        """float32 [nodes, outputs]."""
        found = np.zeros((len(self._leaves), outputs), np.float32)
        for row, leaf in zip(found, self._leaves, strict=True):
            if leaf.WhichOneof("leaf") == "sparse_vector":
                for index, value in zip(leaf.sparse_vector.index, leaf.sparse_vector.value, strict=True):
                    if not 0 <= index < outputs:
                        raise invalid(f"a leaf is for class {index}, and the ensemble has {outputs} outputs")
                    row[index] += value
            elif len(leaf.vector.value):
                numbers = leaf.vector.value[:outputs]
                row[: len(numbers)] = numbers
        return found

    def leaves_of(self, examples: GradientExamples) -> Array:
        """int32 [examples]: the number of each one's leaf."""
        found = np.zeros(len(examples), np.int32)
        if self._layers:
            return self._by_layers(examples, found)
        todo = [(0, np.arange(len(examples)))]
        while todo:
            node, rows = todo.pop()
            asked = self._questions[node]
            if asked is None:
                found[rows] = node
                continue
            kind, question = asked
            left = examples.go_left(kind, question, rows)
            children = getattr(question, "split", question)
            for child, part in ((children.left_id, rows[left]), (children.right_id, rows[~left])):
                if len(part):
                    todo.append((child, part))
        return found

    def _by_layers(self, examples: GradientExamples, found: Array) -> Array:
        rows = np.arange(len(examples))
        for asked in self._questions[: self._layers]:
            assert asked is not None
            found = found * 2 + ~examples.go_left(*asked, rows)
        return (found + self._layers).astype(np.int32)
