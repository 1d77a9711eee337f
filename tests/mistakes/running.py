"""Mistakes that fail in a step.

`RUNNING` maps a name to a function of `tf` and of placeholders of unknown shape, to the values that are fed
to them, and to words that the message holds. What the function returns is fetched. Variables are initialised
before, except where the name begins with "uninitialised".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import f, i, n
from .raw_operations import RAW, RAW_UNCHECKED
from .scalars import SCALARS

Running = tuple[Callable[..., Any], tuple[Any, ...], str]


def _updated(tf: Any, update: Callable[[Any], Any], resource: bool = False) -> Any:
    return update(tf.Variable(f(3), use_resource=resource, name="v"))


def _minimized(tf: Any, logits: Any, labels: Any) -> Any:
    weights = tf.Variable(f(4, 4))
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.matmul(logits, weights))
    return tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(loss))


def _raises(*_: Any) -> Any:
    raise ValueError("not my day")


RUNNING_SHAPES: dict[str, Running] = {
    "add": (lambda tf, x, y: x + y, (f(2), f(3)), "Incompatible shapes [2] [3]"),
    "add, ranks": (lambda tf, x, y: x * y, (f(2, 3), f(3, 2)), "Incompatible shapes [2,3] [3,2]"),
    "add_n": (lambda tf, x, y: tf.add_n([x, y]), (f(2), f(3)), "2 3"),
    "matmul": (lambda tf, x, y: tf.matmul(x, y), (f(2, 3), f(4, 2)), "[2,3] [4,2]"),
    "matmul, vector": (lambda tf, x, y: tf.matmul(x, y), (f(3), f(3, 2)), "2"),
    "batch matmul": (lambda tf, x, y: tf.matmul(x, y), (f(2, 2, 3), f(3, 3, 2)), "[2,2,3] [3,3,2]"),
    "concat": (lambda tf, x, y: tf.concat([x, y], 0), (f(2, 3), f(2, 4)), "[2,3] [2,4]"),
    "concat, axis": (lambda tf, x, a: tf.concat([x, x], a), (f(2), n(3)), "3 range"),
    "stack": (lambda tf, x, y: tf.stack([x, y]), (f(2), f(3)), "[2] [3]"),
    "split": (lambda tf, x: tf.split(x, 2), (f(5),), "2 5"),
    "split, sizes": (lambda tf, x, s: tf.split(x, s, num=2), (f(5), i(2, 2)), "5"),
    "unstack": (lambda tf, x: tf.unstack(x, num=2), (f(3),), "2 3"),
    "reshape": (lambda tf, x, s: tf.reshape(x, s), (f(2, 3), i(4, 2)), "6 8"),
    "reshape, indivisible": (lambda tf, x, s: tf.reshape(x, s), (f(2, 3), i(4, -1)), "6 4"),
    "reshape, two unknown": (lambda tf, x, s: tf.reshape(x, s), (f(2, 3), i(-1, -1)), "-1"),
    "reshape, negative": (lambda tf, x, s: tf.reshape(x, s), (f(2, 3), i(-2, 3)), "-2"),
    "transpose": (lambda tf, x, p: tf.transpose(x, p), (f(2, 3), i(0, 0)), ""),
    "transpose, length": (lambda tf, x, p: tf.transpose(x, p), (f(2, 3), i(0, 1, 2)), "3 2"),
    "squeeze": (lambda tf, x: tf.squeeze(x, [0]), (f(2, 3),), "squeeze dim[0] 1 2"),
    "expand_dims": (lambda tf, x, a: tf.expand_dims(x, a), (f(2), n(5)), "5"),
    "pad": (lambda tf, x, p: tf.pad(x, p), (f(2, 3), np.array([[1, 1]], np.int32)), "2"),
    "pad, negative": (lambda tf, x, p: tf.pad(x, p), (f(2), np.array([[-1, 1]], np.int32)), "-1"),
    "tile, negative": (lambda tf, x, m: tf.tile(x, m), (f(2), i(-1)), "-1"),
    "tile, length": (lambda tf, x, m: tf.tile(x, m), (f(2), i(1, 2)), "2"),
    "fill, negative": (lambda tf, d: tf.fill(d, 0.0), (i(2, -1),), "-1"),
    "zeros, negative": (lambda tf, d: tf.zeros(d), (i(-3),), "-3"),
    "broadcast_to": (lambda tf, x, s: tf.broadcast_to(x, s), (f(3), i(4)), "[3] [4]"),
    "conv2d, channels": (
        lambda tf, x, w: tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME"),
        (f(1, 5, 5, 3), f(3, 3, 2, 4)),
        "2 3",
    ),
    "conv2d, larger window": (
        lambda tf, x, w: tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding="VALID"),
        (f(1, 1, 5, 2), f(3, 3, 2, 4)),
        "negative -1 3",
    ),
    "avg_pool, larger window": (
        lambda tf, x: tf.nn.avg_pool(x, [1, 5, 5, 1], [1, 2, 2, 1], "VALID"),
        (f(1, 1, 5, 2),),
        "negative -1 5",
    ),
    "depthwise gradient, larger window": (
        lambda tf, x, w: tf.gradients(tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "VALID"), w)[0],
        (f(1, 1, 5, 2), f(3, 3, 2, 4)),
        "negative -1 3",
    ),
    "bias_add": (lambda tf, x, b: tf.nn.bias_add(x, b), (f(2, 3), f(4)), "3 4"),
    "softmax cross entropy": (
        lambda tf, x, y: tf.nn.softmax_cross_entropy_with_logits_v2(labels=x, logits=y),
        (f(2, 3), f(2, 4)),
        "[2,4] [2,3]",
    ),
    "sparse softmax cross entropy, batch": (
        lambda tf, x, y: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x),
        (f(2, 3), i(0, 1, 2)),
        "",
    ),
    "sigmoid cross entropy": (
        lambda tf, x, y: tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=y),
        (f(2), f(3)),
        "[3] [2]",
    ),
    "training on another batch": (_minimized, (f(2, 4), i(0, 1, 2)), ""),
    "reduce_sum, axis": (lambda tf, x, a: tf.reduce_sum(x, a), (f(2, 3), n(2)), "dimension 2"),
    "argmax, axis": (lambda tf, x, a: tf.argmax(x, a), (f(2, 3), n(2)), "2"),
    "argmax of nothing": (lambda tf, x: tf.argmax(x, 0), (f(0),), "0"),
    "where": (lambda tf, c, x, y: tf.where(c, x, y), (np.array([True, False]), f(2), f(3)), ""),
    "select by another shape": (
        lambda tf, c, x, y: tf.where(c, x, y),
        (np.array([True]), f(2, 2), f(2, 2)),
        "",
    ),
    "cond of a vector": (
        lambda tf, p: tf.cond(p, lambda: 1.0, lambda: 2.0),
        (np.array([True, False]),),
        "scalar",
    ),
    "einsum": (
        lambda tf, x, y: tf.einsum(
            "ij,jk->ik", tf.ensure_shape(x, [None, None]), tf.ensure_shape(y, [None, None])
        ),
        (f(2, 3), f(4, 2)),
        "",
    ),
    "ensure_shape": (lambda tf, x: tf.ensure_shape(x, [2, None]), (f(3, 3),), "[3,3] [2,?]"),
    "range, zero step": (lambda tf, d: tf.range(0, 5, d), (n(0),), "delta 0"),
    "range, backwards": (lambda tf, d: tf.range(d, 2), (n(5),), "5 2"),
    "assign": (lambda tf, x: tf.assign(tf.Variable(f(2)), x), (f(3),), "[2] [3]"),
    "assign to a resource": (
        lambda tf, x: tf.assign_add(tf.Variable(f(2), use_resource=True), x),
        (f(3),),
        "[2] [3]",
    ),
    "matrix_diag_part of a vector": (lambda tf, x: tf.matrix_diag_part(x), (f(3),), "2"),
}

RUNNING_VALUES: dict[str, Running] = {
    "gather": (lambda tf, x, a: tf.gather(x, a), (f(3), i(0, 5)), "indices[1] 5 [0, 3)"),
    "gather, negative": (lambda tf, x, a: tf.gather(x, a), (f(3), i(-1)), "indices[0] -1 [0, 3)"),
    "gather_nd": (lambda tf, x, a: tf.gather_nd(x, a), (f(3, 3), np.array([[0, 3]], np.int32)), "[0, 3]"),
    "gather from a resource": (
        lambda tf, a: tf.gather(tf.Variable(f(3), use_resource=True), a),
        (i(3),),
        "3 [0, 3)",
    ),
    "embedding_lookup": (lambda tf, a: tf.nn.embedding_lookup(tf.Variable(f(3, 2)), a), (i(7),), "7 [0, 3)"),
    "scatter_update": (
        lambda tf, a: _updated(tf, lambda v: tf.scatter_update(v, a, 1.0)),
        (i(3),),
        "3 [0, 3)",
    ),
    "scatter_add": (lambda tf, a: _updated(tf, lambda v: tf.scatter_add(v, a, 1.0), True), (i(-1),), "-1"),
    "scatter_nd": (lambda tf, a: tf.scatter_nd(a, [1.0], [3]), (np.array([[4]], np.int32),), ""),
    "index": (lambda tf, x: x[5], (f(3),), "slice index 5 0 bounds"),
    "index, fed": (lambda tf, x, a: tf.reshape(x, [3])[a], (f(3), n(-4)), "bounds"),
    "slice": (lambda tf, x, b: tf.slice(x, b, [2]), (f(3), i(2)), ""),
    "slice, assigned": (
        lambda tf, x, e: tf.Variable(f(3, 2), name="v")[: e[0]].assign(x),
        (f(2, 2), i(3)),
        "shape 3 2",
    ),
    "slice, length": (lambda tf, x, b: tf.slice(x, b, b), (f(2, 3), i(1)), "begin size 1-D 2"),
    "slice, lengths": (lambda tf, x, b, s: tf.slice(x, b, s), (f(3), i(1, 1), i(1, 1)), "begin size 1-D 1"),
    "strided_slice, lengths": (
        lambda tf, x, b, e: tf.strided_slice(x, b, e, b),
        (f(3, 3), i(1, 1), i(2)),
        "begin end strides equal",
    ),
    "slice, negative": (lambda tf, x, b: tf.slice(x, b, [1]), (f(3), i(-1)), "-1"),
    "one_hot, depth": (lambda tf, d: tf.one_hot([0], d), (n(-1),), "depth -1"),
    "division by zero": (lambda tf, x, y: x // y, (n(5), n(0)), "division by zero"),
    "remainder by zero": (lambda tf, x, y: x % y, (i(5, 6), i(1, 0)), "division by zero"),
    "truncated division by zero": (lambda tf, x, y: tf.div(x, y), (i(5), i(0)), "division by zero"),
    "power, negative": (lambda tf, x, y: tf.pow(x, y), (i(2), i(-1)), "negative power"),
    "labels": (
        lambda tf, x, y: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x),
        (f(2, 3), i(0, 3)),
        "label 3 [0, 3)",
    ),
    "labels, negative": (
        lambda tf, x, y: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x),
        (f(2, 3), i(-1, 0)),
        "label -1 [0, 3)",
    ),
    "in_top_k": (lambda tf, x, y: tf.nn.in_top_k(x, y, 1), (f(2, 3), i(0, 1, 2)), ""),
    "top_k": (lambda tf, x, k: tf.nn.top_k(x, k)[0], (f(3), n(4)), "k"),
    "segment_sum, unsorted": (lambda tf, x, a: tf.segment_sum(x, a), (f(3), i(1, 0, 2)), ""),
    "segment_sum, lengths": (lambda tf, x, a: tf.segment_sum(x, a), (f(3), i(0, 1)), ""),
    "unsorted_segment_sum": (lambda tf, x, a: tf.unsorted_segment_sum(x, a, 2), (f(2), i(0, 2)), "2"),
    "dynamic_partition": (lambda tf, x, a: tf.dynamic_partition(x, a, 2), (f(2), i(0, 2)), "2"),
    "invert_permutation": (lambda tf, x: tf.invert_permutation(x), (i(0, 0),), "0"),
    "random_uniform, empty range": (lambda tf, a: tf.random_uniform([2], a, 3, tf.int32), (n(3),), "3"),
    "check_numerics": (
        lambda tf, x: tf.check_numerics(x, "weights went wrong"),
        (np.float32([1, np.nan]),),
        "weights went wrong NaN",
    ),
    "check_numerics, infinite": (
        lambda tf, x: tf.check_numerics(x, "weights went wrong"),
        (np.float32([np.inf]),),
        "weights went wrong Inf",
    ),
    "Assert": (
        lambda tf, p: tf.Assert(p, ["too small:", tf.constant(7)]),
        (np.array(False),),
        "assertion failed too small: 7",
    ),
    "assert_equal": (
        lambda tf, x, y: tf.assert_equal(x, y, message="as agreed"),
        (i(1, 2), i(1, 3)),
        "as agreed x == y 2 3",
    ),
    "assert_positive": (lambda tf, x: tf.assert_positive(x), (i(1, -2),), "x > 0 -2"),
    "case, none true": (
        lambda tf, p: tf.case([(p, lambda: tf.constant(1))]),
        (np.array(False),),
        "assertion failed",
    ),
    "case, two true": (
        lambda tf, p, q: tf.case([(p, lambda: 1), (q, lambda: 2)], lambda: 3, exclusive=True),
        (np.array(True), np.array(True)),
        "exclusive",
    ),
    "py_func raises ValueError": (
        lambda tf, x: tf.py_func(_raises, [x], tf.float32),
        (f(1),),
        "not my day ValueError",
    ),
    "py_func, type": (lambda tf, x: tf.py_func(lambda x: np.float64(1.0), [x], tf.float32), (f(1),), "float"),
    "py_func, count": (lambda tf, x: tf.py_func(lambda x: (x, x), [x], [tf.float32]), (f(1),), "1 2"),
    "placeholder, not fed": (
        lambda tf: tf.add(tf.placeholder(tf.float32, [2], name="needed"), 1.0),
        (),
        "must feed needed float",
    ),
    "count_up_to": (lambda tf: tf.Variable(np.int32(5)).count_up_to(5), (), "limit 5"),
    "uninitialised reference": (lambda tf: tf.Variable(1.0, name="lost") + 1.0, (), "uninitialized lost"),
    "uninitialised resource": (lambda tf: tf.Variable(1.0, use_resource=True, name="lost") + 1.0, (), "lost"),
    "uninitialised, assigned to": (
        lambda tf: tf.assign_add(tf.Variable(1.0, name="lost"), 1.0),
        (),
        "uninitialized lost",
    ),
    "uninitialised, trained": (
        lambda tf: tf.train.AdamOptimizer().minimize(tf.square(tf.Variable(1.0))),
        (),
        "uninitialized",
    ),
    "uninitialised, scattered to": (
        lambda tf: tf.scatter_add(tf.Variable(f(2), name="lost"), [0], [1.0]),
        (),
        "lost",
    ),
}

RUNNING = {**RUNNING_SHAPES, **RUNNING_VALUES, **SCALARS, **RAW}

# TensorFlow ends the process or computes nonsense; here they are an InvalidArgumentError like others.
FATAL: dict[str, Running] = {
    "conv2d, rank": (
        lambda tf, x, w: tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME"),
        (f(5, 5, 3), f(3, 3, 3, 4)),
        "4",
    ),
    "max_pool, rank": (lambda tf, x: tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"), (f(5, 3),), "4"),
    **RAW_UNCHECKED,
}


def fail_running(tf: Any, name: str, running: Any = None, after: Any = None) -> Exception | None:
    """What a step of `RUNNING[name]` raises; `after(session, good)` is called afterwards, `good` being a
    fetch and a feed that work."""
    make, values, _ = running or RUNNING[name]
    with tf.Graph().as_default():
        fine = tf.placeholder(tf.float32, [2])
        good = fine * 2.0, {fine: [1.0, 2.0]}
        fed = [tf.placeholder(value.dtype) for value in values]
        fetches = make(tf, *fed)
        with tf.Session() as session:
            if not name.startswith("uninitialised"):
                session.run(tf.global_variables_initializer())
            found = None
            try:
                session.run(fetches, dict(zip(fed, values)))
            except Exception as error:
                found = error
            if after is not None:
                after(session, good)
            return found
