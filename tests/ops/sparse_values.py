"""Sparse tensors for tests, and their dense counterparts."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf

DENSE = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, -3.0, 4.0]], np.float32)
OTHER = np.array([[0.0, 5.0, -2.0], [6.0, 0.0, 0.0], [0.0, 0.0, 7.0]], np.float32)


def sparse_of(dense: Any) -> tf.SparseTensor:
    """The SparseTensor of the elements of an array that are not zero."""
    array = np.asarray(dense)
    return tf.SparseTensor(np.argwhere(array), array[array != 0], array.shape)


def dense_of(value: Any) -> np.ndarray:
    """The array that a fetched SparseTensorValue stands for."""
    result = np.zeros(value.dense_shape, value.values.dtype)
    result[tuple(value.indices.T)] = value.values if len(value.dense_shape) else value.values[0]
    return result


def run(fetches: Any, feed: Any = None) -> Any:
    """The values of fetches of the default graph."""
    with tf.Session() as session:
        return session.run(fetches, feed)


def is_ordered(value: Any) -> bool:
    """Whether the indices are in row-major order."""
    return value.indices.tolist() == sorted(value.indices.tolist())


def node_names(function: Any) -> list[str]:
    """The names of the nodes that a call adds to the default graph."""
    graph = tf.get_default_graph()
    before = len(graph.get_operations())
    function()
    return [node.name for node in graph.get_operations()[before:]]
