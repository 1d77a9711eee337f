"""A few small programs for each rewriting pass, in which it finds its pattern (`pattern_variants.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf
from flowstone.framework.declarations.operation import F
from pattern_variants import Draft, Program

PROGRAMS: list[Program] = []


def program(name: str, **options: Any) -> Any:
    """Decorator: the function builds a program around the pattern of this pass."""

    def register(build: Any) -> Any:
        PROGRAMS.append(Program(name, build, **options))
        return build

    return register


def gradients(y: Any, *xs: Any) -> list[Any]:
    """Of a sum of `y` in which each element has a weight of its own."""
    return [g for g in tf.gradients(tf.sigmoid(y), list(xs)) if g is not None]


# ---- general


@program("multiply_in_bfloat16", tolerance=5e-2, dtypes=())
def _(d: Draft) -> list[Any]:
    x = d.fed(None, 4)
    y = tf.matmul(x, tf.constant(d.values(4, 5)))
    images = tf.reshape(y, [-1, 1, 5, 1])
    return [y, tf.nn.conv2d(images, tf.constant(d.values(1, 3, 1, 2)), [1] * 4, "SAME")]


@program("fold_constants")
def _(d: Draft) -> list[Any]:
    x = d.fed(None, 4)
    number = tf.constant(d.values(4)) * tf.constant(d.values(2, 4))
    shape = tf.stack([tf.shape(x)[1], tf.constant(1)])
    return [x[:, None, :] + number, tf.reshape(tf.reduce_sum(number, [0, -1]) * d.values(4), shape)]


@program("remove_dead_branches")
def _(d: Draft) -> list[Any]:
    x = d.fed(None, 4)
    return [tf.cond(tf.constant(True), lambda: x * d.values(4), lambda: tf.negative(x))]


@program("drop_waits")
def _(d: Draft) -> list[Any]:
    x = d.fed(None, 4)
    y = tf.square(x)
    with tf.control_dependencies([y, tf.negative(x)]):
        return [tf.identity(x) * d.values(4), y + x]


@program("apply_identities")
def _(d: Draft) -> list[Any]:
    x = d.fed(None, 4)
    numpy = d.dtype.as_numpy_dtype
    one, zero = numpy(1), numpy(0)
    y = tf.identity(x) * one + zero
    z = tf.transpose(tf.reshape(tf.expand_dims(x, 1) - zero, [-1, 4]), [0, 1])
    w = tf.concat([tf.tile(x, [1, 1]) / one], 1)
    return [
        tf.negative(tf.negative(y)),
        z[:, 0:4] * x,
        tf.pad(w, [[0, 0], [0, 0]]) + x,
        tf.reduce_sum(z, [1], keep_dims=True),
    ]


@program("multiply_einsums", tolerance=1e-5)
def _(d: Draft) -> list[Any]:
    x, y = d.fed(None, 4), d.fed(2, 3, 4)
    product = F.Einsum([x, tf.constant(d.values(4, 5))], equation="ij,jk->ki")
    joined = F.Einsum([y, tf.constant(d.values(4, 2, 3))], equation="...d,dhk->...hk")
    return [product, joined, F.Einsum([y, y], equation="bij,bkj->bik")]


@program("dilate_convolutions", tolerance=1e-5, finite=(0,))  # zeros around images are not multiplied
def _(d: Draft) -> list[Any]:
    images, filters = d.fed(None, 7, 8, 3), tf.constant(d.values(3, 2, 3, 2))
    y = tf.nn.convolution(images, filters, "SAME", dilation_rate=[2, 3])
    return [y, *tf.gradients(tf.square(y), [images, filters])]


@program("sum_directly")
def _(d: Draft) -> list[Any]:
    x, numpy = d.fed(None, 4), d.dtype.as_numpy_dtype
    rows = tf.matmul(x, np.ones([4, 1], numpy))
    columns = tf.matmul(np.ones([1, 3], numpy), tf.reshape(x[:3], [3, 4]))
    repeated = tf.matmul(rows, np.ones([1, 5], numpy))
    total = tf.reduce_mean(tf.reshape(tf.reduce_sum(tf.square(x), 1), [-1, 1]))
    return [rows, columns, repeated, total]


@program("narrow_broadcasts")
def _(d: Draft) -> list[Any]:
    x, y, n = d.fed(1, 4), d.fed(3, 4), d.fed()
    repeated = F.BroadcastTo(x, [3, 4])
    shaped = tf.reshape(F.BroadcastTo(d.fed(4), [2, 1, 4]), [2, 4])
    return [F.BroadcastTo(x, [3, 4]) * y, F.BroadcastTo(y, [3, 4]) - n, shaped, tf.square(repeated) + y]


@program("merge_common_subexpressions")
def _(d: Draft) -> list[Any]:
    x, y = d.fed(None, 4), d.fed(None, 4)
    sums = tf.add(x, y) * tf.add(y, x)
    leaky = [tf.nn.leaky_relu(x, alpha) for alpha in (0.2, 0.2)] if d.dtype.is_floating else [x, x]
    return [sums, tf.subtract(x, y) * tf.subtract(x, y), leaky[0] + leaky[1]]


@program("remove_unneeded")
def _(d: Draft) -> list[Any]:
    x = d.fed(None, 4)
    zeros = tf.constant(d.values(4)) * tf.constant(d.values(4))
    return [tf.square(x + zeros)]


# ---- transposes


@program("cancel_transposes")
def _(d: Draft) -> list[Any]:
    x = d.fed(None, 2, 4)
    y = tf.transpose(tf.transpose(x, [0, 2, 1]), [0, 2, 1])
    z = tf.transpose(tf.transpose(x, [2, 0, 1]), [2, 0, 1])
    return [y * x, z, tf.reshape(tf.reshape(x, [-1, 8]), [-1, 4, 2])]


@program("cancel_transposes")
def _(d: Draft) -> list[Any]:
    x = d.fed(2, 3, 4)
    transposed = tf.transpose(x, [0, 2, 1])
    y = tf.transpose(tf.square(transposed) * d.values(3) + d.values(4, 1), [0, 2, 1])
    joined = tf.concat([transposed, tf.transpose(d.fed(2, 3, 4), [0, 2, 1])], -1)
    return [y, tf.transpose(joined, [0, 2, 1])]


@program("cancel_transposes")
def _(d: Draft) -> list[Any]:
    x = d.fed(2, 3, 4, 5)
    transposed = tf.transpose(x, [0, 3, 1, 2])
    sums = [tf.reduce_sum(transposed, axes) for axes in ([0, 2, 3], [2, 3], [-1], [1])]
    bias = tf.nn.bias_add(tf.transpose(d.fed(2, 3, 4, 5), [0, 3, 1, 2]), d.fed(4))
    grad = F.BiasAddGrad(transposed, data_format="NCHW")
    return [*sums, bias, grad, tf.reduce_max(transposed, [2, 3]) if not d.dtype.is_complex else None]


@program("cancel_transposes")
def _(d: Draft) -> list[Any]:
    a, b = d.fed(4, None), d.fed(5, 4)
    y = tf.matmul(tf.transpose(a), tf.transpose(b))
    scale = tf.reshape(tf.reshape(d.fed(4), [1, 4, 1]) * tf.reshape(d.fed(4), [1, 4, 1]), [4])
    return [y, scale, tf.squeeze(tf.expand_dims(a, 1), [1])]


# ---- convolutions


def layers(d: Draft, layout: str) -> Any:
    """A convolution, a normalisation and a pooling."""
    x = d.fed(None, 6, 5, 2) if layout == "NHWC" else d.fed(None, 2, 6, 5)
    y = tf.nn.conv2d(x, tf.constant(d.values(3, 2, 2, 4)), [1, 1, 1, 1], "SAME", data_format=layout)
    y = tf.nn.bias_add(y, tf.constant(d.values(4)), data_format=layout)
    return x, y


def pooled(y: Any, layout: str, kind: Any = tf.nn.max_pool) -> Any:
    """Maxima of windows that overlap."""
    window, stride = ([1, 3, 2, 1], [1, 2, 1, 1]) if layout == "NHWC" else ([1, 1, 3, 2], [1, 1, 2, 1])
    return kind(y, window, stride, "SAME", data_format=layout)


@program("put_channels_last", numbers=(0,))
def _(d: Draft) -> list[Any]:
    x, y = layers(d, "NCHW")
    y = pooled(tf.nn.relu(y), "NCHW")
    return [y, *gradients(y, x)]


@program("put_channels_last", dtypes=(), tolerance=1e-3)
def _(d: Draft) -> list[Any]:
    x, y = layers(d, "NCHW")
    scale, offset = d.fed(4), d.fed(4)
    y, mean, variance = tf.nn.fused_batch_norm(y, scale, offset, data_format="NCHW")
    y = pooled(y, "NCHW", tf.nn.avg_pool)
    return [y, mean, variance, *gradients(y, x, scale, offset)]


@program("put_channels_last", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    x, w = d.fed(None, 2, 5, 4), d.fed(3, 3, 2, 2)
    y = tf.nn.depthwise_conv2d(x, w, [1] * 4, "VALID", data_format="NCHW")
    return [y, *gradients(y, x, w)]


@program("put_channels_last", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    x, w = d.fed(None, 2, 3, 4, 5), d.fed(2, 2, 2, 2, 3)
    y = tf.nn.conv3d(x, w, [1] * 5, "SAME", data_format="NCDHW")
    y = tf.nn.max_pool3d(y, [1, 1, 2, 2, 2], [1, 1, 1, 2, 2], "VALID", data_format="NCDHW")
    return [y, *gradients(y, x, w)]


@program("pool_first", numbers=(0,))  # a gradient to NaN passes the activation then: pooling_fusion.py
def _(d: Draft) -> list[Any]:
    x = d.fed(2, 6, 5, 2)
    y = pooled(tf.nn.relu(x), "NHWC")
    z = tf.nn.max_pool(tf.nn.elu(d.fed(2, 6, 5, 2)), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    return [y, z, *gradients(y, x)]


@program("keep_places")
def _(d: Draft) -> list[Any]:
    x = d.fed(2, 6, 6, 2)
    y = tf.nn.max_pool(x, [1, 3, 2, 1], [1, 1, 2, 1], "VALID")
    return [y, *gradients(y, x)]


@program("fold_normalizations", dtypes=(), finite=(1, 4))
def _(d: Draft) -> list[Any]:
    _, y = layers(d, "NHWC")
    scale, offset, mean = (d.fed(4) for _ in range(3))
    variance = d.fed(4, value=d.values(4) ** 2 + 0.5)
    return [tf.nn.fused_batch_norm(y, scale, offset, mean, variance, 1e-3, is_training=False)[0]]


@program("fold_normalizations", dtypes=("float64",), finite=(2,))
def _(d: Draft) -> list[Any]:
    x, w, factor = d.fed(None, 6, 5, 2), d.fed(3, 3, 2, 2), d.fed(4)
    first = tf.nn.depthwise_conv2d(x, w, [1] * 4, "SAME") * factor
    second = tf.nn.conv2d(x, tf.constant(d.values(2, 2, 2, 4)), [1] * 4, "VALID") * tf.constant(d.values(4))
    return [first, second]


@program("convolve_directly", dtypes=())
def _(d: Draft) -> list[Any]:
    x, w = d.fed(2, 5, 4, 3), d.variable(3, 3, 3, 8)
    y = tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 2, 1, 1], "SAME"), d.fed(8))
    return [tf.sigmoid(y), *gradients(tf.nn.conv2d(x, w, [1] * 4, "VALID"), x, w.value())]


@program("lay_out_filters", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    x, w = d.fed(None, 6, 5, 2), d.variable(3, 3, 2, 4)
    y = tf.nn.conv2d(x, w, [1] * 4, "SAME")
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_mean(tf.square(y)))
    d.targets.append(train)
    return []


@program("fuse_biases")
def _(d: Draft) -> list[Any]:
    x, b = d.fed(None, 4), d.fed(5)
    y = tf.nn.bias_add(tf.matmul(x, d.fed(4, 5)), b)
    z = tf.matmul(d.fed(5, 4), x, transpose_a=True, transpose_b=True) if d.batch == 5 else None
    return [tf.nn.relu(y) if d.dtype.is_floating else y, z]


@program("fuse_biases")
def _(d: Draft) -> list[Any]:
    x = d.fed(4, 4)
    y = tf.tanh(tf.matmul(x, d.fed(4, 4)) + d.fed(4))
    return [y, tf.sigmoid(tf.add(d.fed(4), tf.matmul(x, x, transpose_b=True)))]


@program("fuse_biases")
def _(d: Draft) -> list[Any]:
    x, matrix = d.fed(70, 3), d.fed(70, 40)
    total = tf.add_n([tf.matmul(x, d.fed(3, 40)), matrix])
    return [total, tf.matmul(x, d.fed(3, 40)) + d.fed(70, 40)]


@program("fuse_biases", dtypes=("float64", "float16", "bfloat16"))
def _(d: Draft) -> list[Any]:
    _, y = layers(d, "NHWC")
    x = d.fed(None, 4, 4, 4)
    z = tf.nn.conv2d(x, d.fed(2, 2, 4, 4), [1, 2, 2, 1], "VALID") + d.fed(4)
    return [tf.nn.relu(y), tf.sigmoid(z)]


@program("fuse_biases", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    x = d.fed(2, 4, 4, 4)
    y = tf.nn.conv2d(x, d.fed(2, 2, 4, 4), [1] * 4, "SAME", data_format="NCHW")
    return [tf.tanh(tf.nn.bias_add(y, d.fed(4), data_format="NCHW")), y[0] + 1.0 if d.batch == 7 else None]


@program("convolve_in_tiles", dtypes=())
def _(d: Draft) -> list[Any]:
    x, w, b = d.fed(None, 7, 6, 8), d.fed(3, 3, 8, 9), d.fed(9)
    y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1] * 4, "SAME"), b))
    return [y, tf.nn.conv2d(x, d.fed(5, 5, 8, 8), [1] * 4, "VALID")]


@program("convolve_in_tiles", dtypes=())
def _(d: Draft) -> list[Any]:
    x, w, dy = d.fed(None, 7, 6, 8), d.fed(3, 3, 8, 8), d.fed(None, 7, 6, 8)
    y = tf.nn.conv2d(x, w, [1] * 4, "SAME")
    return [*tf.gradients(y, [x, w], dy)]


@program("convolve_in_tiles", dtypes=())
def _(d: Draft) -> list[Any]:
    x, w = d.fed(None, 9, 8, 8), d.fed(5, 5, 8, 8)
    y = tf.nn.conv2d(x, w, [1, 2, 2, 1], "SAME")
    z = tf.nn.conv2d_transpose(y, w, [d.batch, 9, 8, 8], [1, 2, 2, 1], "SAME")
    return [z, *tf.gradients(z, [x, w])]


@program("convolve_channels", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    x, w = d.fed(None, 7, 6, 9), d.fed(3, 3, 9, 1)
    y = tf.nn.depthwise_conv2d(x, w, [1] * 4, "SAME")
    return [y, tf.nn.depthwise_conv2d(x, d.fed(2, 5, 9, 1), [1, 2, 2, 1], "SAME")]


@program("convolve_channels", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    x, w, dy = d.fed(None, 7, 6, 9), d.fed(3, 5, 9, 1), d.fed(None, 7, 6, 9)
    y = tf.nn.depthwise_conv2d(x, w, [1] * 4, "SAME")
    return [*tf.gradients(y, [x, w], dy)]


@program("spread_convolutions", dtypes=())
def _(d: Draft) -> list[Any]:
    x, w, b = d.fed(None, 7, 6, 5), d.fed(3, 1, 5, 2), d.fed(2)
    y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1] * 4, "SAME"), b))
    return [y, tf.nn.conv2d(x, d.fed(2, 3, 5, 1), [1] * 4, "VALID")]


@program("spread_convolutions", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    x, w = d.fed(None, 4, 3, 6), d.fed(3, 3, 2, 6)
    y = tf.nn.conv2d_transpose(x, w, [d.batch, 8, 6, 2], [1, 2, 2, 1], "SAME")
    return [y, *tf.gradients(y, [x, w])]


@program("skip_zero_gradients", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    x, w = d.fed(2, 22, 5), d.variable(3, 5, 6)
    y = tf.reduce_max(tf.nn.relu(tf.nn.conv1d(x, w, 1, "VALID")), 1)
    return [y, *gradients(y, x, w.value())]


@program("pool_in_bytes", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    x = d.fed(None, 7, 6, 3)
    y = tf.nn.max_pool(x, [1, 3, 2, 1], [1, 2, 2, 1], "VALID")
    return [y, *tf.gradients(y, x, d.fed(None, 3, 3, 3))]


@program("normalize_batches", dtypes=("float64",), tolerance=1e-3)
def _(d: Draft) -> list[Any]:
    x, scale, offset = d.fed(None, 5, 4, 3), d.fed(3), d.fed(3)
    y, mean, variance = tf.nn.fused_batch_norm(x, scale, offset, epsilon=0.1)
    z = tf.nn.relu(y) * tf.constant(0.5, y.dtype)
    return [z, mean, variance, *gradients(z, x, scale, offset)]


@program("normalize_batches", dtypes=("float64",), tolerance=1e-3)
def _(d: Draft) -> list[Any]:
    x, scale, offset, more = d.fed(None, 5, 3), d.fed(3), d.fed(3), d.fed(None, 5, 1, 3)
    y = tf.nn.fused_batch_norm(tf.expand_dims(x, 2), scale, offset, epsilon=0.1)[0]
    y = tf.nn.relu(tf.add(more, y))
    return [y, *gradients(y, x, scale, more)]


@program("convolve_by_winograd", dtypes=())
def _(d: Draft) -> list[Any]:
    x, w, b = d.fed(None, 7, 6, 3), d.fed(3, 3, 3, 6), d.fed(6)
    y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1] * 4, "SAME"), b))
    return [y, tf.nn.conv2d(x, d.fed(2, 5, 3, 6), [1] * 4, "VALID")]


@program("convolve_by_winograd", dtypes=())
def _(d: Draft) -> list[Any]:
    x, w, dy = d.fed(None, 7, 6, 5), d.fed(3, 3, 5, 6), d.fed(None, 7, 6, 6)
    y = tf.nn.conv2d(x, w, [1] * 4, "SAME")
    return [*tf.gradients(y, [x, w], dy)]


@program("join_convolutions", dtypes=())
def _(d: Draft) -> list[Any]:
    x = d.fed(None, 4, 5, 16)
    filters = [tf.constant(d.values(1, 1, 16, n)) for n in (2, 3)]
    biases = [d.fed(n) for n in (2, 3)]
    parts = [tf.nn.bias_add(tf.nn.conv2d(x, w, [1] * 4, "SAME"), b) for w, b in zip(filters, biases)]
    y = tf.concat([*map(tf.nn.relu, parts), tf.nn.avg_pool(x, [1, 3, 3, 1], [1] * 4, "SAME")], 3)
    return gradients(y, x, *filters, *biases)


@program("pack_weights", dtypes=())
def _(d: Draft) -> list[Any]:
    x, w = d.fed(2, 64), d.variable(64, 64)
    return [tf.nn.tanh(tf.matmul(x, w) + d.values(64)), tf.matmul(d.fed(2, 64), w, transpose_b=True)]


@program("pack_filters", dtypes=())
def _(d: Draft) -> list[Any]:
    x, w = d.fed(2, 5, 5, 8), d.variable(3, 3, 8, 16)
    return [tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 3, 3, 1], "SAME"), d.fed(16)))]


@program("pack_filters", dtypes=())
def _(d: Draft) -> list[Any]:
    x, w = d.fed(2, 5, 5, 8), d.variable(3, 3, 8, 16)
    return [tf.tanh(tf.nn.conv2d(x, w, [1, 3, 3, 1], "SAME"))]


@program("count_truths", dtypes=("float64", "int32"))
def _(d: Draft) -> list[Any]:
    x, y = d.fed(None, 4, 3), d.fed(None, 1, 3)
    is_less = tf.less(x, y)
    counts = tf.reduce_sum(tf.cast(is_less, x.dtype), 1)
    return [
        tf.reduce_mean(tf.cast(tf.logical_not(is_less), x.dtype), [0, -1], keepdims=True) * counts[:, None]
    ]


@program("join_clusters", dtypes=("float64", "int32"), tolerance=1e-5)
def _(d: Draft) -> list[Any]:
    x, y, z = d.fed(3, 4), d.fed(4), d.fed(3, 1)
    chosen = tf.where(tf.greater(x + y, z), tf.square(x) - y, tf.maximum(x * z, y))
    return [chosen * x, tf.matmul(chosen, chosen, transpose_b=True)]


@program("compile_products", dtypes=("float64", "float16"), tolerance=1e-5)
def _(d: Draft) -> list[Any]:
    x, w, b, y = d.fed(5, 64), d.fed(64, 40), d.fed(40), d.fed(5, 40)
    gate = tf.sigmoid(tf.matmul(x, w) + b)
    return [gate * y + (1 - gate) * tf.tanh(y), tf.matmul(gate, w, transpose_b=True)]


@program("join_straight_programs", dtypes=("float64",), tolerance=1e-5)
def _(d: Draft) -> list[Any]:
    x, w = d.fed(3, 4), d.fed(4, 4)
    y = x
    for _ in range(20):
        y = tf.tanh(tf.matmul(y, w)) + tf.reduce_max(y, 1, keepdims=True) * 0.1
    return [y, tf.reduce_sum(y)]


@program("join_programs", dtypes=("float64",), tolerance=1e-5)
def _(d: Draft) -> list[Any]:
    x, w = d.fed(3, 4), d.fed(4, 4)
    _, y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w) * x)), [0, x])
    z = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.square(y), lambda: y - x)
    return [y, *gradients(z, x, w)]


@program("sum_directly", dtypes=("float64", "float16"), tolerance=1e-5)
def _(d: Draft) -> list[Any]:
    x = d.fed(None, 4)
    mean = tf.div_no_nan(tf.reduce_sum(tf.exp(x) * tf.cast(0.5, x.dtype), 1), tf.cast(4, x.dtype))
    total = tf.reduce_sum(tf.square(x), 1)
    return [tf.realdiv(total, tf.cast(4, x.dtype)), mean, *tf.gradients(mean, [x])]
