"""More programs for `pattern_programs.py`: losses, sums, recurrences, updates, and what saves memory."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf
from flowstone.framework.declarations.operation import F
from pattern_programs import gradients, program
from pattern_variants import Draft

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


@program("accumulate_parts")
def _(d: Draft) -> list[Any]:
    w, x = d.fed(3, 6), d.fed(2, 3)

    def body(i: Any, h: Any) -> Any:
        first, second = tf.split(w, 2, axis=1)
        return i + 1, tf.tanh(tf.matmul(h, first)) * tf.matmul(h, second)

    return gradients(tf.while_loop(lambda i, _: i < 3, body, [0, x])[1], w)


@program("compute_taken_parts", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    x, w = d.fed(3, 4), d.fed(6, 4)
    return [tf.sin(tf.split(tf.matmul(x, w, transpose_b=True), [2, 4], 1)[1])]


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


@program("join_descents", dtypes=("float64",), tolerance=1e-5)
def _(d: Draft) -> list[Any]:
    x, v, w = d.fed(3, 4), d.variable(4, 16), d.variable(16, 32, resource=True)
    rate = d.fed(value=0.3)
    loss = tf.reduce_sum(tf.square(tf.matmul(tf.tanh(tf.matmul(x, v)), w)))
    d.targets.append(tf.train.GradientDescentOptimizer(rate).minimize(loss))
    return []


@program("sum_repeated_rows", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    v, ids = d.variable(6, 4), d.indices(6, 5)
    loss = tf.reduce_sum(tf.sin(tf.gather(v, ids)))
    d.targets.append(tf.train.AdagradOptimizer(0.3).minimize(loss))
    return []


@program("compare_classes", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    classes, x = d.indices(6, 5), d.fed(5, 6)
    return [tf.reduce_sum(x * tf.one_hot(classes, 6, dtype=x.dtype), 1)]


@program("pick_rows_directly", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    table, ids = d.fed(6, 4), d.indices(6, 5)
    distinct, places = tf.unique(ids)
    rows = tf.gather(table, distinct)
    return [tf.sparse_segment_sum(rows, places, [0, 0, 1, 3, 3]), tf.gather(rows, places)]


@program("pick_present_rows", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    x, ids = d.fed(6, 4), d.indices(6, 6)
    return gradients(tf.unsorted_segment_sum(x, ids - 1, 5), x)


@program("sum_picked_rows", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    x, sources, ends = d.variable(6, 4), d.indices(6, 7), d.indices(6, 7)
    total = tf.unsorted_segment_sum(tf.gather(x, sources), ends - 1, 5)
    d.targets.append(tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.sin(total))))
    return [total]


@program("split_at_offsets")
def _(d: Draft) -> list[Any]:
    x, y = d.fed(4, 2), d.fed(4, 3)
    return gradients(tf.sin(tf.concat([x, y * 2], 1)), x, y)


@program("keep_own_sizes", dtypes=("float64",))
@program("fill_kept_rows", dtypes=("float64",))
@program("spread_kept_rows", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    table, ids = d.variable(6, 4), d.indices(6, 5) - 1
    indices = tf.constant([[0, 0], [0, 1], [1, 0], [3, 0], [3, 1]], tf.int64)
    sizes = tf.maximum(tf.cast(d.indices(2, 2), tf.int64), np.array([4, 2]))
    listed = tf.SparseTensor(indices, tf.cast(ids, tf.int64), sizes)
    rows = tf.nn.safe_embedding_lookup_sparse(table, listed, combiner="sum")
    d.targets.append(tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(tf.sin(rows))))
    return [rows]


@program("join_rows", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    table, other = d.fed(6, 4), d.variable(5, 2)
    ids, more = d.indices(5, 3, 2), d.indices(6, 3)
    several = tf.reshape(tf.gather(other, ids), [3, 4])
    return [tf.concat([tf.gather(table, more), d.fed(3, 2), several, tf.gather(other, ids[:, 1])], 1)]


@program("hold_uniform_values", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    x, ids = d.fed(6, 4), d.indices(6, 3)
    ones = tf.raw_ops.OnesLike(x=x)
    return [tf.gather(ones, ids), tf.matmul(ones, x[:4])]


@program("compile_row_updates", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    v, ids = d.variable(6, 4), d.indices(6, 5)
    loss = tf.reduce_sum(tf.sin(tf.gather(v, ids)))
    d.targets.append(tf.train.RMSPropOptimizer(0.1).minimize(loss))
    return []


@program("join_decayed_rows", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    v, ids = d.variable(6, 4), d.indices(6, 5)
    loss = tf.reduce_sum(tf.sin(tf.gather(v, ids)))
    d.targets.append(tf.train.AdamOptimizer(0.1).minimize(loss))
    return []


@program("add_negated_rows", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    v, ids, rows = d.variable(6, 4), d.indices(6, 5), d.fed(5, 4)
    other = d.variable(6, 4)
    d.targets.append(tf.scatter_sub(v, ids, tf.square(rows) * 0.3, use_locking=True))
    d.targets.append(tf.scatter_sub(other, ids, tf.sin(rows), use_locking=True))
    return []


@program("compile_updates", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    variables = [d.variable(2, 3) for _ in range(4)]
    pairs = [(d.fed(2, 3), v) for v in variables]
    d.targets.append(tf.train.MomentumOptimizer(0.1, 0.9).apply_gradients(pairs))
    return []


@program("compile_updates", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    variables = [d.variable(2, 3) for _ in range(4)]
    pairs = [(d.fed(2, 3), v) for v in variables]
    d.targets.append(tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01).apply_gradients(pairs))
    return []


@program("compile_updates", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    variables = [d.variable(2, 3, resource=True) for _ in range(4)]
    pairs = [(d.fed(2, 3), v) for v in variables]
    d.targets.append(tf.train.AdamOptimizer(0.1).apply_gradients(pairs))
    return []


@program("group_updates", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    """Steps that have no machine code, for this power."""
    pairs = [(d.fed(2, 3), d.variable(2, 3)) for _ in range(4)]
    d.targets.append(tf.train.FtrlOptimizer(0.1, learning_rate_power=-0.7).apply_gradients(pairs))
    return []


@program("compile_narrow_layers", dtypes=(), tolerance=1e-5)
def _(d: Draft) -> list[Any]:
    x, w, b = d.fed(3, 20), d.variable(20, 5), d.variable(5)
    loss = tf.reduce_sum(tf.square(tf.nn.relu(tf.matmul(x, w) + b)))
    d.targets.append(tf.train.GradientDescentOptimizer(0.1).minimize(loss))
    return [loss]


@program("join_written_updates", dtypes=("float64",))
def _(d: Draft) -> list[Any]:
    for resource in (False, True):
        p, m, v = (d.variable(2, 3, resource=resource) for _ in range(3))
        gradient, rate = d.fed(2, 3) + 0.5, d.fed(value=0.3)
        mean, square = 0.9 * m + 0.1 * gradient, 0.9 * v + 0.1 * tf.square(gradient)
        step = rate * mean / (tf.sqrt(tf.maximum(square, 0.0)) + 0.1)
        d.targets += [tf.assign(m, mean).op, tf.assign(v, square).op, tf.assign(p, p - step).op]
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
    for _ in range(6):
        y = tf.sin(tf.sin(y) * d.values(4))
        y.op._set_attr("_recompute_hint", 1)
    return tf.gradients(tf.reduce_sum(y), x)


@program("swap_hinted")
def _(d: Draft) -> list[Any]:
    x = y = d.fed(8, 4)
    for i in range(4):
        y = tf.exp(y * 0.1, name=f"exp{i}")
    found = tf.gradients(tf.reduce_sum(y), x)
    x.graph.get_operation_by_name("gradients/exp2_grad/mul")._set_attr("_swap_to_host", [1])
    return found
