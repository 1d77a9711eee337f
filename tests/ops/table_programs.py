"""Programs with look-up tables, for TensorFlow and for Flowstone: what each step of them gives.

A program is a generator of fetches, which are run one after the other in one session; `evaluate` says of each
what it gives, or how it fails. `ops` has the operations as functions with keywords.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

FILES = {
    "plain": b"a\nb\nc\n",
    "unfinished": b"a\nb\nc",
    "columns": b"a\t1\nb\t2\n",
    "twice": b"a\nb\na\n",
    "nothing": b"",
    "short": b"a\t1\nb\n",
    "words": b"a\tx\n",
    "gap": b"a\n\nb\n",
    "gaps": b"\n\n",
    "dos": b"a\r\nb\r\n",
    "numbers": b"5\n7\n",
    "mixed": b"5\nx\n",
    "commas": b"a,1.5\nb,x\n",
}


class Vocabulary:
    """Short names for what the programs say."""

    def __init__(self, tf: Any, ops: Any, folder: pathlib.Path) -> None:
        self.tf, self.ops, self.folder = tf, ops, folder
        self.string, self.int64, self.int32 = tf.string, tf.int64, tf.int32

    def hidden(self, value: Any, dtype: Any = None) -> Any:
        """A tensor of which nothing is known while the graph is built."""
        return self.tf.placeholder_with_default(self.tf.constant(value, dtype), None)

    def text(self, *words: str) -> Any:
        return self.hidden(np.array(words, object), self.string)

    def numbers(self, values: Any) -> Any:
        return self.hidden(values, self.int64)

    def static(self, key: Any = None, value: Any = None, **more: Any) -> Any:
        return self.ops.HashTableV2(key_dtype=key or self.string, value_dtype=value or self.int64, **more)

    def mutable(self, key: Any = None, value: Any = None, **more: Any) -> Any:
        return self.ops.MutableHashTableV2(
            key_dtype=key or self.string, value_dtype=value or self.int64, **more
        )

    def of_tensors(self, shape: Any, **more: Any) -> Any:
        return self.ops.MutableHashTableOfTensorsV2(
            key_dtype=self.string, value_dtype=self.int64, value_shape=shape, **more
        )

    def find(self, table: Any, keys: Any, default: Any) -> Any:
        return self.ops.LookupTableFindV2(table_handle=table, keys=keys, default_value=default)

    def insert(self, table: Any, keys: Any, values: Any) -> Any:
        return self.ops.LookupTableInsertV2(table_handle=table, keys=keys, values=values)

    def imports(self, table: Any, keys: Any, values: Any) -> Any:
        return self.ops.LookupTableImportV2(table_handle=table, keys=keys, values=values)

    def initialize(self, table: Any, keys: Any, values: Any) -> Any:
        return self.ops.InitializeTableV2(table_handle=table, keys=keys, values=values)

    def remove(self, table: Any, keys: Any) -> Any:
        return self.ops.LookupTableRemoveV2(table_handle=table, keys=keys)

    def size(self, table: Any) -> Any:
        return self.ops.LookupTableSizeV2(table_handle=table)

    def export(self, table: Any, key: Any = None, value: Any = None) -> Any:
        return list(
            self.ops.LookupTableExportV2(
                table_handle=table, Tkeys=key or self.string, Tvalues=value or self.int64
            )
        )

    def from_file(
        self, table: Any, name: Any, key: int, value: int, size: int = -1, delimiter: str = "\t"
    ) -> Any:
        path = self.text_of(name) if isinstance(name, str) else name
        return self.ops.InitializeTableFromTextFileV2(
            table_handle=table,
            filename=path,
            key_index=key,
            value_index=value,
            vocab_size=size,
            delimiter=delimiter,
        )

    def text_of(self, name: str) -> Any:
        return self.hidden(str(self.folder / name), self.string)


def static_table(v: Vocabulary) -> Iterator[Any]:
    t = v.static()
    yield v.find(t, v.text("a"), v.numbers(-1))
    yield v.size(t)
    yield v.export(t)
    yield v.initialize(t, v.text("a", "b", "a"), v.numbers([1, 2, 3]))
    yield v.find(t, v.text("a"), v.numbers(-1))
    yield v.initialize(t, v.text("a", "b"), v.numbers([1, 2]))
    yield v.find(t, v.hidden([["a"], ["z"]]), v.numbers(-1))
    yield v.find(t, v.hidden("a"), v.numbers(-1))
    yield v.find(t, v.text("a", "z"), v.numbers([-1, 3]))
    yield v.find(t, v.hidden(np.zeros([0, 2], object), v.string), v.numbers(-1))
    yield v.size(t)
    yield v.export(t)
    yield v.initialize(t, v.text("a", "b"), v.numbers([1, 2]))
    yield v.initialize(t, v.text("a"), v.numbers([1]))
    yield v.imports(t, v.text("q"), v.numbers([9]))
    yield v.find(t, v.text("a", "q"), v.numbers(-1))
    yield v.insert(t, v.text("q"), v.numbers([9]))
    yield v.remove(t, v.text("a"))
    yield v.find(t, v.numbers([1]), v.numbers(-1))
    yield v.find(t, v.text("a"), v.hidden(-1))
    yield v.find(t, v.text("a"), v.numbers([-1, 3]))
    yield v.initialize(t, v.text("a"), v.text("b"))


def static_tables(v: Vocabulary) -> Iterator[Any]:
    yield v.initialize(v.static(), v.text("a", "b"), v.numbers([1]))
    yield v.initialize(v.static(), v.hidden([["a", "b"]]), v.numbers([[1, 2]]))
    yield v.initialize(v.static(), v.hidden("a"), v.numbers(1))
    yield v.initialize(v.static(), v.hidden(np.zeros(0, object), v.string), v.numbers(np.zeros(0)))
    yield v.initialize(v.static(), v.text("a"), v.text("b"))
    t = v.static()
    yield v.initialize(t, v.text("a", "a"), v.numbers([1, 1]))
    yield v.size(t)
    t = v.static()
    yield v.imports(t, v.text("a", "a"), v.numbers([1, 2]))
    t = v.static()
    yield v.imports(t, v.text("a"), v.numbers([1]))
    yield v.imports(t, v.text("b"), v.numbers([2]))
    yield v.export(t)
    t = v.static(v.int64, v.tf.float32)
    yield v.initialize(t, v.numbers([1, -(2**63)]), v.hidden([2.0, 3.0]))
    yield v.find(t, v.numbers([-(2**63), 1, 3]), v.hidden(-1.0))
    t = v.static(v.string, v.string)
    yield v.initialize(t, v.text("", "b"), v.text("x", "y"))
    yield v.find(t, v.text("b", "", "c"), v.hidden("none"))
    t = v.static(v.int64, v.string)
    yield v.initialize(t, v.numbers([3]), v.text("x"))
    yield v.find(t, v.numbers([[3, 4]]), v.hidden(""))
    t = v.static(v.int32, v.tf.float64)
    yield v.initialize(t, v.hidden([3, -3]), v.hidden([0.5, 1.5], v.tf.float64))
    yield v.find(t, v.hidden([-3, 4]), v.hidden(2.5, v.tf.float64))
    t = v.static(v.string, v.tf.bool)
    yield v.initialize(t, v.text("p"), v.hidden([True]))
    yield v.find(t, v.text("p", "q"), v.hidden(False))


def mutable_table(v: Vocabulary) -> Iterator[Any]:
    t = v.mutable()
    yield v.size(t)
    yield v.find(t, v.text("a"), v.numbers(-1))
    yield v.export(t)
    yield v.insert(t, v.text("a", "b", "a"), v.numbers([1, 2, 3]))
    yield v.find(t, v.hidden([["a", "z"]]), v.numbers(-1))
    yield v.size(t)
    yield v.export(t)
    yield v.remove(t, v.text("a", "q", "a"))
    yield v.size(t)
    yield v.find(t, v.text("a", "b"), v.numbers(-1))
    yield v.export(t)
    yield v.insert(t, v.text("a"), v.numbers([5]))
    yield v.find(t, v.text("a", "b"), v.numbers(-1))
    yield v.imports(t, v.text("x"), v.numbers([7]))
    yield v.export(t)
    yield v.insert(t, v.text("a"), v.numbers([1, 2]))
    yield v.insert(t, v.hidden([["a", "b"]]), v.numbers([[1, 2]]))
    yield v.insert(t, v.hidden("s"), v.numbers(5))
    yield v.size(t)
    yield v.initialize(t, v.text("a"), v.numbers([1]))
    yield v.find(t, v.text("x", "z"), v.numbers([-1, -2]))
    yield v.find(t, v.text("x", "z"), v.numbers([-1]))
    yield v.imports(t, v.text("x", "y"), v.numbers([7]))
    yield v.imports(t, v.text("x", "x"), v.numbers([7, 8]))
    yield v.export(t)
    yield v.from_file(t, "plain", -2, -1)


def mutable_numbers(v: Vocabulary) -> Iterator[Any]:
    t = v.mutable(v.int64, v.string)
    yield v.insert(t, v.numbers([5, -1, 2**62, 5]), v.text("a", "b", "c", "d"))
    yield v.find(t, v.numbers([[5, -1], [2**62, 0]]), v.hidden("none"))
    yield v.remove(t, v.numbers([-1, 9]))
    yield v.export(t, v.int64, v.string)
    t = v.mutable(v.int64, v.int64)
    many = np.arange(1000) * 64 - 320
    yield v.insert(t, v.numbers(many), v.numbers(many + 1))
    yield v.remove(t, v.numbers(many[:900]))
    yield v.insert(t, v.numbers(many[:10]), v.numbers(many[:10] + 2))
    yield v.find(t, v.numbers(many[::50]), v.numbers(0))
    yield v.size(t)
    t = v.mutable(v.int64, v.tf.float32)
    yield v.insert(t, v.numbers([1]), v.hidden([1.5]))
    yield v.find(t, v.numbers([1, 2]), v.hidden(0.5))


def mismatches_while_building(v: Vocabulary) -> Iterator[Any]:
    yield v.find(v.mutable(), v.numbers([1]), v.numbers(0))


def wrong_values_while_building(v: Vocabulary) -> Iterator[Any]:
    yield v.insert(v.mutable(), v.text("a"), v.hidden([1.0]))


def wrong_keys_while_building(v: Vocabulary) -> Iterator[Any]:
    yield v.remove(v.mutable(), v.numbers([1]))


def wrong_types_of_an_export(v: Vocabulary) -> Iterator[Any]:
    yield v.export(v.mutable(), v.int64)


def of_tensors(v: Vocabulary) -> Iterator[Any]:
    t = v.of_tensors([2])
    yield v.insert(t, v.text("a", "b"), v.numbers([[1, 2], [3, 4]]))
    yield v.find(t, v.hidden([["a", "z"]]), v.numbers([0, 0]))
    yield v.export(t)
    yield v.insert(t, v.text("a"), v.numbers([1]))
    yield v.insert(t, v.text("a"), v.numbers([[1]]))
    yield v.find(t, v.text("a"), v.numbers(0))
    yield v.find(t, v.text("a", "q"), v.numbers([[7, 7], [8, 8]]))
    yield v.find(t, v.text("a"), v.numbers([0, 0, 0]))
    yield v.remove(t, v.text("a"))
    yield v.export(t)
    yield v.insert(t, v.hidden([["c"]]), v.numbers([[[1, 2]]]))
    yield v.size(t)
    yield v.insert(v.of_tensors([]), v.text("a"), v.numbers([1]))
    yield v.size(v.of_tensors([2, 2]))
    yield v.size(v.of_tensors([None]))


def text_files(v: Vocabulary) -> Iterator[Any]:
    string, int64, int32, float32 = v.string, v.int64, v.int32, v.tf.float32
    for key, value, arguments in (
        *((string, int64, (name, -2, -1)) for name in sorted(FILES)),
        (string, int64, ("absent", -2, -1)),
        (string, int64, ("", -2, -1)),
        (int64, string, ("plain", -1, -2)),
        (int64, string, ("twice", -1, -2)),
        *((string, int64, ("plain", -2, -1, size)) for size in (1, 2, 3, 4, 0)),
        (string, int64, ("columns", 0, 1)),
        (int64, string, ("columns", 1, 0)),
        (string, int64, ("columns", 0, -1)),
        (string, int64, ("columns", -2, 1)),
        (int64, int64, ("columns", 1, -1)),
        (string, int64, ("columns", 0, 2)),
        (string, int64, ("columns", 2, 0)),
        (string, int64, ("short", 0, 1)),
        (string, int64, ("words", 0, 1)),
        (string, string, ("columns", 0, 1)),
        (string, string, ("columns", 0, 0)),
        (string, float32, ("columns", 0, 1)),
        (string, v.tf.float64, ("columns", 0, 1)),
        (string, int32, ("columns", 0, 1)),
        (string, float32, ("commas", 0, 1, -1, ",")),
        (string, int64, ("columns", 0, 1, -1, "ab")),
        (string, int64, ("columns", 0, 1, -1, "")),
        (string, int64, ("plain", -1, -1)),
        (string, string, ("plain", -2, -2)),
        (string, int64, ("plain", -2, -2)),
        (int64, int64, ("plain", -1, -1)),
        (string, int32, ("plain", -2, -1)),
        (string, string, ("plain", -2, -1)),
        (int64, int64, ("numbers", -2, -1)),
        (int64, int64, ("mixed", -2, -1)),
    ):
        t = v.static(key, value)
        yield v.from_file(t, *arguments)
        yield v.size(t)
        yield v.export(t, key, value)
    t = v.static()
    yield v.from_file(t, v.text("x"), -2, -1)
    yield v.from_file(t, "plain", -2, -1)
    yield v.from_file(t, "columns", 0, 1)
    yield v.size(t)


def sharing(v: Vocabulary) -> Iterator[Any]:
    t = v.static(shared_name="x")
    yield v.initialize(t, v.text("a"), v.numbers([1]))
    yield v.size(v.static(shared_name="x"))
    yield v.size(v.static(value=v.int32, shared_name="x"))
    yield v.size(v.static(shared_name="x", container="other"))
    yield v.size(v.static(shared_name="y"))
    yield v.size(v.static())
    yield v.insert(v.mutable(use_node_name_sharing=True, name="named"), v.text("a"), v.numbers([1]))
    yield v.size(v.mutable(shared_name="named"))


def references(v: Vocabulary) -> Iterator[Any]:
    ops, types = v.ops, {"key_dtype": v.string, "value_dtype": v.int64}
    t = ops.HashTable(shared_name="r", **types)
    yield t
    yield ops.LookupTableFind(table_handle=t, keys=v.text("a"), default_value=v.numbers(0))
    yield ops.InitializeTable(table_handle=t, keys=v.text("a"), values=v.numbers([5]))
    yield ops.LookupTableFind(table_handle=t, keys=v.text("a", "b"), default_value=v.numbers(0))
    yield ops.LookupTableSize(table_handle=t)
    yield list(ops.LookupTableExport(table_handle=t, Tkeys=v.string, Tvalues=v.int64))
    yield v.size(v.static(shared_name="r"))
    t = ops.HashTable(**types)
    yield ops.InitializeTableFromTextFile(
        table_handle=t, filename=v.text_of("plain"), key_index=-2, value_index=-1
    )
    yield ops.LookupTableFind(table_handle=t, keys=v.text("c"), default_value=v.numbers(0))
    t = ops.MutableHashTable(**types)
    yield ops.LookupTableInsert(table_handle=t, keys=v.text("a"), values=v.numbers([5]))
    yield ops.LookupTableSize(table_handle=t)
    yield ops.LookupTableImport(table_handle=t, keys=v.text("p", "q"), values=v.numbers([5, 6]))
    yield ops.LookupTableFind(table_handle=t, keys=v.text("a", "q"), default_value=v.numbers(0))
    t = ops.MutableHashTableOfTensors(value_shape=[2], **types)
    yield ops.LookupTableInsert(table_handle=t, keys=v.text("a"), values=v.numbers([[5, 6]]))
    yield ops.LookupTableFind(table_handle=t, keys=v.text("a"), default_value=v.numbers([0, 0]))


def anonymous(v: Vocabulary) -> Iterator[Any]:
    types = {"key_dtype": v.string, "value_dtype": v.int64}
    yield v.size(v.ops.AnonymousHashTable(**types))
    t = v.ops.AnonymousMutableHashTable(**types)
    with v.tf.control_dependencies([v.insert(t, v.text("a"), v.numbers([3]))]):
        yield v.find(t, v.text("a", "b"), v.numbers(0))
    yield v.size(t)
    t = v.ops.AnonymousMutableHashTableOfTensors(value_shape=[1], **types)
    with v.tf.control_dependencies([v.insert(t, v.text("a"), v.numbers([[3]]))]):
        yield v.find(t, v.text("a", "b"), v.numbers([0]))
    t = v.ops.AnonymousMutableDenseHashTable(
        empty_key=v.numbers(0), deleted_key=v.numbers(-1), value_dtype=v.int64, initial_num_buckets=4
    )
    with v.tf.control_dependencies([v.insert(t, v.numbers([1]), v.numbers([3]))]):
        yield v.find(t, v.numbers([1, 2]), v.numbers(0))


PROGRAMS: dict[str, Callable[[Vocabulary], Iterator[Any]]] = {
    each.__name__: each
    for each in (
        static_table,
        static_tables,
        mutable_table,
        mutable_numbers,
        mismatches_while_building,
        wrong_values_while_building,
        wrong_keys_while_building,
        of_tensors,
        text_files,
        sharing,
        references,
        anonymous,
    )
}


def write_files(folder: pathlib.Path) -> None:
    """Write `FILES` below this folder."""
    for name, data in FILES.items():
        (folder / name).write_bytes(data)


def evaluate(tf: Any, ops: Any, name: str, folder: pathlib.Path) -> list[Any]:
    """What each step of a program gives: ``["gives", shapes, values]``, ``["fails", class, message]`` or, if
    the graph cannot be built, ``["refuses", class, message]``, which is the last.
    """
    outcomes: list[Any] = []
    with tf.Graph().as_default(), tf.Session() as session:
        steps = PROGRAMS[name](Vocabulary(tf, ops, folder))
        while True:
            try:
                fetch = next(steps)
            except StopIteration:
                return outcomes
            except Exception as error:
                return [*outcomes, ["refuses", type(error).__name__, str(error)]]
            outcomes.append(_step(session, fetch))


def _step(session: Any, fetch: Any) -> Any:
    several = fetch if isinstance(fetch, list) else [fetch]
    shapes = [
        None if each.shape.ndims is None else each.shape.as_list()
        for each in several
        if hasattr(each, "shape") and each.op.type != "HashTable"
    ]
    try:
        values = session.run(several)
    except Exception as error:
        return ["fails", type(error).__name__, getattr(error, "message", str(error))]
    values = [None if value is None else np.asarray(value) for value in values]
    if len(values) == 2:  # an export; the order of its rows is nobody's promise
        order = sorted(range(len(values[0])), key=lambda i: repr(values[0][i]))
        values = [value[order] for value in values]
    return ["gives", shapes, [_plain(value) for value in values]]


def _plain(value: Any) -> Any:
    if value is None:
        return None
    if value.dtype.kind in "OS":
        return np.vectorize(lambda text: text.decode(), otypes=[object])(value).tolist()
    return value.tolist()
