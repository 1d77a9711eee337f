"""Programs with the classes of look-up tables, for TensorFlow 1.15 and for Flowstone.

Each is a function of the module ``tf``, of one that has the classes, and of the folder of the files in
`table_programs.FILES`. It builds a graph and returns fetches, which are run after the tables are initialised,
or a list of steps of fetches. `MISTAKES` cannot be built.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

PROGRAMS: dict[str, Callable[[Any, Any, str], Any]] = {}


def program(function: Callable[[Any, Any, str], Any]) -> Callable[[Any, Any, str], Any]:
    """Adds the program to the table."""
    PROGRAMS[function.__name__] = function
    return function


def _words(tf: Any, *words: str) -> Any:
    return tf.constant(np.array(words, object), tf.string)


def _numbers(tf: Any, values: Any) -> Any:
    return tf.constant(values, tf.int64)


def _pairs(tf: Any, lookups: Any) -> Any:
    return lookups.KeyValueTensorInitializer(["a", "b"], [1, 2], tf.string, tf.int64)


@program
def hash_table(tf: Any, lookups: Any, folder: str) -> Any:
    table = lookups.HashTable(_pairs(tf, lookups), -1)
    found = [table.lookup(_words(tf, "b", "z")), table.size(), table.export()]
    assert (table.name, table.key_dtype, table.value_dtype) == ("hash_table", tf.string, tf.int64)
    assert table.init.type == table.initializer.type == "LookupTableImportV2"
    return found


@program
def static_hash_table_with_names(tf: Any, lookups: Any, folder: str) -> Any:
    table = tf.lookup.StaticHashTable(
        lookups.KeyValueTensorInitializer(["a", "b"], [1, 2]), default_value=-1, name="nn"
    )
    return [
        table.lookup(_words(tf, "a"), name="look"),
        table.size(name="sz"),
        table.export(name="ex"),
        table.default_value,
    ]


@program
def sparse_keys(tf: Any, lookups: Any, folder: str) -> Any:
    table = lookups.HashTable(_pairs(tf, lookups), -1, name="n")
    return table.lookup(tf.SparseTensor([[0, 0], [1, 1]], ["b", "q"], [2, 2]))


@program
def text_file(tf: Any, lookups: Any, folder: str) -> Any:
    whole, number = lookups.TextFileIndex.WHOLE_LINE, lookups.TextFileIndex.LINE_NUMBER
    path = f"{folder}/plain"
    table = lookups.HashTable(
        lookups.TextFileInitializer(path, tf.string, whole, tf.int64, number), -1, name="n"
    )
    other = lookups.HashTable(
        lookups.TextFileInitializer(
            f"{folder}/commas", tf.string, 0, tf.string, 1, delimiter=",", name="ini"
        ),
        "none",
    )
    return [table.lookup(_words(tf, "c", "z")), other.lookup(_words(tf, "b", "z"))]


@program
def index_from_tensor(tf: Any, lookups: Any, folder: str) -> Any:
    table = lookups.index_table_from_tensor(["a", "b"], num_oov_buckets=3)
    return [table.lookup(_words(tf, "a", "z", "y", "x")), table.size()]


@program
def index_from_numbers(tf: Any, lookups: Any, folder: str) -> Any:
    table = lookups.index_table_from_tensor([10, 20], dtype=tf.int64, num_oov_buckets=3)
    return table.lookup(_numbers(tf, [20, 30, 31, 32]))


@program
def index_of_int32(tf: Any, lookups: Any, folder: str) -> Any:
    table = lookups.index_table_from_tensor([10, 20], dtype=tf.int32, num_oov_buckets=2)
    return table.lookup(tf.constant([20, 30, 31, 32]))


@program
def index_with_a_key(tf: Any, lookups: Any, folder: str) -> Any:
    table = lookups.index_table_from_tensor(
        ["a", "b"], num_oov_buckets=50, hasher_spec=lookups.StrongHashSpec((1, 2))
    )
    return table.lookup(_words(tf, "a", "z", "y"))


@program
def index_with_default(tf: Any, lookups: Any, folder: str) -> Any:
    table = lookups.index_table_from_tensor(["a", "b"], default_value=7, name="mine")
    return table.lookup(_words(tf, "b", "z"))


@program
def index_from_file(tf: Any, lookups: Any, folder: str) -> Any:
    table = lookups.index_table_from_file(f"{folder}/plain", num_oov_buckets=1)
    return table.lookup(_words(tf, "b", "z"))


@program
def index_from_part_of_a_file(tf: Any, lookups: Any, folder: str) -> Any:
    table = lookups.index_table_from_file(f"{folder}/plain", vocab_size=2, default_value=5)
    return table.lookup(_words(tf, "b", "c"))


@program
def index_of_numbers_from_file(tf: Any, lookups: Any, folder: str) -> Any:
    table = lookups.index_table_from_file(f"{folder}/numbers", num_oov_buckets=2, key_dtype=tf.int64)
    return table.lookup(_numbers(tf, [7, 9]))


@program
def strings_from_file(tf: Any, lookups: Any, folder: str) -> Any:
    return lookups.index_to_string_table_from_file(f"{folder}/plain").lookup(_numbers(tf, [2, 9]))


@program
def strings_from_tensor(tf: Any, lookups: Any, folder: str) -> Any:
    return lookups.index_to_string_table_from_tensor(["a", "b"]).lookup(_numbers(tf, [1, 9]))


@program
def vocabulary(tf: Any, lookups: Any, folder: str) -> Any:
    ids = lookups.KeyValueTensorInitializer(["a", "b"], _numbers(tf, [0, 1]))
    table = tf.lookup.StaticVocabularyTable(ids, 2, name="voc")
    return [table.lookup(_words(tf, "b", "q")), table.size()]


@program
def vocabulary_of_numbers(tf: Any, lookups: Any, folder: str) -> Any:
    ids = lookups.KeyValueTensorInitializer(_numbers(tf, [5, 6]), _numbers(tf, [0, 1]))
    table = tf.lookup.StaticVocabularyTable(ids, 2, lookup_key_dtype=tf.int32)
    return table.lookup(tf.constant([3, 6]))


@program
def only_buckets(tf: Any, lookups: Any, folder: str) -> Any:
    table = tf.lookup.StaticVocabularyTable(None, 9, lookup_key_dtype=tf.string)
    return [table.lookup(_words(tf, "3", "4")), table.size()]


@program
def buckets_of_sparse_words(tf: Any, lookups: Any, folder: str) -> Any:
    table = lookups.IdTableWithHashBuckets(lookups.HashTable(_pairs(tf, lookups), -1), 2, name="zz")
    return table.lookup(tf.SparseTensor([[0], [1]], ["b", "x"], [2]))


@program
def mutable(tf: Any, lookups: Any, folder: str) -> Any:
    table = lookups.MutableHashTable(tf.string, tf.int64, -1, checkpoint=False)
    return [
        table.insert(["a", "b"], _numbers(tf, [1, 2])),
        table.lookup(_words(tf, "a", "z")),
        table.size(),
        table.remove(_words(tf, "a")),
        table.export(),
    ]


@program
def mutable_vectors(tf: Any, lookups: Any, folder: str) -> Any:
    table = lookups.MutableHashTable(tf.string, tf.float32, [0.0, 1.0], name="tt", checkpoint=False)
    return [table.insert(_words(tf, "a"), [[3.0, 4.0]]), table.lookup(_words(tf, "a", "z")), table.export()]


def _index(tf: Any, lookups: Any) -> Any:
    return lookups.HashTable(_pairs(tf, lookups), -1)


MISTAKES: dict[str, Callable[[Any, Any], Any]] = {
    "keys of another type": lambda tf, each: _index(tf, each).lookup(tf.constant([1])),
    "a default of another type": lambda tf, each: each.HashTable(_pairs(tf, each), "x"),
    "a default that is no scalar": lambda tf, each: each.HashTable(_pairs(tf, each), [1, 2]),
    "sizes that differ": lambda tf, each: each.HashTable(
        each.KeyValueTensorInitializer(["a", "b"], [1, 2, 3], tf.string, tf.int64), -1
    ),
    "line numbers as strings": lambda tf, each: each.TextFileInitializer("x", tf.string, -1, tf.int64, -2),
    "line numbers as int32": lambda tf, each: each.TextFileInitializer("x", tf.string, -2, tf.int32, -1),
    "lines as numbers": lambda tf, each: each.TextFileInitializer("x", tf.float32, -2, tf.int64, -1),
    "lines as values": lambda tf, each: each.TextFileInitializer("x", tf.string, -2, tf.float32, -2),
    "no such key": lambda tf, each: each.TextFileInitializer("x", tf.string, -3, tf.int64, -1),
    "no such value": lambda tf, each: each.TextFileInitializer("x", tf.string, -2, tf.int64, -3),
    "no line": lambda tf, each: each.TextFileInitializer("x", tf.string, -2, tf.int64, -1, vocab_size=0),
    "no file": lambda tf, each: each.TextFileInitializer("", tf.string, -2, tf.int64, -1),
    "no list": lambda tf, each: each.index_table_from_tensor(None),
    "negative buckets": lambda tf, each: each.index_table_from_tensor(["a"], num_oov_buckets=-1),
    "words that are floats": lambda tf, each: each.index_table_from_tensor(["a"], dtype=tf.float32),
    "words that are no integers": lambda tf, each: each.index_table_from_tensor(["a"], dtype=tf.int64),
    "words that are integers": lambda tf, each: each.index_table_from_tensor([1, 2], dtype=tf.string),
    "no words": lambda tf, each: each.index_table_from_tensor([]),
    "no hasher": lambda tf, each: each.index_table_from_tensor(["a"], num_oov_buckets=1, hasher_spec="x"),
    "an unknown hasher": lambda tf, each: each.index_table_from_tensor(
        ["a"], num_oov_buckets=1, hasher_spec=each.HasherSpec("zz", None)
    ).lookup(tf.constant(["a"])),
    "a long key": lambda tf, each: each.StrongHashSpec((1, 2, 3)),
    "a key of words": lambda tf, each: each.StrongHashSpec(["a", 2]),
    "no vocabulary file": lambda tf, each: each.index_table_from_file(None),
    "an empty name": lambda tf, each: each.index_table_from_file(""),
    "a file, negative buckets": lambda tf, each: each.index_table_from_file("x", num_oov_buckets=-1),
    "a file, no line": lambda tf, each: each.index_table_from_file("x", vocab_size=0),
    "a file, keys that are floats": lambda tf, each: each.index_table_from_file("x", key_dtype=tf.float32),
    "no file of strings": lambda tf, each: each.index_to_string_table_from_file(None),
    "strings, no line": lambda tf, each: each.index_to_string_table_from_file("x", vocab_size=0),
    "no list of strings": lambda tf, each: each.index_to_string_table_from_tensor(None),
    "int32 places": lambda tf, each: each.index_to_string_table_from_tensor(["a"]).lookup(tf.constant([1])),
    "neither table nor buckets": lambda tf, each: each.IdTableWithHashBuckets(None, 0),
    "other keys": lambda tf, each: each.IdTableWithHashBuckets(_index(tf, each), 2, key_dtype=tf.int64),
    "other ids": lambda tf, each: each.IdTableWithHashBuckets(
        each.HashTable(each.KeyValueTensorInitializer(["a"], [1], tf.string, tf.int32), -1), 2
    ),
    "float keys": lambda tf, each: tf.lookup.StaticVocabularyTable(
        each.KeyValueTensorInitializer([1.0], [0], tf.float32, tf.int64), 1
    ),
    "no buckets": lambda tf, each: tf.lookup.StaticVocabularyTable(_pairs(tf, each), 0),
    "int32 ids": lambda tf, each: tf.lookup.StaticVocabularyTable(
        each.KeyValueTensorInitializer(["a"], [0], tf.string, tf.int32), 1
    ),
    "numbers for words": lambda tf, each: tf.lookup.StaticVocabularyTable(
        _pairs(tf, each), 1, lookup_key_dtype=tf.int64
    ),
    "to remove keys of another type": lambda tf, each: each.MutableHashTable(tf.string, tf.int64, -1).remove(
        tf.constant([1])
    ),
    "to look up keys of another type": lambda tf, each: each.MutableHashTable(tf.string, tf.int64, -1).lookup(
        tf.constant([1])
    ),
}


def evaluate(tf: Any, lookups: Any, name: str, folder: pathlib.Path) -> dict[str, Any]:
    """The nodes of a program's graph with their types and static shapes, and what it gives."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        fetches = PROGRAMS[name](tf, lookups, str(folder))
        nodes = [
            [op.name, op.type, [None if x.shape.ndims is None else x.shape.as_list() for x in op.outputs]]
            for op in graph.get_operations()
        ]
        session.run(tf.tables_initializer())
        steps = fetches if isinstance(fetches, list) else [fetches]
        values = [_plain(session.run(step)) for step in steps]
        files = [str(x.name) for x in graph.get_collection(tf.GraphKeys.ASSET_FILEPATHS)]
        tables = [op.name for op in graph.get_collection(tf.GraphKeys.TABLE_INITIALIZERS)]
    return {"nodes": nodes, "values": values, "files": files, "tables": tables}


def mistake(tf: Any, lookups: Any, name: str) -> list[str]:
    """The class and the text of the error that a mistake ends in."""
    with tf.Graph().as_default():
        try:
            MISTAKES[name](tf, lookups)
        except Exception as error:
            return [type(error).__name__, str(error)]
    return ["", "nothing"]


def _plain(value: Any) -> Any:
    """A fetched value as JSON; the rows of an export in the order of its keys."""
    if isinstance(value, tuple) and len(value) == 2:
        order = np.argsort(value[0])
        return [_plain(part[order]) for part in value]
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if value is None:
        return None
    array = np.asarray(value)
    if array.dtype.kind in "OS":
        return np.vectorize(lambda text: text.decode(), otypes=[object])(array).tolist()
    return array.tolist()
