"""The forms that fetches may have, and the types in which TensorFlow gives them back."""

from __future__ import annotations

import collections
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

import flowstone as tf


class Kept(dict):  # type: ignore[type-arg]
    """A dict of another type."""


class Read(Mapping[str, Any]):
    """A mapping that cannot be changed."""

    def __init__(self, items: Any) -> None:
        self._items = dict(items)

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


class Defaulting(defaultdict):  # type: ignore[type-arg]
    """A defaultdict of another type."""


class Pair(NamedTuple):
    first: Any
    second: Any


class Sum(Pair):
    """A subclass of a named tuple."""


class Two(tuple):  # type: ignore[type-arg]
    """A tuple that is made of its items."""

    def __new__(cls, first: Any, second: Any) -> Two:
        return super().__new__(cls, (first, second))  # type: ignore[type-var]


class Attribute(NamedTuple):
    """What attrs says of one attribute."""

    name: str


class Point:
    """As attrs writes a class: the leading underscore is not part of the argument's name."""

    __attrs_attrs__ = (Attribute("x"), Attribute("_y"))

    def __init__(self, x: Any, y: Any) -> None:
        self.x, self._y = x, y


@pytest.fixture
def session() -> Iterator[Any]:
    with tf.Graph().as_default(), tf.Session() as s:
        yield s


def results(session: Any, make: Any) -> Iterator[Any]:
    """Of a first run, of one whose runner is known, and of a callable."""
    yield session.run(make())
    yield session.run(make())
    yield session.make_callable(make())()


@pytest.mark.parametrize("kind", [dict, OrderedDict, Kept, Counter, UserDict, Read, ChainMap])
def test_mappings(session: Any, kind: Any) -> None:
    x, y = tf.constant(3.0), tf.constant([4, 5])
    for result in results(session, lambda: kind({"z": x, "a": [y]})):
        assert type(result) is kind and set(result) == {"z", "a"}
        assert result["z"] == 3.0 and isinstance(result["z"], np.float32)
        assert type(result["a"]) is list and result["a"][0].tolist() == [4, 5]
        assert kind is ChainMap or list(result) == ["z", "a"]


@pytest.mark.parametrize("kind", [defaultdict, Defaulting])
def test_mappings_with_a_default(session: Any, kind: Any) -> None:
    x = tf.constant(3.0)
    for factory in (list, int, None, lambda: 7):  # one after the other: their runners are not mixed up
        for result in results(session, lambda f=factory: {"in": kind(f, {"z": x})}):
            assert type(result["in"]) is defaultdict and result["in"] == {"z": 3.0}
            assert result["in"].default_factory is factory


@pytest.mark.parametrize("kind", [collections.namedtuple("Made", "a b"), Pair, Sum, Two])  # type: ignore[misc]
def test_tuples_of_a_type(session: Any, kind: Any) -> None:
    x, y = tf.constant(3.0), tf.constant([4, 5])
    for result in results(session, lambda: kind(x, (y,))):
        assert type(result) is kind and result[0] == 3.0 and result[1][0].tolist() == [4, 5]


def test_attrs_classes(session: Any) -> None:
    x, y = tf.constant(3.0), tf.constant(4)
    for result in results(session, lambda: Point(x, [y])):
        assert type(result) is Point and result.x == 3.0 and result._y == [4]


def test_what_is_no_form(session: Any) -> None:
    x = tf.constant(3.0)
    for fetch in (
        UserList([x]),
        deque([x]),
        {"Const:0"},
        (i for i in [x]),
        {"Const:0": x}.values(),
        range(2),
    ):
        with pytest.raises(TypeError, match="has invalid type"):
            session.run(fetch)


def test_sparse_feeds_find_their_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = tf.sparse_placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [])
    total = tf.sparse_reduce_sum(x) * y + tf.cast(tf.reduce_sum(x.dense_shape), tf.float32)
    slow = []
    with tf.Session() as session:
        run_slowly = session._run_slowly
        monkeypatch.setattr(session, "_run_slowly", lambda *given: slow.append(1) or run_slowly(*given))
        for rows, value in ((2, 1.0), (2, 5.0), (4, 2.0)):
            fed = tf.SparseTensorValue(np.array([[0, 0], [1, 2]]), np.array([value, 2.0]), (rows, 3))
            expected = (value + 2) * 2 + rows + 3
            assert session.run(total, {x: fed, y: 2.0}) == expected
            assert session.run([total], {y: 2.0, x: fed}) == [expected]
            assert len(slow) == 2
        assert session.run(total, {x: tuple(fed), y: 2.0}) == expected
        assert session.run(total, {x: tuple(fed), y: 2.0}) == expected
        assert len(slow) == 4


def test_fed_tuples_are_read_again_where_they_differ() -> None:
    x = tf.placeholder(tf.int32, [2])
    changing = [1, 2]
    with tf.Session() as session:
        for given in ((1, 2), (3, 4), (1, 2)):
            assert session.run(x + 0, {x: given}).tolist() == list(given)
            assert session.run(x + 0, {x: given}).tolist() == list(given)
        for value in (5, 6):
            changing[0] = value
            assert session.run(x + 0, {x: changing}).tolist() == [value, 2]


@pytest.mark.parametrize("form", [tuple, list, lambda parts: tf.SparseTensorValue(*parts)])
def test_a_sparse_feed_is_any_three_parts(form) -> None:
    x = tf.sparse_placeholder(tf.float32)
    parts = ([[0, 1], [1, 2]], np.float32([2.0, 3.0]), [2, 3])
    with tf.Session() as s:
        assert s.run(tf.sparse_tensor_to_dense(x), {x: form(parts)}).tolist() == [[0, 2, 0], [0, 0, 3]]
        with pytest.raises(ValueError, match="Cannot feed value of shape"):
            s.run(x, {x: np.zeros([3, 4, 5])})


@pytest.mark.parametrize("dims", [None, [None], [2]])
@pytest.mark.parametrize("is_remote", [False, True])
def test_fed_strings_come_back_as_they_were_fed(is_remote: bool, dims: Any) -> None:
    """So they do in TensorFlow: what else is computed of them is bytes."""
    server = tf.train.Server.create_local_server() if is_remote else None
    text, word = tf.placeholder(tf.string, dims), tf.placeholder(tf.string, [])
    same = tf.identity(text)
    with tf.Session(server.target if server else "") as session:
        for given in (["é", b"b"], np.array(["a", "b"]), ["c", "d"]):
            fetched, computed, one = session.run([text, same, word], {text: given, word: "w"})
            assert fetched.dtype == object and fetched.tolist() == list(given) and one == "w"
            assert computed.tolist() == [
                tf.compat.as_bytes(str(x) if type(x) is np.str_ else x) for x in given
            ]
