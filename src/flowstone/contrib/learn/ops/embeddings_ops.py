"""Embeddings of identifiers of any shape."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["categorical_variable", "embedding_lookup"]


def embedding_lookup(params: Any, ids: Any, name: str = "embedding_lookup") -> Any:
    """The rows of `params` [n, ...] at `ids`, integers of any shape, in the shape of `ids` and of a row."""
    params, ids = tf.convert_to_tensor(params), tf.convert_to_tensor(ids)
    with tf.name_scope(name, "embedding_lookup", [params, ids]):
        count = tf.reduce_prod(tf.shape(ids, name="shape_ids"), keepdims=True)
        rows = tf.nn.embedding_lookup(params, tf.reshape(ids, count))
        found = tf.reshape(rows, tf.concat([tf.shape(ids), tf.shape(params)[1:]], 0))
        found.set_shape(ids.shape.concatenate(params.shape[1:]))
        return found


def categorical_variable(tensor_in: Any, n_classes: int, embedding_size: int, name: str) -> Any:
    """The embeddings of classes, integers of any shape: rows of the variable ``NAME/NAME_embeddings``
    [n_classes, embedding_size]."""
    with tf.variable_scope(name):
        embeddings = tf.get_variable(f"{name}_embeddings", [n_classes, embedding_size])
        return embedding_lookup(embeddings, tensor_in)
