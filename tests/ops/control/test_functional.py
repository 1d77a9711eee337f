"""`tf.map_fn`, `tf.foldl`, `tf.foldr` and `tf.scan`: values, nodes and mistakes; expectations are
TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def x():
    return tf.constant([1.0, 2.0, 3.0], name="x")


def run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feed)


def plain(value: Any) -> Any:
    """Arrays as lists, in the same structure."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return tuple(map(plain, value)) if isinstance(value, tuple) else np.asarray(value).tolist()


# ---- values


def test_map(x) -> None:
    assert plain(run(tf.map_fn(lambda v: v * v, x))) == [1, 4, 9]
    assert plain(run(tf.map_fn(lambda v: 1.5, x))) == [1.5, 1.5, 1.5]
    assert plain(run(tf.map_fn(lambda v: tf.cast(v, tf.int32), x, dtype=tf.int32))) == [1, 2, 3]
    assert plain(run(tf.map_fn(lambda v: v * 2, tf.zeros([0, 2])))) == []
    assert plain(run(tf.map_fn(lambda v: v, tf.constant(["a", "b"])))) == [b"a", b"b"]


def test_map_over_structures(x) -> None:
    pairs = {"a": x, "b": tf.constant([[1, 2], [3, 4], [5, 6]])}
    result = tf.map_fn(
        lambda row: (row["b"] * 2, {"k": [row["a"] + 1.0]}), pairs, dtype=(tf.int32, {"k": [tf.float32]})
    )
    numbers, nested = run(result)
    assert plain(numbers) == [[2, 4], [6, 8], [10, 12]] and plain(nested["k"][0]) == [2, 3, 4]


def test_map_of_an_unknown_number_of_rows() -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    sums = tf.map_fn(tf.reduce_sum, x)
    with tf.Session() as session:
        assert plain(session.run(sums, {x: np.ones([3, 2])})) == [2, 2, 2]
        assert plain(session.run(sums, {x: np.ones([1, 2])})) == [2]


def test_folds(x) -> None:
    assert run(tf.foldl(lambda a, v: a - v, x)) == -4
    assert run(tf.foldr(lambda a, v: a - v, x)) == 0
    assert run(tf.foldl(lambda a, v: a * v, x, initializer=2.0)) == 12
    assert run(tf.foldr(lambda a, v: a - v[0], (x, x), initializer=1.0)) == -5
    assert plain(run(tf.foldl(lambda a, v: (a[0] + v[0], a[1] * v[1]), (x, x)))) == (6, 6)
    assert plain(run(tf.foldl(lambda a, v: {"k": a["k"] + v}, x, initializer={"k": 1.0}))) == {"k": 7}
    assert run(tf.foldl(lambda a, v: a + v, tf.zeros([0]), initializer=1.0)) == 1
    assert run(tf.foldr(lambda a, v: a + v, tf.zeros([0]), initializer=1.0)) == 1


def test_scan(x) -> None:
    assert plain(run(tf.scan(lambda a, v: a + v, x))) == [1, 3, 6]
    assert plain(run(tf.scan(lambda a, v: a + v, x, reverse=True))) == [6, 5, 3]
    assert plain(run(tf.scan(lambda a, v: a + v, x, initializer=5.0, reverse=True, infer_shape=False))) == [
        11,
        10,
        8,
    ]
    assert plain(run(tf.scan(lambda a, v: a + v, x, initializer=tf.zeros([2])))) == [[1, 1], [3, 3], [6, 6]]
    nested = tf.scan(
        lambda a, v: (a[0] + v[0], (a[1][0] * v[1], a[1][1])), (x, x), initializer=(0.0, (1.0, 2))
    )
    assert plain(run(nested)) == ([1, 3, 6], ([1, 2, 6], [2, 2, 2]))
    assert plain(run(tf.scan(lambda a, v: a + v, tf.zeros([0]), initializer=1.0))) == []


def test_scan_of_an_unknown_number_of_rows() -> None:
    x = tf.placeholder(tf.float32, [None, None])
    result = tf.scan(lambda a, v: a + v, x, reverse=True)
    assert plain(run(result, {x: [[1, 2], [3, 4]]})) == [[4, 6], [3, 4]]


def test_nested_loops() -> None:
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    result = tf.map_fn(lambda row: tf.scan(lambda a, v: a + v, row * 10.0), x)
    assert plain(run(result)) == [[10, 30], [30, 70]]


def test_variables_made_in_the_function(x) -> None:
    with tf.variable_scope("V"):
        result = tf.map_fn(lambda v: v * tf.get_variable("w", initializer=3.0), x)
    assert plain(run(result)) == [3, 6, 9]
    assert [v.name for v in tf.global_variables()] == ["V/w:0"]


# ---- gradients


def test_gradients(x) -> None:
    cases = [
        (tf.map_fn(lambda v: v * v, x), [2, 4, 6]),
        (tf.foldl(lambda a, v: a * v, x), [6, 3, 2]),
        (tf.foldr(lambda a, v: a * v * v, x, initializer=2.0), [144, 72, 48]),
        (tf.scan(lambda a, v: a * v, x), [9, 4, 2]),
        (tf.scan(lambda a, v: a * v + a, x, reverse=True, initializer=3.0), [36, 36, 30]),
    ]
    values = run([tf.gradients(y, x)[0] for y, _ in cases])
    assert [plain(value) for value in values] == [expected for _, expected in cases]


# ---- nodes


def names_outside_loops() -> str:
    names = [op.name for op in tf.get_default_graph().get_operations()]
    kept = [name for name in names if not any(part in name for part in ("/while/", "Unstack", "Stack"))]
    return " ".join(kept)


def test_names_of_map(x) -> None:
    tf.map_fn(lambda v: v, x)
    tf.map_fn(lambda v: v, np.ones([3, 2], np.float32), name="other")
    assert names_outside_loops() == (
        "x map/TensorArray/size map/TensorArray map/Const map/TensorArray_1/size map/TensorArray_1 "
        "other/elem other/TensorArray/size other/TensorArray other/Const other/TensorArray_1/size "
        "other/TensorArray_1"
    )
    body = [op.name for op in tf.get_default_graph().get_operations() if op.name.startswith("map/while/T")]
    assert body == [
        "map/while/TensorArrayReadV3/Enter",
        "map/while/TensorArrayReadV3/Enter_1",
        "map/while/TensorArrayReadV3",
        "map/while/TensorArrayWrite/TensorArrayWriteV3/Enter",
        "map/while/TensorArrayWrite/TensorArrayWriteV3",
    ]


def test_names_of_folds(x) -> None:
    tf.foldl(lambda a, v: a, x)
    tf.foldr(lambda a, v: a, x, initializer=0.0)
    assert names_outside_loops() == (
        "x foldl/TensorArray/size foldl/TensorArray foldl/TensorArrayReadV3/index foldl/TensorArrayReadV3 "
        "foldl/Const foldr/TensorArray/size foldr/TensorArray"
    )


def test_names_of_scan() -> None:
    tf.scan(lambda a, v: a, tf.placeholder(tf.float32, [None, 2]), reverse=True)
    assert names_outside_loops() == (
        "Placeholder scan/Shape scan/strided_slice/stack scan/strided_slice/stack_1 "
        "scan/strided_slice/stack_2 scan/strided_slice scan/TensorArray scan/sub/y scan/sub "
        "scan/TensorArrayReadV3 scan/TensorArray_1 scan/sub_1/y scan/sub_1 "
        "scan/TensorArrayWrite/TensorArrayWriteV3 scan/sub_2/y scan/sub_2 scan/sub_3/y scan/sub_3"
    )


def test_static_shapes(x) -> None:
    rows = tf.placeholder(tf.float32, [None, 2])
    assert tf.map_fn(lambda v: v, rows).shape.as_list() == [None, 2]
    assert tf.map_fn(lambda v: tf.stack([v, v]), x).shape.as_list() == [3, 2]
    assert tf.map_fn(lambda v: v, x, infer_shape=False).shape.ndims is None
    assert tf.foldl(lambda a, v: a, rows).shape.as_list() == [2]
    assert tf.scan(lambda a, v: a, x, initializer=tf.zeros([4])).shape.as_list() == [3, 4]


# ---- mistakes

BUILDING_MISTAKES: list[tuple[type[Exception], str, Callable[[Any], Any]]] = [
    (TypeError, "fn must be callable", lambda x: tf.map_fn(3, x)),
    (TypeError, "fn must be callable", lambda x: tf.foldl(3, x)),
    (TypeError, "fn must be callable", lambda x: tf.foldr(3, x)),
    (TypeError, "fn must be callable", lambda x: tf.scan(3, x)),
    (ValueError, "not scalars", lambda x: tf.map_fn(lambda v: v, tf.constant(1.0))),
    (ValueError, "not scalars", lambda x: tf.map_fn(lambda v: v, [1.0, 2.0])),
    (ValueError, "not scalars", lambda x: tf.scan(lambda a, v: v, tf.constant(1.0))),
    (ValueError, "does not contain any Tensors", lambda x: tf.map_fn(lambda v: v, [])),
    (TypeError, "sparse", lambda x: tf.map_fn(lambda v: v, tf.SparseTensor([[0]], x[:1], [3]))),
    (ValueError, "same nested structure", lambda x: tf.map_fn(lambda v: (v, v), x)),
    (ValueError, "same nested structure", lambda x: tf.map_fn(lambda v: v, x, dtype=(tf.float32,) * 2)),
    (TypeError, "same sequence type", lambda x: tf.map_fn(lambda v: (v,), x, dtype=[tf.float32])),
    (ValueError, "None values not supported", lambda x: tf.map_fn(lambda v: None, x)),
    (ValueError, "Dimensions 3 and 2 are not compatible", lambda x: tf.map_fn(lambda v: v, (x, x[:2]))),
    (
        ValueError,
        "Dimensions 3 and 2 are not compatible",
        lambda x: tf.scan(lambda a, v: a, (x, x[:2]), initializer=0.0),
    ),
    (ValueError, "same nested structure", lambda x: tf.foldl(lambda a, v: (a, v), x)),
    (ValueError, "enters the loop with shape", lambda x: tf.foldl(lambda a, v: tf.stack([a, v]), x)),
    (ValueError, "same nested structure", lambda x: tf.scan(lambda a, v: (a, v), x)),
    (ValueError, r"saw \(2,\) but expected \(\)", lambda x: tf.scan(lambda a, v: tf.stack([a, v]), x)),
    (TypeError, "parallel_iterations", lambda x: tf.foldl(lambda a, v: a, x, parallel_iterations=0)),
]


@pytest.mark.parametrize(("kind", "message", "build"), BUILDING_MISTAKES)
def test_mistakes_in_building(x, kind: type[Exception], message: str, build: Callable[[Any], Any]) -> None:
    with pytest.raises(kind, match=message):
        build(x)


def test_mistakes_in_a_step(x) -> None:
    mistakes = {
        "trying to write dtype int32": tf.map_fn(lambda v: tf.cast(v, tf.int32), x),
        "index 1 because the value shape": tf.map_fn(tf.range, tf.constant([1, 2])),
        "inconsistent shapes": tf.map_fn(tf.range, tf.constant([1, 2]), infer_shape=False),
        "Tried to read from index 0 but array size is: 0": tf.foldl(lambda a, v: a, tf.zeros([0])),
        "Tried to read from index -1 but array size is: 0": tf.scan(
            lambda a, v: a, tf.zeros([0]), reverse=True
        ),
    }
    for message, fetch in mistakes.items():
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            run(fetch)
