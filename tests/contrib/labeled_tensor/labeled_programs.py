"""Programs of `tf.contrib.labeled_tensor`, which TensorFlow and flowstone are asked alike."""

import numpy as np

UNARY = [
    "abs",
    "acos",
    "asin",
    "atan",
    "ceil",
    "cos",
    "digamma",
    "erf",
    "erfc",
    "exp",
    "floor",
    "identity",
    "lgamma",
    "log",
    "neg",
    "reciprocal",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sqrt",
    "square",
    "tan",
    "tanh",
]
BINARY = [
    "add",
    "div",
    "equal",
    "greater",
    "greater_equal",
    "igamma",
    "igammac",
    "less",
    "less_equal",
    "maximum",
    "minimum",
    "mod",
    "mul",
    "not_equal",
    "pow",
    "squared_difference",
    "sub",
]
REDUCTIONS = ["reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum"]


def _shapes(lt, x, matrix, vector, coder):
    return {
        "transposed": lambda: lt.transpose(x, ["d", "b", "c"]),
        "reversed": lambda: lt.transpose(x),
        "expanded": lambda: lt.expand_dims(matrix, ["b", "new", "d", ("label", "only")]),
        "imposed": lambda: lt.impose_axis_order(matrix, ["d", "other", "b"]),
        "sliced": lambda: lt.slice(x, {"c": slice(0, 2), "d": 1}),
        "indexed": lambda: x[0, :, 1:],
        "selected": lambda: lt.select(x, {"c": "green"}),
        "selected_range": lambda: lt.select(x, {"c": slice("red", "green")}),
        "selected_list": lambda: lt.select(x, {"c": ["blue", "red"]}),
        "squeezed": lambda: lt.squeeze(lt.expand_dims(matrix, ["one", "b", "d"])),
        "not_squeezed": lambda: lt.squeeze(matrix),
        "reshaped": lambda: lt.reshape(x, ["c", "d"], [("e", 6), ("f", ["u", "v"])]),
        "joined": lambda: lt.reshape(x, ["c", "d"], ["e"]),
        "renamed": lambda: lt.rename_axis(x, "c", "colour"),
        "unpacked": lambda: lt.unpack(x, "c")[1],
        "packed": lambda: lt.pack([matrix, matrix], ("n", ["x", "y"]), 1),
        "concatenated": lambda: lt.concat([x, lt.reduce_sum(x, [("c", "sum")])], "c"),
        "tiled": lambda: lt.tile(matrix, {"b": 2}),
        "padded": lambda: lt.pad(matrix, {"b": (1, 0), "d": (0, 2)}),
        "padded_labels": lambda: lt.pad(x, {"c": (["x"], [])}, "SYMMETRIC"),
        "encoded": lambda: coder.encode(x),
        "decoded": lambda: coder.decode(lt.tanh(coder.encode(x))),
        "batch_of_one": lambda: lt.random_crop(matrix, {"b": 2, "d": 4}, seed=1),
    }


def _values(lt, tf, x, matrix, vector, mask):
    return {
        "broadcast": lambda: x + lt.transpose(matrix, ["b", "d"]),
        "scalar": lambda: 2.0 - x * 3.0,
        "operators": lambda: (-abs(x) / 2.0) % 3.0 + (+x) ** 2.0,
        "comparisons": lambda: ((x < 1.0) | (x >= 2.0)) & ~((x <= 1.5) ^ (x > 1.2)),
        "matmul": lambda: lt.matmul(matrix, vector),
        "matmul_turned": lambda: lt.matmul(matrix, lt.rename_axis(matrix, "d", "e")),
        "matmul_vectors": lambda: lt.matmul(vector, vector),
        "mapped": lambda: lt.map_fn(lambda row: lt.reduce_sum(row, "d") * 2.0, x),
        "folded": lambda: lt.foldl(lambda total, row: total + row, matrix, lt.zeros_like(vector)),
        "masked": lambda: lt.boolean_mask(matrix, mask),
        "where": lambda: lt.where(x > 1.5, x, lt.ones_like(x)),
        "cast": lambda: lt.cast(x, tf.int32),
        "constant": lambda: lt.constant(2.0, axes=[("a", 3), ("b", ["x"])]),
        "constant_by_name": lambda: lt.constant(np.ones([2, 2]), tf.float32, ["a", "b"]),
        "finite": lambda: lt.verify_tensor_all_finite(matrix, "not finite"),
        "any": lambda: lt.reduce_any(x > 2.5, ["c"]),
        "all": lambda: lt.reduce_all(x > 0.5, ["b", ("d", "every")]),
        "polygamma": lambda: lt.polygamma(lt.constant(1.0), x),
        "zeta": lambda: lt.zeta(x + 1.0, x),
        "logical_and": lambda: lt.logical_and(mask, mask),
        "logical_or": lambda: lt.logical_or(mask, lt.logical_not(mask)),
        "logical_xor": lambda: lt.logical_xor(mask, mask),
        "elu": lambda: lt.nn.elu(x - 2.0),
        "log_softmax": lambda: lt.nn.log_softmax(x),
        "relu": lambda: lt.nn.relu(x - 2.0),
        "relu6": lambda: lt.nn.relu6(x * 3.0),
        "softmax": lambda: lt.nn.softmax(x),
        "softplus": lambda: lt.nn.softplus(x),
        "sigmoid_cross_entropy": lambda: lt.nn.sigmoid_cross_entropy_with_logits(
            matrix, lt.ones_like(matrix)
        ),
    }


def _described(value, run):
    axes = [[axis.name, list(axis.labels) if axis.labels else axis.size] for axis in value.axes.values()]
    return [value.name, axes, np.round(np.asarray(run(value.tensor), np.float64), 4).tolist()]


def answers(tf):
    """For each program the name, the axes and the value of its result."""
    lt = tf.contrib.labeled_tensor
    found = {}
    with tf.Graph().as_default():
        numbers = np.linspace(0.1, 0.9, 24).reshape(2, 3, 4).astype(np.float32)
        x = lt.LabeledTensor(tf.constant(numbers * 3.3), ["b", ("c", ["red", "green", "blue"]), "d"])
        unit = lt.LabeledTensor(tf.constant(numbers), x.axes)
        matrix = lt.LabeledTensor(tf.constant(numbers[:, 1] + 1.0), ["b", "d"])
        vector = lt.LabeledTensor(tf.constant(numbers[0, 0]), ["d"])
        mask = lt.constant([True, False], axes=["b"])
        cases = _shapes(lt, x, matrix, vector, lt.ReshapeCoder(["c", "d"], ["e"]))
        cases.update(_values(lt, tf, x, matrix, vector, mask))
        for name in UNARY:
            cases[name] = lambda name=name: getattr(lt, name)(unit)
        for name in BINARY:
            cases[name] = lambda name=name: getattr(lt, name)(x, unit)
        for name in REDUCTIONS:
            cases[name] = lambda name=name: getattr(lt, name)(x, ["b", ("c", "all")])
        with tf.Session() as session:
            for name, case in cases.items():
                found[name] = _described(case(), session.run)
    return found
