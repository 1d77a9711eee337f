"""A few small programs for each rewriting pass, in which it finds its pattern (`pattern_variants.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf
from flowstone.framework.operation import F
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
    turned = tf.transpose(x, [0, 2, 1])
    y = tf.transpose(tf.square(turned) * d.values(3) + d.values(4, 1), [0, 2, 1])
    joined = tf.concat([turned, tf.transpose(d.fed(2, 3, 4), [0, 2, 1])], -1)
    return [y, tf.transpose(joined, [0, 2, 1])]


@program("cancel_transposes")
def _(d: Draft) -> list[Any]:
    x = d.fed(2, 3, 4, 5)
    turned = tf.transpose(x, [0, 3, 1, 2])
    sums = [tf.reduce_sum(turned, axes) for axes in ([0, 2, 3], [2, 3], [-1], [1])]
    bias = tf.nn.bias_add(tf.transpose(d.fed(2, 3, 4, 5), [0, 3, 1, 2]), d.fed(4))
    grad = F.BiasAddGrad(turned, data_format="NCHW")
    return [*sums, bias, grad, tf.reduce_max(turned, [2, 3]) if not d.dtype.is_complex else None]


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


@program("put_channels_last")
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


@program("pool_first")
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


@program("convolve_by_winograd", dtypes=())
def _(d: Draft) -> list[Any]:
    x, w, b = d.fed(None, 7, 6, 3), d.fed(3, 3, 3, 4), d.fed(4)
    y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1] * 4, "SAME"), b))
    return [y, tf.nn.conv2d(x, d.fed(2, 5, 3, 4), [1] * 4, "VALID")]


@program("convolve_by_winograd", dtypes=())
def _(d: Draft) -> list[Any]:
    x, w, dy = d.fed(None, 7, 6, 3), d.fed(3, 3, 3, 4), d.fed(None, 7, 6, 4)
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
    return [tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 2, 2, 1], "SAME"), d.fed(16)))]


# ---- dropout, losses


@program("choose_by_margins", dtypes=())
def _(d: Draft) -> list[Any]:
    x, rate = d.fed(3, 4), d.fed(value=0.4)
    kept = tf.random_uniform([3, 4], seed=3) >= rate
    y = tf.where(kept, x, tf.zeros([3, 4]))
    return [y, *gradients(y, x)]


@program("simplify_logistic_losses", dtypes=("float64", "float16"))
def _(d: Draft) -> list[Any]:
    x, z = d.fed(None, 4), d.fed(None, 4, value=np.linspace(0, 1, 4 * d.batch).reshape(-1, 4))
    y = tf.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x)
    return [y, *tf.gradients(y, x, d.fed(None, 4))]


@program("simplify_logistic_losses", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    x, w, numpy = d.fed(None, 4), d.fed(None, 4), d.dtype.as_numpy_dtype
    zeros, eye = np.zeros([d.batch, 4], numpy), np.eye(d.batch, 4, dtype=numpy)
    a = tf.nn.sigmoid_cross_entropy_with_logits(labels=zeros, logits=x)
    b = tf.nn.sigmoid_cross_entropy_with_logits(labels=eye, logits=w)
    return [a, b, *tf.gradients(tf.reduce_mean(a) + tf.reduce_sum(b), [x, w])]


@program("simplify_logistic_losses", dtypes=())
def _(d: Draft) -> list[Any]:
    x = d.fed(None, 4)
    a = tf.nn.sigmoid_cross_entropy_with_logits(labels=np.ones([d.batch, 4], "f"), logits=x)
    return [a, *tf.gradients(tf.reduce_mean(a), x)]


@program("mask_accidental_hits", dtypes=())
def _(d: Draft) -> list[Any]:
    x, true = d.fed(4, 5), d.indices(8, 4, 2, dtype=tf.int64)
    sampled = d.fed(5, value=[3, 1, 7, 5, 0], dtype=tf.int64)
    rows, places, weights = tf.nn.compute_accidental_hits(true, sampled, 2)
    columns = [tf.reshape(rows, [-1, 1]), tf.reshape(tf.cast(places, tf.int32), [-1, 1])]
    hits = tf.concat(columns, 1)
    return [x + tf.sparse_to_dense(hits, [4, 5], weights, default_value=0.0, validate_indices=False)]


@program("fuse_losses", dtypes=("float64", "float16"))
def _(d: Draft) -> list[Any]:
    x, w = d.fed(None, 4), d.fed(4, 5)
    labels = d.indices(5, None)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.matmul(x, w))
    loss = tf.reduce_mean(losses)
    return [loss, *tf.gradients(loss, [x, w])]


@program("fuse_losses", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    x, b, labels = d.fed(None, 5), d.fed(5), d.fed(None, 5, value=np.eye(d.batch, 5))
    loss = tf.reduce_sum(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=x + b))
    return [loss, *tf.gradients(0.5 * loss, [x, b])]


# ---- slices and sums


@program("split_slices")
def _(d: Draft) -> list[Any]:
    x = d.fed(3, 5)
    return [tf.square(tf.slice(x, [0, 0], [3, 2])), tf.slice(x, [0, 2], [-1, 3])]


@program("join_slices")
def _(d: Draft) -> list[Any]:
    x, g = d.fed(2, 4), d.fed(2, 4)
    parts = [x[0:1], x[1:2]]
    rows = [x[i] for i in range(2)]
    first = tf.add_n([tf.reduce_sum(tf.square(p)) for p in parts])
    second = tf.add_n([tf.reduce_sum(r * r * g[i]) for i, r in enumerate(rows)])
    return [*tf.gradients(first, x), *tf.gradients(second, x)]


@program("join_slices")
def _(d: Draft) -> list[Any]:
    a, b = d.fed(3, 2), d.fed(3, 3)
    return [tf.add_n([tf.pad(a, [[0, 0], [0, 3]]), tf.pad(b, [[0, 0], [2, 0]])])]


@program("stack_products")
def _(d: Draft) -> list[Any]:
    xs, ys = [d.fed(2, 8) for _ in range(3)], [d.fed(2, 6) for _ in range(3)]
    products = tf.add_n([tf.matmul(x, y, transpose_a=True) for x, y in zip(xs, ys)])
    return [products, tf.add_n([tf.reduce_sum(y, [0]) for y in ys])]


@program("stack_products")
def _(d: Draft) -> list[Any]:
    xs, ys = [d.fed(8, 2) for _ in range(3)], [d.fed(6, 2) for _ in range(3)]
    products = tf.add_n([tf.matmul(x, y, transpose_b=True) for x, y in zip(xs, ys)])
    return [products, tf.add_n([F.BiasAddGrad(y) for y in ys])]


@program("join_products")
def _(d: Draft) -> list[Any]:
    w, b, xs = d.fed(3, 4), d.fed(4), [d.fed(2, 3) for _ in range(4)]
    ys = [tf.tanh(tf.nn.bias_add(tf.matmul(x, w), b)) for x in xs]
    sums = [tf.reduce_sum(tf.nn.softmax(y), 1) for y in ys]
    return [tf.concat(ys, 0), tf.stack(sums), ys[2] * 2 if d.batch == 5 else ys[1]]


# ---- recurrences


BIASED = ["BiasAdd:0", *(f"BiasAdd_{i}:0" for i in range(1, 8))]


def cell(x: Any, h: Any, c: Any, weights: Any, bias: Any) -> Any:
    """An LSTM cell."""
    total = tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), weights), bias)
    i, j, f, o = tf.split(total, 4, 1)
    c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(j)
    return tf.sigmoid(o) * tf.tanh(c), c


def unrolled(d: Draft, rows: int | None, units: int, steps: int = 8) -> Any:
    """Outputs of all steps, and what gradients may be asked of."""
    xs = tf.unstack(d.fed(steps, rows, 3))
    weights, bias = d.fed(3 + units, 4 * units), d.fed(4 * units)
    h, c, outputs = d.fed(rows, units), d.fed(rows, units), []
    for x in xs:
        h, c = cell(x, h, c, weights, bias)
        outputs.append(h)
    return outputs, c, [xs[0], weights, bias]


@program("join_lstm_layers", changed=r"^(concat|split|add|mul|Tanh)$", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    outputs, c, given = unrolled(d, None, 2)
    loss = tf.add_n([tf.reduce_sum(tf.square(h)) for h in outputs]) + tf.reduce_sum(c)
    return [outputs[3], *tf.gradients(loss, given)]


@program(
    "join_lstm_layers",
    changed=r"^gradients/(split|MatMul|concat|BiasAdd|mul)_1_grad/|^sum",
    dtypes=(),
    applies=False,
)
def _(d: Draft) -> list[Any]:
    """As many rows as columns, and sums of both."""
    outputs, _, given = unrolled(d, 8, 2)
    graph = tf.get_default_graph()
    loss = tf.reduce_sum(tf.square(outputs[-1]))
    slopes = tf.gradients(loss, [*given, *map(graph.get_tensor_by_name, BIASED)])
    rows = [tf.reduce_sum(x, 1, name=f"sum{i}") for i, x in enumerate(slopes[3:])]
    return [slopes[1], tf.add_n(rows)]


@program("join_lstm_layers", changed="^sum", dtypes=(), applies=False)
def _(d: Draft) -> list[Any]:
    """Gradients that are one number for all elements, by the output and by the state."""
    outputs, c, given = unrolled(d, 3, 2)
    return tf.gradients([tf.reduce_sum(outputs[-1]), tf.reduce_sum(c)], given[1:], [d.fed(), d.fed()])


@program("join_lstm_layers", changed="^sum", dtypes=(), applies=False)
def _(d: Draft) -> list[Any]:
    """What is added to the gradients is repeated, or repeats them."""
    outputs, _, given = unrolled(d, 3, 2)
    slopes = tf.gradients(outputs[0], given, d.fed(3, 2))
    return [outputs[-1], tf.add(slopes[1], d.fed(), name="sum"), tf.add(slopes[2], d.fed(5, 8), name="sum_1")]


def looped(d: Draft, steps: int = 8) -> Any:
    """The same as a loop over arrays."""
    x, weights, bias = d.fed(steps, None, 3), d.fed(5, 8), d.fed(8)
    inputs = tf.TensorArray(d.dtype, steps).unstack(x)

    def body(t: Any, outputs: Any, h: Any, c: Any) -> Any:
        h, c = cell(inputs.read(t), h, c, weights, bias)
        return t + 1, outputs.write(t, h), h, c

    zeros = tf.zeros(tf.stack([tf.shape(x)[1], 2]), d.dtype)
    _, outputs, h, _ = tf.while_loop(
        lambda t, *_: t < steps, body, [0, tf.TensorArray(d.dtype, steps), zeros, zeros]
    )
    return outputs.stack(), h, [x, weights, bias]


@program("join_lstm_loops", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    outputs, h, _ = looped(d)
    return [outputs, h]


@program("join_lstm_loops", dtypes=())
def _(d: Draft) -> list[Any]:
    outputs, _, given = looped(d)
    return gradients(outputs, *given)


@program("forward_whole_arrays")
def _(d: Draft) -> list[Any]:
    x = d.fed(4, 3)
    y = tf.TensorArray(d.dtype, 4).unstack(tf.square(x)).stack()
    return [y, *gradients(y, x)]


@program("hold_invariants")
def _(d: Draft) -> list[Any]:
    x = d.fed(None, 3)
    loop = tf.while_loop(lambda i, y, k: i < 4, lambda i, y, k: (i + 1, y * k, k), [0, x, tf.square(x)])
    return [loop[1]]


@program("hold_invariants")
def _(d: Draft) -> list[Any]:
    x = d.fed(4, 3)
    inputs = tf.TensorArray(d.dtype, 4, clear_after_read=False).unstack(x)
    zero = tf.zeros([3], d.dtype)
    loop = tf.while_loop(lambda t, h: t < 4, lambda t, h: (t + 1, tf.tanh(h + inputs.read(t))), [0, zero])
    return [loop[1], *gradients(loop[1], x)]


@program("drop_stacks")
def _(d: Draft) -> list[Any]:
    x = d.fed(7, 3)

    def body(i: Any, y: Any) -> Any:
        return i + 2, y * tf.gather(x, i)

    y = tf.while_loop(lambda i, _: i < 6, body, [1, tf.ones([3], d.dtype)])[1]
    return [y, *(tf.convert_to_tensor(g) for g in gradients(y, x))]


@program("stack_accumulators")
def _(d: Draft) -> list[Any]:
    w, x = d.fed(6, 6), d.fed(2, 6)
    y = tf.while_loop(lambda i, _: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), [0, x])[1]
    return gradients(y, w)


# ---- updates


@program("fuse_updates", dtypes=("float64", "float16"))
def _(d: Draft) -> list[Any]:
    x, w, b = d.fed(3, 4), d.variable(4, 5), d.variable(5, resource=True)
    rate = d.fed(value=0.3)
    loss = tf.reduce_sum(tf.square(tf.matmul(x, w) + b))
    d.targets.append(tf.train.GradientDescentOptimizer(rate).minimize(loss))
    return []


@program("fuse_updates", dtypes=())
def _(d: Draft) -> list[Any]:
    """As many rows as columns."""
    a, b, matrix = d.fed(4, 4), d.fed(4, 4), d.fed(4, 4)
    w, v = d.variable(4, 4), d.variable(4)
    pairs = [(tf.matmul(a, b, transpose_b=True), w), (tf.reduce_sum(matrix, [1]), v)]
    d.targets.append(tf.train.GradientDescentOptimizer(0.1).apply_gradients(pairs))
    return []


@program("sum_repeated_rows", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    v, ids = d.variable(6, 4), d.indices(6, 5)
    loss = tf.reduce_sum(tf.sin(tf.gather(v, ids)))
    d.targets.append(tf.train.AdagradOptimizer(0.3).minimize(loss))
    return []


@program("add_negated_rows", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    v, ids, rows = d.variable(6, 4), d.indices(6, 5), d.fed(5, 4)
    other = d.variable(6, 4)
    d.targets.append(tf.scatter_sub(v, ids, tf.square(rows) * 0.3))
    d.targets.append(tf.scatter_sub(other, ids, tf.sin(rows)))
    return []


@program("group_updates", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    variables = [d.variable(2, 3) for _ in range(4)]
    pairs = [(d.fed(2, 3), v) for v in variables]
    d.targets.append(tf.train.MomentumOptimizer(0.1, 0.9).apply_gradients(pairs))
    return []


@program("group_updates", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    variables = [d.variable(2, 3) for _ in range(4)]
    pairs = [(d.fed(2, 3), v) for v in variables]
    d.targets.append(tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01).apply_gradients(pairs))
    return []


@program("group_updates", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    variables = [d.variable(2, 3, resource=True) for _ in range(4)]
    pairs = [(d.fed(2, 3), v) for v in variables]
    d.targets.append(tf.train.AdamOptimizer(0.1).apply_gradients(pairs))
    return []


# ---- memory


@program("read_joined_values")
def _(d: Draft) -> list[Any]:
    x = d.fed(6, 5)
    parts = [f(tf.matmul(x, d.values(5, 4))) for f in (tf.nn.relu, tf.tanh, tf.sigmoid)]
    y = tf.concat(parts, 1)
    return tf.gradients(tf.square(y * tf.sqrt(tf.square(y) + 1.0)), x)


@program("schedule_memory")
def _(d: Draft) -> list[Any]:
    xs = [d.fed(2, 50) for _ in range(2)]
    products = [tf.matmul(x, x, transpose_a=True) for x in xs]
    return [tf.reduce_sum(p) for p in products]


@program("recompute_activations")
def _(d: Draft) -> list[Any]:
    x = y = d.fed(8, 4)
    for _ in range(4):
        y = tf.sin(y + 1.0)
    return tf.gradients(tf.reduce_sum(y), x)


@program("swap_activations")
def _(d: Draft) -> list[Any]:
    x = y = d.fed(8, 4)
    for _ in range(4):
        y = tf.exp(y * 0.1)
    return tf.gradients(tf.reduce_sum(y), x)


@program("recompute_hinted")
def _(d: Draft) -> list[Any]:
    x = y = d.fed(8, 4)
    for _ in range(12):
        y = tf.sin(tf.sin(y) * d.values(4))
        y.op._set_attr("_recompute_hint", 1)
    return tf.gradients(tf.reduce_sum(y), x)


@program("swap_hinted")
def _(d: Draft) -> list[Any]:
    x = y = d.fed(8, 4)
    for i in range(4):
        y = tf.exp(y * 0.1, name=f"exp{i}")
    found = tf.gradients(tf.reduce_sum(y), x)
    x.graph.get_operation_by_name("gradients/exp2_grad/Mul")._set_attr("_swap_to_host", [1])
    return found
