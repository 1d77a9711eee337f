"""Tables with fixed contents, and what all tables have in common.

>>> import flowstone as tf
>>> from flowstone.ops.lookup.table_initializers import KeyValueTensorInitializer
>>> with tf.Graph().as_default(), tf.Session() as session:
...     numbers = tf.constant([1, 2], tf.int64)
...     table = HashTable(KeyValueTensorInitializer(["one", "two"], numbers), -1)
...     session.run(tf.tables_initializer())
...     session.run(table.lookup(tf.constant(["two", "three"]))).tolist()
[2, -1]
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.control.control_flow import group, no_op
from flowstone.ops.lookup.table_types import TypedByKeyAndValue

__all__ = [
    "HashTable",
    "InitializableLookupTableBase",
    "LookupInterface",
    "StaticHashTable",
    "initialize_all_tables",
    "tables_initializer",
]


class LookupInterface(TypedByKeyAndValue, ABC):
    """What all tables have in common: the types of keys and values, and looking up."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The table's name."""

    @abstractmethod
    def size(self, name: str | None = None) -> Tensor:
        """How many keys there are: int64, []."""

    @abstractmethod
    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of `keys`."""


def check_keys(keys: Any, dtype: dtypes.DType) -> None:
    """TypeError for keys of another type."""
    if keys.dtype.base_dtype is not dtype:
        raise TypeError(f"Signature mismatch. Keys must be dtype {dtype!r}, got {keys.dtype!r}.")


def values_like(keys: Any, values: Tensor) -> Any:
    """`values` as the values of a SparseTensor, if `keys` are those of one."""
    if isinstance(keys, SparseTensor):
        return SparseTensor(keys.indices, values, keys.dense_shape)
    return values


class InitializableLookupTableBase(LookupInterface):
    """A table that `initializer` gives its contents, with `default_value` (a scalar) for other keys."""

    def __init__(self, default_value: Any, initializer: Any) -> None:
        super().__init__(initializer.key_dtype, initializer.value_dtype)
        self._default_value = convert_to_tensor(default_value, self._value_dtype)
        self._default_value.shape.merge_with([])
        self._initializer = initializer
        self._resource_handle = self._create_resource()
        self._init_op = initializer.initialize(self)

    @abstractmethod
    def _create_resource(self) -> Tensor:
        """The handle."""

    def _checkpoint_children(self) -> list[tuple[str, Any]]:
        """What a checkpoint or SavedModel has of it."""
        return [("_initializer", self._initializer)]

    def _initialize_again(self) -> Any:
        """A new operation that gives it its contents, in a function that is saved."""
        return self._initializer.initialize(self)

    @property
    def resource_handle(self) -> Tensor:
        """The handle."""
        return self._resource_handle

    @property
    def default_value(self) -> Tensor:
        """The value of keys that are not in the table."""
        return self._default_value

    @property
    def initializer(self) -> Operation:
        """The operation that gives it its contents."""
        return self._init_op  # type: ignore[no-any-return]

    @property
    def init(self) -> Operation:
        """The same as `initializer`."""
        return self._init_op  # type: ignore[no-any-return]

    @property
    def name(self) -> str:
        """The last part of its operation's name."""
        return self._resource_handle.op.name.rpartition("/")[2]

    def size(self, name: str | None = None) -> Tensor:
        """How many keys there are, 0 before it is initialised: int64, []."""
        with get_default_graph().name_scope(name or f"{self.name}_Size"):
            return F.LookupTableSizeV2(self._resource_handle)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of `keys`, a tensor or a SparseTensor, in its form; `default_value` for others.

        Raises TypeError for keys of another type. A step fails with FailedPreconditionError before the table
        is initialised.
        """
        check_keys(keys, self._key_dtype)
        found_for = keys.values if isinstance(keys, SparseTensor) else keys
        with get_default_graph().name_scope(name or f"{self.name}_Lookup"):
            values = F.LookupTableFindV2(self._resource_handle, found_for, self._default_value)
        values.set_shape(found_for.shape)
        return values_like(keys, values)


class StaticHashTable(InitializableLookupTableBase):
    """A table with fixed contents.

    Args:
        initializer: where they come from, such as `KeyValueTensorInitializer`.
        default_value: the value of other keys, a scalar.
        name: of its operation.
        shared_name: sessions on one target share tables of a name.
        experimental_is_anonymous: must be False: such a table would not outlive a step.
    """

    def __init__(
        self,
        initializer: Any,
        default_value: Any,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
        shared_name: str | None = None,
    ) -> None:
        refuse_anonymous(experimental_is_anonymous)
        self._operation_name = name or "hash_table"
        self._shared_name = shared_name or initializer.shared_name or f"hash_table_{uuid.uuid4()}"
        super().__init__(default_value, initializer)

    def _create_resource(self) -> Tensor:
        return F.HashTableV2(
            shared_name=self._shared_name,
            key_dtype=self._key_dtype,
            value_dtype=self._value_dtype,
            name=self._operation_name,
        )

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys and their values, vectors. A step fails with AbortedError before it is initialised."""
        with get_default_graph().name_scope(name or f"{self.name}_Export"):
            keys, values = F.LookupTableExportV2.several(
                self._resource_handle, Tkeys=self._key_dtype, Tvalues=self._value_dtype
            )
        keys.set_shape([None])
        values.set_shape([None])
        return keys, values


def refuse_anonymous(is_anonymous: bool) -> None:
    """ValueError if a table is asked for that no name leads to."""
    if is_anonymous:
        raise ValueError("an anonymous table needs eager execution: in a graph it would end with its step")


class HashTable(StaticHashTable):
    """As `StaticHashTable`, with the arguments of TensorFlow 1.4."""

    def __init__(
        self,
        initializer: Any,
        default_value: Any,
        shared_name: str | None = None,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        super().__init__(initializer, default_value, name, experimental_is_anonymous, shared_name)


# ---- all tables of a graph


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """The operation that initialises all tables of the default graph; one that does nothing if there are
    none.
    """
    initializers = get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS)
    if initializers:
        return group(*initializers, name=name)
    return no_op(name=name)


def initialize_all_tables(name: str = "init_all_tables") -> Operation:
    """The older name of `tables_initializer`."""
    return tables_initializer(name)
