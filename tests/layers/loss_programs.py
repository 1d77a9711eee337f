"""Losses of `tf.losses` on small data, run alike by flowstone and, for the golden file, by TensorFlow 1.15.

`LOSSES` has for each function its labels and predictions, `WEIGHTS` the weights, of which a case takes those
that fit. `values` computes loss and gradient of one function under every weight and reduction; `node_lines`
are the nodes and collections of the small programs `PROGRAMS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

ROWS, COLUMNS = 4, 3
_RANDOM = np.random.RandomState(7)
_REAL = _RANDOM.randn(ROWS, COLUMNS).astype("float32")
_OTHER = _RANDOM.randn(ROWS, COLUMNS).astype("float32")
_SHARES = _RANDOM.rand(ROWS, COLUMNS).astype("float32")
_BITS = (_RANDOM.rand(ROWS, COLUMNS) > 0.5).astype("int32")
_ONE_HOT = np.eye(COLUMNS, dtype="float32")[[0, 2, 1, 2]]
_CLASSES = np.array([0, 2, 1, 2], "int64")

# function: labels, predictions, other arguments, shape of the losses
LOSSES: dict[str, tuple[Any, Any, dict[str, Any], tuple[int, ...]]] = {
    "absolute_difference": (_REAL, _OTHER, {}, (ROWS, COLUMNS)),
    "cosine_distance": (_REAL, _OTHER, {"axis": 1}, (ROWS, 1)),
    "hinge_loss": (_BITS, _REAL, {}, (ROWS, COLUMNS)),
    "huber_loss": (_REAL, _OTHER, {"delta": 0.7}, (ROWS, COLUMNS)),
    "log_loss": (_BITS, _SHARES, {"epsilon": 1e-5}, (ROWS, COLUMNS)),
    "mean_squared_error": (_REAL, _OTHER, {}, (ROWS, COLUMNS)),
    "mean_pairwise_squared_error": (_REAL, _OTHER, {}, (ROWS, 1)),
    "sigmoid_cross_entropy": (_BITS, _REAL, {"label_smoothing": 0.2}, (ROWS, COLUMNS)),
    "softmax_cross_entropy": (_ONE_HOT, _REAL, {"label_smoothing": 0.1}, (ROWS,)),
    "sparse_softmax_cross_entropy": (_CLASSES, _REAL, {}, (ROWS,)),
}
REDUCTIONS = (
    "none",
    "weighted_sum",
    "weighted_sum_over_batch_size",
    "weighted_mean",
    "weighted_sum_by_nonzero_weights",
)
_KINDS = {
    "one": lambda shape: 1.0,
    "half": lambda shape: 0.5,
    "nothing": lambda shape: 0.0,
    "each row": lambda shape: np.array([0, 2, 1, 0.5], "float32").reshape((ROWS,) + (1,) * (len(shape) - 1)),
    "each": lambda shape: (np.arange(np.prod(shape)) % 3 / 2.0).astype("float32").reshape(shape),
    "integers": lambda shape: (np.arange(np.prod(shape)) % 3).astype("int32").reshape(shape),
}


def values(tf: Any, function: str, known: bool = True) -> np.ndarray:
    """Losses and gradients under all weights and reductions, in one vector.

    `known`: whether shapes are known when the graph is built.
    """
    labels, predictions, arguments, shape = LOSSES[function]
    found = []
    reductions = ["none"] if function == "mean_pairwise_squared_error" else REDUCTIONS
    with tf.Graph().as_default(), tf.Session() as session:
        feeds: dict[Any, Any] = {}

        def fed(value: Any) -> Any:
            if np.ndim(value) == 0:
                return value
            tensor = tf.placeholder(value.dtype, value.shape if known else [None] * value.ndim)
            feeds[tensor] = value
            return tensor

        x = fed(predictions)
        for kind in _KINDS.values():
            weights = fed(kind(shape))
            for reduction in reductions:
                options = {} if reductions == ["none"] else {"reduction": reduction}
                loss = getattr(tf.losses, function)(fed(labels), x, weights=weights, **options, **arguments)
                found += [loss, tf.gradients(loss, x)[0]]
        results = session.run(found, feeds)
    return np.concatenate([np.ravel(value) for value in results])


# ---- programs whose nodes are compared

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Adds a program to the table."""
    PROGRAMS[function.__name__] = function
    return function


def real(tf: Any, *shape: int | None) -> Any:
    return tf.placeholder(tf.float32, list(shape))


@program
def default_weights(tf: Any) -> None:
    tf.losses.absolute_difference(real(tf, None, 3), real(tf, None, 3))
    tf.losses.mean_squared_error(real(tf, 4, 3), real(tf, 4, 3), weights=0.5)


@program
def weights_of_rows(tf: Any) -> None:
    tf.losses.absolute_difference(real(tf, 4, 3), real(tf, 4, 3), weights=real(tf, 4, 1))


@program
def weights_checked_in_the_step(tf: Any) -> None:
    tf.losses.absolute_difference(real(tf, None, 3), real(tf, None, 3), weights=real(tf, None, 1))
    tf.losses.hinge_loss(tf.placeholder(tf.int32), tf.placeholder(tf.float32), tf.placeholder(tf.float32))


@program
def weights_of_values_whose_rank_only_the_step_knows(tf: Any) -> None:
    tf.losses.huber_loss(real(tf, 4, 3), tf.placeholder(tf.float32))
    tf.losses.mean_squared_error(tf.placeholder(tf.float32), tf.placeholder(tf.float32), weights=real(tf))
    tf.metrics.mean(tf.placeholder(tf.float32), weights=2.0)


@program
def reductions(tf: Any) -> None:
    for reduction in REDUCTIONS:
        tf.losses.mean_squared_error(real(tf, None, 3), real(tf, None, 3), 2.0, reduction=reduction)


@program
def other_losses(tf: Any) -> None:
    tf.losses.huber_loss(real(tf, 4, 3), real(tf, 4, 3))
    tf.losses.log_loss(real(tf, 4, 3), real(tf, 4, 3), scope="named")
    tf.losses.hinge_loss(real(tf, 4, 3), real(tf, 4, 3))
    tf.losses.cosine_distance(real(tf, 4, 3), real(tf, 4, 3), dim=1)
    tf.losses.mean_pairwise_squared_error(real(tf, None, 3), real(tf, None, 3), weights=real(tf, None, 1))


@program
def cross_entropies(tf: Any) -> None:
    tf.losses.sigmoid_cross_entropy(real(tf, 4, 3), real(tf, 4, 3), label_smoothing=0.1)
    tf.losses.softmax_cross_entropy(
        tf.placeholder(tf.int32, [None, 3]), real(tf, None, 3), label_smoothing=0.1
    )
    labels = tf.placeholder(tf.int64, [None, 1])
    tf.losses.sparse_softmax_cross_entropy(labels, real(tf, None, 3), weights=real(tf, None, 1))
    tf.losses.sparse_softmax_cross_entropy(tf.placeholder(tf.int64), real(tf, None, 3))


@program
def collections(tf: Any) -> None:
    with tf.name_scope("tower"):
        tf.losses.mean_squared_error(real(tf, 4), real(tf, 4))
        tf.losses.mean_squared_error(real(tf, 4), real(tf, 4), loss_collection="mine")
    tf.losses.mean_squared_error(real(tf, 4), real(tf, 4), loss_collection=None)
    tf.losses.add_loss(tf.constant(1.0, name="own"))
    tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, tf.constant(2.0, name="regularizer"))
    tf.losses.get_total_loss()
    tf.losses.get_total_loss(False, name="unregularized")
    tf.losses.get_regularization_loss(name="regularization")


# Nodes that differ from TensorFlow 1.15's on purpose: below these names, or of these names.
_OWN = re.compile(
    r"/ones_like(_\d+)?/Shape|(^|/)[Rr](ank|ange)(_\d+)?(/|$)|/xentropy/|/(Identity|Switch)_\d+$"
)
_OTHER_TYPES = {"Add": "AddV2"}


def node_lines(tf: Any, build: Callable[[Any], Any], own: Any = _OWN) -> list[str]:
    """``NAME TYPE`` of the nodes that compute something, sorted; then the collections that matter."""
    with tf.Graph().as_default() as graph:
        build(tf)
        nodes = [op for op in graph.get_operations() if op.type != "Const" and not own.search(op.name)]
        lines = sorted(f"{op.name} {_OTHER_TYPES.get(op.type, op.type)}" for op in nodes)
        for key in sorted(k for k in graph.get_all_collection_keys() if "cond_context" not in k):
            names = " ".join(item.name for item in graph.get_collection(key))
            lines.append(f"collection {key}: {names}")
    return lines
