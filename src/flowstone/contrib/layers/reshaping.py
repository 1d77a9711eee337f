"""Layers without weights that give values another form: rows, sequences, one-hot vectors, sparse tensors."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.framework.arg_scope import add_arg_scope
from flowstone.contrib.layers.utils import collect_named_outputs

__all__ = [
    "dense_to_sparse",
    "flatten",
    "images_to_sequence",
    "inner_flatten",
    "maxout",
    "one_hot_encoding",
    "sequence_to_images",
]


@add_arg_scope
def flatten(inputs: Any, outputs_collections: Any = None, scope: str | None = None) -> Any:
    """The inputs [batch, …] as [batch, the product of the others].

    The name scope is by default "Flatten". ValueError for scalars and inputs of unknown rank.
    """
    with tf.name_scope(scope, "Flatten", [inputs]) as sc:
        outputs = tf.layers.flatten(tf.convert_to_tensor(inputs))
        return collect_named_outputs(outputs_collections, sc.rstrip("/"), outputs)


def inner_flatten(
    inputs: Any, new_rank: int, output_collections: Any = None, scope: str | None = None
) -> Any:
    """The inputs with the dimensions from number `new_rank - 1` made one; dense or sparse.

    ValueError if `new_rank` is greater than the rank or below 1.
    """
    with tf.name_scope(scope, "InnerFlatten", [inputs, new_rank]) as sc:
        if new_rank < 1:
            raise ValueError(f"new_rank must be positive, but is {new_rank}")
        if isinstance(inputs, tf.SparseTensor):
            sizes = inputs.dense_shape
            shape = tf.concat([sizes[: new_rank - 1], [tf.reduce_prod(sizes[new_rank - 1 :])]], 0)
            flattened: Any = tf.sparse_reshape(inputs, shape)
        else:
            flattened = _dense_inner_flatten(tf.convert_to_tensor(inputs), new_rank)
        return collect_named_outputs(output_collections, sc.rstrip("/"), flattened)


def _dense_inner_flatten(inputs: Any, new_rank: int) -> Any:
    rank = inputs.shape.ndims
    if rank is not None and rank < new_rank:
        raise ValueError(f"Inputs has rank less than new_rank. inputs has rank {rank}, received {new_rank}.")
    sizes = tf.shape(inputs)
    shape = tf.concat([sizes[: new_rank - 1], [-1]], 0)
    flattened = tf.reshape(inputs, shape)
    if rank is not None:
        outer, inner = inputs.shape[: new_rank - 1], inputs.shape[new_rank - 1 :]
        flattened.set_shape([*outer.as_list(), inner.num_elements() if inner.is_fully_defined() else None])
    return flattened


@add_arg_scope
def dense_to_sparse(
    tensor: Any, eos_token: Any = 0, outputs_collections: Any = None, scope: Any = None
) -> Any:
    """The elements that differ from `eos_token`, as a SparseTensor of the same shape."""
    with tf.variable_scope(scope, "dense_to_sparse", [tensor]) as sc:
        tensor = tf.convert_to_tensor(tensor)
        indices = tf.where(tf.not_equal(tensor, tf.constant(eos_token, tensor.dtype)))
        shape = tf.shape(tensor, out_type=tf.int64)
        outputs = tf.SparseTensor(indices, tf.gather_nd(tensor, indices), shape)
        return collect_named_outputs(outputs_collections, sc.name, outputs)


@add_arg_scope
def one_hot_encoding(
    labels: Any,
    num_classes: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """Labels [batch] as rows [batch, num_classes] with `on_value` at the label and `off_value` elsewhere.

    The name scope is by default "OneHotEncoding".
    """
    with tf.name_scope(scope, "OneHotEncoding", [labels, num_classes]) as sc:
        labels = tf.convert_to_tensor(labels)
        if labels.dtype == tf.int32:
            labels = tf.to_int64(labels)
        outputs = tf.one_hot(labels, num_classes, on_value=on_value, off_value=off_value)
        return collect_named_outputs(outputs_collections, sc.rstrip("/"), outputs)


def maxout(inputs: Any, num_units: int, axis: int = -1, scope: str | None = None) -> Any:
    """The largest of each of `num_units` groups of neighbouring features along `axis`.

    Source: Goodfellow et al., "Maxout Networks" (2013). The name scope is by default "MaxOut". ValueError if
    the number of features is not known, or no multiple of `num_units`.
    """
    with tf.name_scope(scope, "MaxOut", [inputs]):
        inputs = tf.convert_to_tensor(inputs)
        sizes: list[Any] = inputs.shape.as_list()
        axis = axis % len(sizes)
        features = sizes[axis]
        if features is None or features % num_units:
            raise ValueError(f"number of features({features}) is not a multiple of num_units({num_units})")
        if None in sizes:
            dynamic = tf.shape(inputs)
            sizes = [dynamic[i] if size is None else size for i, size in enumerate(sizes)]
        # As in TensorFlow the groups are of elements that lie behind each other, along whichever axis.
        grouped = [*sizes[:axis], num_units, *sizes[axis + 1 :], features // num_units]
        outputs = tf.reduce_max(tf.reshape(inputs, grouped), -1)
        known = inputs.shape.as_list()
        known[axis] = num_units
        outputs.set_shape(known)
        return outputs


@add_arg_scope
def images_to_sequence(
    inputs: Any, data_format: str = "NHWC", outputs_collections: Any = None, scope: str | None = None
) -> Any:
    """Images as sequences along their width: [width, batch * height, channels].

    Args:
        inputs: [batch, height, width, channels]; [batch, channels, height, width] for NCHW.

    The name scope is by default "ImagesToSequence". ValueError for another layout or rank.
    """
    if data_format not in ("NCHW", "NHWC"):
        raise ValueError("data_format has to be either NCHW or NHWC.")
    with tf.name_scope(scope, "ImagesToSequence", [inputs]) as sc:
        inputs = tf.convert_to_tensor(inputs)
        if inputs.shape.ndims != 4:
            raise ValueError("Input tensor should be 4D.")
        if data_format == "NCHW":
            inputs = tf.transpose(inputs, [0, 2, 3, 1])
        _, _, width, depth = inputs.shape.as_list()
        sizes = tf.shape(inputs)
        columns = tf.transpose(inputs, [2, 0, 1, 3])
        outputs = tf.reshape(columns, [sizes[2] if width is None else width, sizes[0] * sizes[1], depth])
        return collect_named_outputs(outputs_collections, sc.rstrip("/"), outputs)


@add_arg_scope
def sequence_to_images(
    inputs: Any,
    height: int,
    output_data_format: str = "channels_last",
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """Sequences [width, batch * height, channels] as images, as `images_to_sequence` had them.

    The output is [batch, height, width, channels], or [batch, channels, height, width] for
    "channels_first". The name scope is by default "SequenceToImages".
    """
    with tf.name_scope(scope, "SequenceToImages", [inputs]) as sc:
        inputs = tf.convert_to_tensor(inputs)
        width, both, depth = inputs.shape.as_list()
        batch = -1 if both is None else both // height
        if width is None:
            width = tf.shape(inputs)[0]
        reshaped = tf.reshape(inputs, [width, batch, height, depth])
        order = [1, 3, 2, 0] if output_data_format == "channels_first" else [1, 2, 0, 3]
        outputs = tf.transpose(reshaped, order)
        return collect_named_outputs(outputs_collections, sc.rstrip("/"), outputs)
