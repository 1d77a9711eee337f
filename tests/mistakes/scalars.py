"""Vectors of one element in place of scalars, and other shapes that nobody expects, known in a step alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import f, i

_RATE = np.array([0.1], np.float32)


def _optimizer(name: str, use_resource: bool = False, sparse: bool = False, **options: Any) -> Any:
    def make(tf: Any, rate: Any) -> Any:
        v = tf.Variable(f(3, 2), use_resource=use_resource)
        gradient = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([1])) if sparse else tf.ones([3, 2])
        return getattr(tf.train, name)(rate, **options).apply_gradients([(gradient, v)])

    return make, (_RATE,), ""


def _dataset(make: Any) -> Any:
    def first(tf: Any, size: Any) -> Any:
        with tf.control_dependencies([size]):
            iterator = tf.data.make_initializable_iterator(make(tf, size))
        return iterator.initializer

    return first, (np.array([2], np.int64),), ""


def _batches(tf: Any, dy: Any) -> Any:
    return tf.nn.conv2d_transpose(dy, f(2, 2, 2, 3), [1, 4, 4, 2], [1, 2, 2, 1])


SCALARS: dict[str, Any] = {
    "argmax by a vector": (lambda tf, a: tf.argmax(f(2, 3), a), (i(1),), ""),
    "argmin by a vector": (lambda tf, a: tf.argmin(f(2, 3), a), (i(1),), ""),
    "segments, vector of numbers": (
        lambda tf, a: tf.unsorted_segment_sum(f(3, 2), i(0, 1, 1), a),
        (i(2),),
        "",
    ),
    "gather by a vector": (lambda tf, a: tf.gather(f(3, 2), i(0, 1), axis=a), (i(1),), ""),
    "bincount of a vector": (lambda tf, a: tf.raw_ops.Bincount(arr=i(1), size=a, weights=f(1)), (i(2),), ""),
    "split by a vector": (lambda tf, a: tf.split(f(2, 4), 2, a), (i(1),), ""),
    "one_hot, vector of depths": (lambda tf, a: tf.one_hot([0, 1], a), (i(2),), ""),
    "one_hot of vectors": (lambda tf, a: tf.one_hot([0, 1], 3, a, 0.0), (_RATE,), ""),
    "top_k of a vector": (lambda tf, a: tf.nn.top_k(f(2, 3), a), (i(2),), "k"),
    "in_top_k of a vector": (
        lambda tf, a: tf.raw_ops.InTopKV2(predictions=f(2, 3), targets=i(0, 1), k=a),
        (i(2),),
        "k",
    ),
    "band of a vector": (lambda tf, a: tf.matrix_band_part(f(3, 3), a, 0), (i(1),), "num_lower"),
    "multinomial of a vector": (lambda tf, a: tf.multinomial(f(2, 3), a), (i(2),), "num_samples"),
    "padding with a vector": (
        lambda tf, a: tf.raw_ops.PadV2(input=f(2), paddings=[[1, 1]], constant_values=a),
        (_RATE,),
        "constant_values",
    ),
    "random integers from a vector": (
        lambda tf, a: tf.random_uniform([2], a, 9, dtype=tf.int32),
        (i(1),),
        "minval",
    ),
    "assertion of a vector": (lambda tf, a: tf.Assert(a, ["x"]), (np.array([True]),), ""),
    "loop while a vector": (
        lambda tf, a: tf.while_loop(lambda k: a > 0, lambda k: k + 1, [0]),
        (i(1),),
        "",
    ),
    "in a branch": (
        lambda tf, a: tf.cond(
            tf.equal(tf.size(a), 1), lambda: tf.argmax(f(2, 3), a), lambda: tf.argmax(f(2, 3))
        ),
        (i(1),),
        "",
    ),
    "batches of a vector": _dataset(lambda tf, n: tf.data.Dataset.range(5).batch(n)),
    "repeated by a vector": _dataset(lambda tf, n: tf.data.Dataset.range(5).repeat(n)),
    "descent by a vector": _optimizer("GradientDescentOptimizer"),
    "descent of a resource by a vector": _optimizer("GradientDescentOptimizer", use_resource=True),
    "Adam by a vector": _optimizer("AdamOptimizer"),
    "momentum by a vector, rows": _optimizer("MomentumOptimizer", sparse=True, momentum=0.9),
    "RMSProp of a resource by a vector": _optimizer("RMSPropOptimizer", use_resource=True),
    "Ftrl by a vector": _optimizer("FtrlOptimizer"),
    "scatter_nd into nothing": (
        lambda tf, a: tf.scatter_nd(a, f(1, 0), [3, 0]),
        (np.array([[7]], np.int32),),
        "empty",
    ),
    "paddings of another length": (
        lambda tf, a: tf.raw_ops.SpaceToBatch(input=f(1, 2, 2, 1), paddings=a, block_size=2),
        (np.zeros((3, 2), np.int32),),
        "paddings [2,2] [3,2]",
    ),
    "crops of another length": (
        lambda tf, a: tf.raw_ops.BatchToSpaceND(input=f(4, 1, 1, 1), block_shape=[2, 2], crops=a),
        (np.zeros((1, 2), np.int32),),
        "crops [2,2] [1,2]",
    ),
    "transposed convolution, batch": (_batches, (f(2, 2, 2, 3),), "batch"),
    "bias_add's gradient of a number": (
        lambda tf, a: tf.raw_ops.BiasAddGrad(out_backprop=a),
        (np.array(1.0, np.float32),),
        "",
    ),
    "broadcast shapes of a number": (
        lambda tf, a: tf.broadcast_dynamic_shape(a, tf.placeholder_with_default([3], None)),
        (np.array(2, np.int32),),
        "",
    ),
    "random numbers of no shape": (
        lambda tf, a: tf.raw_ops.ParameterizedTruncatedNormal(
            shape=a, means=f(2), stdevs=f(2), minvals=f(2), maxvals=f(2) + 1
        ),
        (i(),),
        "shape",
    ),
    "too large a broadcast": (lambda tf, a: tf.broadcast_to(f(1), a), (i(2**30, 2**30),), ""),
}
