"""Tables that change while a graph runs.

>>> import flowstone as tf
>>> with tf.Graph().as_default(), tf.Session() as session:
...     ages = MutableHashTable(tf.string, tf.int64, -1)
...     session.run(ages.insert(tf.constant(["ann", "bob"]), tf.constant([31, 47], tf.int64)))
...     session.run(ages.lookup(tf.constant(["bob", "eve"]))).tolist()
[47, -1]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.checkpoints.saveable_object import SaveableObject, SaveSpec
from flowstone.ops.lookup.lookup_tables import LookupInterface, check_keys, refuse_anonymous

__all__ = ["DenseHashTable", "MutableDenseHashTable", "MutableHashTable"]


class _ChangingTable(LookupInterface):
    """What both kinds share; `_default_value` is a tensor with the shape of one value."""

    _default_value: Tensor
    _resource_handle: Tensor

    @property
    def resource_handle(self) -> Tensor:
        """The handle."""
        return self._resource_handle

    @property
    def name(self) -> str:
        """The last part of its operation's name."""
        return self._resource_handle.op.name.rpartition("/")[2]

    def size(self, name: str | None = None) -> Tensor:
        """How many keys there are: int64, []."""
        graph = get_default_graph()
        with graph.name_scope(name or f"{self.name}_Size"), graph.colocate_with(self._resource_handle):
            return F.LookupTableSizeV2(self._resource_handle)

    def lookup(self, keys: Any, name: str | None = None) -> Tensor:
        """The values of `keys`, the default value for those that are not there."""
        graph = get_default_graph()
        with graph.name_scope(name or f"{self.name}_lookup_table_find"):
            keys = convert_to_tensor(keys, self._key_dtype, name="keys")
            with graph.colocate_with(self._resource_handle):
                return F.LookupTableFindV2(self._resource_handle, keys, self._default_value)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Operation:
        """The operation that puts `keys` in with `values`, or gives them other ones."""
        graph = get_default_graph()
        with graph.name_scope(name or f"{self.name}_lookup_table_insert"):
            keys = convert_to_tensor(keys, self._key_dtype, name="keys")
            values = convert_to_tensor(values, self._value_dtype, name="values")
            with graph.colocate_with(self._resource_handle):
                return F.LookupTableInsertV2.operation(self._resource_handle, keys, values)

    def remove(self, keys: Any, name: str | None = None) -> Operation:
        """The operation that takes `keys` out; those that are not there are passed over.

        Raises TypeError for keys of another type.
        """
        check_keys(keys, self._key_dtype)
        with get_default_graph().name_scope(name or f"{self.name}_lookup_table_remove"):
            return F.LookupTableRemoveV2.operation(self._resource_handle, keys)

    def _add_saveable(self, name: str) -> None:
        """Lets Savers of the graph save the table."""
        get_default_graph().add_to_collection(GraphKeys.SAVEABLE_OBJECTS, _TableSaveable(self, name))

    def _export(self, name: str | None) -> tuple[Tensor, Tensor]:
        graph = get_default_graph()
        with (
            graph.name_scope(name or f"{self.name}_lookup_table_export_values"),
            graph.colocate_with(self._resource_handle),
        ):
            found: tuple[Tensor, Tensor] = F.LookupTableExportV2.several(
                self._resource_handle, Tkeys=self._key_dtype, Tvalues=self._value_dtype
            )
        return found


class _TableSaveable(SaveableObject):
    """The keys and values of a table."""

    def __init__(self, table: _ChangingTable, name: str) -> None:
        keys, values = table._export(None)
        specs = [SaveSpec(keys, "", f"{name}-keys"), SaveSpec(values, "", f"{name}-values")]
        super().__init__(table.resource_handle.op, specs, name)
        self._table = table

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Any] | None) -> Any:
        """Puts the keys and values in place of what the table holds."""
        graph, handle = get_default_graph(), self._table.resource_handle
        with graph.name_scope(f"{self._table.name}_table_restore"), graph.colocate_with(handle):
            return F.LookupTableImportV2.operation(handle, *restored_tensors)


class MutableHashTable(_ChangingTable):
    """A table that changes, of any keys.

    Args:
        key_dtype, value_dtype: the types of keys and values.
        default_value: the value of other keys, a scalar or a vector; all values have its shape.
        shared_name: sessions on one target share tables of a name.
        name: of its operation.
        checkpoint: whether a Saver saves the table, as ``<name>-keys`` and ``<name>-values``, and it is found
            by its operation's name.
        experimental_is_anonymous: must be False: such a table would not outlive a step.
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
        shared_name: str | None = None,
    ) -> None:
        refuse_anonymous(experimental_is_anonymous)
        super().__init__(key_dtype, value_dtype)
        self._default_value = convert_to_tensor(default_value, self._value_dtype)
        is_scalar = self._default_value.shape.ndims == 0
        shape = {} if is_scalar else {"value_shape": self._default_value.shape}
        self._resource_handle = (F.MutableHashTableV2 if is_scalar else F.MutableHashTableOfTensorsV2)(
            shared_name=shared_name,
            use_node_name_sharing=checkpoint and shared_name is None,
            key_dtype=self._key_dtype,
            value_dtype=self._value_dtype,
            name=name,
            **shape,
        )
        if checkpoint:
            self._add_saveable(name)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys, a vector, and their values, [keys, ...]."""
        keys, values = self._export(name)
        keys.set_shape([None])
        values.set_shape(TensorShape([None]).concatenate(self._default_value.shape))
        return keys, values


class DenseHashTable(_ChangingTable):
    """A table that changes, whose keys and values are tensors of one shape each.

    Args:
        key_dtype, value_dtype: the types of keys and values.
        default_value: the value of other keys; all values have its shape.
        empty_key: what no key may be, a constant; all keys have its shape.
        deleted_key: another such key, or None.
        initial_num_buckets: a power of 2.
        name: of its operation.
        checkpoint: whether a Saver saves the table, as ``<name>-keys`` and ``<name>-values``, and it is found
            by its operation's name.
        experimental_is_anonymous: must be False: such a table would not outlive a step.
        shared_name: sessions on one target share tables of a name.

    A step raises InvalidArgumentError for one of the two keys, and for keys and values of other shapes.
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any = None,
        initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
        shared_name: str | None = None,
    ) -> None:
        refuse_anonymous(experimental_is_anonymous)
        super().__init__(key_dtype, value_dtype)
        self._default_value = convert_to_tensor(default_value, self._value_dtype, name="default_value")
        self._empty_key = convert_to_tensor(empty_key, self._key_dtype, name="empty_key")
        self._resource_handle = F.MutableDenseHashTableV2(
            self._empty_key,
            deleted_key=[] if deleted_key is None else [_constant(deleted_key, self._key_dtype)],
            shared_name=shared_name,
            use_node_name_sharing=checkpoint and shared_name is None,
            value_dtype=self._value_dtype,
            value_shape=self._default_value.shape,
            initial_num_buckets=131072 if initial_num_buckets is None else initial_num_buckets,
            name=name,
        )
        if checkpoint:
            self._add_saveable(name)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """The keys of all buckets, [buckets, elements of a key], and the values, [buckets, elements of a
        value]; empty buckets, the last ones, have `empty_key`.
        """
        keys, values = self._export(name)
        keys.set_shape([None, self._empty_key.shape.num_elements()])
        values.set_shape([None, self._default_value.shape.num_elements()])
        return keys, values

    def insert_or_assign(self, keys: Any, values: Any, name: str | None = None) -> Operation:
        """The same as `insert`."""
        return self.insert(keys, values, name)

    def erase(self, keys: Any, name: str | None = None) -> Operation:
        """The same as `remove`."""
        return self.remove(keys, name)


def _constant(key: Any, dtype: dtypes.DType) -> np.ndarray[Any, Any]:
    tensor = convert_to_tensor(key, dtype, name="deleted_key")
    value = static_value(tensor)
    if not isinstance(value, np.ndarray):
        raise ValueError(f"deleted_key must be a constant, not {tensor}")
    return value


MutableDenseHashTable = DenseHashTable
