"""Tensors of a network shifted by what they are to depend on."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["condition_tensor", "condition_tensor_from_onehot"]


def condition_tensor(tensor: Any, conditioning: Any) -> Any:
    """`tensor` plus a linear function of `conditioning`.

    Args:
        tensor: float tensor of shape [batch size, ...], all known but the batch size.
        conditioning: float tensor of shape [batch size, ...].

    Raises ValueError for shapes that are not known, or without a batch.
    """
    tensor.shape[1:].assert_is_fully_defined()
    features = tensor.shape[1:].num_elements()
    conditioning.shape.with_rank_at_least(2)
    flat = tf.contrib.layers.flatten(conditioning)
    mapped = tf.contrib.layers.linear(flat, features)
    if not tensor.shape.is_compatible_with(mapped.shape):
        mapped = tf.reshape(mapped, [-1, *tensor.shape[1:].as_list()])
    return tensor + mapped


def condition_tensor_from_onehot(tensor: Any, one_hot_labels: Any, embedding_size: int = 256) -> Any:
    """`condition_tensor` by an embedding of labels.

    Args:
        tensor: float tensor of shape [batch size, ...].
        one_hot_labels: tensor of shape [batch size, number of classes].
        embedding_size: the number of features of each label, in the variable ``embedding``.

    Raises ValueError for labels of another rank.
    """
    one_hot_labels.shape.assert_has_rank(2)
    classes = one_hot_labels.shape.as_list()[1]
    embedding = tf.get_variable("embedding", shape=[classes, embedding_size])
    return condition_tensor(tensor, tf.nn.embedding_lookup(embedding, tf.argmax(one_hot_labels, axis=1)))
