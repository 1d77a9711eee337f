"""Vocabularies: from words to ids and back, and buckets for words that are not in them."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import range as numbers_to
from flowstone.ops.arrays.shapes import size
from flowstone.ops.control.control_flow import no_op
from flowstone.ops.lookup.lookup_tables import (
    HashTable,
    LookupInterface,
    check_keys,
    values_like,
)
from flowstone.ops.lookup.table_initializers import (
    KeyValueTensorInitializer,
    TextFileIdTableInitializer,
    TextFileIndex,
    TextFileStringTableInitializer,
)

__all__ = [
    "FastHashSpec",
    "HasherSpec",
    "IdTableWithHashBuckets",
    "StaticVocabularyTable",
    "StrongHashSpec",
    "index_table_from_file",
    "index_table_from_tensor",
    "index_to_string_table_from_file",
    "index_to_string_table_from_tensor",
]

# ---- hashes

HasherSpec = namedtuple("HasherSpec", ["hasher", "key"])
HasherSpec.__doc__ = "Which hash sorts words into buckets: 'fasthash', or 'stronghash' with a key."
FastHashSpec = HasherSpec("fasthash", None)


class StrongHashSpec(HasherSpec):
    """SipHash with a key of two unsigned integers, for words that strangers choose.

    Raises ValueError for a key of another size, TypeError for other elements.
    """

    __slots__ = ()

    def __new__(cls, key: Any) -> StrongHashSpec:
        if len(key) != 2:
            raise ValueError(f"key must have size 2, got {len(key)}.")
        if not all(isinstance(each, (int, np.integer)) for each in key):
            raise TypeError(f"Invalid key {key}. Must be unsigned integer values.")
        return super().__new__(cls, "stronghash", key)


def _bucket_function(spec: Any) -> Callable[..., Tensor]:
    if spec.hasher == "fasthash":
        return F.StringToHashBucketFast
    if spec.hasher == "legacy":
        return F.StringToHashBucket
    if spec.hasher == "stronghash":
        return partial(F.StringToHashBucketStrong, key=spec.key)
    raise ValueError(f"Unknown hasher {spec.hasher}")


# ---- ids, with buckets for other words


class IdTableWithHashBuckets(LookupInterface):
    """Ids from `table`, and for other words one of `num_oov_buckets` ids behind those of the table.

    Args:
        table: a table from strings or integers to int64, or None: all words are sorted into the buckets.
        num_oov_buckets: how many.
        hasher_spec: the hash that chooses a bucket.
        name: the table's name; by default that of `table`.
        key_dtype: the words' type; by default that of the table's keys.

    Raises ValueError if there are neither a table nor buckets, TypeError for types that do not fit.
    """

    def __init__(
        self,
        table: Any,
        num_oov_buckets: int,
        hasher_spec: Any = FastHashSpec,
        name: str | None = None,
        key_dtype: Any = None,
    ) -> None:
        self._name = name.rstrip("/") if name else None
        if table is None:
            if num_oov_buckets <= 0:
                raise ValueError("oov_buckets must be > 0 if no table is supplied.")
            key_dtype = dtypes.string if key_dtype is None else dtypes.as_dtype(key_dtype)
        else:
            key_dtype = table.key_dtype if key_dtype is None else dtypes.as_dtype(key_dtype)
            _check_id_table(table.key_dtype, table.value_dtype, key_dtype)
        if not isinstance(hasher_spec, HasherSpec):
            raise TypeError(f"hasher_spec must be of type HasherSpec, got {hasher_spec}")
        self._table, self._num_oov_buckets, self._hasher_spec = table, num_oov_buckets, hasher_spec
        self._default_name = table.name if table is not None else "hash_bucket"
        super().__init__(key_dtype, dtypes.int64)

    def _checkpoint_children(self) -> list[tuple[str, Any]]:
        """What a checkpoint or SavedModel has of it."""
        return [] if self._table is None else [("_table", self._table)]

    @property
    def name(self) -> str:
        """The table's name."""
        return self._name or self._default_name

    @property
    def resource_handle(self) -> Tensor:
        """The handle of the table. ValueError if there are only buckets."""
        if self._table is None:
            raise ValueError("No table, so no resource handle")
        return self._table.resource_handle  # type: ignore[no-any-return]

    @property
    def initializer(self) -> Operation:
        """The operation that gives the table its contents."""
        if self._table is not None:
            return self._table.initializer  # type: ignore[no-any-return]
        with get_default_graph().name_scope("init"):
            return no_op()

    @property
    def init(self) -> Operation:
        """The same as `initializer`."""
        return self.initializer

    def size(self, name: str | None = None) -> Tensor:
        """How many ids there are: int64, []."""
        with get_default_graph().name_scope(name or f"{self.name}_Size"):
            size = convert_to_tensor(0, dtypes.int64) if self._table is None else self._table.size()
            return size + self._num_oov_buckets

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The ids, int64, of `keys`, a tensor or a SparseTensor, in its form.

        Raises TypeError for keys of another type.
        """
        check_keys(keys, self._key_dtype)
        words = keys.values if isinstance(keys, SparseTensor) else keys
        if self._table is not None and self._table.key_dtype.base_dtype is dtypes.int64:
            words = words if words.dtype is dtypes.int64 else F.Cast(words, DstT=dtypes.int64)
        if not self._num_oov_buckets:
            return values_like(keys, self._table.lookup(words, name=name))
        buckets_of = _bucket_function(self._hasher_spec)
        with get_default_graph().name_scope(name or f"{self.name}_Lookup"):
            text = words if words.dtype.base_dtype is dtypes.string else F.AsString(words)
            ids = buckets_of(text, num_buckets=self._num_oov_buckets, name="hash_bucket")
            if self._table is not None:
                known = self._table.lookup(words)
                ids = F.Add(ids, self._table.size(), name="Add")
                is_known = F.NotEqual(known, self._table.default_value)
                ids = F.SelectV2(is_known, known, ids)
        return values_like(keys, ids)


def _check_id_table(table_key: dtypes.DType, table_value: dtypes.DType, key: dtypes.DType) -> None:
    if table_key.base_dtype not in (dtypes.int64, dtypes.string):
        raise TypeError(
            f"Invalid key dtype, expected one of {(dtypes.int64, dtypes.string)}, but got {table_key!r}."
        )
    if table_key.is_integer != key.is_integer:
        kind = "integer" if key.is_integer else "non-integer"
        raise TypeError(f"Invalid key dtype, expected {kind} but got {table_key!r}.")
    if table_value.base_dtype is not dtypes.int64:
        raise TypeError(f"Invalid value dtype, expected {dtypes.int64!r} but got {table_value!r}.")


class StaticVocabularyTable(IdTableWithHashBuckets):
    """Ids of a vocabulary, and buckets for other words.

    Args:
        initializer: words (strings or integers) to ids (int64, from 0 on), or None: there are only buckets.
        num_oov_buckets: how many, at least 1; their ids follow those of the vocabulary.
        lookup_key_dtype: the type of the words that are looked up; by default that of the initializer's.
        name: of the table's operations.
        experimental_is_anonymous: must be False: such a table would not outlive a step.

    Raises ValueError for fewer buckets, TypeError for types that do not fit.
    """

    def __init__(
        self,
        initializer: Any,
        num_oov_buckets: int,
        lookup_key_dtype: Any = None,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        if num_oov_buckets <= 0:
            raise ValueError("oov_buckets must be > 0.")
        table = None
        if initializer is not None:
            key = initializer.key_dtype if lookup_key_dtype is None else dtypes.as_dtype(lookup_key_dtype)
            _check_id_table(initializer.key_dtype, initializer.value_dtype, key)
            table = HashTable(initializer, -1, experimental_is_anonymous=experimental_is_anonymous)
        super().__init__(table, num_oov_buckets, FastHashSpec, name, lookup_key_dtype)


# ---- vocabularies as tables


def index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    key_dtype: Any = dtypes.string,
    name: str | None = None,
    key_column_index: int = TextFileIndex.WHOLE_LINE,
    value_column_index: int = TextFileIndex.LINE_NUMBER,
    delimiter: str = "\t",
) -> Any:
    """The table from the lines of a file to their numbers.

    Other words get `default_value`, or one of `num_oov_buckets` ids behind those of the lines. `vocab_size`:
    how many lines count. `key_dtype`: string or an integer type. Raises ValueError without a file and for
    sizes below zero, TypeError for other types of keys.
    """
    if not isinstance(vocabulary_file, Tensor) and not vocabulary_file:
        raise ValueError("vocabulary_file must be specified and must not be empty.")
    _check_buckets(num_oov_buckets)
    if vocab_size is not None and vocab_size < 1:
        text = "" if isinstance(vocabulary_file, Tensor) else f" vocabulary_file: {vocabulary_file}"
        raise ValueError(f"vocab_size must be greater than 0, got {vocab_size}.{text}")
    key_dtype = _checked_key_dtype(key_dtype)
    graph = get_default_graph()
    with graph.name_scope(name or "string_to_index"):
        with graph.name_scope("hash_table"):
            initializer = TextFileIdTableInitializer(
                vocabulary_file,
                key_column_index,
                value_column_index,
                vocab_size,
                delimiter,
                "table_init",
                dtypes.int64 if key_dtype.is_integer else key_dtype,
            )
            table = HashTable(initializer, default_value)
        return _with_buckets(table, num_oov_buckets, hasher_spec, key_dtype)


def index_table_from_tensor(
    vocabulary_list: Any = None,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    dtype: Any = dtypes.string,
    name: str | None = None,
    mapping: Any = None,
) -> Any:
    """The table from the words of the vector `vocabulary_list` to their places.

    Other words get `default_value`, or one of `num_oov_buckets` ids behind those of the vector. `dtype`: the
    words' type. Raises ValueError without a list and for words of another type, TypeError for types that are
    neither string nor integers.
    """
    vocabulary_list = mapping if vocabulary_list is None else vocabulary_list
    if vocabulary_list is None:
        raise ValueError("vocabulary_list must be specified.")
    _check_buckets(num_oov_buckets)
    dtype = _checked_key_dtype(dtype)
    graph = get_default_graph()
    with graph.name_scope(name or "string_to_index"):
        words = convert_to_tensor(vocabulary_list)
        if dtype.is_integer != words.dtype.is_integer:
            raise ValueError(f"Expected {'' if dtype.is_integer else 'non-'}integer, got {words.dtype!r}.")
        if not dtype.is_integer and words.dtype.base_dtype is not dtype.base_dtype:
            raise ValueError(f"Expected {dtype!r}, got {words.dtype!r}.")
        ids = _places(words)
        with graph.name_scope("hash_table"):
            if words.dtype.is_integer and words.dtype is not dtypes.int64:
                words = F.Cast(words, DstT=dtypes.int64, name="Cast")
            initializer = KeyValueTensorInitializer(words, ids, words.dtype, dtypes.int64, "table_init")
            table = HashTable(initializer, default_value)
        return _with_buckets(table, num_oov_buckets, hasher_spec, dtype)


def index_to_string_table_from_file(
    vocabulary_file: Any,
    vocab_size: int | None = None,
    default_value: Any = "UNK",
    name: str | None = None,
    key_column_index: int = TextFileIndex.LINE_NUMBER,
    value_column_index: int = TextFileIndex.WHOLE_LINE,
    delimiter: str = "\t",
) -> HashTable:
    """The table from line numbers (int64) to the lines of a file; `default_value` for other numbers.

    Raises ValueError without a file, and for a size below 1.
    """
    if not isinstance(vocabulary_file, Tensor) and not vocabulary_file:
        raise ValueError("vocabulary_file must be specified and must not be empty.")
    if vocab_size is not None and vocab_size < 1:
        raise ValueError(f"vocab_size must be greater than 0, got {vocab_size}.")
    with get_default_graph().name_scope(name or "index_to_string"):
        initializer = TextFileStringTableInitializer(
            vocabulary_file, key_column_index, value_column_index, vocab_size, delimiter, "table_init"
        )
        return HashTable(initializer, default_value)


def index_to_string_table_from_tensor(
    vocabulary_list: Any = None, default_value: Any = "UNK", name: str | None = None, mapping: Any = None
) -> HashTable:
    """The table from places (int64) to the strings of the vector `vocabulary_list`; `default_value` for
    others.

    Raises ValueError without a list.
    """
    vocabulary_list = mapping if vocabulary_list is None else vocabulary_list
    if vocabulary_list is None:
        raise ValueError("vocabulary_list must be specified.")
    with get_default_graph().name_scope(name or "index_to_string"):
        words = convert_to_tensor(vocabulary_list, dtypes.string)
        initializer = KeyValueTensorInitializer(
            _places(words), words, dtypes.int64, dtypes.string, "table_init"
        )
        return HashTable(initializer, default_value)


def _check_buckets(number: int) -> None:
    if number < 0:
        raise ValueError(f"num_oov_buckets must be greater or equal than 0, got {number}.")


def _checked_key_dtype(given: Any) -> dtypes.DType:
    dtype = dtypes.as_dtype(given)
    if not (dtype.is_integer or dtype.base_dtype is dtypes.string):
        raise TypeError("Only integer and string keys are supported.")
    return dtype


def _places(words: Tensor) -> Tensor:
    """The places of a vector's elements: int64."""
    return F.Cast(numbers_to(size(words)), DstT=dtypes.int64, name="Cast")


def _with_buckets(table: HashTable, buckets: int, hasher_spec: Any, key_dtype: dtypes.DType) -> Any:
    if not buckets:
        return table
    return IdTableWithHashBuckets(table, buckets, hasher_spec, key_dtype=key_dtype)
