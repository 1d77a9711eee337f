"""Activations and losses of neural networks for LabeledTensors: those of `tf.nn` by the same names."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.labeled_tensor import core
from flowstone.contrib.labeled_tensor.core import define_binary_op, define_unary_op

__all__ = [
    "core",
    "crelu",
    "elu",
    "l2_loss",
    "log_softmax",
    "relu",
    "relu6",
    "sigmoid_cross_entropy_with_logits",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "sparse_softmax_cross_entropy_with_logits",
]


def _sigmoid_cross_entropy(logits: Any, labels: Any, name: str) -> Any:
    return tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=labels, name=name)


def _softmax_cross_entropy(logits: Any, labels: Any, name: str) -> Any:
    return tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=labels, name=name)


def _sparse_softmax_cross_entropy(logits: Any, labels: Any, name: str) -> Any:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=labels, name=name)


relu = define_unary_op("relu", tf.nn.relu)
relu6 = define_unary_op("relu6", tf.nn.relu6)
crelu = define_unary_op("crelu", tf.nn.crelu)
elu = define_unary_op("elu", tf.nn.elu)
softplus = define_unary_op("softplus", tf.nn.softplus)
l2_loss = define_unary_op("l2_loss", tf.nn.l2_loss)
softmax = define_unary_op("softmax", tf.nn.softmax)
log_softmax = define_unary_op("log_softmax", tf.nn.log_softmax)
sigmoid_cross_entropy_with_logits = define_binary_op(
    "sigmoid_cross_entropy_with_logits", _sigmoid_cross_entropy
)
softmax_cross_entropy_with_logits = define_binary_op(
    "softmax_cross_entropy_with_logits", _softmax_cross_entropy
)
sparse_softmax_cross_entropy_with_logits = define_binary_op(
    "sparse_softmax_cross_entropy_with_logits", _sparse_softmax_cross_entropy
)
