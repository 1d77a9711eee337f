"""Crosses of sparse features, with the hash of TensorFlow's first years unless a key is given."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.ops.sparse import sparse_crosses

__all__ = ["SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY", "sparse_feature_cross"]

SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY = 0xDECAFCAFFE


def sparse_feature_cross(
    inputs: Any,
    hashed_output: bool = False,
    num_buckets: int = 0,
    name: str | None = None,
    hash_key: int | None = None,
) -> tf.SparseTensor:
    """All combinations of one element of each input, example by example.

    Args:
        inputs: a list of SparseTensors and Tensors [batch, any] of strings or integers.
        hashed_output: whether combinations are hashed; else they are texts, joined with "_X_".
        num_buckets: hashes are taken modulo it, if it is not 0.
        name: of the operation.
        hash_key: the number that the hash of fingerprints starts from; None for the older hash.

    Returns:
        SparseTensor [batch, most combinations of an example] of int64, or of strings.

    Raises TypeError for what is no list of tensors.
    """
    if not isinstance(inputs, list):
        raise TypeError("Inputs must be a list")
    if not all(isinstance(each, (tf.SparseTensor, tf.Tensor)) for each in inputs):
        raise TypeError("All inputs must be SparseTensors")
    if not hashed_output:
        return sparse_crosses.sparse_cross(inputs, name)
    if hash_key is not None:
        return sparse_crosses.sparse_cross_hashed(inputs, num_buckets, hash_key, name)
    return sparse_crosses.sparse_feature_cross_hashed(inputs, num_buckets, name)
