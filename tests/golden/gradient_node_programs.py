"""Small programs of gradients whose lists of nodes are compared with TensorFlow 1.15's; see `node_programs`.

A name tells the operation and the shapes of its operands: known sizes, an unknown batch or rank. Each
program ends with a random operation, whose seed is the number of nodes that the gradients made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.golden.node_programs import PROGRAMS

_SHAPES: dict[str, tuple[Any, Any]] = {
    "known": ([3, 4], [3, 4]),
    "columns": ([3, 4], [3, 1]),
    "row": ([3, 4], [4]),
    "number": ([3, 4], []),
    "batch": ([None, 4], [None, 4]),
    "batch_and_row": ([None, 4], [4]),
    "unknown": (None, None),
}


def _add(name: str, shapes: list[Any], function: Callable[..., Any], dtype: str = "float32") -> None:
    def build(tf: Any) -> None:
        xs = [tf.placeholder(dtype, shape, "x") for shape in shapes]
        tf.gradients(function(tf, *xs), xs)
        tf.random_uniform([2])

    PROGRAMS[f"gradients_of_{name}"] = build


_BINARY: dict[str, Callable[..., Any]] = {
    "add": lambda tf, x, y: x + y,
    "sub": lambda tf, x, y: x - y,
    "mul": lambda tf, x, y: x * y,
    "div": lambda tf, x, y: x / y,
    "pow": lambda tf, x, y: x**y,
    "maximum": lambda tf, x, y: tf.maximum(x, y),
    "minimum": lambda tf, x, y: tf.minimum(x, y),
    "squared_difference": lambda tf, x, y: tf.squared_difference(x, y),
    "mod": lambda tf, x, y: x % y,
    "div_no_nan": lambda tf, x, y: tf.div_no_nan(x, y),
    "where_v2": lambda tf, x, y: tf.compat.v2.where(x > 0, x, y),
}
for _name, _function in _BINARY.items():
    for _shape, _shapes in _SHAPES.items():
        if _name in ("add", "mul", "maximum", "pow") or _shape in ("columns", "batch_and_row", "unknown"):
            _add(f"{_name}_{_shape}", list(_shapes), _function)
for _name in ("add", "mul", "squared_difference", "maximum"):
    _add(f"{_name}_float64", [[3, 4], [3, 4]], _BINARY[_name], "float64")
_add("add_itself", [[None, 4]], lambda tf, x: x + x)
_add("mul_constant", [[None, 4]], lambda tf, x: x * 2.0)
_add("powers", [[3, 4]], lambda tf, x: x**2.0 + x**3.0)
_add("clip", [[None, 4]], lambda tf, x: tf.clip_by_value(x, -1.0, 1.0))
_add("where", [[None, 4], [None, 4]], lambda tf, x, y: tf.where(x > 0, x, y))

_UNARY = (
    "abs acos acosh asin asinh atan atanh cos cosh digamma erf erfc exp expm1 lgamma log log1p negative"
    " reciprocal rsqrt sigmoid sin sinh sqrt square tan tanh"
)
for _name in _UNARY.split():
    _add(_name, [[None, 4]], lambda tf, x, name=_name: getattr(tf, name)(x))

_REDUCED: dict[str, Any] = {
    "known": [3, 4],
    "batch": [None, 4],
    "sequence": [None, 3, 4],
    "unknown": None,
}
for _name in ("sum", "mean", "max", "prod"):
    for _shape, _dims in _REDUCED.items():
        for _axes, _axis in {"all": None, "first": 0, "last": [-1], "none": []}.items():
            _add(
                f"{_name}_{_shape}_{_axes}",
                [_dims],
                lambda tf, x, name=_name, axis=_axis: getattr(tf, f"reduce_{name}")(x, axis),
            )
    _add(
        f"{_name}_kept",
        [[None, 4]],
        lambda tf, x, name=_name: getattr(tf, f"reduce_{name}")(x, 0, keepdims=True),
    )
_add("sum_vector", [[3]], lambda tf, x: tf.reduce_sum(x, 0))
_add("sum_wide_axes", [[3, 4]], lambda tf, x: tf.reduce_sum(x, tf.constant([1], tf.int64)))
_add("sum_fed_axes", [[3, 4]], lambda tf, x: tf.reduce_sum(x, tf.placeholder(tf.int32, [1])))
_add("mean_half", [[None, 4]], lambda tf, x: tf.reduce_mean(x, 1), "float16")
_add("sums_of_one_shape", [[3, 4], [3, 4]], lambda tf, x, y: [tf.reduce_sum(x, 0), tf.reduce_mean(y, [0])])
_add("logsumexp", [[None, 4]], lambda tf, x: tf.reduce_logsumexp(x, 1))
_add("l2_normalize", [[None, 4]], lambda tf, x: tf.nn.l2_normalize(x, 1))
_add("norm", [[None, 4]], lambda tf, x: tf.norm(x, axis=1))
_add("products_of_reductions", [[3, 4]], lambda tf, x: tf.reduce_sum(np.ones([3, 1], "f") * x, 1))

# ---- arrays and losses

_ARRAYS: dict[str, Callable[..., Any]] = {
    "concat_columns": lambda tf, x, y: tf.concat([x, y], -1),
    "concat_rows": lambda tf, x, y: tf.concat([x, y], 0),
    "concat_fed_axis": lambda tf, x, y: tf.concat([x, y], tf.placeholder(tf.int32, [])),
    "stack": lambda tf, x, y: tf.stack([x, y], 1),
    "split": lambda tf, x, y: tf.split(x, 2, 1)[0] * tf.split(y, [2, 2], 1)[1],
    "unstack": lambda tf, x, y: tf.unstack(x, axis=1, num=4)[0] * tf.unstack(y, axis=-1, num=4)[1],
    "slice": lambda tf, x, y: tf.slice(x, [0, 1], [-1, 2]) * y[:, 1:3],
    "slice_fed": lambda tf, x, y: tf.slice(x, tf.placeholder(tf.int32, [2]), [1, 2]) * y[:1, :2],
    "pad": lambda tf, x, y: tf.pad(x, [[0, 0], [1, 2]]) + tf.pad(y, [[0, 0], [2, 1]], constant_values=1.0),
    "tile": lambda tf, x, y: tf.tile(x, [1, 2]) * tf.tile(y, tf.placeholder(tf.int32, [2])),
    "transpose": lambda tf, x, y: tf.transpose(x, [1, 0]) * tf.transpose(tf.expand_dims(y, 2)[..., 0]),
    "reshape": lambda tf, x, y: tf.reshape(x, [-1, 2]) * tf.reshape(tf.squeeze(y[:, :, tf.newaxis]), [-1, 2]),
    "gather": lambda tf, x, y: tf.gather(x, [0, 1]) * tf.gather(y, tf.placeholder(tf.int64, [None])),
    "gather_nd": lambda tf, x, y: tf.gather_nd(x, [[0, 1]]) * tf.gather_nd(y, [[1, 0]]),
    "softmax": lambda tf, x, y: tf.nn.softmax(x) * tf.nn.log_softmax(y),
    "sigmoid_loss": lambda tf, x, y: tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=y),
    "softmax_loss": lambda tf, x, y: tf.nn.softmax_cross_entropy_with_logits_v2(labels=x, logits=y),
    "mean_squares": lambda tf, x, y: tf.losses.mean_squared_error(x, y),
    "huber_loss": lambda tf, x, y: tf.losses.huber_loss(x, y),
}
for _name, _function in _ARRAYS.items():
    for _shape in ("known", "batch"):
        _add(f"{_name}_{_shape}", list(_SHAPES[_shape]), _function)
for _name in ("concat_rows", "stack", "slice", "pad", "tile", "gather"):
    _add(f"{_name}_unknown", [None, None], _ARRAYS[_name])
_add("concat_mixed", [[3, 4], [None, 4]], lambda tf, x, y: tf.concat([x, y], 0))
_add("concat_many", [[3, 4]], lambda tf, x: tf.concat([x] * 17, 1))
_add("products", [[None, 3, 4], [None, 4, 2]], lambda tf, x, y: tf.matmul(x, y))
_add("products_of_one", [[5, 3, 4], [1, 2, 4]], lambda tf, x, y: tf.matmul(x, y, adjoint_b=True))
_add("products_of_equals", [[5, 3, 4], [5, 3, 4]], lambda tf, x, y: tf.matmul(x, y, transpose_b=True))
_add("tensordot", [[None, 3, 4], [4, 2]], lambda tf, x, y: tf.tensordot(x, y, 1))
_add(
    "sparse_loss",
    [[None, 4]],
    lambda tf, x: tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.placeholder(tf.int64, [None]), logits=x
    ),
)


def _lookup(name: str, use_resource: bool) -> None:
    def build(tf: Any) -> None:
        rows = tf.get_variable("rows", [5, 2], use_resource=use_resource)
        found = tf.nn.embedding_lookup(rows, tf.placeholder(tf.int32, [None, 3]))
        tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(found))
        tf.random_uniform([2])

    PROGRAMS[f"gradients_of_{name}"] = build


_lookup("lookup", False)
_lookup("resource_lookup", True)
