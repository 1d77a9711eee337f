"""How random calls of the public functions are made: `RECIPES`, (function's name, recipe) pairs.

A recipe takes a `random_calls.Draw` and the name, and gives the text of a call; inputs are drawn on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Recipe = Callable[[Any, str], str]
RECIPES: list[tuple[str, Recipe]] = []


def calls(*names: str) -> Callable[[Recipe], Recipe]:
    """Adds a recipe for functions of `tf`, named in texts separated by spaces."""

    def add(recipe: Recipe) -> Recipe:
        RECIPES.extend((name, recipe) for text in names for name in text.split())
        return recipe

    return add


# ---- element by element


@calls(
    "abs acos acosh asin asinh atan atanh ceil conj cos cosh digamma erf erfc exp expm1 floor",
    "identity is_finite is_inf is_nan lgamma log log1p log_sigmoid logical_not negative ones_like rank",
    "reciprocal rint round rsqrt shape shape_n sigmoid sign sin sinh size sqrt square stop_gradient",
    "tan tanh zeros_like nn.relu nn.relu6 nn.elu nn.selu nn.swish nn.softplus nn.softsign nn.l2_loss",
    "nn.crelu nn.leaky_relu nn.zero_fraction bitwise.invert real imag angle to_float to_int32 to_double",
    "is_non_decreasing is_strictly_increasing global_norm add_n accumulate_n transpose squeeze lbeta",
)
def unary(d: Any, name: str) -> str:
    x = d.tensor(d.shape(), kind=d.one_of("normal", "normal", "uniform"), args=(-1, 1))
    listed = name in ("global_norm", "add_n", "accumulate_n", "shape_n")
    return f"tf.{name}([{x}])" if listed else f"tf.{name}({x})"


@calls(
    "add subtract multiply div divide truediv floordiv floormod mod truncatediv truncatemod div_no_nan",
    "realdiv floor_div maximum minimum pow squared_difference equal not_equal less less_equal greater",
    "greater_equal atan2 logical_and logical_or logical_xor bitwise.bitwise_and bitwise.bitwise_or",
    "bitwise.bitwise_xor bitwise.left_shift bitwise.right_shift complex igamma igammac zeta polygamma",
    "assert_equal",
)
def binary(d: Any, name: str) -> str:
    if name.startswith(("logical", "bitwise")) and d.chance(0.8):
        d.dtype = "bool" if name.startswith("logical") else d.one_of("int8", "int32", "uint16", "uint64")
    shape = d.shape()
    kind = d.one_of("normal", "positive")
    x = d.tensor(shape, kind=kind)
    y = (
        repr(d.one_of(2, 0, -1.5, 3.0, True))
        if d.chance(0.15)
        else d.tensor(d.broadcastable(shape), kind=kind)
    )
    return f"tf.{name}({x}, {y})"


@calls("+ - * / // % ** < <= > >= & | ^ @")
def operator(d: Any, name: str) -> str:
    shape = d.shape(2 if name == "@" else 0)
    x = d.tensor(shape)
    if d.chance(0.25):
        number = repr(d.one_of(2, 0, 1, -3, 1.5, True))
        return f"{number} {name} {x}" if d.flag() else f"{x} {name} {number}"
    return f"{x} {name} {d.tensor(d.broadcastable(shape))}"


@calls("where where_v2")
def where(d: Any, name: str) -> str:
    shape = d.shape()
    condition = d.tensor(d.broadcastable(shape) if name == "where_v2" else shape, "bool")
    if d.chance(0.2):
        return f"tf.{name}({condition})"
    x = d.tensor(shape)
    return f"tf.{name}({condition}, {x}, {d.tensor(d.broadcastable(shape) if name == 'where_v2' else shape)})"


@calls("cast saturate_cast bitcast")
def cast(d: Any, name: str) -> str:
    to = d.one_of(
        "float32", "float64", "int8", "int32", "uint8", "uint16", "int64", "bool", "complex64", "half"
    )
    return f"tf.{name}({d.tensor(d.shape())}, tf.{to})"


@calls("clip_by_value clip_by_norm clip_by_average_norm")
def clip(d: Any, name: str) -> str:
    shape = d.shape()
    x = d.tensor(shape)
    if name == "clip_by_value":
        low = d.tensor(d.broadcastable(shape)) if d.chance(0.4) else repr(d.one_of(-1, 0, 0.5))
        return f"tf.{name}({x}, {low}, {d.one_of(1, 2.0)})"
    axes = f", axes={d.axes(len(shape))}" if name == "clip_by_norm" and d.flag() else ""
    return f"tf.{name}({x}, {d.one_of(1.0, 0.5, 2)}{axes})"


# ---- reductions


@calls(
    "reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_all reduce_any reduce_logsumexp",
    "reduce_sum reduce_mean count_nonzero",
)
def reduction(d: Any, name: str) -> str:
    shape = d.shape()
    dtype = "bool" if name in ("reduce_all", "reduce_any") and d.chance(0.9) else None
    x, axes = d.tensor(shape, dtype), d.axes(len(shape))
    axes = d.values(axes) if axes not in (None, []) else repr(axes)
    keep = d.one_of("", "", ", keepdims=True", ", keepdims=False")
    return f"tf.{name}({x}{keep})" if axes == "None" and d.flag() else f"tf.{name}({x}, axis={axes}{keep})"


@calls("norm")
def norm(d: Any, name: str) -> str:
    shape = d.shape()
    order = d.one_of("'euclidean'", "'fro'", "1", "np.inf", "3", "0.5")
    axis = d.one_of("None", d.axis(len(shape)), (-2, -1), (0, 1))
    return f"tf.norm({d.tensor(shape)}, ord={order}, axis={axis}, keepdims={d.flag()})"


@calls("nn.moments nn.weighted_moments nn.sufficient_statistics nn.l2_normalize")
def statistics(d: Any, name: str) -> str:
    shape = d.shape()
    x, axes = d.tensor(shape), d.axes(len(shape))
    axes = [axes] if isinstance(axes, int) else axes
    if name == "nn.l2_normalize":
        return f"tf.{name}({x}, axis={axes})"
    weights = f", frequency_weights={d.tensor(d.broadcastable(shape), kind='positive')}"
    extra = weights if name == "nn.weighted_moments" else ""
    return f"tf.{name}({x}, axes={axes}{extra}, keep_dims={d.flag()})"


@calls("argmax argmin cumsum cumprod nn.softmax nn.log_softmax unique unique_with_counts")
def along_axis(d: Any, name: str) -> str:
    if name.startswith("unique"):
        return f"tf.{name}({d.tensor([d.integer(0, 5)])})"
    shape = d.shape()
    x = d.tensor(shape)
    axis = (
        "None"
        if d.chance(0.2)
        else d.values(d.axis(len(shape)))
        if "soft" not in name
        else d.axis(len(shape))
    )
    if name.startswith("cum"):
        axis = 0 if axis == "None" else axis
        return f"tf.{name}({x}, {axis}, exclusive={d.flag()}, reverse={d.flag()})"
    output = d.one_of("", ", output_type=tf.int32") if name.startswith("arg") else ""
    return f"tf.{name}({x}, axis={axis}{output})"


@calls("nn.top_k nn.in_top_k")
def ranking(d: Any, name: str) -> str:
    shape = d.shape(1)
    if name == "nn.in_top_k":
        rows, classes = d.size(), d.size()
        return f"tf.{name}({d.tensor([rows, classes])}, {d.indices([rows], classes)}, {d.integer(0, 3)})"
    return f"tf.{name}({d.tensor(shape)}, {d.values(d.integer(0, 3), 'int32')})"


@calls(
    "segment_sum segment_mean segment_max segment_min segment_prod unsorted_segment_sum unsorted_segment_max",
    "unsorted_segment_min unsorted_segment_prod",
)
def segments(d: Any, name: str) -> str:
    shape = d.shape(1)
    x = d.tensor(shape)
    if "unsorted" in name:
        ids = d.indices(shape[: d.integer(1, len(shape))], 3)
        return f"tf.{name}({x}, {ids}, {d.values(d.integer(0, 4))})"
    ids = d.values(sorted(d.integer(0, 3) for _ in range(shape[0])))
    return f"tf.{name}({x}, {ids if ids != '[]' else 'np.zeros([0], np.int32)'})"


@calls("bincount")
def counts(d: Any, name: str) -> str:
    count = d.integer(0, 5)
    first = d.indices([count], 4, "int32")
    if name == "":
        return f"tf.{name}({first}, {d.indices([count], 4, 'int32')}, {d.one_of('None', 4, 5)})"
    weights = d.tensor([count]) if d.flag() else "None"
    return f"tf.{name}({first}, {weights}, {d.one_of('None', 2, 6)}, {d.one_of('None', 3)})"


# ---- products


@calls("matmul matmul")
def matmul(d: Any, name: str) -> str:
    batch = d.shape(0, 2) if d.flag() else []
    m, k, n = d.size(), d.size(), d.size()
    flips = d.flag() and d.chance(0.5), d.flag() and d.chance(0.5)
    word = d.one_of("transpose", "transpose", "adjoint")
    x = d.tensor([*batch, *((k, m) if flips[0] else (m, k))])
    y = d.tensor([*d.broadcastable(batch), *((n, k) if flips[1] else (k, n))])
    return f"tf.matmul({x}, {y}, {word}_a={flips[0]}, {word}_b={flips[1]})"


@calls("einsum einsum")
def einsum(d: Any, name: str) -> str:
    sizes = dict(zip("ijklm", (d.size() for _ in range(5))))
    count = d.one_of(1, 2, 2, 2, 3)
    dots = [d.shape(0, 2) for _ in range(count)] if d.chance(0.3) else None
    if dots:
        dots = [d.broadcastable(dots[0]) for _ in range(count)]
    terms, names = [], []
    for item in range(count):
        letters = "".join(d.random.sample("ijkl", d.integer(0 if dots else 1, 3)))
        cut = d.integer(0, len(letters))
        terms.append(letters[:cut] + "..." + letters[cut:] if dots else letters)
        middle = dots[item] if dots else []
        shape = [sizes[x] for x in letters[:cut]] + middle + [sizes[x] for x in letters[cut:]]
        names.append(d.tensor(shape if dots else [sizes[x] for x in letters]))
    used = sorted({x for term in terms for x in term if x != "."})
    kept = "".join(d.random.sample(used, d.integer(0, len(used))))
    output = "" if not dots and d.chance(0.25) else "->" + (("..." if dots and d.chance(0.9) else "") + kept)
    return f"tf.einsum('{','.join(terms)}{output}', {', '.join(names)})"


@calls("tensordot")
def tensordot(d: Any, name: str) -> str:
    x, y = d.shape(0, 3), d.shape(0, 3)
    count = d.integer(0, min(len(x), len(y)))
    if d.flag():
        y[:count] = x[len(x) - count :]
        axes: Any = count
    else:
        first, second = d.random.sample(range(len(x)), count), d.random.sample(range(len(y)), count)
        for i, j in zip(first, second):
            y[j] = x[i]
        axes = [[i - len(x) if d.chance(0.3) else i for i in first], second]
    return f"tf.tensordot({d.tensor(x)}, {d.tensor(y)}, {d.values(axes) if axes != [[], []] else axes})"


@calls(
    "matrix_transpose matrix_diag matrix_diag_part diag diag_part trace",
    "matrix_band_part matrix_set_diag linalg.tensor_diag",
)
def matrix(d: Any, name: str) -> str:
    n = d.size()
    shape = [*d.shape(0, 2), n, n if d.chance(0.6) else d.size()]
    if name in ("diag", "matrix_diag", "linalg.tensor_diag"):
        shape = shape[: d.integer(0, 3)]
    if name == "diag_part":
        shape = shape[-2:] if d.flag() else [2, n, 2, n]
    x = d.tensor(shape)
    if name == "matrix_band_part":
        return f"tf.{name}({x}, {d.integer(-1, 3)}, {d.integer(-1, 2)})"
    if name == "matrix_set_diag":
        return f"tf.{name}({x}, {d.tensor([*shape[:-2], min(shape[-2:])])})"
    return f"tf.{name}({x})"


# ---- shapes and pieces


@calls("reshape broadcast_to fill tile zeros ones ensure_shape")
def shaping(d: Any, name: str) -> str:
    shape = d.shape()
    if name in ("zeros", "ones", "fill"):
        sizes = d.values(shape) if shape else "[]"
        return f"tf.fill({sizes}, {d.tensor([])})" if name == "fill" else f"tf.{name}({sizes}, tf.{d.dtype})"
    if name == "tile":
        return f"tf.tile({d.tensor(shape)}, {d.values([d.integer(0, 2) for _ in shape]) if shape else '[]'})"
    other = d.broadcastable(shape)
    if name == "broadcast_to":
        return f"tf.broadcast_to({d.tensor(other)}, {d.values(shape) if shape else '[]'})"
    if name == "ensure_shape":
        return f"tf.ensure_shape({d.tensor(shape)}, {[None if d.flag() else size for size in shape]})"
    target = d.random.sample(shape, len(shape)) if d.flag() else [1, *shape]
    if target and d.flag():
        target[d.integer(0, len(target) - 1)] = -1
    return f"tf.reshape({d.tensor(shape)}, {d.values(target) if target else '[]'})"


@calls("expand_dims squeeze reverse transpose unstack split")
def rearrange(d: Any, name: str) -> str:
    shape = d.shape(1)
    x, rank = d.tensor(shape), len(shape)
    if name == "expand_dims":
        return f"tf.{name}({x}, {d.values(d.axis(rank + 1))})"
    if name == "squeeze":
        ones = [axis for axis, size in enumerate(shape) if size == 1]
        return f"tf.{name}({x}, axis={d.one_of('None', ones, [d.axis(rank)])})"
    if name == "reverse":
        return f"tf.{name}({x}, {d.values([d.axis(rank)])})"
    if name == "transpose":
        return f"tf.{name}({x}, {d.values(d.random.sample(range(rank), rank))}, conjugate={d.flag()})"
    if name == "unstack":
        return f"tf.{name}({x}, axis={d.axis(rank)})"
    axis = d.axis(rank)
    size = shape[axis] if -rank <= axis < rank else 2
    sizes = d.one_of(d.one_of(1, 2, size or 1), d.values([1, max(size - 1, 0)]), [d.integer(0, size), -1])
    return f"tf.{name}({x}, {sizes}, axis={d.values(axis, 'int32')})"


@calls("concat stack parallel_stack meshgrid broadcast_dynamic_shape")
def join(d: Any, name: str) -> str:
    if name == "meshgrid":
        return (
            f"tf.meshgrid({d.tensor([d.size()])}, {d.tensor([d.size()])}, indexing='{d.one_of('xy', 'ij')}')"
        )
    if name == "broadcast_dynamic_shape":
        shape = d.shape()
        return f"tf.{name}({d.values(shape) if shape else '[]'}, {d.values(d.broadcastable(shape) or [1])})"
    shape = d.shape(1 if name == "concat" else 0)
    axis = d.axis(len(shape) + (name == "stack"))
    parts = []
    for _ in range(d.integer(1, 3)):
        own = list(shape)
        if name == "concat" and -len(own) <= axis < len(own):
            own[axis] = d.size()
        parts.append(d.tensor(own))
    text = f"tf.{name}([{', '.join(parts)}]"
    return text + (")" if name == "parallel_stack" else f", {d.values(axis) if name == 'concat' else axis})")


@calls("slice strided_slice getitem getitem")
def slicing(d: Any, name: str) -> str:
    shape = d.shape(1)
    x = d.tensor(shape)
    begin = [d.integer(0, size) for size in shape]
    if name == "slice":
        sizes = [d.one_of(-1, d.integer(0, max(size - b, 0))) for size, b in zip(shape, begin)]
        return f"tf.slice({x}, {d.values(begin)}, {d.values(sizes)})"
    if name == "strided_slice":
        ends = [d.integer(-1, size + 1) for size in shape]
        masks = (
            f"begin_mask={d.integer(0, 3)}, end_mask={d.integer(0, 3)}, shrink_axis_mask={d.one_of(0, 0, 1)}"
        )
        strides = d.values([d.one_of(1, 1, 2, -1) for _ in shape])
        return f"tf.strided_slice({x}, {d.values(begin)}, {d.values(ends)}, {strides}, {masks})"
    items = []
    for size in shape[: d.integer(1, len(shape))]:
        low, high = d.one_of("", d.integer(-size, size)), d.one_of("", d.integer(-size, size + 1))
        index = str(d.integer(-size, max(size - 1, 0)))
        items.append(d.one_of(f"{low}:{high}", f"{low}:{high}:{d.one_of(2, -1)}", index, "..."))
    if items.count("...") > 1:
        items = [item for item in items if item != "..."] or [":"]
    return f"{x}[{', '.join([*items, *d.one_of([], [], ['tf.newaxis'])])}]"


@calls("pad")
def pad(d: Any, name: str) -> str:
    shape = d.shape()
    mode = d.one_of("CONSTANT", "CONSTANT", "REFLECT", "SYMMETRIC")
    amounts = [[d.integer(0, 2), d.integer(0, 2)] for _ in shape]
    text = d.values(amounts) if shape else "np.zeros([0, 2], np.int32)"
    return f"tf.pad({d.tensor(shape)}, {text}, '{mode}')"


@calls("gather gather gather_nd batch_gather nn.embedding_lookup boolean_mask one_hot scatter_nd")
def gathering(d: Any, name: str) -> str:
    shape = d.shape(1)
    rank = len(shape)
    if name == "one_hot":
        values = f", {d.tensor([])}, {d.tensor([])}" if d.flag() else d.one_of("", f", dtype=tf.{d.dtype}")
        axis = f", axis={d.axis(rank + 1)}" if d.flag() else ""
        return f"tf.one_hot({d.indices(shape, 3)}, {d.values(d.integer(0, 3), 'int32')}{values}{axis})"
    if name == "boolean_mask":
        axis = d.integer(0, rank - 1)
        masked = shape[axis : d.integer(axis + 1, rank)]
        return f"tf.boolean_mask({d.tensor(shape)}, {d.tensor(masked, 'bool')}, axis={axis})"
    if name == "gather_nd":
        depth = d.integer(0, rank)
        indices = d.indices([*d.shape(1, 2), depth], min(shape[:depth] or [1]))
        return f"tf.gather_nd({d.tensor(shape)}, {indices})"
    if name == "scatter_nd":
        outer, depth = d.shape(1, 2), d.integer(1, rank)
        indices = d.indices([*outer, depth], min(shape[:depth]), "int32")
        return f"tf.scatter_nd({indices}, {d.tensor([*outer, *shape[depth:]])}, {d.values(shape, 'int32')})"
    if name == "batch_gather":
        return f"tf.batch_gather({d.tensor(shape)}, {d.indices([*shape[:-1], d.size()], shape[-1])})"
    if name == "nn.embedding_lookup":
        norm = d.one_of("", ", max_norm=1.0")
        return f"tf.{name}({d.tensor(shape)}, {d.indices(d.shape(0, 2), shape[0])}{norm})"
    axis = d.axis(rank)
    limit = shape[axis] if -rank <= axis < rank else 1
    if d.chance(0.3) and axis >= 0:
        batch = d.integer(0, axis)
        ids = d.indices([*shape[:batch], *d.shape(0, 2)], limit)
        return f"tf.gather({d.tensor(shape)}, {ids}, axis={axis}, batch_dims={batch})"
    return f"tf.gather({d.tensor(shape)}, {d.indices(d.shape(0, 2), limit)}, axis={d.values(axis)})"


@calls("range eye sequence_mask invert_permutation reverse_sequence")
def grids(d: Any, name: str) -> str:
    if name == "range":
        step = d.one_of(1, 2, -1, 0)
        return f"tf.range({d.values(d.integer(-2, 2))}, {d.values(d.integer(-2, 6))}, {step})"
    if name == "eye":
        batch = d.one_of("None", [2], [0, 3])
        return f"tf.eye({d.values(d.size())}, {d.one_of('None', 2)}, {batch}, tf.{d.dtype})"
    if name == "sequence_mask":
        most = d.one_of("None", 4, 0)
        return f"tf.sequence_mask({d.indices(d.shape(0, 3), 4)}, {most}, tf.{d.one_of('bool', d.dtype)})"
    if name == "invert_permutation":
        count = d.integer(0, 4)
        order = d.values(d.random.sample(range(count), count)) if count else "np.zeros([0], np.int32)"
        return f"tf.{name}({order})"
    shape = d.shape(2)
    batch, axis = d.random.sample(range(len(shape)), 2)
    lengths = d.indices([shape[batch]], shape[axis] + 1)
    return f"tf.{name}({d.tensor(shape)}, {lengths}, seq_axis={axis}, batch_axis={batch})"


@calls("space_to_batch_nd batch_to_space_nd space_to_batch batch_to_space space_to_depth depth_to_space")
def blocks(d: Any, name: str) -> str:
    size = d.one_of(1, 2, 2, 3)
    h, w, n, c = (size * d.integer(0 if d.chance(0.2) else 1, 2) for _ in range(4))
    if name.endswith("depth"):
        return f"tf.{name}({d.tensor([n, h, w, c])}, {size})"
    if name == "depth_to_space":
        return f"tf.{name}({d.tensor([n, h, w, c * size])}, {size})"
    margins = d.values(d.one_of([[0, 0], [0, 0]], [[1, size - 1], [0, size]], [[0, size], [0, 0]]))
    batch = n * size if name.startswith("batch") else n
    x = d.tensor([batch, h, w, c])
    if name.endswith("_nd"):
        return f"tf.{name}({x}, {d.values([size, size])}, {margins})"
    return f"tf.{name}({x}, {margins}, block_size={size})"


@calls("dynamic_partition dynamic_stitch setdiff1d sparse_to_dense nn.embedding_lookup_sparse")
def parts(d: Any, name: str) -> str:
    shape = d.shape(1)
    if name == "dynamic_partition":
        where = d.indices(shape[: d.integer(0, len(shape))], 2, "int32")
        return f"tf.{name}({d.tensor(shape)}, {where}, 2)"
    if name == "dynamic_stitch":
        first, second = d.integer(0, 3), d.integer(0, 3)
        inner = shape[1:]
        data = f"[{d.tensor([first, *inner])}, {d.tensor([second, *inner])}]"
        return f"tf.{name}([{d.indices([first], 4, 'int32')}, {d.indices([second], 4, 'int32')}], {data})"
    if name == "setdiff1d":
        return f"tf.{name}({d.tensor([d.integer(0, 4)])}, {d.tensor([d.integer(0, 4)])})"
    if name == "sparse_to_dense":
        return f"tf.{name}({d.values([0, 2])}, {d.values([3])}, {d.tensor(d.one_of([2], []))})"
    sparse = "tf.SparseTensor([[0, 0], [0, 1], [2, 0]], np.array([0, 1, 1], np.int64), [3, 2])"
    weights = d.one_of("None", "tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [0.5, 2.0, 1.0], [3, 2])")
    combiner = d.one_of("sum", "mean", "sqrtn")
    return f"tf.{name}({d.tensor([2, *shape[1:]])}, {sparse}, {weights}, combiner='{combiner}')"


# ---- neural networks


@calls(
    "nn.softmax_cross_entropy_with_logits_v2 nn.softmax_cross_entropy_with_logits",
    "nn.sparse_softmax_cross_entropy_with_logits nn.sigmoid_cross_entropy_with_logits",
    "nn.weighted_cross_entropy_with_logits nn.log_poisson_loss",
)
def losses(d: Any, name: str) -> str:
    shape = d.shape(1, 3)
    logits = d.tensor(shape)
    if name.startswith("nn.sparse"):
        return f"tf.{name}(labels={d.indices(shape[:-1], shape[-1])}, logits={logits})"
    labels = d.tensor(shape, kind="positive")
    if name == "nn.log_poisson_loss":
        return f"tf.{name}({labels}, {logits}, {d.flag()})"
    weight = f", pos_weight={d.one_of(2, 0.5)}" if name.startswith("nn.weighted") else ""
    return f"tf.{name}(labels={labels}, logits={logits}{weight})"


@calls("nn.conv2d nn.depthwise_conv2d nn.atrous_conv2d nn.dilation2d nn.convolution nn.conv2d_transpose")
def convolution(d: Any, name: str) -> str:
    d.dtype = d.dtype if "float" in d.dtype else d.one_of("float32", "float64")
    n, h, w = d.size(), d.integer(2, 5), d.integer(2, 5)
    c, k, kh, kw = d.integer(1, 2), d.integer(1, 2), d.integer(1, 3), d.integer(1, 3)
    padding, stride = d.one_of("SAME", "VALID"), d.integer(1, 2)
    x = d.tensor([n, h, w, k if name.endswith("transpose") else c])
    f = d.tensor([kh, kw, c] if name == "nn.dilation2d" else [kh, kw, c, k])
    if name == "nn.atrous_conv2d":
        return f"tf.{name}({x}, {f}, {d.integer(1, 2)}, '{padding}')"
    if name == "nn.dilation2d":
        return f"tf.{name}({x}, {f}, [1, {stride}, {stride}, 1], [1, 1, 1, 1], '{padding}')"
    if name == "nn.convolution":
        return f"tf.{name}({x}, {f}, '{padding}', dilation_rate=[{d.integer(1, 2)}, 1])"
    if name == "nn.conv2d_transpose":
        rows = [
            size * stride + (0 if padding == "SAME" else max(k - stride, 0)) for size, k in ((h, kh), (w, kw))
        ]
        return f"tf.{name}({x}, {f}, {[n, *rows, c]}, [1, {stride}, {stride}, 1], '{padding}')"
    return f"tf.{name}({x}, {f}, [1, {stride}, {stride}, 1], '{padding}')"


@calls("nn.max_pool nn.avg_pool nn.pool nn.max_pool_with_argmax nn.conv1d nn.max_pool3d nn.avg_pool3d")
def pooling(d: Any, name: str) -> str:
    n, h, w, c = d.size(), d.integer(2, 5), d.integer(2, 5), d.integer(1, 2)
    padding, stride, k = d.one_of("SAME", "VALID"), d.integer(1, 2), d.integer(1, 3)
    if name == "nn.conv1d":
        d.dtype = d.dtype if "float" in d.dtype else "float32"
        return f"tf.{name}({d.tensor([n, w, c])}, {d.tensor([k, c, 2])}, {stride}, '{padding}')"
    if name.endswith("3d"):
        window, strides = [1, k, k, 2, 1], [1, stride, stride, 1, 1]
        return f"tf.{name}({d.tensor([n, h, w, 2, c])}, {window}, {strides}, '{padding}')"
    x = d.tensor([n, h, w, c])
    if name == "nn.pool":
        kind, rate = d.one_of("MAX", "AVG"), d.integer(1, 2)
        return f"tf.{name}({x}, [{k}, {k}], '{kind}', '{padding}', dilation_rate=[{rate}, {rate}])"
    return f"tf.{name}({x}, [1, {k}, {k}, 1], [1, {stride}, {stride}, 1], '{padding}')"


@calls(
    "nn.bias_add nn.batch_normalization nn.fused_batch_norm nn.fused_batch_norm nn.lrn nn.xw_plus_b",
    "nn.relu_layer",
)
def layers(d: Any, name: str) -> str:
    shape = [d.size() for _ in range(d.integer(2, 4))]
    channels = shape[-1]
    if name in ("nn.xw_plus_b", "nn.relu_layer"):
        return f"tf.{name}({d.tensor(shape[:2])}, {d.tensor([shape[1], 2])}, {d.tensor([2])})"
    if name == "nn.bias_add":
        return f"tf.{name}({d.tensor(shape)}, {d.tensor([channels])})"
    if name == "nn.lrn":
        return f"tf.{name}({d.tensor([2, 2, 2, d.size()])}, {d.integer(0, 3)}, alpha={d.one_of(1, 0.5)})"
    if name == "nn.batch_normalization":
        vectors = ", ".join(d.tensor([channels], kind="positive") for _ in range(4))
        return f"tf.{name}({d.tensor(shape)}, {vectors}, 0.01)"
    d.dtype = "float32" if d.chance(0.8) else d.dtype
    channels, training = d.size(), d.flag()
    x = d.tensor([d.size(), d.size(), d.size(), channels])
    vectors = ", ".join(d.tensor([channels], kind="positive") for _ in range(2 if training else 4))
    return f"tf.{name}({x}, {vectors}, is_training={training})"


@calls("image.resize_bilinear image.resize_nearest_neighbor extract_image_patches")
def images(d: Any, name: str) -> str:
    x = d.tensor([d.size(), d.integer(1, 4), d.integer(1, 4), d.integer(1, 2)])
    if name.startswith("image"):
        return f"tf.{name}({x}, {d.values([d.integer(1, 4), d.integer(1, 4)], 'int32')}, {d.flag()})"
    k, stride = d.integer(1, 2), d.integer(1, 2)
    padding = d.one_of("SAME", "VALID")
    return f"tf.{name}({x}, [1, {k}, {k}, 1], [1, {stride}, {stride}, 1], [1, 1, 1, 1], '{padding}')"


# ---- derivatives and functions of rows


@calls("hessians gradients map_fn scan foldl")
def higher(d: Any, name: str) -> str:
    x = d.tensor(d.shape(0 if name in ("hessians", "gradients") else 1))
    if name in ("hessians", "gradients"):
        body = d.one_of(
            "tf.reduce_sum({0} ** 3)", "tf.sin({0})", "tf.reduce_sum(tf.exp({0}) * {0})", "tf.norm({0})"
        )
        return f"tf.{name}({body.format(x)}, {x})"
    body = "lambda r: r * 2" if name == "map_fn" else "lambda s, r: s + r"
    return f"tf.{name}({body}, {x})"
