"""Programs of `tf.contrib.lookup`, as functions of the module ``tf`` and a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def run(tf: Any, folder: Path) -> dict[str, Any]:
    """For each kind of table the names and values of look-ups, and the classes of errors."""
    path = folder / "words.txt"
    path.write_text("emerson\nlake\npalmer\n", encoding="utf-8")
    with tf.Graph().as_default() as graph:
        found = {**_tables(tf, str(path)), **_changing(tf)}
        with tf.Session() as session:
            with tf.control_dependencies(graph.get_collection("table_initializer")):
                ready = tf.no_op()
            session.run(ready)
            session.run([each for name, each in found.items() if name.endswith("insert")])
            values = {
                name: [each.name, _plain(session.run(each))]
                for name, each in found.items()
                if not name.endswith("insert")
            }
        values["tables"] = [each.name for each in graph.get_collection("table_initializer")]
    values["errors"] = _errors(tf)
    return values


def _plain(array: Any) -> Any:
    array = np.asarray(array)
    return [each.decode() for each in array.ravel()] if array.dtype.kind in "SO" else array.tolist()


def _tables(tf: Any, path: str) -> dict[str, Any]:
    lookup = tf.contrib.lookup
    words, mapping = tf.constant([["lake", "eno"]]), tf.constant(["emerson", "lake", "palmer"])
    places = tf.constant([2, 0, 9], tf.int64)
    initializer = lookup.KeyValueTensorInitializer(["a", "b"], [1, 2], tf.string, tf.int64)
    numbers = lookup.KeyValueTensorInitializer(tf.constant([5, 7], tf.int64), tf.constant([0.5, 0.7]))
    table = lookup.HashTable(initializer, -1)
    buckets = lookup.IdTableWithHashBuckets(None, 5, hasher_spec=lookup.StrongHashSpec([1, 2]))
    of_file = lookup.TextFileIdTableInitializer(path)
    texts = lookup.HashTable(lookup.TextFileStringTableInitializer(path), "none")
    columns = lookup.TextFileInitializer(
        path, tf.string, lookup.TextFileIndex.WHOLE_LINE, tf.int64, lookup.TextFileIndex.LINE_NUMBER
    )
    return {
        "table": table.lookup(tf.constant(["b", "c"])),
        "size": table.size(),
        "numbers": lookup.HashTable(numbers, -1.0, name="floats").lookup(tf.constant([7, 8], tf.int64)),
        "of_file": lookup.HashTable(of_file, -1, shared_name="shared").lookup(words),
        "texts": texts.lookup(places),
        "columns": lookup.HashTable(columns, -1).lookup(words),
        "buckets": buckets.lookup(words),
        "with_buckets": lookup.IdTableWithHashBuckets(table, 3).lookup(tf.constant(["b", "c"])),
        "index_file": lookup.index_table_from_file(path, num_oov_buckets=2).lookup(words),
        "index": lookup.index_table_from_tensor(mapping, 1).lookup(words),
        "index_numbers": lookup.index_table_from_tensor([4, 3], dtype=tf.int64).lookup(
            tf.constant([3, 5], tf.int64)
        ),
        "string_index": lookup.string_to_index_table_from_tensor(mapping, default_value=7).lookup(words),
        "string_index_file": lookup.string_to_index_table_from_file(path, vocab_size=1).lookup(words),
        "strings": lookup.index_to_string_table_from_tensor(mapping).lookup(places),
        "strings_file": lookup.index_to_string_table_from_file(path, default_value="?").lookup(places),
        "at_once": lookup.string_to_index(words, mapping),
        "back": lookup.index_to_string(places, mapping, default_value="!"),
    }


def _changing(tf: Any) -> dict[str, Any]:
    lookup = tf.contrib.lookup
    table = lookup.MutableHashTable(tf.string, tf.int64, -1)
    dense = lookup.MutableDenseHashTable(tf.int64, tf.float32, 0.5, empty_key=0, deleted_key=-1)
    return {
        "mutable_insert": table.insert(tf.constant(["x", "y"]), tf.constant([3, 4], tf.int64)),
        "dense_insert": dense.insert(tf.constant([1, 2], tf.int64), tf.constant([1.5, 2.5])),
        "mutable": table.lookup(tf.constant(["y", "z"])),
        "dense": dense.lookup(tf.constant([2, 3], tf.int64)),
        "dense_size": dense.size(),
    }


def _errors(tf: Any) -> dict[str, str]:
    lookup = tf.contrib.lookup
    calls = {
        "no_mapping": lambda: lookup.index_table_from_tensor(None),
        "no_strings": lambda: lookup.index_to_string_table_from_tensor(None),
        "buckets": lambda: lookup.index_table_from_tensor(["a"], -1),
        "types": lambda: lookup.index_table_from_tensor(["a"], dtype=tf.int64),
        "no_table": lambda: lookup.IdTableWithHashBuckets(None, 0),
        "no_file": lambda: lookup.string_to_index_table_from_file(""),
        "hash": lambda: lookup.StrongHashSpec([1]),
    }
    found = {}
    for name, call in calls.items():
        with tf.Graph().as_default():
            try:
                call()
                found[name] = "nothing"
            except Exception as error:
                found[name] = type(error).__name__
    return found
