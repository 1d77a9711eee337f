"""Tables of model states: a number of a chunk of time, and the tensors that the model knew at its start."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.framework import nest
from flowstone.contrib.lookup import MutableDenseHashTable

__all__ = ["TensorValuedMutableDenseHashTable", "TupleOfTensorsLookup"]


class TensorValuedMutableDenseHashTable(MutableDenseHashTable):  # type: ignore[misc]
    """A `MutableDenseHashTable` whose values have any shape, that of `default_value`."""

    def __init__(
        self, key_dtype: Any, value_dtype: Any, default_value: Any, *args: Any, **kwargs: Any
    ) -> None:
        self._shape_of_a_value = tf.shape(default_value)
        super().__init__(key_dtype, value_dtype, tf.reshape(default_value, [-1]), *args, **kwargs)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Any:
        """Puts `values` [*keys.shape, *value's shape] under `keys`."""
        flat = tf.reshape(tf.convert_to_tensor(keys, self.key_dtype), [-1])
        return super().insert(flat, tf.reshape(values, [tf.shape(flat)[0], -1]), name)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values [*keys.shape, *value's shape] of `keys`; the default where there is none."""
        flat = tf.reshape(tf.convert_to_tensor(keys, self.key_dtype), [-1])
        return tf.reshape(super().lookup(flat, name), tf.concat([tf.shape(keys), self._shape_of_a_value], 0))


class TupleOfTensorsLookup:
    """Tables of one key type, one for each tensor of a structure.

    Args:
        key_dtype: of the keys.
        default_values: the structure of the values of a key that is not there.
        empty_key, deleted_key: keys that are never used.
        name: the first part of the tables' names.
        checkpoint: whether checkpoints have the tables.
    """

    def __init__(
        self,
        key_dtype: Any,
        default_values: Any,
        empty_key: Any,
        deleted_key: Any,
        name: str,
        checkpoint: bool = True,
    ) -> None:
        self._structure = default_values
        self._tables = [
            TensorValuedMutableDenseHashTable(
                key_dtype=key_dtype,
                value_dtype=value.dtype.base_dtype,
                default_value=value,
                empty_key=empty_key,
                deleted_key=deleted_key,
                name=f"{name}_{number}",
                checkpoint=checkpoint,
            )
            for number, value in enumerate(nest.flatten(default_values))
        ]
        self._name = name

    def lookup(self, keys: Any) -> Any:
        """The structure of the values of `keys`."""
        return nest.pack_sequence_as(self._structure, [table.lookup(keys) for table in self._tables])

    def insert(self, keys: Any, values: Any) -> Any:
        """Puts a structure of values under `keys`: all are computed before any is put."""
        nest.assert_same_structure(self._structure, values)
        known = [tf.identity(value) for value in nest.flatten(values)]
        with tf.control_dependencies(known):
            return tf.group(*(table.insert(keys, value) for table, value in zip(self._tables, known)))
