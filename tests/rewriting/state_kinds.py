"""The kinds of statements of `state_programs.py`: what each builds with `tf`, and what it does to state.

`KINDS[name].function(tf, *arguments, **options)` gives the value (or, where it changes something, an op or
what has one). All take small tensors and give one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Kind:
    """`changes`: positions of arguments that it changes. `shows`: whether the result shows a reference that
    its arguments show: "never", "maybe" (a slice may be a copy) or "always". `keeps`: it stores its value.
    `is_gradient`: it takes whatever its first argument was made of once more. `has_views`: so does its own
    gradient, by way of values that may show an argument. `alone`: TensorFlow gives something else, or nothing
    (random numbers, channels first on a CPU). `loops`: it is a loop.
    """

    function: Callable[..., Any]
    changes: frozenset[int] = frozenset()
    shows: str = "never"
    keeps: bool = False
    is_gradient: bool = False
    has_views: bool = False
    alone: bool = False
    loops: bool = False


KINDS: dict[str, Kind] = {}


def _concat(tf: Any, xs: Any, axis: int) -> Any:
    """The axis waits for nothing: TensorFlow's gradient takes it, and with it whatever it waited for."""
    with tf.control_dependencies(None):
        constant = tf.constant(axis)
    return tf.concat(list(xs), constant)


def _kinds(functions: dict[str, Callable[..., Any]], **facts: Any) -> None:
    KINDS.update({name: Kind(function, **facts) for name, function in functions.items()})


# ---- one op

_kinds(
    {
        "add": lambda tf, x, y: tf.add(x, y),
        "sub": lambda tf, x, y: tf.subtract(x, y),
        "mul": lambda tf, x, y: tf.multiply(x, y),
        "maximum": lambda tf, x, y: tf.maximum(x, y),
        "minimum": lambda tf, x, y: tf.minimum(x, y),
        "squared_difference": lambda tf, x, y: tf.squared_difference(x, y),
        "add_n": lambda tf, *xs: tf.add_n(list(xs)),
        "bias_add": lambda tf, x, b: tf.nn.bias_add(x, b),
        "matmul": lambda tf, x, y, a=False, b=False: tf.matmul(x, y, transpose_a=a, transpose_b=b),
        "relu": lambda tf, x: tf.nn.relu(x),
        "relu6": lambda tf, x: tf.nn.relu6(x),
        "elu": lambda tf, x: tf.nn.elu(x),
        "tanh": lambda tf, x: tf.tanh(x),
        "sigmoid": lambda tf, x: tf.sigmoid(x),
        "softplus": lambda tf, x: tf.nn.softplus(x),
        "neg": lambda tf, x: tf.negative(x),
        "square": lambda tf, x: tf.square(x),
        "plus_one": lambda tf, x: x + 1,
        "half": lambda tf, x: x * 0.5,
        "clip": lambda tf, x: tf.minimum(tf.maximum(x, -4), 4),
        "sum_all": lambda tf, x: tf.reduce_sum(x),
        "mean_all": lambda tf, x: tf.reduce_mean(x),
        "sum_rows": lambda tf, x, keep=False: tf.reduce_sum(x, 0, keepdims=keep),
        "sum_columns": lambda tf, x, keep=False: tf.reduce_sum(x, 1, keepdims=keep),
        "mean_rows": lambda tf, x: tf.reduce_mean(x, 0),
        "concat": lambda tf, *xs, axis=0: _concat(tf, xs, axis),
        "stack": lambda tf, *xs: tf.stack(list(xs)),
        "gather": lambda tf, x, rows: tf.gather(x, rows),
        "conv": lambda tf, x, w, padding="SAME", layout="NHWC": tf.nn.conv2d(
            x, w, [1, 1, 1, 1], padding, data_format=layout
        ),
        "select": lambda tf, p, x, y: tf.where(tf.greater(p, tf.zeros_like(p)), x, y),
        "softmax": lambda tf, x: tf.nn.softmax(x),
        "turned": lambda tf, x: tf.transpose(x),
    }
)
_kinds(
    {  # TensorFlow leaves these out (or not): the value is the operand
        "times_one": lambda tf, x: x * 1.0,
        "plus_zero": lambda tf, x: x + 0.0,
        "over_one": lambda tf, x: x / 1.0,
        "identity": lambda tf, x: tf.identity(x),
        "stop": lambda tf, x: tf.stop_gradient(x),
    }
)
for _name in ("identity", "stop"):
    KINDS[_name] = dataclasses.replace(KINDS[_name], shows="always")
for _name in ("times_one", "plus_zero", "over_one"):
    KINDS[_name] = dataclasses.replace(KINDS[_name])
_kinds(
    {  # views, perhaps
        "transpose": lambda tf, x, order=(1, 0): tf.transpose(x, list(order)),
        "reshape": lambda tf, x, to: tf.reshape(x, list(to)),
        "expand": lambda tf, x, axis=0: tf.expand_dims(x, axis),
        "squeeze": lambda tf, x, axis=0: tf.squeeze(x, [axis]),
        "broadcast": lambda tf, x, to=(4, 4): tf.broadcast_to(x, list(to)),
        "rows": lambda tf, x, first, last: x[first:last],
        "part": lambda tf, x, begin, size: tf.slice(x, list(begin), list(size)),
        "row": lambda tf, x, i: x[i],
        "columns": lambda tf, x, first, last: x[:, first:last],
        "split": lambda tf, x, i, parts=2, axis=0: tf.split(x, parts, axis)[i],
        "unstack": lambda tf, x, i: tf.unstack(x)[i],
        "tile": lambda tf, x, times: tf.tile(x, list(times)),
        "pad": lambda tf, x, by: tf.pad(x, [list(pair) for pair in by]),
        "reverse": lambda tf, x, axis=0: tf.reverse(x, [axis]),
        "sum_nothing": lambda tf, x: tf.reduce_sum(x, []),
    },
    shows="maybe",
    has_views=True,
)

# ---- several ops


def _ones(tf: Any, x: Any, *dims: int) -> Any:
    return tf.constant(np.ones(dims), x.dtype.base_dtype)


def _labels(tf: Any, x: Any) -> Any:
    return tf.one_hot([0, 2, 1, 3], 4, dtype=x.dtype.base_dtype)


def _normalised(tf: Any, x: Any, mean: Any, variance: Any, offset: Any, scale: Any) -> Any:
    return tf.nn.batch_normalization(x, mean, tf.square(variance) + 1, offset, scale, 0.5)


def _fused_normalised(
    tf: Any, x: Any, scale: Any, offset: Any, mean: Any, variance: Any, training: bool
) -> Any:
    given = {} if training else {"mean": mean, "variance": tf.square(variance) + 1}
    return tf.nn.fused_batch_norm(x, scale, offset, epsilon=0.5, is_training=training, **given)[0]


def _lstm_step(tf: Any, x: Any, weights: Any, bias: Any) -> Any:
    """Two layers' worth of an LSTM's cell, spelled out: x is [4, 4], weights [8, 16], bias [16]."""
    h = c = tf.zeros_like(x)
    for _ in range(2):
        h, c = _cell(tf, x, h, c, weights, bias)
    return h


def _cell(tf: Any, x: Any, h: Any, c: Any, weights: Any, bias: Any) -> tuple[Any, Any]:
    gates = tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), weights), bias)
    i, j, f, o = tf.split(gates, 4, 1)
    c = tf.add(tf.multiply(c, tf.sigmoid(tf.add(f, 1.0))), tf.multiply(tf.sigmoid(i), tf.tanh(j)))
    return tf.multiply(tf.tanh(c), tf.sigmoid(o)), c


def _array(tf: Any, *xs: Any) -> Any:
    """Written one by one, read as a whole."""
    array = tf.TensorArray(xs[0].dtype.base_dtype, len(xs), clear_after_read=False)
    for i, x in enumerate(xs):
        array = array.write(i, x)
    return tf.add_n([array.read(0), array.read(len(xs) - 1), tf.reduce_sum(array.stack(), 0)])


def _unpacked(tf: Any, x: Any) -> Any:
    array = tf.TensorArray(x.dtype.base_dtype, 4, element_shape=[4]).unstack(x)
    return array.stack() + 0.0


def _mean_loss(tf: Any, x: Any) -> Any:
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=_labels(tf, x), logits=x))


def _sparse_loss(tf: Any, x: Any) -> Any:
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 2, 1, 3], logits=x))


def _sigmoid_loss(tf: Any, x: Any, z: Any = None) -> Any:
    labels = _labels(tf, x) if z is None else z
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=x)


def _hits(tf: Any, x: Any) -> Any:
    true = tf.cast(tf.is_finite(x[:, :1]), tf.int64) * tf.constant([[1], [2], [3], [9]], tf.int64)
    rows, columns, weights = tf.nn.compute_accidental_hits(true, tf.constant([2, 1, 7, 9], tf.int64), 1)
    places = [tf.reshape(rows, [-1, 1]), tf.reshape(tf.cast(columns, tf.int32), [-1, 1])]
    hits = tf.sparse_to_dense(tf.concat(places, 1), [4, 4], weights, 0.0, validate_indices=False)
    return tf.maximum(x + tf.cast(hits, x.dtype.base_dtype), -100)


_kinds(
    {
        "product_of_ones": lambda tf, x: tf.matmul(x, _ones(tf, x, 4, 1)),
        "ones_times": lambda tf, x: tf.matmul(_ones(tf, x, 1, 4), x),
        "column_repeated": lambda tf, x: tf.matmul(x, _ones(tf, x, 1, 4)),
        "turned_images": lambda tf, x, first: tf.transpose(x, [0, 3, 1, 2] if first else [0, 2, 3, 1]),
        "max_pool": lambda tf, x: tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID"),
        "avg_pool": lambda tf, x: tf.nn.avg_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID"),
        "image_total": lambda tf, x: tf.reduce_sum(x, [0, 1, 2]),
        "normalised": _normalised,
        "fused_normalised": _fused_normalised,
        "moments": lambda tf, x: tf.add(*tf.nn.moments(x, [0])),
        "dense_loss": _mean_loss,
        "sparse_loss": _sparse_loss,
        "sigmoid_loss": _sigmoid_loss,
        "l2": lambda tf, x: tf.nn.l2_loss(x),
        "lstm": _lstm_step,
        "lookup": lambda tf, x: tf.nn.embedding_lookup(x, [2, 0, 2, 1]),
        "dynamic_rnn": lambda tf, x, weights, bias: _looped_cells(tf, x, weights, bias),
        "hits": _hits,
        "leaky": lambda tf, x: tf.maximum(x, 0.5 * x),
        "unpacked": _unpacked,
        "tiles": lambda tf, x: tf.concat([tf.slice(x, [2, 0], [2, 4]), tf.slice(x, [0, 0], [2, 4])], 0),
    },
    has_views=True,
)
_kinds(
    {
        "looped_cells": lambda tf, x, w: _looped_products(tf, x, w),
        "images_first": lambda tf, x, w: tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME", data_format="NCHW"),
        "bias_first": lambda tf, x, b: tf.nn.bias_add(x, b, data_format="NCHW"),
        "hinted_relu": lambda tf, x: _hinted(tf.nn.relu(x)),
    },
    has_views=True,
)
for _name in ("images_first", "bias_first", "hinted_relu"):
    KINDS[_name] = dataclasses.replace(KINDS[_name], alone=True)
for _name in ("looped_cells", "dynamic_rnn"):
    KINDS[_name] = dataclasses.replace(KINDS[_name], loops=True)
_kinds({"array": _array}, keeps=True, has_views=True)


def _dropped(tf: Any, x: Any) -> Any:
    """Dropout as TensorFlow 2 writes it; what 1.15 writes is made of what other kinds have."""
    return tf.where_v2(tf.random_uniform(tf.shape(x), seed=7) >= 0.5, x * 2.0, 0.0)


_kinds({"dropout": _dropped}, alone=True, has_views=True)


def _looped_cells(tf: Any, x: Any, weights: Any, bias: Any) -> Any:
    """An LSTM over three steps, as a loop over arrays."""
    steps = tf.TensorArray(x.dtype.base_dtype, 3, element_shape=[4, 4]).unstack(tf.stack([x, x + 1, x - 1]))
    outputs = tf.TensorArray(x.dtype.base_dtype, 3, element_shape=[4, 4])
    zeros = tf.constant(np.zeros((4, 4)), x.dtype.base_dtype)

    def step(t: Any, array: Any, h: Any, c: Any) -> Any:
        h, c = _cell(tf, steps.read(t), h, c, weights, bias)
        return t + 1, array.write(t, h), h, c

    start = [tf.constant(0), outputs, zeros, zeros]
    _, outputs, h, _ = tf.while_loop(lambda t, *_: t < 3, step, start, parallel_iterations=1)
    return tf.reduce_sum(outputs.stack(), 0) + h


def _looped_products(tf: Any, x: Any, w: Any) -> Any:
    """A recurrence of products, as a loop over an array."""
    steps = tf.TensorArray(x.dtype.base_dtype, 3, element_shape=[4, 4]).unstack(tf.stack([x, x + 1, x - 1]))

    def step(t: Any, h: Any, kept: Any) -> Any:
        return t + 1, tf.tanh(tf.matmul(steps.read(t) + h, w) * kept), kept

    start = [tf.constant(0), tf.constant(np.ones((4, 4)), x.dtype.base_dtype), x * 0.25]
    return tf.while_loop(lambda t, *_: t < 3, step, start, parallel_iterations=1)[1]


def _hinted(y: Any) -> Any:
    y.op._set_attr("_recompute_hint", 1)
    return y


# ---- gradients and optimisers

_OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "descent": lambda t: t.GradientDescentOptimizer(0.25),
    "momentum": lambda t: t.MomentumOptimizer(0.25, 0.5),
    "nesterov": lambda t: t.MomentumOptimizer(0.25, 0.5, use_nesterov=True),
    "locked": lambda t: t.GradientDescentOptimizer(0.25, use_locking=True),
    "adam": lambda t: t.AdamOptimizer(0.25, epsilon=0.5),
    "rmsprop": lambda t: t.RMSPropOptimizer(0.25, momentum=0.5, epsilon=0.5),
    "centred": lambda t: t.RMSPropOptimizer(0.25, centered=True, epsilon=0.5),
    "adagrad": lambda t: t.AdagradOptimizer(0.25),
    "adadelta": lambda t: t.AdadeltaOptimizer(0.5, epsilon=0.5),
    "ftrl": lambda t: t.FtrlOptimizer(0.25, l2_regularization_strength=0.5),
    "proximal": lambda t: t.ProximalGradientDescentOptimizer(0.25, l2_regularization_strength=0.5),
    "proximal_adagrad": lambda t: t.ProximalAdagradOptimizer(0.25),
}
OPTIMIZERS = tuple(_OPTIMIZERS)


def _gradient(tf: Any, y: Any, x: Any, start: Any = None, waits: Any = ()) -> Any:
    """Beginning with `start`, if given; after `y`, which a gradient may or may not need."""
    (found,) = tf.gradients(y, [x], None if start is None else [start])
    with tf.control_dependencies([y]):
        if found is None:
            return tf.zeros(x.shape, x.dtype.base_dtype) * 1
        found = tf.convert_to_tensor(found) + 0.5
    found.set_shape(x.shape)
    return found


def _gradients(tf: Any, y: Any, *xs: Any, start: Any = None, waits: Any = ()) -> Any:
    """The sum of the elements of the gradients by all of `xs`, after `y`."""
    found = tf.gradients(y, list(xs), None if start is None else [start])
    with tf.control_dependencies([y]):
        return tf.add_n([tf.reduce_sum(each) for each in found if each is not None]) * 1


def _minimise(
    tf: Any, loss: Any, *variables: Any, optimizer: str, gates: bool, start: Any = None, waits: Any = ()
) -> Any:
    """The update waits."""
    chosen = _OPTIMIZERS[optimizer](tf.train)
    gate = chosen.GATE_GRAPH if gates else chosen.GATE_OP
    pairs = chosen.compute_gradients(loss, list(variables), gate, grad_loss=start)
    with tf.control_dependencies([*waits, loss.op]):
        return chosen.apply_gradients([pair for pair in pairs if pair[0] is not None])


def _apply(tf: Any, gradient: Any, variable: Any, optimizer: str) -> Any:
    return _OPTIMIZERS[optimizer](tf.train).apply_gradients([(gradient, variable)])


def _apply_rows(tf: Any, gradient: Any, variable: Any, optimizer: str) -> Any:
    rows = tf.IndexedSlices(gradient, tf.constant([2, 0, 2, 1]), tf.constant([4, 4]))
    return _OPTIMIZERS[optimizer](tf.train).apply_gradients([(rows, variable)])


_kinds({"gradient": _gradient, "gradients": _gradients}, is_gradient=True)
for _count in range(1, 5):
    KINDS[f"minimise_{_count}"] = Kind(_minimise, frozenset(range(1, _count + 1)), is_gradient=True)
_kinds({"apply": _apply, "apply_rows": _apply_rows}, changes=frozenset([1]))

# ---- assignments

_SCATTER = {"update", "add", "sub", "mul", "min", "max"}
_kinds(
    {
        "assign": lambda tf, v, x, locks=False: tf.assign(v, x, use_locking=locks),
        "assign_add": lambda tf, v, x: tf.assign_add(v, x),
        "assign_sub": lambda tf, v, x: tf.assign_sub(v, x),
        "assign_turned": lambda tf, v: tf.assign(v, tf.transpose(v)),
        "add_turned": lambda tf, v: v.assign_add(tf.transpose(v)),
        "add_first": lambda tf, v: tf.assign_add(v, tf.broadcast_to(v[0], [4, 4])),
        "sub_last_column": lambda tf, v: tf.assign_sub(v, tf.broadcast_to(v[:, 3:], [4, 4])),
        "assign_reversed": lambda tf, v: tf.assign(v, v[::-1]),
        "assign_product": lambda tf, v, x: tf.assign(v, tf.minimum(tf.maximum(tf.matmul(x, v), -4), 4)),
        "add_scalar": lambda tf, v, by=1.0: tf.assign_add(
            v, tf.fill(v.shape, tf.cast(by, v.dtype.base_dtype))
        ),
        "slice_assign": lambda tf, v, x, first, last: v[first:last].assign(x[first:last]),
        "slice_shift": lambda tf, v: v[1:].assign(v[:3]),
        "column_assign": lambda tf, v, x, i: v[:, i].assign(x[:, 0]),
        "moving_average": lambda tf, v, x: tf.assign_sub(v, (v - x) * 0.5),
        "scatter_shift": lambda tf, v: tf.scatter_update(v, [0, 1, 2], v[1:]),
        "scatter_nd_turned": lambda tf, v: tf.scatter_nd_add(v, [[1], [1]], tf.transpose(v)[1:3]),
        "scatter_nd_update": lambda tf, v, x: tf.scatter_nd_update(v, [[2], [0]], x[:2]),
        "scatter_nd_add": lambda tf, v, x: tf.scatter_nd_add(v, [[2], [2]], x[:2]),
        "scatter_nd_sub": lambda tf, v, x: tf.scatter_nd_sub(v, [[2], [0]], x[:2]),
    },
    changes=frozenset([0]),
)


def _scatter(form: str) -> Callable[..., Any]:
    return lambda tf, v, x, rows=(2, 0): getattr(tf, f"scatter_{form}")(v, list(rows), x[: len(rows)])


_kinds({f"scatter_{form}": _scatter(form) for form in sorted(_SCATTER)}, changes=frozenset([0]))

# ---- queues

_kinds({"enqueue": lambda tf, q, x: q.enqueue(x)}, keeps=True)
_kinds({"dequeue": lambda tf, q: _shaped(q.dequeue(), (4, 4))})
_kinds({"queue_size": lambda tf, q, x: x + tf.cast(q.size(), x.dtype.base_dtype)})


def _shaped(x: Any, dims: Any) -> Any:
    x.set_shape(list(dims))
    return x + 0.0


# ---- control flow, whose bodies are statements


def taken_branch(tf: Any, value: Any, branches: list[Callable[[], Any]], decided: str = "") -> Any:
    """The first branch's result where the sum of `value` is positive, else the second's; or the first's or
    second's in any case."""
    if decided:
        return tf.cond(tf.constant(decided == "first"), *branches)
    return tf.cond(tf.greater(tf.reduce_sum(value), 0), *branches)


def loop(tf: Any, start: Any, body: Callable[[Any], Any], count: int) -> Any:
    """What `count` times of `body` make of `start`."""
    first, zero = start
    condition = lambda i, x: i < count  # noqa: E731
    return tf.while_loop(condition, lambda i, x: (i + 1, body(x)), [zero, first], parallel_iterations=1)[1]


KINDS["cond"] = KINDS["loop"] = Kind(lambda tf, *_: None)


def _count_up(tf: Any, v: Any, limit: float) -> Any:
    """A loop whose condition reads what its body changes."""

    def body(i: Any) -> Any:
        with tf.control_dependencies([tf.assign_add(v, 1.0)]):
            return tf.identity(i) + 1

    return tf.cast(
        tf.while_loop(lambda i: v < limit, body, [tf.constant(0)], parallel_iterations=1), v.dtype.base_dtype
    )


KINDS["count_up"] = Kind(_count_up, frozenset([0]))
