"""Programs with layers of `tf.contrib.layers`, run by flowstone and TensorFlow 1.15 alike.

`tests/layers/layer_programs.py` has what runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # Python 3.7, on which TensorFlow 1.15 runs, cannot evaluate it
    Build = Callable[[Any], Any]

PROGRAMS: dict[str, Build] = {}
COLLECTIONS = (
    "trainable_variables",
    "model_variables",
    "update_ops",
    "regularization_losses",
    "mine",
    "other",
)
# program -> {node: why it, or what is below it, is there in one of the two only}.
_MATRIX = "no transpose that moves nothing, and no reshape of a matrix to a matrix"
_BLOCKS = "a dilated convolution is one op, where TensorFlow moves space to batch and back"
_RECIPROCAL = "the sums are divided by the weights', not multiplied by their reciprocal"
DIFFERENCES: dict[str, dict[str, str]] = {
    "fully_connected_of_sequences": {"fully_connected/Tensordot": _MATRIX},
    "conv2d_dilated": {f"Conv/{node}": _BLOCKS for node in ("BatchToSpaceND", "SpaceToBatchND")},
    "one_hot_maxout_softmax": {
        "OneHotEncoding/one_hot": "names of constants",
        "UnitNorm": "the division broadcasts, where TensorFlow repeats the lengths",
    },
    "spatial_softmax": dict.fromkeys(
        ("cool", "spatial_softmax"), "sizes that are known are numbers, not nodes"
    ),
    "scale_gradient": dict.fromkeys(
        ("Const", "Identity", "IdentityN", "scale_gradient_uVZZ43Rva08"),
        "an identity with a gradient of its own, where TensorFlow calls a function",
    ),
    "batch_norm_weighted": {"BatchNorm/weighted_moments": _RECIPROCAL},
    "bow_encoder": {"bow_encoder/embedding_lookup": "each of the ids is looked up, not each different one"},
    "group_norm": dict.fromkeys(
        ("GroupNorm", "GroupNorm_1", "Reshape", "Reshape_1"),
        "beta and gamma get their shape within the scope",
    ),
}


def program(build: Build) -> Build:
    PROGRAMS[build.__name__] = build
    return build


def image(tf: Any, channels: int = 3, batch: Any = 2) -> Any:
    return array(tf, [2, 6, 5, channels], [batch, 6, 5, channels])


def array(tf: Any, shape: list[int], known: Any = None) -> Any:
    """An input x of `shape`, of which the graph knows `known`."""
    values = np.sin(np.arange(np.prod(shape)) * 0.7).reshape(shape).astype(np.float32)
    return tf.placeholder_with_default(values, shape if known is None else known, name="x")


# ---- fully connected


@program
def fully_connected(tf: Any) -> Any:
    return tf.contrib.layers.fully_connected(array(tf, [4, 3]), 5)


@program
def fully_connected_with_everything(tf: Any) -> Any:
    layers = tf.contrib.layers
    x = array(tf, [4, 3], [None, 3])
    with tf.variable_scope("net"):
        return layers.fully_connected(
            x,
            5,
            activation_fn=tf.nn.tanh,
            weights_regularizer=layers.l2_regularizer(0.1),
            biases_regularizer=layers.l1_regularizer(0.2),
            variables_collections={"weights": ["mine"], "biases": ["other"]},
            outputs_collections="mine",
            scope="head",
        )


@program
def fully_connected_of_sequences(tf: Any) -> Any:
    return tf.contrib.layers.fully_connected(array(tf, [2, 4, 3], [None, 4, 3]), 5, trainable=False)


@program
def fully_connected_without_biases(tf: Any) -> Any:
    layers = tf.contrib.layers
    one = layers.linear(array(tf, [4, 3]), 2, biases_initializer=None)
    return [layers.relu(one, 2), layers.relu6(one, 2), layers.elu(one, 2)]


@program
def fully_connected_normalized(tf: Any) -> Any:
    layers = tf.contrib.layers
    return layers.fully_connected(
        array(tf, [4, 3]), 5, normalizer_fn=layers.batch_norm, normalizer_params={"scale": True}
    )


@program
def fully_connected_reused(tf: Any) -> Any:
    layers = tf.contrib.layers
    x = array(tf, [4, 3])
    first = layers.fully_connected(x, 3, scope="same")
    return layers.fully_connected(first, 3, scope="same", reuse=True)


@program
def legacy_fully_connected(tf: Any) -> Any:
    layers = tf.contrib.layers
    y = layers.legacy_fully_connected(array(tf, [2, 4, 3]), 5, weight_regularizer=layers.l2_regularizer(0.1))
    return [
        y,
        layers.legacy_relu(y, 2, weight_collections=["mine"]),
        layers.legacy_linear(y, 2, name="named"),
    ]


# ---- convolutions


@program
def conv2d(tf: Any) -> Any:
    return tf.contrib.layers.conv2d(image(tf), 4, 3)


@program
def conv2d_with_everything(tf: Any) -> Any:
    layers = tf.contrib.layers
    with tf.contrib.framework.arg_scope([layers.conv2d], padding="VALID", activation_fn=tf.nn.elu):
        return layers.conv2d(
            image(tf, batch=None),
            4,
            [3, 2],
            stride=2,
            weights_regularizer=layers.l2_regularizer(0.5),
            variables_collections=["mine"],
            outputs_collections=["other"],
            scope="c/d",
        )


@program
def conv2d_normalized(tf: Any) -> Any:
    layers = tf.contrib.layers
    params = {"is_training": True, "decay": 0.9}
    return layers.conv2d(image(tf), 4, 3, normalizer_fn=layers.batch_norm, normalizer_params=params)


@program
def conv2d_dilated(tf: Any) -> Any:
    return tf.contrib.layers.conv2d(image(tf), 4, 2, rate=2, activation_fn=None)


@program
def convolutions(tf: Any) -> Any:
    layers = tf.contrib.layers
    x = image(tf)
    one = layers.conv1d(tf.reshape(x, [2, 6, 15]), 4, 3)
    three = layers.conv3d(tf.reshape(x, [2, 3, 2, 5, 3]), 4, [1, 2, 2], stride=[1, 1, 2])
    return [one, three, layers.convolution(x, 2, 1)]


@program
def conv2d_in_plane(tf: Any) -> Any:
    layers = tf.contrib.layers
    return layers.conv2d_in_plane(image(tf), [3, 1], weights_regularizer=layers.l2_regularizer(0.5))


@program
def conv2d_transpose(tf: Any) -> Any:
    layers = tf.contrib.layers
    y = layers.conv2d_transpose(image(tf), 4, 3, stride=2)
    return layers.conv2d_transpose(y, 2, [2, 3], padding="VALID", normalizer_fn=layers.layer_norm)


@program
def conv3d_transpose(tf: Any) -> Any:
    x = tf.reshape(image(tf), [2, 3, 2, 5, 3])
    return tf.contrib.layers.conv3d_transpose(x, 2, [1, 2, 2], stride=[1, 2, 1])


@program
def separable_conv2d(tf: Any) -> Any:
    layers = tf.contrib.layers
    return layers.separable_conv2d(image(tf), 4, 3, 2, weights_regularizer=layers.l2_regularizer(0.5))


@program
def depthwise_conv2d(tf: Any) -> Any:
    layers = tf.contrib.layers
    y = layers.separable_conv2d(
        image(tf), None, [3, 3], 2, stride=2, weights_regularizer=layers.l2_regularizer(0.5)
    )
    return layers.separable_conv2d(y, None, 2, 1, normalizer_fn=layers.batch_norm, activation_fn=None)


@program
def bias_add(tf: Any) -> Any:
    layers = tf.contrib.layers
    return layers.bias_add(image(tf), activation_fn=tf.nn.relu, regularizer=layers.l2_regularizer(0.5))


# ---- pools and shapes


@program
def pools(tf: Any) -> Any:
    layers = tf.contrib.layers
    x = image(tf)
    volume = tf.reshape(x, [2, 3, 2, 5, 3])
    return [
        layers.max_pool2d(x, 2, outputs_collections="mine"),
        layers.avg_pool2d(x, [3, 2], stride=1, padding="SAME"),
        layers.max_pool3d(volume, [1, 2, 2], stride=1),
        layers.avg_pool3d(volume, 2, padding="SAME", scope="pooled"),
    ]


@program
def flatten(tf: Any) -> Any:
    layers = tf.contrib.layers
    return [layers.flatten(image(tf)), layers.flatten(tf.ones([2, 3, 1]), scope="flat")]


@program
def flatten_of_any_size(tf: Any) -> Any:
    return tf.contrib.layers.flatten(image(tf, batch=None))


@program
def dropout_in_inference(tf: Any) -> Any:
    return tf.contrib.layers.dropout(array(tf, [4, 3]), 0.5, is_training=False, outputs_collections="mine")


@program
def one_hot_maxout_softmax(tf: Any) -> Any:
    layers = tf.contrib.layers
    x = array(tf, [4, 6])
    return [
        layers.one_hot_encoding(tf.constant([1, 0, 2]), 3, on_value=2.0),
        layers.maxout(x, 3),
        layers.softmax(x),
        layers.softmax(tf.reshape(x, [2, 2, 6])),
        layers.unit_norm(x, 1),
    ]


@program
def spatial_softmax(tf: Any) -> Any:
    layers = tf.contrib.layers
    x = image(tf)
    return [layers.spatial_softmax(x), layers.spatial_softmax(x, temperature=0.5, name="cool")]


@program
def images_and_sequences(tf: Any) -> Any:
    layers = tf.contrib.layers
    sequence = layers.images_to_sequence(image(tf))
    return [sequence, layers.sequence_to_images(sequence, 6)]


@program
def repeat(tf: Any) -> Any:
    layers = tf.contrib.layers
    y = layers.repeat(image(tf), 2, layers.conv2d, 3, 3, scope="block")
    return layers.repeat(y, 2, layers.conv2d, 3, 3)


@program
def stack(tf: Any) -> Any:
    layers = tf.contrib.layers
    y = layers.stack(array(tf, [4, 3]), layers.fully_connected, [5, 4], scope="tower")
    return layers.stack(y, layers.linear, [2, 3])


@program
def scale_gradient(tf: Any) -> Any:
    return tf.contrib.layers.scale_gradient(array(tf, [4, 3]), 0.5) * 2.0


# ---- normalisation


@program
def batch_norm(tf: Any) -> Any:
    return tf.contrib.layers.batch_norm(image(tf))


@program
def batch_norm_in_inference(tf: Any) -> Any:
    return tf.contrib.layers.batch_norm(image(tf), scale=True, is_training=False, scope="bn")


@program
def batch_norm_of_vectors(tf: Any) -> Any:
    layers = tf.contrib.layers
    return layers.batch_norm(array(tf, [4, 3]), scale=True, activation_fn=tf.nn.relu, fused=False)


@program
def batch_norm_of_vectors_fused(tf: Any) -> Any:
    return tf.contrib.layers.batch_norm(array(tf, [4, 3]), decay=0.5, updates_collections=None)


@program
def batch_norm_updated_in_place(tf: Any) -> Any:
    return tf.contrib.layers.batch_norm(image(tf), decay=0.5, updates_collections=None)


@program
def batch_norm_updated_in_place_unfused(tf: Any) -> Any:
    return tf.contrib.layers.batch_norm(image(tf), decay=0.5, updates_collections=None, fused=False)


@program
def batch_norm_when_told(tf: Any) -> Any:
    x = image(tf)
    training = tf.placeholder_with_default(True, [], name="training")
    return tf.contrib.layers.batch_norm(x, is_training=training, updates_collections=None, fused=False)


@program
def batch_norm_fused_when_told(tf: Any) -> Any:
    x = image(tf)
    training = tf.placeholder_with_default(True, [], name="training")
    return tf.contrib.layers.batch_norm(x, is_training=training, updates_collections=None, scale=True)


@program
def batch_norm_layer_when_told(tf: Any) -> Any:
    x = image(tf)
    training = tf.placeholder_with_default(False, [], name="training")
    return tf.contrib.layers.batch_norm(x, is_training=training, fused=False)


@program
def batch_norm_without_bias_of_averages(tf: Any) -> Any:
    return tf.contrib.layers.batch_norm(image(tf), decay=0.5, zero_debias_moving_mean=True, fused=False)


@program
def batch_norm_weighted(tf: Any) -> Any:
    weights = tf.constant([1.0, 3.0])
    return tf.contrib.layers.batch_norm(image(tf), decay=0.5, batch_weights=weights, fused=False)


@program
def batch_norm_with_everything(tf: Any) -> Any:
    layers = tf.contrib.layers
    return layers.batch_norm(
        image(tf),
        scale=True,
        param_initializers={"gamma": tf.constant_initializer(2.0)},
        param_regularizers={"beta": layers.l2_regularizer(0.5)},
        variables_collections={"moving_mean": ["mine"], "gamma": ["other"]},
        outputs_collections="mine",
        renorm=True,
        fused=False,
    )


@program
def layer_norm(tf: Any) -> Any:
    return tf.contrib.layers.layer_norm(image(tf), activation_fn=tf.nn.relu)


@program
def layer_norm_of_rows(tf: Any) -> Any:
    layers = tf.contrib.layers
    x = array(tf, [2, 4, 3], [None, 4, 3])
    y = layers.layer_norm(x, begin_norm_axis=-1, center=False)
    return layers.layer_norm(y, begin_norm_axis=2, begin_params_axis=1, variables_collections=["mine"])


@program
def instance_norm(tf: Any) -> Any:
    return tf.contrib.layers.instance_norm(image(tf), activation_fn=tf.nn.relu)


@program
def group_norm(tf: Any) -> Any:
    layers = tf.contrib.layers
    y = layers.group_norm(image(tf, 4), groups=2)
    return layers.group_norm(y, groups=4, mean_close_to_zero=True, scale=False)


@program
def gdn(tf: Any) -> Any:
    layers = tf.contrib.layers
    return layers.gdn(layers.gdn(image(tf)), inverse=True, gamma_init=0.2)


# ---- embeddings


@program
def embed_sequence(tf: Any) -> Any:
    x = array(tf, [4, 3])
    layers = tf.contrib.layers
    ids = tf.constant([[1, 2, 1], [0, 3, 3]])
    embedded = layers.embed_sequence(ids, 4, 5, regularizer=layers.l2_regularizer(0.5))
    return [x, embedded, layers.embed_sequence(ids, 4, 2, unique=True, scope="unique")]


@program
def bow_encoder(tf: Any) -> Any:
    x = array(tf, [4, 3])
    layers = tf.contrib.layers
    ids = tf.constant([[1, 2, 1], [0, 3, 3]])
    return [
        x,
        layers.bow_encoder(ids, 4, 5, regularizer=layers.l2_regularizer(0.5)),
        layers.bow_encoder(ids, 4, 5, sparse_lookup=False, scope="dense"),
    ]
