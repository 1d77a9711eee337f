"""Programs for `node_programs`: gradients of loops and recurrent networks, of sparse values, and updates.

Each ends with a random operation, whose seed is the number of nodes that the gradients made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.golden.node_programs import PROGRAMS


def _add(name: str, shapes: list[Any], function: Callable[..., Any], dtype: str = "float32") -> None:
    """A program of the gradients of a function's result by placeholders of these shapes."""

    def build(tf: Any) -> None:
        xs = [tf.placeholder(dtype, shape, "x") for shape in shapes]
        tf.gradients(function(tf, *xs), xs)
        tf.random_uniform([2])

    PROGRAMS[f"gradients_of_{name}"] = build


# ---- loops


def _repeated(tf: Any, body: Callable[..., Any], x: Any, count: Any = 3, **options: Any) -> Any:
    return tf.while_loop(lambda i, _: i < count, lambda i, h: (i + 1, body(i, h)), [0, x], **options)[1]


_LOOPS: dict[str, Callable[..., Any]] = {
    "power": lambda tf, x: _repeated(tf, lambda i, h: h * 2.0, x),
    "squares": lambda tf, x: _repeated(tf, lambda i, h: h * h, x),
    "products": lambda tf, x: _repeated(tf, lambda i, h: tf.tanh(tf.matmul(h, tf.ones([4, 4]))), x),
    "outer": lambda tf, x: _repeated(tf, lambda i, h: h * tf.sin(x), x),
    "fed_count": lambda tf, x: _repeated(tf, lambda i, h: h * x, x, tf.placeholder(tf.int32, [])),
    "concat": lambda tf, x: _repeated(tf, lambda i, h: tf.concat([h[:, 2:], x[:, :2]], 1), x),
    "sums": lambda tf, x: _repeated(tf, lambda i, h: h + tf.reduce_sum(x * h, 1, keepdims=True), x),
    "index": lambda tf, x: _repeated(tf, lambda i, h: h * tf.cast(i, tf.float32), x),
    "branches": lambda tf, x: _repeated(tf, lambda i, h: tf.cond(i > 1, lambda: h * h, lambda: h + x), x),
    "nested": lambda tf, x: _repeated(tf, lambda i, h: _repeated(tf, lambda j, g: g * x, h), x),
    "gathered": lambda tf, x: _repeated(tf, lambda i, h: h + tf.gather(x, [i]), x),
    "sliced": lambda tf, x: _repeated(tf, lambda i, h: h + x[i], x),
    "map": lambda tf, x: tf.map_fn(lambda row: row * row, x),
    "scan": lambda tf, x: tf.scan(lambda a, row: a * row, x),
    "foldl": lambda tf, x: tf.foldl(lambda a, row: a * tf.sin(row), x),
    "swapped": lambda tf, x: _repeated(tf, lambda i, h: tf.exp(h) * x, x, swap_memory=True),
    "stopped": lambda tf, x: _repeated(tf, lambda i, h: tf.stop_gradient(h) * x, x),
    "casts": lambda tf, x: _repeated(tf, lambda i, h: h * tf.to_float(tf.shape(h)[0]), x),
    "writes": lambda tf, x: tf.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, a.write(i, x * 2.0)), [0, tf.TensorArray(tf.float32, 3)]
    )[1].stack(),
    "reads": lambda tf, x: tf.while_loop(
        lambda i, s, a: i < 3,
        lambda i, s, a: (i + 1, s + a.read(i), a),
        [0, tf.zeros([4]), tf.TensorArray(tf.float32, 3).unstack(x)],
    )[1],
    "other_result": lambda tf, x: tf.while_loop(
        lambda i, h, g: i < 3, lambda i, h, g: (i + 1, h * x, g + h), [0, x, x * 3]
    )[1],
    "two_results": lambda tf, x: tf.exp(
        tf.while_loop(lambda i, h, g: i < 3, lambda i, h, g: (i + 1, h * g, g + h), [0, x, x * 2])[1]
    ),
    "independent_result": lambda tf, x: tf.exp(
        tf.while_loop(lambda i, h, g: i < 3, lambda i, h, g: (i + 1, h * 2, g * 3), [0, x, 1.0])[1]
    ),
}
for _name, _function in _LOOPS.items():
    for _shape, _dims in {"known": [3, 4], "batch": [None, 4]}.items():
        _add(f"loop_{_name}_{_shape}", [_dims], _function)
_add("loop_unknown", [None], _LOOPS["squares"])


# ---- recurrent networks


def _trained(
    name: str, cell: Callable[..., Any], shape: Any = (3, 4, 5), lengths: bool = False, **options: Any
) -> None:
    def build(tf: Any) -> None:
        x = tf.placeholder(tf.float32, list(shape), "x")
        sizes = tf.placeholder(tf.int32, [None]) if lengths else None
        outputs, _ = tf.nn.dynamic_rnn(cell(tf.nn.rnn_cell, tf), x, sizes, dtype=tf.float32, **options)
        loss = tf.reduce_mean(tf.layers.dense(outputs[:, -1], 2))
        tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        tf.random_uniform([2])

    PROGRAMS[f"training_{name}"] = build


_CELLS: dict[str, Callable[..., Any]] = {
    "basic": lambda cells, tf: cells.BasicRNNCell(4),
    "gru": lambda cells, tf: cells.GRUCell(4),
    "basic_lstm": lambda cells, tf: cells.BasicLSTMCell(4),
    "lstm": lambda cells, tf: cells.LSTMCell(4),
    "peepholes": lambda cells, tf: cells.LSTMCell(4, use_peepholes=True, num_proj=3, cell_clip=2.0),
    "multi": lambda cells, tf: cells.MultiRNNCell([cells.BasicLSTMCell(4), cells.GRUCell(3)]),
    "dropout": lambda cells, tf: cells.DropoutWrapper(cells.GRUCell(4), output_keep_prob=0.5),
}
for _name, _cell in _CELLS.items():
    _trained(f"{_name}_known", _cell)
    _trained(f"{_name}_batch", _cell, (None, 4, 5))
    _trained(f"{_name}_lengths", _cell, (None, None, 5), True)


def _static(name: str, cell: Callable[..., Any], batch: Any) -> None:
    def build(tf: Any) -> None:
        x = tf.placeholder(tf.float32, [batch, 4, 5], "x")
        outputs, _ = tf.nn.static_rnn(cell(tf.nn.rnn_cell, tf), tf.unstack(x, axis=1), dtype=tf.float32)
        tf.train.AdamOptimizer(0.1).minimize(tf.reduce_mean(tf.concat(outputs, 1)))
        tf.random_uniform([2])

    PROGRAMS[f"training_static_{name}"] = build


_static("lstm", _CELLS["lstm"], 3)
_static("gru", _CELLS["gru"], None)


def training_bidirectional(tf: Any) -> None:
    x = tf.placeholder(tf.float32, [None, None, 5], "x")
    words = tf.nn.bidirectional_dynamic_rnn(
        *[tf.nn.rnn_cell.LSTMCell(4) for _ in range(2)], x, tf.placeholder(tf.int32, [None]), dtype=tf.float32
    )[0]
    tf.train.AdamOptimizer(0.1).minimize(tf.reduce_mean(tf.concat(words, 2)))
    tf.random_uniform([2])


def training_embedded_words(tf: Any) -> None:
    words = tf.placeholder(tf.int32, [None, 7])
    x = tf.nn.embedding_lookup(tf.get_variable("e", [9, 5]), words)
    _, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(4), x, dtype=tf.float32)
    loss = tf.losses.sparse_softmax_cross_entropy(
        tf.placeholder(tf.int64, [None]), tf.layers.dense(state[1], 2)
    )
    tf.train.AdamOptimizer(0.1).minimize(loss)
    tf.random_uniform([2])


PROGRAMS.update({f.__name__: f for f in (training_bidirectional, training_embedded_words)})

# ---- parts of arrays

_PARTS: dict[str, Callable[..., Any]] = {
    "gather_columns": lambda tf, x: tf.gather(x, [0, 2], axis=1),
    "gather_fed_axis": lambda tf, x: tf.gather(x, [0], axis=tf.placeholder(tf.int32, [])),
    "batch_gather": lambda tf, x: tf.batch_gather(x, [[0], [1], [2]]),
    "top_k": lambda tf, x: tf.nn.top_k(x, 2)[0],
    "segment_sum": lambda tf, x: tf.segment_sum(x, [0, 0, 1]),
    "segment_mean": lambda tf, x: tf.segment_mean(x, [0, 0, 1]),
    "segment_max": lambda tf, x: tf.segment_max(x, [0, 0, 1]),
    "segment_min": lambda tf, x: tf.segment_min(x, [0, 0, 1]),
    "unsorted_segment_sum": lambda tf, x: tf.unsorted_segment_sum(x, [0, 0, 1], 2),
    "unsorted_segment_max": lambda tf, x: tf.unsorted_segment_max(x, [0, 0, 1], 2),
    "unsorted_segment_mean": lambda tf, x: tf.unsorted_segment_mean(x, [0, 0, 1], 2),
    "unsorted_segment_prod": lambda tf, x: tf.unsorted_segment_prod(x, [0, 0, 1], 2),
    "sparse_segment_sum": lambda tf, x: tf.sparse_segment_sum(x, [0, 1, 1], [0, 0, 1]),
    "sparse_segment_mean": lambda tf, x: tf.sparse_segment_mean(x, [0, 1, 1], [0, 0, 1]),
    "sparse_segment_sqrt_n": lambda tf, x: tf.sparse_segment_sqrt_n(x, [0, 1, 1], [0, 0, 1]),
    "dynamic_partition": lambda tf, x: tf.dynamic_partition(x, [0, 1, 0], 2)[0],
    "dynamic_stitch": lambda tf, x: tf.dynamic_stitch([[0, 1, 2], [2, 3, 4]], [x, x * 2]),
    "scatter_nd": lambda tf, x: tf.scatter_nd([[0], [2], [1]], x, [4, 4]),
    "boolean_mask": lambda tf, x: tf.boolean_mask(x, [True, False, True]),
    "reverse": lambda tf, x: tf.reverse(x, [0]),
    "reverse_sequence": lambda tf, x: tf.reverse_sequence(x, [1, 2, 3], 1, 0),
    "cumsum": lambda tf, x: tf.cumsum(x, 1),
    "cumprod": lambda tf, x: tf.cumprod(x, 1),
    "one_hot_sum": lambda tf, x: tf.reduce_sum(x * tf.one_hot([0, 1, 2], 4), 1),
    "strided": lambda tf, x: x[::2, 1:],
    "transpose_sum": lambda tf, x: tf.reduce_sum(tf.transpose(x), 0),
    "cholesky": lambda tf, x: tf.cholesky(tf.matmul(x, x, transpose_b=True)),
    "inverse": lambda tf, x: tf.matrix_inverse(tf.matmul(x, x, transpose_b=True)),
    "diag": lambda tf, x: tf.matrix_diag(x) + tf.matrix_set_diag(tf.matrix_diag(x), x),
    "trace": lambda tf, x: tf.trace(x[:, :3]) + tf.reduce_sum(tf.matrix_band_part(x, 0, -1)),
    "broadcast_to": lambda tf, x: tf.broadcast_to(x, [2, 3, 4]),
    "space_to_batch": lambda tf, x: tf.space_to_batch_nd(x[:, :, None], [2], [[0, 0]]),
    "mirror_pad": lambda tf, x: tf.pad(x, [[0, 0], [1, 1]], "REFLECT"),
    "dropout": lambda tf, x: tf.nn.dropout(x, 0.5),
    "elu": lambda tf, x: tf.nn.elu(x) + tf.nn.selu(x) + tf.nn.softplus(x) + tf.nn.relu6(x),
    "leaky": lambda tf, x: tf.nn.leaky_relu(x) + tf.nn.swish(x) + tf.nn.crelu(x)[:, :4] + tf.nn.softsign(x),
    "lrn": lambda tf, x: tf.nn.l2_loss(x) + tf.global_norm([x]),
    "clip_norm": lambda tf, x: tf.clip_by_norm(x, 1.0),
    "clip_global": lambda tf, x: tf.clip_by_global_norm([x, x * 2], 1.0)[0],
    "cond": lambda tf, x: tf.cond(tf.placeholder(tf.bool, []), lambda: x * x, lambda: x + 1),
    "case": lambda tf, x: tf.case([(tf.placeholder(tf.bool, []), lambda: x)], lambda: tf.sin(x)),
    "moments": lambda tf, x: tf.nn.moments(x, [0])[1],
    "accumulate_n": lambda tf, x: tf.accumulate_n([x, x * 2]),
    "add_n": lambda tf, x: tf.add_n([x, x, x * 2]),
    "complex": lambda tf, x: tf.abs(tf.complex(x, x)) + tf.real(tf.fft(tf.complex(x, x))),
    "cast": lambda tf, x: tf.cast(tf.cast(x, tf.float64) * 2, tf.float32),
    "py_func": lambda tf, x: tf.py_func(lambda v: v, [x], tf.float32) + x,
    "lookup_sparse": lambda tf, x: tf.nn.embedding_lookup_sparse(
        x, tf.sparse_placeholder(tf.int64, [None, None]), None, combiner="mean"
    ),
    "lookup_sparse_weights": lambda tf, x: tf.nn.embedding_lookup_sparse(
        x, tf.sparse_placeholder(tf.int64), tf.sparse_placeholder(tf.float32), combiner="sqrtn"
    ),
    "safe_lookup_sparse": lambda tf, x: tf.nn.safe_embedding_lookup_sparse(
        x, tf.sparse_placeholder(tf.int64)
    ),
    "sparse_product": lambda tf, x: tf.sparse_tensor_dense_matmul(
        tf.sparse_placeholder(tf.float32, [5, 3]), x
    ),
    "sparse_dense": lambda tf, x: tf.sparse_tensor_to_dense(tf.SparseTensor([[0, 1]], x[0, :1], [2, 3])),
    "sparse_sum": lambda tf, x: tf.sparse_reduce_sum(tf.SparseTensor([[0, 1], [1, 0]], x[0, :2], [2, 3]), 0),
    "sparse_softmax": lambda tf, x: (
        tf.sparse_softmax(tf.SparseTensor([[0, 1], [1, 0]], x[0, :2], [2, 3])).values
    ),
    "sparse_add": lambda tf, x: (
        tf.sparse_add(
            tf.SparseTensor([[0, 1], [1, 0]], x[0, :2], [2, 3]), tf.SparseTensor([[0, 1]], x[1, :1], [2, 3])
        ).values
    ),
    "sparse_times_dense": lambda tf, x: (
        (tf.SparseTensor([[0, 1], [1, 0]], x[0, :2], [3, 4]) * tf.stop_gradient(x)).values
    ),
    "sparse_reorder": lambda tf, x: (
        tf.sparse_reorder(tf.SparseTensor([[1, 1], [0, 0]], x[0, :2], [3, 4])).values
    ),
    "sampled": lambda tf, x: tf.nn.sampled_softmax_loss(
        tf.zeros([9, 4]), tf.zeros([9]), tf.placeholder(tf.int64, [3, 1]), x, 4, 9
    ),
    "nce": lambda tf, x: tf.nn.nce_loss(
        tf.zeros([9, 4]), tf.zeros([9]), tf.placeholder(tf.int64, [3, 1]), x, 4, 9
    ),
}
for _name, _function in _PARTS.items():
    _add(f"{_name}_of_known", [[3, 4]], _function)
_BATCHED = (
    "gather_columns top_k segment_sum segment_mean segment_max unsorted_segment_sum"
    " sparse_segment_mean reverse cumsum strided cond moments lookup_sparse"
    " sparse_product dropout clip_norm elu dynamic_partition"
)
for _name in _BATCHED.split():
    _add(f"{_name}_of_batch", [[None, 4]], _PARTS[_name])

_IMAGES: dict[str, Callable[..., Any]] = {
    "conv2d": lambda tf, x, w: tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"),
    "conv2d_transpose": lambda tf, x, w: tf.nn.conv2d_transpose(x, w, [2, 16, 16, 3], [1, 2, 2, 1]),
    "depthwise": lambda tf, x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"),
    "separable": lambda tf, x, w: tf.nn.separable_conv2d(x, w, tf.ones([1, 1, 9, 2]), [1, 1, 1, 1], "SAME"),
    "atrous": lambda tf, x, w: tf.nn.atrous_conv2d(x, w, 2, "SAME"),
    "max_pool": lambda tf, x, w: tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME") + tf.reduce_sum(w),
    "avg_pool": lambda tf, x, w: tf.nn.avg_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME") + tf.reduce_sum(w),
    "resize": lambda tf, x, w: tf.image.resize_bilinear(x, [4, 4]) + tf.reduce_sum(w),
    "nearest": lambda tf, x, w: tf.image.resize_nearest_neighbor(x, [4, 4]) + tf.reduce_sum(w),
    "batch_norm": lambda tf, x, w: tf.nn.fused_batch_norm(x, w[0, 0, 0], w[0, 0, 1])[0],
    "depth_to_space": lambda tf, x, w: tf.space_to_depth(x, 2) + tf.reduce_sum(w),
    "crop": lambda tf, x, w: tf.image.crop_and_resize(x, [[0, 0, 1, 1.0]], [0], [3, 3]) + tf.reduce_sum(w),
    "lrn": lambda tf, x, w: tf.nn.local_response_normalization(x) + tf.reduce_sum(w),
    "dilation": lambda tf, x, w: tf.nn.dilation2d(x, w[:, :, 0], [1, 1, 1, 1], [1, 1, 1, 1], "SAME"),
}
for _name, _function in _IMAGES.items():
    _add(f"image_{_name}_known", [[2, 8, 8, 3], [3, 3, 3, 3]], _function)
    _add(f"image_{_name}_batch", [[None, 8, 8, 3], [3, 3, 3, 3]], _function)

# ---- updates

_OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "descent": lambda tf: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda tf: tf.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda tf: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda tf: tf.train.AdagradOptimizer(0.1),
    "adagrad_da": lambda tf: tf.train.AdagradDAOptimizer(0.1, tf.train.get_or_create_global_step()),
    "adadelta": lambda tf: tf.train.AdadeltaOptimizer(0.1),
    "adam": lambda tf: tf.train.AdamOptimizer(0.1),
    "ftrl": lambda tf: tf.train.FtrlOptimizer(0.1),
    "ftrl_shrinkage": lambda tf: tf.train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.1),
    "proximal": lambda tf: tf.train.ProximalGradientDescentOptimizer(0.1),
    "proximal_adagrad": lambda tf: tf.train.ProximalAdagradOptimizer(0.1),
    "rms": lambda tf: tf.train.RMSPropOptimizer(0.1),
    "centered_rms": lambda tf: tf.train.RMSPropOptimizer(0.1, centered=True),
    "decayed_adam": lambda tf: tf.contrib.opt.AdamWOptimizer(0.01, 0.1),
    "decayed_momentum": lambda tf: tf.contrib.opt.MomentumWOptimizer(0.01, 0.1, 0.9),
}


def _update(name: str, optimizer: Callable[..., Any], use_resource: bool, is_sparse: bool) -> None:
    def build(tf: Any) -> None:
        w = tf.get_variable("w", [5, 4], use_resource=use_resource)
        x = tf.gather(w, tf.placeholder(tf.int32, [3])) if is_sparse else w * 2.0
        step = tf.train.get_or_create_global_step()
        optimizer(tf).minimize(tf.reduce_sum(x), step)
        tf.random_uniform([2])

    PROGRAMS[f"updates_by_{name}"] = build


for _name, _optimizer in _OPTIMIZERS.items():
    for _kind, _flags in {"": (False, False), "_resource": (True, False), "_rows": (False, True)}.items():
        _update(_name + _kind, _optimizer, *_flags)
    _update(f"{_name}_resource_rows", _optimizer, True, True)
