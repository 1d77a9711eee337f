"""`tf.contrib.lookup`: look-up tables, most of which are those of `tf.lookup`."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.lookup.lookup_ops": "HashTable index_table_from_tensor index_to_string"
        " index_to_string_table_from_tensor string_to_index string_to_index_table_from_file"
        " string_to_index_table_from_tensor",
        "flowstone.ops.lookup.lookup_tables": "InitializableLookupTableBase LookupInterface",
        "flowstone.ops.lookup.mutable_tables": "MutableDenseHashTable MutableHashTable",
        "flowstone.ops.lookup.table_initializers": "KeyValueTensorInitializer TableInitializerBase"
        " TextFileIdTableInitializer TextFileIndex TextFileInitializer TextFileStringTableInitializer",
        "flowstone.ops.lookup.vocabularies": "FastHashSpec HasherSpec IdTableWithHashBuckets StrongHashSpec"
        " index_table_from_file index_to_string_table_from_file",
    },
)
