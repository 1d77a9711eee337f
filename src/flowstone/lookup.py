"""`flowstone.lookup`: look-up tables."""

from types import SimpleNamespace as _SimpleNamespace

from flowstone.ops.lookup.lookup_tables import StaticHashTable
from flowstone.ops.lookup.mutable_tables import DenseHashTable as _DenseHashTable
from flowstone.ops.lookup.mutable_tables import MutableHashTable as _MutableHashTable
from flowstone.ops.lookup.table_initializers import (
    KeyValueTensorInitializer,
    TextFileIndex,
    TextFileInitializer,
)
from flowstone.ops.lookup.vocabularies import StaticVocabularyTable

experimental = _SimpleNamespace(DenseHashTable=_DenseHashTable, MutableHashTable=_MutableHashTable)
