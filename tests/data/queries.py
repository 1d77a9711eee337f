"""A SQLite database, and queries of it that flowstone and TensorFlow answer alike: `QUERIES`.

`answers(tf, path)` gives for each the rows as plain Python, or the class of the error.
"""

from __future__ import annotations

import os
import sqlite3
from typing import Any

ROWS = [
    (1, 1.5, "x", b"\0\xff\x01", None),
    (300, -2.7, "12abc", b"", 7),
    (-5, 1e20, "\u00e9", b"zz", 2**40),
    (2**63 - 1, -1e300, " -3.5e1x", b"4", -(2**63)),
]
COLUMNS = "abcde"
NUMBERS = ("int8", "int16", "uint8", "uint16", "int32", "int64", "bool", "float64", "string")

QUERIES: list[tuple[str, tuple[str, ...]]] = [
    ("select a, b, c from t", ("int64", "float64", "string")),
    ("select a, b, c from t order by b limit 2", ("int32", "float64", "string")),
    ("select count(*), max(c) from t where a > 0", ("int32", "string")),
    ("select a from t where a = 12345", ("int32",)),
    *((f"select {column} from t", (kind,)) for kind in NUMBERS for column in COLUMNS),
    *(("select a from t", (kind,)) for kind in ("float32", "uint32", "complex64")),
    ("select a from t", ("int32", "int32")),
    ("select a, b from t", ("int32",)),
    ("select zz from t", ("int32",)),
    ("selec", ("int32",)),
]


def make(path: str) -> None:
    if os.path.exists(path):
        os.remove(path)
    with sqlite3.connect(path) as connection:
        connection.execute("create table t (a integer, b real, c text, d blob, e integer)")
        connection.executemany("insert into t values (?, ?, ?, ?, ?)", ROWS)
    connection.close()


def answers(tf: Any, path: str) -> list[Any]:
    return [_answer(tf, path, query, kinds) for query, kinds in QUERIES]


def _answer(tf: Any, path: str, query: str, kinds: tuple[str, ...]) -> Any:
    types = tuple(getattr(tf, kind) for kind in kinds)
    with tf.Graph().as_default(), tf.Session() as session:
        try:
            dataset = tf.data.experimental.SqlDataset("sqlite", path, query, types)
            element = dataset.make_one_shot_iterator().get_next()
            rows = []
            while True:
                try:
                    rows.append([_plain(value) for value in session.run(element)])
                except tf.errors.OutOfRangeError:
                    return rows
        except tf.errors.OpError as error:
            return type(error).__name__


def _plain(value: Any) -> Any:
    return value.decode("latin-1") if isinstance(value, bytes) else value.item()
