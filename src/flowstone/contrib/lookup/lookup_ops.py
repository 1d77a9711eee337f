"""What `tf.contrib.lookup` has of its own: arguments of its functions, and look-ups in one call."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.ops.lookup import lookup_tables, vocabularies
from flowstone.ops.lookup.vocabularies import FastHashSpec

__all__ = [
    "HashTable",
    "index_table_from_tensor",
    "index_to_string",
    "index_to_string_table_from_tensor",
    "string_to_index",
    "string_to_index_table_from_file",
    "string_to_index_table_from_tensor",
]


class HashTable(lookup_tables.HashTable):
    """A table with fixed contents.

    Args:
        initializer: where they come from, such as `KeyValueTensorInitializer`.
        default_value: the value of other keys, a scalar.
        shared_name: sessions on one target share tables of a name.
        name: of its operation.
    """

    def __init__(
        self, initializer: Any, default_value: Any, shared_name: str | None = None, name: str | None = None
    ) -> None:
        super().__init__(initializer, default_value, shared_name, name)


def index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    dtype: Any = tf.string,
    name: str | None = None,
) -> Any:
    """The table from the elements of the vector `mapping`, strings or integers of `dtype`, to their places.

    Others get `default_value`, or one of `num_oov_buckets` ids behind those of the vector, chosen by the hash
    `hasher_spec`. Raises ValueError without a vector, for elements of another type and fewer than no buckets.
    """
    if mapping is None:
        raise ValueError("mapping must be specified.")
    return vocabularies.index_table_from_tensor(
        mapping, num_oov_buckets, default_value, hasher_spec, dtype, name
    )


def string_to_index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    name: str | None = None,
) -> Any:
    """`index_table_from_file`, of strings."""
    return vocabularies.index_table_from_file(
        vocabulary_file, num_oov_buckets, vocab_size, default_value, hasher_spec, tf.string, name
    )


def string_to_index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    name: str | None = None,
) -> Any:
    """`index_table_from_tensor`, of strings."""
    return index_table_from_tensor(mapping, num_oov_buckets, default_value, hasher_spec, tf.string, name)


def index_to_string_table_from_tensor(
    mapping: Any, default_value: str = "UNK", name: str | None = None
) -> Any:
    """The table from places, int64, to the strings of the vector `mapping`; `default_value` for others.

    Raises ValueError without a vector.
    """
    if mapping is None:
        raise ValueError("mapping must be specified.")
    return vocabularies.index_to_string_table_from_tensor(mapping, default_value, name)


def string_to_index(tensor: Any, mapping: Any, default_value: int = -1, name: str | None = None) -> Any:
    """The places, int64, of the strings of `tensor` in the vector `mapping`; `default_value` for others.

    `tf.tables_initializer` must run first.
    """
    return index_table_from_tensor(mapping, default_value=default_value, name=name).lookup(tensor)


def index_to_string(tensor: Any, mapping: Any, default_value: str = "UNK", name: str | None = None) -> Any:
    """The strings of the vector `mapping` at the places of `tensor`, int64; `default_value` for others.

    `tf.tables_initializer` must run first.
    """
    return index_to_string_table_from_tensor(mapping, default_value, name).lookup(tensor)
