"""`tf.data.experimental.SqlDataset` gives TensorFlow's values of a SQLite database, and clear errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import flowstone as tf
import queries
from test_iterator import rest

GOLDENS = Path(__file__).parent.parent / "golden" / "data"


@pytest.fixture
def database(tmp_path: Path) -> str:
    queries.make(str(tmp_path / "rows of a?b#c.sqlite"))
    return str(tmp_path / "rows of a?b#c.sqlite")


def test_answers_are_tensorflows(database: str) -> None:
    expected = json.loads((GOLDENS / "queries.json").read_text())
    found = queries.answers(tf, database)
    assert len(found) == len(expected)
    assert [(q, a) for q, a in zip(queries.QUERIES, found)] == [*zip(queries.QUERIES, expected)]


def rows(*arguments: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        iterator = tf.data.experimental.SqlDataset(*arguments).make_initializable_iterator()
        element = iterator.get_next()
        session.run(iterator.initializer)
        return session.run(element)


def test_what_cannot_be_read(database: str, tmp_path: Path) -> None:
    query, types = "select a from t", (tf.int32,)
    with pytest.raises(tf.errors.InvalidArgumentError, match="The database type, mysql, is not supported"):
        rows("mysql", database, query, types)
    with pytest.raises(tf.errors.NotFoundError, match="There is no database"):
        rows("sqlite", str(tmp_path / "nowhere"), query, types)
    with pytest.raises(tf.errors.UnknownError, match="readonly database"):
        rows("sqlite", database, "insert into t (a) values (9) returning a", types)
    (tmp_path / "other").write_bytes(b"nonsense" * 300)
    with pytest.raises(tf.errors.UnknownError, match="file is not a database"):
        rows("sqlite", str(tmp_path / "other"), query, types)
    assert rows("sqlite", database, query, types)[0] == 1


def test_query_is_a_tensor_and_a_pass_goes_on_where_it_was(database: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        query = tf.placeholder(tf.string, [])
        dataset = tf.data.experimental.SqlDataset("sqlite", database, query, {"a": tf.int64, "b": tf.string})
        iterator = dataset.make_initializable_iterator()
        element, handle = iterator.get_next(), iterator._iterator_resource
        save, fed = tf.raw_ops.SerializeIterator(resource_handle=handle), tf.placeholder(tf.variant, [None])
        restore = tf.raw_ops.DeserializeIterator(resource_handle=handle, serialized=fed)
        session.run(iterator.initializer, {query: "select a, c from t order by a"})
        first = session.run(element)
        assert (first["a"], first["b"]) == (-5, "\u00e9".encode())
        state = session.run(save)
        after = rest(session, element)
        session.run(restore, {fed: state})
        assert rest(session, element) == after and len(after) == 3
