"""Sequences of ids as vectors: an embedding for each, or their mean."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.framework.variables import model_variable
from flowstone.contrib.layers.embedding_ops import embedding_lookup_unique, safe_embedding_lookup_sparse

__all__ = ["bow_encoder", "embed_sequence"]


def bow_encoder(
    ids: Any,
    vocab_size: int,
    embed_dim: int,
    sparse_lookup: bool = True,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Any:
    """The mean of the embeddings of a row's ids: a bag of words.

    Args:
        ids: [batch, length], dense or a SparseTensor, int32 or int64.
        vocab_size, embed_dim: the shape of the variable ``embeddings``.
        sparse_lookup: whether zeros of dense ids are left out; without it they count, and ids are dense.
        initializer, regularizer, trainable: of the variable.
        scope: of the variable; default "bow_encoder".
        reuse: whether the scope's variable is taken again.

    Returns [batch, embed_dim]. TypeError for sparse ids without `sparse_lookup`.
    """
    with tf.variable_scope(scope, "bow_encoder", [ids], reuse=reuse):
        embeddings = model_variable(
            "embeddings",
            shape=[vocab_size, embed_dim],
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
        )
        if sparse_lookup:
            sparse_ids = ids if isinstance(ids, tf.SparseTensor) else _dense_to_sparse_tensor(ids)
            return safe_embedding_lookup_sparse([embeddings], sparse_ids, combiner="mean", default_id=0)
        if isinstance(ids, tf.SparseTensor):
            raise TypeError("ids are expected to be dense Tensor, got: %s", ids)
        return tf.reduce_mean(tf.nn.embedding_lookup(embeddings, ids), axis=1)


def _dense_to_sparse_tensor(ids: Any) -> Any:
    """The ids that are not zero."""
    ids = tf.convert_to_tensor(ids)
    with tf.name_scope("DenseToSparseTensor"):
        nothing = tf.constant(0, ids.dtype, name="ignore_value/x")
        indices = tf.where(tf.not_equal(ids, nothing), name="indices")
        values = tf.gather_nd(ids, indices, name="values")
        shape = tf.shape(ids, out_type=tf.int64, name="dense_shape")
        return tf.SparseTensor(indices, values, shape)


def embed_sequence(
    ids: Any, vocab_size: int | None = None, embed_dim: int | None = None, unique: bool = False,
    initializer: Any = None, regularizer: Any = None, trainable: bool = True, scope: Any = None,
    reuse: Any = None,
) -> Any:  # fmt: skip
    """An embedding for each of the ids.

    Args:
        ids: [batch, length], int32 or int64.
        vocab_size, embed_dim: the shape of the variable ``embeddings``; not needed with `reuse`.
        unique: whether each of the ids is looked up once only.
        initializer, regularizer, trainable: of the variable.
        scope: of the variable; default "EmbedSequence".
        reuse: whether the scope's variable is taken again.

    Returns [batch, length, embed_dim]. ValueError if a size is missing.
    """
    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError(
            f"Must specify vocab size and embedding dimension when not reusing. Got vocab_size={vocab_size} "
            f"and embed_dim={embed_dim}"
        )
    with tf.variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        shape: Any = [vocab_size, embed_dim]
        if reuse and (vocab_size is None or embed_dim is None):
            shape = None
        embeddings = model_variable(
            "embeddings",
            shape=shape,
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
        )
        if unique:
            return embedding_lookup_unique(embeddings, ids)
        return tf.nn.embedding_lookup(embeddings, ids)
