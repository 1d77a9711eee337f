"""The state of examples by their identifiers, in tables that share the keys."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["ShardedStates"]

_WIDTH = 4  # dual variable, primal loss, dual loss, weight


class ShardedStates:
    """The four numbers of each example, zeros at first, by 128-bit fingerprints of identifiers.

    `num_shards`: how many tables share the examples; they are saved in checkpoints as
    ``ShardedMutableHashTable-1-of-N`` and so on.
    """

    def __init__(self, num_shards: int = 1, name: str = "ShardedMutableHashTable") -> None:
        with tf.name_scope(name, "sharded_mutable_hash_table"):
            self._tables = [
                tf.contrib.lookup.MutableDenseHashTable(
                    key_dtype=tf.int64,
                    value_dtype=tf.float32,
                    default_value=[0.0] * _WIDTH,
                    empty_key=[0, 0],
                    deleted_key=[1, 1],
                    name=f"{name}-{i + 1}-of-{num_shards}",
                )
                for i in range(num_shards)
            ]

    def _places(self, keys: Any) -> Any:
        """The table of each key [n, 2]."""
        return tf.cast(tf.floormod(keys[:, 0], len(self._tables)), tf.int32)

    def lookup(self, keys: Any) -> Any:
        """The numbers [n, 4] of the keys, int64 [n, 2]."""
        if len(self._tables) == 1:
            return self._tables[0].lookup(keys)
        count, places = len(self._tables), self._places(keys)
        rows = tf.dynamic_partition(tf.range(tf.shape(keys)[0]), places, count)
        parts = tf.dynamic_partition(keys, places, count)
        found = [table.lookup(part) for table, part in zip(self._tables, parts, strict=True)]
        return tf.reshape(tf.dynamic_stitch(rows, found), [-1, _WIDTH])

    def insert(self, keys: Any, values: Any) -> Any:
        """The operation that gives the keys [n, 2] these numbers [n, 4]."""
        if len(self._tables) == 1:
            return self._tables[0].insert(keys, values)
        count, places = len(self._tables), self._places(keys)
        key_parts = tf.dynamic_partition(keys, places, count)
        value_parts = tf.dynamic_partition(values, places, count)
        triples = zip(self._tables, key_parts, value_parts, strict=True)
        return tf.group(*(table.insert(part, numbers) for table, part, numbers in triples))

    def sums(self) -> Any:
        """The sum of the numbers of all examples [4]."""
        return tf.add_n([tf.reduce_sum(table.export()[1], 0) for table in self._tables])

    def size(self) -> Any:
        """How many examples there are, int64."""
        return tf.add_n([table.size() for table in self._tables])
