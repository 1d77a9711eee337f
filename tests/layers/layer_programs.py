"""Programs with layers of `tf.layers`, run alike by flowstone and, for the golden files, by TensorFlow 1.15.

Each is a function of the module ``tf`` that builds a graph and returns tensors. `graph_lines` tells the nodes
that these and the update ops need, variables, shapes and collections. `run` gives values and gradients before
training and after three steps of it, with variables set to values that depend on name and shape alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # Python 3.7, on which TensorFlow 1.15 runs, cannot evaluate it
    Build = Callable[[Any], Any]

PROGRAMS: dict[str, Build] = {}
# Those that TensorFlow's CPU kernels refuse: channels come first. Only graphs are compared.
GRAPHS_ONLY: list[str] = []
STEPS = 3

# program -> {node: why it, or what is below it, is there in one of the two only}.
_FIRST = "channels come first in the op too, where TensorFlow's CPU has to move them last"
DIFFERENCES: dict[str, dict[str, str]] = {
    "conv2d_transpose_channels_first": {
        f"conv2d_transpose/{node}": _FIRST
        for node in (
            "transpose",
            "transpose_1",
            "stack_1",
            "strided_slice_3",
            "strided_slice_4",
            "strided_slice_5",
            "strided_slice_6",
        )
    },
    **{
        f"{kind}_pooling{rank}d_channels_first": {
            f"{kind}_pooling{rank}d/{node}": _FIRST for node in ("transpose", "transpose_1")
        }
        for kind in ("max", "average")
        for rank in (1, 3)
    },
}


def program(function: Build) -> Build:
    """Adds a program to the table."""
    PROGRAMS[function.__name__] = function
    return function


def graph_only(function: Build) -> Build:
    """Adds a program of which only the graph is compared."""
    GRAPHS_ONLY.append(function.__name__)
    return program(function)


def some(tf: Any, *shape: Any, dtype: str = "float32") -> Any:
    """An input x; sizes of None are not known to the graph, and are 4 in the step."""
    sizes = [4 if size is None else size for size in shape]
    values = np.sin(np.arange(np.prod(sizes)) * 0.7).reshape(sizes).astype(dtype)
    return tf.placeholder_with_default(values, shape, name="x")


def told(tf: Any, value: bool) -> Any:
    """A bool that the graph does not know."""
    return tf.placeholder_with_default(np.array(value), [], name="training")


def squares(tf: Any) -> Callable[[Any], Any]:
    return lambda w: 0.01 * tf.reduce_sum(w * w, name="squares")


# ---- dense


@program
def dense(tf: Any) -> Any:
    return tf.layers.dense(some(tf, None, 5), 3, activation=tf.nn.relu)


@program
def dense_of_sequences(tf: Any) -> Any:
    return tf.layers.dense(some(tf, None, 3, 5), 2, activation=tf.tanh)


@program
def dense_of_known_sequences(tf: Any) -> Any:
    return tf.layers.dense(some(tf, 2, 3, 5), 2)


@program
def dense_layers(tf: Any) -> Any:
    x = some(tf, None, 5)
    with tf.variable_scope("net", regularizer=squares(tf), initializer=tf.constant_initializer(0.5)):
        x = tf.layers.dense(x, 4, tf.nn.relu)
        x = tf.layers.dense(x, 4, use_bias=False)
        return tf.layers.dense(x, 2, name="logits")


@program
def dense_regularized(tf: Any) -> Any:
    return tf.layers.dense(
        some(tf, None, 5),
        3,
        kernel_regularizer=squares(tf),
        bias_regularizer=squares(tf),
        activity_regularizer=squares(tf),
        bias_initializer=tf.ones_initializer(),
    )


@program
def dense_reused(tf: Any) -> Any:
    x = some(tf, None, 3)
    first = tf.layers.dense(x, 3, name="shared", kernel_regularizer=squares(tf))
    return [first, tf.layers.dense(first, 3, name="shared", reuse=True, kernel_regularizer=squares(tf))]


@program
def dense_called_twice(tf: Any) -> Any:
    layer = tf.layers.Dense(3, name="twice", trainable=False)
    return layer(layer(some(tf, None, 3)))


@program
def dense_by_names(tf: Any) -> Any:
    return tf.layers.dense(some(tf, None, 5), 3, "sigmoid", kernel_initializer="he_normal")


@program
def dense_in_float64(tf: Any) -> Any:
    return tf.layers.dense(some(tf, None, 5, dtype="float64"), 3)


# ---- convolutions


@program
def conv1d(tf: Any) -> Any:
    return tf.layers.conv1d(some(tf, None, 9, 3), 4, 3, strides=2, activation=tf.nn.relu)


@program
def conv1d_causal(tf: Any) -> Any:
    return tf.layers.conv1d(some(tf, None, 8, 3), 4, 3, padding="causal", dilation_rate=2)


@graph_only
def conv1d_channels_first(tf: Any) -> Any:
    return tf.layers.conv1d(some(tf, None, 3, 8), 4, 3, data_format="channels_first")


@program
def conv2d(tf: Any) -> Any:
    return tf.layers.conv2d(some(tf, None, 7, 7, 3), 4, 3, padding="SAME", activation=tf.nn.relu)


@program
def conv2d_strided(tf: Any) -> Any:
    x = some(tf, 2, None, None, 3)
    return tf.layers.conv2d(x, 4, (2, 3), strides=[1, 2], use_bias=False, name="c")


@program
def conv2d_dilated(tf: Any) -> Any:
    return tf.layers.conv2d(some(tf, None, 8, 8, 3), 4, 3, dilation_rate=2)


@graph_only
def conv2d_channels_first(tf: Any) -> Any:
    return tf.layers.conv2d(some(tf, None, 3, 8, 8), 4, 3, 2, "same", "channels_first")


@program
def conv2d_regularized(tf: Any) -> Any:
    layer = tf.layers.Conv2D(
        4,
        3,
        kernel_regularizer=squares(tf),
        activity_regularizer=squares(tf),
        kernel_constraint=tf.abs,
        bias_constraint=tf.abs,
    )
    return layer.apply(some(tf, None, 6, 6, 2))


@program
def conv3d(tf: Any) -> Any:
    return tf.layers.conv3d(some(tf, None, 5, 5, 4, 2), 3, 2, activation=tf.nn.elu)


@graph_only
def conv3d_channels_first(tf: Any) -> Any:
    return tf.layers.conv3d(some(tf, None, 2, 5, 5, 4), 3, 2, data_format="channels_first")


@program
def separable_conv1d(tf: Any) -> Any:
    return tf.layers.separable_conv1d(some(tf, None, 8, 3), 4, 3, strides=2, activation=tf.nn.relu)


@program
def separable_conv1d_causal(tf: Any) -> Any:
    return tf.layers.separable_conv1d(some(tf, None, 8, 3), 4, 3, padding="causal", depth_multiplier=2)


@graph_only
def separable_conv1d_channels_first(tf: Any) -> Any:
    return tf.layers.separable_conv1d(some(tf, None, 3, 8), 4, 3, data_format="channels_first")


@program
def separable_conv2d(tf: Any) -> Any:
    return tf.layers.separable_conv2d(
        some(tf, None, 7, 7, 3),
        4,
        3,
        strides=2,
        padding="same",
        depth_multiplier=2,
        activation=tf.nn.relu,
        depthwise_regularizer=squares(tf),
        pointwise_regularizer=squares(tf),
    )


@program
def separable_conv2d_dilated(tf: Any) -> Any:
    return tf.layers.separable_conv2d(some(tf, None, 8, 8, 3), 4, 3, dilation_rate=2, use_bias=False)


@graph_only
def separable_conv2d_channels_first(tf: Any) -> Any:
    return tf.layers.separable_conv2d(some(tf, None, 3, 8, 8), 4, 3, data_format="channels_first")


@program
def conv2d_transpose(tf: Any) -> Any:
    return tf.layers.conv2d_transpose(some(tf, None, 4, 4, 3), 4, 3, strides=2, activation=tf.nn.relu)


@program
def conv2d_transpose_of_any_size(tf: Any) -> Any:
    x = some(tf, None, None, None, 3)
    return tf.layers.conv2d_transpose(x, 2, (3, 2), (2, 3), padding="same", use_bias=False)


@graph_only
def conv2d_transpose_channels_first(tf: Any) -> Any:
    return tf.layers.conv2d_transpose(some(tf, None, 3, 4, 4), 4, 3, 2, data_format="channels_first")


@program
def conv3d_transpose(tf: Any) -> Any:
    return tf.layers.conv3d_transpose(some(tf, 2, 3, 3, 2, 3), 2, 3, strides=2)


@graph_only
def conv3d_transpose_channels_first(tf: Any) -> Any:
    return tf.layers.conv3d_transpose(some(tf, 2, 3, 3, 3, 2), 2, 3, 2, data_format="channels_first")


# ---- pooling


def pooling(kind: str, rank: int, first: bool) -> Build:
    def build(tf: Any) -> Any:
        spatial = [7, 6, 5][:rank]
        shape = [None, 3, *spatial] if first else [None, *spatial, 3]
        layout = "channels_first" if first else "channels_last"
        return getattr(tf.layers, f"{kind}_pooling{rank}d")(
            some(tf, *shape), 3, 2, "same" if first else "valid", layout
        )

    build.__name__ = f"{kind}_pooling{rank}d" + ("_channels_first" if first else "")
    return build


for _kind in ("max", "average"):
    for _rank in (1, 2, 3):
        program(pooling(_kind, _rank, False))
        graph_only(pooling(_kind, _rank, True))


@program
def pooling_by_classes(tf: Any) -> Any:
    x = some(tf, 2, 6, 6, 3)
    return [
        tf.layers.MaxPooling2D((2, 3), [2, 1], padding="Same", name="m")(x),
        tf.layers.AveragePooling2D(2, 2)(x),
    ]


# ---- batch normalisation


def normalize(tf: Any, *shape: Any, **arguments: Any) -> Any:
    return tf.layers.batch_normalization(some(tf, *shape), **arguments)


@program
def batch_normalization(tf: Any) -> Any:
    return normalize(tf, None, 5, training=True)


@program
def batch_normalization_in_inference(tf: Any) -> Any:
    return normalize(tf, None, 5)


@program
def batch_normalization_when_told(tf: Any) -> Any:
    return normalize(tf, None, 5, training=told(tf, True), momentum=0.8)


@program
def batch_normalization_when_told_not_to(tf: Any) -> Any:
    return normalize(tf, None, 5, training=told(tf, False))


@program
def batch_normalization_of_images(tf: Any) -> Any:
    return normalize(tf, None, 4, 4, 3, training=True, momentum=0.9)


@program
def batch_normalization_of_images_in_inference(tf: Any) -> Any:
    return normalize(tf, None, 4, 4, 3, epsilon=0.01)


@program
def batch_normalization_of_images_when_told(tf: Any) -> Any:
    return normalize(tf, None, 4, 4, 3, training=told(tf, True))


@program
def batch_normalization_of_images_when_told_not_to(tf: Any) -> Any:
    return normalize(tf, None, 4, 4, 3, training=told(tf, False))


@graph_only
def batch_normalization_channels_first(tf: Any) -> Any:
    return normalize(tf, None, 3, 4, 4, axis=1, training=True)


@program
def batch_normalization_not_fused(tf: Any) -> Any:
    return normalize(tf, None, 4, 4, 3, training=True, fused=False, scale=False)


@program
def batch_normalization_alone(tf: Any) -> Any:
    return normalize(tf, None, 4, 4, 3, training=True, center=False, scale=False)


@program
def batch_normalization_without_center(tf: Any) -> Any:
    return normalize(tf, None, 5, training=True, center=False)


@program
def batch_normalization_of_an_inner_axis(tf: Any) -> Any:
    return normalize(tf, None, 3, 5, axis=1, training=True)


@program
def batch_normalization_of_an_inner_axis_when_told(tf: Any) -> Any:
    return normalize(tf, None, 3, 5, axis=1, training=told(tf, True))


@program
def batch_normalization_of_two_axes(tf: Any) -> Any:
    return normalize(tf, None, 3, 5, axis=[1, 2], training=True)


@program
def batch_normalization_of_volumes(tf: Any) -> Any:
    return normalize(tf, None, 2, 3, 2, 3, training=True)


@program
def batch_normalization_frozen(tf: Any) -> Any:
    return normalize(tf, None, 4, 4, 3, training=True, trainable=False)


@program
def batch_normalization_in_virtual_batches(tf: Any) -> Any:
    return normalize(tf, None, 3, 3, 2, virtual_batch_size=2, training=True)


@program
def batch_normalization_in_virtual_batches_in_inference(tf: Any) -> Any:
    return normalize(tf, None, 3, 3, 2, virtual_batch_size=2)


@program
def batch_normalization_adjusted(tf: Any) -> Any:
    def adjustment(shape: Any) -> Any:
        return tf.fill([1, 5], 1.5), tf.fill([1, 5], 0.5)

    return normalize(tf, None, 5, adjustment=adjustment, training=True)


@program
def batch_normalization_with_adjustment(tf: Any) -> Any:
    def adjustment(shape: Any) -> Any:
        return tf.fill([1, 5], 1.5), tf.fill([1, 5], 0.5)

    return normalize(tf, None, 5, adjustment=adjustment, training=told(tf, False), scale=False)


@program
def batch_normalization_regularized(tf: Any) -> Any:
    return normalize(tf, None, 5, training=True, beta_regularizer=squares(tf), gamma_regularizer=squares(tf))


@program
def batch_normalization_in_float16(tf: Any) -> Any:
    return tf.layers.batch_normalization(some(tf, None, 5, dtype="float16"), training=True)


@program
def batch_renormalization(tf: Any) -> Any:
    return normalize(tf, None, 5, renorm=True, training=True)


@program
def batch_renormalization_in_inference(tf: Any) -> Any:
    return normalize(tf, None, 5, renorm=True)


@program
def batch_renormalization_when_told(tf: Any) -> Any:
    clipping = {"rmin": 0.5, "rmax": 2.0, "dmax": 1.0}
    return normalize(
        tf, None, 5, renorm=True, renorm_clipping=clipping, training=told(tf, True), renorm_momentum=0.7
    )


@program
def batch_renormalization_in_virtual_batches(tf: Any) -> Any:
    return normalize(tf, None, 5, renorm=True, virtual_batch_size=2, training=True)


# ---- the rest


@program
def flatten(tf: Any) -> Any:
    return tf.layers.flatten(some(tf, None, 3, 2))


@program
def flatten_of_any_size(tf: Any) -> Any:
    return [tf.layers.flatten(some(tf, None, None, 2)), tf.layers.flatten(tf.zeros([2, 3, 4]))]


@program
def flatten_of_vectors(tf: Any) -> Any:
    return tf.layers.Flatten(name="f")(some(tf, None))


@program
def flatten_channels_first(tf: Any) -> Any:
    return tf.layers.flatten(some(tf, None, 3, 2, 2), data_format="channels_first")


@program
def dropout_in_inference(tf: Any) -> Any:
    return tf.layers.dropout(some(tf, None, 3), 0.3)


@program
def network(tf: Any) -> Any:
    x = some(tf, None, 8, 8, 2)
    with tf.variable_scope("net"):
        for i, filters in enumerate([4, 6]):
            with tf.variable_scope(f"block{i}"):
                x = tf.layers.conv2d(x, filters, 3, padding="same", use_bias=False)
                x = tf.nn.relu(tf.layers.batch_normalization(x, training=told(tf, True), momentum=0.9))
                x = tf.layers.max_pooling2d(x, 2, 2)
        x = tf.layers.dense(tf.layers.flatten(x), 5, tf.nn.relu, kernel_regularizer=squares(tf))
        return tf.layers.dense(tf.layers.dropout(x), 3, name="logits")


# ---- what is compared

COLLECTIONS = ["trainable_variables", "variables", "update_ops", "regularization_losses", "losses"]


def flat(values: Any) -> list[Any]:
    return list(values) if isinstance(values, (list, tuple)) else [values]


def graph_lines(tf: Any, name: str, programs: Any = PROGRAMS, collections: Any = COLLECTIONS) -> list[str]:
    """The outputs' static shapes; variables; collections in order; needed nodes, sorted."""
    with tf.Graph().as_default():
        outputs = flat(programs[name](tf))
        lines = ["shapes " + " ".join(str(output.shape.as_list()) for output in outputs)]
        lines += [f"variable {v.op.name} {v.dtype.base_dtype.name} {v.shape}" for v in tf.global_variables()]
        for collection in collections:
            items = [item.name for item in tf.get_collection(collection)]
            lines += [f"collection {collection} {' '.join(items)}"] if items else []
        pending = [output.op for output in outputs]
        for item in tf.get_collection("update_ops") + tf.get_collection("regularization_losses"):
            pending.append(getattr(item, "op", item))
        needed: set[Any] = set()
        while pending:
            op = pending.pop()
            if op not in needed:
                needed.add(op)
                pending += [x.op for x in op.inputs] + list(op.control_inputs)
        return lines + sorted(f"node {op.name} {op.type}" for op in needed)


def value_of(variable: Any) -> np.ndarray:
    """A value that depends on name and shape alone; variances are positive."""
    shape = variable.shape.as_list()
    name = variable.op.name
    values = np.cos(np.arange(np.prod(shape, dtype=int)) * 0.9 + len(name)).reshape(shape)
    positive = "variance" in name or "stddev" in name or "gamma" in name
    return (values * 0.3 + (1.5 if positive else 0.0)).astype(variable.dtype.base_dtype.as_numpy_dtype)


def condensed(value: np.ndarray) -> np.ndarray:
    """Three numbers that tell an array from others: means under different weights."""
    flat_value = np.asarray(value, np.float64).ravel()
    count = max(flat_value.size, 1)
    return np.array([flat_value @ np.cos(np.arange(count) * rate) / count for rate in (0.0, 0.1, 1.3)])


def run(tf: Any, name: str, programs: Any = PROGRAMS) -> dict[str, np.ndarray]:
    """Outputs, condensed gradients, and after training condensed outputs and variables, by name."""
    with tf.Graph().as_default() as graph:
        outputs = flat(programs[name](tf))
        loss = tf.add_n([weighted_mean(tf, x) for x in outputs])
        losses = [tf.cast(each, tf.float64) for each in tf.get_collection("regularization_losses")]
        loss = tf.add_n([loss, *losses])
        trained = tf.trainable_variables()
        slopes = tf.gradients(loss, [graph.get_tensor_by_name("x:0"), *trained])
        slopes = [tf.convert_to_tensor(slope) for slope in slopes]  # those of rows, too
        update = tf.group(*tf.get_collection("update_ops"))
        with tf.Session() as session:
            for variable in tf.global_variables():
                variable.load(value_of(variable), session)
            values = session.run(outputs)
            gradients = session.run(slopes)
            for _ in range(STEPS):
                session.run(update)
                old, change = session.run([trained, slopes[1:]])  # a step of its own: nothing moves meanwhile
                for variable, value, slope in zip(trained, old, change):
                    variable.load(value - 0.1 * slope, session)
            after = session.run(outputs)
            variables = session.run(tf.global_variables())
    found = {f"output/{i}": value for i, value in enumerate(values)}
    found.update({f"gradient/{i}": condensed(value) for i, value in enumerate(gradients)})
    found.update({f"after/{i}": condensed(value) for i, value in enumerate(after)})
    found.update({f"variable/{i}": condensed(value) for i, value in enumerate(variables)})
    return found


def weighted_mean(tf: Any, x: Any) -> Any:
    """The mean of the elements, each times the cosine of its number."""
    weights = tf.reshape(tf.cos(tf.cast(tf.range(tf.size(x)), tf.float64)), tf.shape(x))
    return tf.reduce_mean(tf.cast(x, tf.float64) * weights)
