"""Input pipelines that flowstone and TensorFlow run alike: `PROGRAMS`, by name, of the module `tf`.

`run(tf, name)` gives what the elements are, as plain Python: a list of elements, and the class of the error
that ends them (OutOfRangeError is the end).
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

Point = namedtuple("Point", "x y")
MOST = 60  # elements of a program

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS[function.__name__] = function
    return function


def expression(name: str, function: Callable[[Any, Any], Any]) -> None:
    PROGRAMS[name] = lambda tf: function(tf, tf.data.Dataset)


expression("range", lambda tf, D: D.range(5))
expression("range of three", lambda tf, D: D.range(10, 0, -3))
expression("range without numbers", lambda tf, D: D.range(3, 3))
expression("tensors", lambda tf, D: D.from_tensors(([1, 2], {"b": 3.0, "a": "x"})))
expression(
    "slices", lambda tf, D: D.from_tensor_slices(([[1, 2], [3, 4]], {"b": [3.0, 4.0], "a": ["x", "y"]}))
)
expression(
    "named tuples", lambda tf, D: D.from_tensor_slices(Point([1, 2], [3, 4])).map(lambda p: Point(p.y, p.x))
)
expression("slices, none", lambda tf, D: D.from_tensor_slices(np.zeros([0, 2], np.float32)))
expression("batches", lambda tf, D: D.range(7).batch(3))
expression("batches of strings", lambda tf, D: D.from_tensor_slices(["a", "bc", "", "d"]).batch(3))
expression("batches of rows", lambda tf, D: D.from_tensor_slices(np.arange(14.0).reshape(7, 2)).batch(3))
expression("batches of batches", lambda tf, D: D.range(7).batch(2).batch(2))
expression("batches, remainder dropped", lambda tf, D: D.range(7).batch(3, drop_remainder=True))
expression("batches of repeated slices", lambda tf, D: D.from_tensor_slices([1, 2, 3]).repeat(3).batch(4))
expression("batches of other shapes", lambda tf, D: D.range(3).map(lambda x: tf.fill([x], x)).batch(2))
expression("batch size 0", lambda tf, D: D.range(3).batch(tf.constant(0, tf.int64)))
expression("repeat", lambda tf, D: D.range(3).repeat(2))
expression("repeat none", lambda tf, D: D.range(3).repeat(0))
expression("repeat for ever", lambda tf, D: D.range(3).repeat())
expression("repeat nothing for ever", lambda tf, D: D.range(0).repeat())
expression("take", lambda tf, D: D.range(5).take(3))
expression("take all", lambda tf, D: D.range(5).take(-1))
expression("take too many", lambda tf, D: D.range(2).take(10))
expression("take before batch", lambda tf, D: D.from_tensor_slices([1, 2, 3, 4, 5]).take(4).batch(3))
expression("skip", lambda tf, D: D.range(5).skip(3))
expression("skip all", lambda tf, D: D.range(5).skip(-1))
expression("skip too many", lambda tf, D: D.range(2).skip(10))
expression("skip before batch", lambda tf, D: D.range(7).skip(2).batch(3))
expression("shard", lambda tf, D: D.range(10).shard(3, 1))
expression("filter", lambda tf, D: D.range(10).filter(lambda x: tf.equal(x % 3, 1)))
expression("filter of pairs", lambda tf, D: D.zip((D.range(5), D.range(5, 0, -1))).filter(lambda a, b: a < b))
expression("concatenate", lambda tf, D: D.range(3).concatenate(D.range(10, 12)))
expression("concatenate shapes", lambda tf, D: D.from_tensors([1, 2]).concatenate(D.from_tensors([3])))
expression("zip", lambda tf, D: D.zip((D.range(3), {"a": D.range(10, 20)})))
expression("map", lambda tf, D: D.range(4).map(lambda x: x * x + 1))
expression(
    "map to a structure", lambda tf, D: D.range(3).map(lambda x: {"a": (x, [x, x + 1]), "b": tf.as_string(x)})
)
expression("map of a dict", lambda tf, D: D.from_tensor_slices({"a": [1, 2]}).map(lambda d: d["a"] + 1))
expression("map of captured", lambda tf, D: _captured(tf, D))
expression("map with cond", lambda tf, D: D.range(4).map(lambda x: tf.cond(x > 1, lambda: -x, lambda: x)))
expression("map with while", lambda tf, D: D.range(4).map(
    lambda x: tf.while_loop(lambda i: i < 10, lambda i: i * 2 + 1, [x])))  # fmt: skip
expression("map at once", lambda tf, D: D.range(20).map(lambda x: x * 2, num_parallel_calls=4))
expression("map fails", lambda tf, D: D.range(4).map(lambda x: tf.check_numerics(1.0 / tf.to_float(x), "oh")))
expression("map at once fails", lambda tf, D: D.range(4).map(
    lambda x: tf.check_numerics(1.0 / tf.to_float(x - 2), "oh"), num_parallel_calls=2))  # fmt: skip
expression("flat_map", lambda tf, D: D.range(4).flat_map(lambda x: D.from_tensors(x).repeat(x)))
expression(
    "flat_map of slices", lambda tf, D: D.from_tensor_slices([[1, 2], [3, 4]]).flat_map(D.from_tensor_slices)
)
expression("interleave", lambda tf, D: D.range(4).interleave(lambda x: D.from_tensors(x).repeat(3), 2, 2))
expression("interleave uneven", lambda tf, D: D.from_tensor_slices([4, 1, 0, 3, 2]).interleave(
    lambda x: D.from_tensors(x).repeat(tf.cast(x, tf.int64)), 3))  # fmt: skip
expression("interleave fewer than the cycle", lambda tf, D: D.range(2).interleave(
    lambda x: D.from_tensors(x).repeat(3), 5, 2))  # fmt: skip
expression(
    "padded batches", lambda tf, D: D.range(1, 6).map(lambda x: tf.fill([x], x)).padded_batch(2, [None])
)
expression(
    "padded to a size", lambda tf, D: D.range(1, 4).map(lambda x: tf.fill([x], x)).padded_batch(2, [4])
)
expression("padded with", lambda tf, D: D.range(1, 4).map(lambda x: (tf.fill([x], x), tf.fill([x, 2], "s")))
           .padded_batch(2, ([-1], [None, 3]), (tf.constant(-1, tf.int64), "-")))  # fmt: skip
expression("padded to less", lambda tf, D: D.range(1, 6).map(lambda x: tf.fill([x], x)).padded_batch(3, [2]))
expression("prefetch", lambda tf, D: D.range(10).prefetch(3))
expression("prefetch of what fails", lambda tf, D: D.range(3).map(
    lambda x: tf.check_numerics(1.0 / tf.to_float(x - 1), "oh")).prefetch(2))  # fmt: skip
expression("shuffle", lambda tf, D: D.range(10).shuffle(4, 7, False))
expression("shuffle all", lambda tf, D: D.range(10).shuffle(100, 3, False))
expression("shuffle one", lambda tf, D: D.range(5).shuffle(1, 3, False))
expression(
    "shuffle slices",
    lambda tf, D: D.from_tensor_slices(np.arange(20).reshape(10, 2)).shuffle(6, 1, False).batch(4),
)
expression("shuffle again and again", lambda tf, D: D.range(6).shuffle(4, 7, False).repeat(3).batch(4))
expression("shuffle long", lambda tf, D: D.range(1500).shuffle(700, 5, False).batch(1500))
expression("shuffle differently again", lambda tf, D: D.range(8).shuffle(5, 7).repeat(3).batch(8))
expression("shuffle all and again", lambda tf, D: D.from_tensor_slices(np.arange(5)).shuffle(9, 1).repeat(2))
expression("shuffle and pass once", lambda tf, D: D.range(8).shuffle(5, 7).repeat(1).batch(8))
expression(
    "shuffle and map again", lambda tf, D: D.range(8).shuffle(5, 7).map(lambda x: x).repeat(2).batch(8)
)
expression(
    "shuffle and repeat in one",
    lambda tf, D: (
        D.range(8)
        .apply(tf.data.experimental.shuffle_and_repeat(5, 1, 3))
        .repeat(2)
        .concatenate(D.range(4).apply(tf.data.experimental.shuffle_and_repeat(9, 2, 3)))
        .batch(8)
    ),
)
expression("cache", lambda tf, D: D.range(4).map(lambda x: x + 1).cache().repeat(2))
expression("generator", lambda tf, D: D.from_generator(
    lambda: ((i, "a" * i) for i in range(3)), (tf.int64, tf.string)).repeat(2))  # fmt: skip
expression("generator of vectors", lambda tf, D: D.from_generator(
    lambda: iter([[1.0], [2.0, 3.0]]), tf.float32, [None]).padded_batch(2, [None]))  # fmt: skip
expression("generator of a wrong type", lambda tf, D: D.from_generator(lambda: iter([1, "x", 3]), tf.int64))
expression(
    "generator of a wrong shape", lambda tf, D: D.from_generator(lambda: iter([[1], [1, 2]]), tf.int64, [1])
)
expression("sparse slices", lambda tf, D: D.from_sparse_tensor_slices(_sparse(tf)))
expression("sparse components", lambda tf, D: D.from_tensor_slices(_sparse(tf)))
expression("sparse batches", lambda tf, D: D.from_tensor_slices((_sparse(tf), [1, 2, 3])).batch(2))
expression("sparse maps", lambda tf, D: D.range(3).map(
    lambda x: tf.SparseTensor([[x, 0]], [x], [4, 2])).map(lambda s: tf.sparse_add(s, s)))  # fmt: skip
expression("datasets in maps of maps", lambda tf, D: D.range(3).flat_map(
    lambda x: D.range(x).flat_map(lambda y: D.from_tensors((x, y)))))  # fmt: skip
expression("captured in maps of maps", lambda tf, D: D.range(3).flat_map(
    lambda x: D.range(3).map(lambda y: x * 10 + y).filter(lambda z: z > x)))  # fmt: skip


expression("reduce", lambda tf, D: D.from_tensors(D.range(5).reduce(
    (tf.constant(0, tf.int64), 1), lambda state, x: (state[0] + x, state[1] * 2))))  # fmt: skip
expression("interleave at once", lambda tf, D: D.range(4).interleave(
    lambda x: D.from_tensors(x).repeat(3), 2, 2, num_parallel_calls=2))  # fmt: skip
expression("enumerate method", lambda tf, D: D.range(7).batch(3).enumerate(2).map(lambda i, x: x + i))
expression("unbatch", lambda tf, D: D.range(7).map(lambda x: (x, -x)).batch(3).apply(X(tf).unbatch()))
expression(
    "enumerate",
    lambda tf, D: D.from_tensor_slices(["a", "b"]).apply(X(tf).enumerate_dataset(5)),
)
expression("scan", lambda tf, D: D.range(5).apply(X(tf).scan(
    tf.constant(1, tf.int64), lambda state, x: (state + x, (state * 10 + x, tf.as_string(x))))))  # fmt: skip
expression("windows of a key", lambda tf, D: D.range(11).apply(X(tf).group_by_window(
    lambda x: x % 3, lambda key, window: window.map(lambda x: (key, x)).batch(2), 2)))  # fmt: skip
expression("windows by key", lambda tf, D: D.range(11).apply(X(tf).group_by_window(
    lambda x: x % 2, lambda key, window: window.batch(9), window_size_func=lambda key: key + 2)))  # fmt: skip
expression("windows", lambda tf, D: D.range(7).window(3).flat_map(lambda w: w.batch(3)))
expression("windows that overlap", lambda tf, D: D.range(7).window(3, 1, 2, True).flat_map(
    lambda w: w.batch(3)).map(lambda x: (x[:-1], x[-1:])).batch(2))  # fmt: skip
expression("windows with gaps", lambda tf, D: D.range(9).window(2, 4).flat_map(lambda w: w))
expression("windows of components", lambda tf, D: D.zip((D.range(5), {"a": D.range(5, 10)})).window(
    2, 2).flat_map(lambda x, y: D.zip((x.batch(2), y["a"].batch(2)))))  # fmt: skip
expression("windows in maps", lambda tf, D: D.range(7).window(3, 1, drop_remainder=True).map(lambda w: (
    X(tf).get_single_element(w.batch(3)), w.reduce(tf.constant(0, tf.int64), tf.add))))  # fmt: skip
expression("windows that take turns", lambda tf, D: D.range(7).window(4, 2).shuffle(1).interleave(
    lambda w: w, cycle_length=2))  # fmt: skip
expression("maps to datasets", lambda tf, D: D.range(4).map(lambda x: (D.range(x), x)).flat_map(
    lambda xs, x: xs.map(lambda y: y * 10 + x)))  # fmt: skip
expression("windows of nothing", lambda tf, D: D.range(4).window(0).flat_map(lambda w: w))
expression("errors ignored", lambda tf, D: D.range(4).map(
    lambda x: tf.check_numerics(1.0 / tf.to_float(x - 1), "oh")).apply(X(tf).ignore_errors()))  # fmt: skip
expression("sparse batches of rows", lambda tf, D: D.range(4).map(lambda x: tf.fill([x], x)).apply(
    X(tf).dense_to_sparse_batch(2, [5])))  # fmt: skip
expression("sparse batches of too long rows", lambda tf, D: D.range(4).map(lambda x: tf.fill([x], x)).apply(
    X(tf).dense_to_sparse_batch(3, [1])))  # fmt: skip
expression("map and batch", lambda tf, D: D.range(7).apply(
    X(tf).map_and_batch(lambda x: x * x, 3, 2)))  # fmt: skip
expression("map and batch, remainder dropped", lambda tf, D: D.range(7).apply(
    X(tf).map_and_batch(lambda x: x * x, 3, drop_remainder=True)))  # fmt: skip
expression("single element", lambda tf, D: D.from_tensors(
    X(tf).get_single_element(D.range(3, 4).map(lambda x: (x, x + 1)))))  # fmt: skip
expression("single element of many", lambda tf, D: D.from_tensors(
    X(tf).get_single_element(D.range(2))))  # fmt: skip

expression("map to a list", lambda tf, D: D.range(3).map(lambda x: [x, tf.as_string(x)]))
expression("map by Python to a list", lambda tf, D: D.range(3).map(
    lambda x: tf.py_func(lambda v: [v, -v], [x], [tf.int64, tf.int64])))  # fmt: skip
expression("map to a list in a tuple", lambda tf, D: D.range(3).map(lambda x: (x, [x, x])))
expression("scan of growing states", lambda tf, D: D.range(3).apply(X(tf).scan(
    ([0], tf.constant(1, tf.int64)), lambda s, x: [(tf.concat([s[0], s[0]], 0), x), s[0]])))  # fmt: skip
expression("scan of states of other ranks", lambda tf, D: D.range(3).apply(
    X(tf).scan(0, lambda s, x: (tf.expand_dims(s, 0), s))))  # fmt: skip
expression("reduce of growing states", lambda tf, D: D.from_tensors(
    D.range(3).reduce(tf.zeros([1], tf.int64), lambda s, x: tf.concat([s, [x]], 0))))  # fmt: skip
expression("shuffle beside itself", lambda tf, D: _twice(D.range(6).shuffle(6, 5), lambda a: D.zip((a, a))))
expression("shuffle beside itself again", lambda tf, D: _twice(
    D.range(4).shuffle(4, 5).map(lambda x: x), lambda a: (
        D.zip((a.map(lambda x: -x), {"a": a})).repeat(3))))  # fmt: skip
expression("shuffle after itself", lambda tf, D: _twice(
    D.range(4).shuffle(4, 5), lambda a: a.concatenate(a.concatenate(a)).repeat(2).batch(4)))  # fmt: skip
expression("shuffle chosen beside itself", lambda tf, D: _twice(D.range(4).shuffle(4, 5), lambda a: (
    X(tf).choose_from_datasets([a, a], D.range(8).map(lambda x: x % 2)))))  # fmt: skip
expression("interleave more at once than turns", lambda tf, D: D.range(3).interleave(
    lambda x: D.range(x), 1, 1, num_parallel_calls=2))  # fmt: skip
expression("interleave none at once", lambda tf, D: D.range(3).interleave(
    lambda x: D.range(x), 1, 1, num_parallel_calls=0))  # fmt: skip
expression("unbatch uneven components", lambda tf, D: D.from_tensors(([1, 2], [1])).apply(X(tf).unbatch()))
expression("unique sparse", lambda tf, D: D.from_tensor_slices(_sparse(tf)).apply(X(tf).unique()))
expression("generator after its end", lambda tf, D: D.from_generator(
    lambda: iter([1, 2, 3]), tf.int64, []).batch(1).window(2, 1).flat_map(lambda w: w))  # fmt: skip
expression("padded to an unknown rank", lambda tf, D: D.from_generator(
    lambda: iter([1]), tf.int64).padded_batch(2, tf.TensorShape(None)))  # fmt: skip
expression("padded to None", lambda tf, D: D.range(3).padded_batch(2, None))


def X(tf: Any) -> Any:
    return tf.data.experimental


def _twice(dataset: Any, function: Callable[[Any], Any]) -> Any:
    return function(dataset)


def _captured(tf: Any, D: Any) -> Any:
    ten = tf.constant(10, tf.int64)
    return D.range(3).map(lambda x: x + ten).map(lambda x: (x, ten * 2))


def _sparse(tf: Any) -> Any:
    return tf.SparseTensor([[0, 0], [2, 1], [2, 3]], [1, 2, 3], [3, 4])


def _shuffled(tf: Any, seed: int = 3) -> Any:
    return tf.data.Dataset.range(4).shuffle(4, seed)


expression(
    "shuffle in flat_map", lambda tf, D: D.range(3).flat_map(lambda x: _shuffled(tf)).repeat(2).batch(4)
)
expression(
    "shuffle in flat_map in flat_map",
    lambda tf, D: (
        D.range(2)
        .flat_map(lambda x: D.range(2).flat_map(lambda y: _shuffled(tf)).repeat(2))
        .repeat(2)
        .batch(4)
    ),
)
expression(
    "shuffle in interleave", lambda tf, D: D.range(3).interleave(lambda x: _shuffled(tf), 2, 1).repeat(2)
)
expression(
    "shuffle in parallel interleave",
    lambda tf, D: (
        D.range(4).interleave(lambda x: _shuffled(tf), 2, 4, num_parallel_calls=2).repeat(2).batch(4)
    ),
)
expression(
    "shuffle in windows by key",
    lambda tf, D: (
        D.range(8)
        .apply(tf.data.experimental.group_by_window(lambda x: x % 2, lambda k, w: w.shuffle(4, 3), 4))
        .repeat(2)
        .batch(4)
    ),
)
expression(
    "shuffle in windows", lambda tf, D: D.range(8).window(4).flat_map(lambda w: w.shuffle(4, 3)).repeat(2)
)
expression("shuffle in flat_map, the first", lambda tf, D: (
    D.range(2).flat_map(lambda x: _shuffled(tf)).take(2).repeat(4).batch(8)))  # fmt: skip
expression("shuffle of -1", lambda tf, D: D.range(3).shuffle(-1))


def run(tf: Any, name: str) -> dict[str, Any]:
    """The types and shapes of a program's elements, the elements, and what ended them."""
    with tf.Graph().as_default():
        try:
            dataset = PROGRAMS[name](tf)
            iterator = dataset.make_initializable_iterator()
            element = iterator.get_next()
        except Exception as error:
            return {"refused": type(error).__name__}
        found: dict[str, Any] = {
            "types": _plain(dataset.output_types),
            "shapes": _plain(dataset.output_shapes),
            "elements": [],
            "ended": None,
        }
        with tf.Session() as session:
            try:
                session.run(iterator.initializer)
                while len(found["elements"]) < MOST:
                    found["elements"].append(_plain(session.run(element)))
            except tf.errors.OpError as error:
                found["ended"] = type(error).__name__
    return found


def _plain(value: Any) -> Any:
    """As what JSON holds."""
    if hasattr(value, "_fields"):
        return {"": type(value).__name__, **{key: _plain(getattr(value, key)) for key in value._fields}}
    if isinstance(value, dict):
        return {key: _plain(value[key]) for key in sorted(value)}
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if hasattr(value, "as_numpy_dtype"):
        return value.name
    return str(value) if hasattr(value, "ndims") else value
