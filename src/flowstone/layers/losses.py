"""`tf.losses`: how far predictions are from labels, by element, weighted and reduced.

Each computes losses by element and hands them to `compute_weighted_loss`, whose page says what `weights`,
`loss_collection` and `reduction` mean and which errors they raise. Labels and predictions have one shape, and
are computed as float32 (cross entropies: as the logits' type). `scope` names the nodes; by default they are
in a scope named after the loss. ValueError if labels or predictions are None, or their known shapes differ.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.graphs.graph_functions import control_dependencies, name_scope
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.layers.weighted_loss import (
    DEFAULT,
    add_loss,
    aligned_with_weights,
    compute_weighted_loss,
    num_present,
)
from flowstone.layers.weights_broadcast import assert_broadcastable
from flowstone.ops.arrays.choice import where
from flowstone.ops.arrays.constants import ones_like, zeros_like
from flowstone.ops.arrays.constants import range as sequence
from flowstone.ops.arrays.identities import stop_gradient
from flowstone.ops.arrays.shapes import rank
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.networks.activations import relu
from flowstone.ops.networks.cross_entropies import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
)
from flowstone.ops.networks.sparse_cross_entropies import sparse_softmax_cross_entropy_with_logits
from flowstone.ops.numbers.arithmetic import (
    abs,
    add,
    maximum,
    minimum,
    multiply,
    negative,
    square,
    squared_difference,
    subtract,
)
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.division import div_no_nan
from flowstone.ops.numbers.functions import log
from flowstone.ops.numbers.reductions import reduce_sum

__all__ = [
    "absolute_difference",
    "cosine_distance",
    "hinge_loss",
    "huber_loss",
    "log_loss",
    "mean_pairwise_squared_error",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]


def _require(**tensors: Any) -> None:
    """ValueError if one of them is None."""
    for name, value in tensors.items():
        if value is None:
            raise ValueError(f"{name} must not be None.")


def _as_floats(labels: Any, predictions: Any) -> tuple[Tensor, Tensor]:
    """Both as float32. ValueError unless their shapes are compatible."""
    predictions, labels = cast(predictions, dtypes.float32), cast(labels, dtypes.float32)
    predictions.shape.assert_is_compatible_with(labels.shape)
    return labels, predictions


def absolute_difference(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = DEFAULT,
) -> Tensor:
    """|predictions - labels|; see the module for the arguments."""
    _require(labels=labels, predictions=predictions)
    with name_scope(scope, "absolute_difference", (predictions, labels, weights)) as scope:
        labels, predictions = _as_floats(labels, predictions)
        losses = abs(subtract(predictions, labels))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = DEFAULT,
    dim: int | None = None,
) -> Tensor:
    """1 - the inner product along `axis`, which keeps size 1; of unit vectors, one minus their cosine.

    `dim` is an old name of `axis`. See the module for the other arguments. ValueError without an axis.
    """
    if dim is not None:
        if axis is not None:
            raise ValueError("Cannot specify both 'axis' and 'dim'")
        axis = dim
    if axis is None:
        raise ValueError("You must specify 'axis'.")
    _require(labels=labels, predictions=predictions)
    with name_scope(scope, "cosine_distance_loss", (predictions, labels, weights)) as scope:
        labels, predictions = _as_floats(labels, predictions)
        products = multiply(predictions, labels)
        losses = 1 - reduce_sum(products, axis=(axis,), keepdims=True)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def hinge_loss(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = DEFAULT,
) -> Tensor:
    """max(0, 1 - s logits), with s = 2 labels - 1: labels are 0 or 1. See the module for the arguments."""
    _require(labels=labels, logits=logits)
    with name_scope(scope, "hinge_loss", (logits, labels, weights)) as scope:
        labels, logits = _as_floats(labels, logits)
        ones = ones_like(labels)
        signs = subtract(2 * labels, ones)
        losses = relu(subtract(ones, multiply(signs, logits)))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def huber_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    delta: float = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = DEFAULT,
) -> Tensor:
    """d d / 2 where d = |predictions - labels| is at most `delta`, and delta (d - delta / 2) beyond it.

    See the module for the other arguments.
    """
    _require(labels=labels, predictions=predictions)
    with name_scope(scope, "huber_loss", (predictions, labels, weights)) as scope:
        labels, predictions = _as_floats(labels, predictions)
        distance = abs(subtract(predictions, labels))
        quadratic = minimum(distance, delta)
        linear = subtract(distance, quadratic)
        half = convert_to_tensor(0.5, quadratic.dtype)
        losses = add(multiply(half, multiply(quadratic, quadratic)), multiply(delta, linear))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def log_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = DEFAULT,
) -> Tensor:
    """-labels log(predictions + epsilon) - (1 - labels) log(1 - predictions + epsilon), of probabilities.

    See the module for the other arguments.
    """
    _require(labels=labels, predictions=predictions)
    with name_scope(scope, "log_loss", (predictions, labels, weights)) as scope:
        labels, predictions = _as_floats(labels, predictions)
        of_positives = negative(multiply(labels, log(predictions + epsilon)))
        losses = of_positives - multiply((1 - labels), log(1 - predictions + epsilon))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = DEFAULT,
) -> Tensor:
    """The square of predictions - labels; see the module for the arguments."""
    _require(labels=labels, predictions=predictions)
    with name_scope(scope, "mean_squared_error", (predictions, labels, weights)) as scope:
        labels, predictions = _as_floats(labels, predictions)
        losses = squared_difference(predictions, labels)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def mean_pairwise_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
) -> Tensor:
    """The sum over examples of the mean square of (d_i - d_j), over pairs of elements of one example.

    d is predictions - labels, ``[batch, …]``. `weights` is a number, or of the predictions' rank with a
    weight an example. The result is a scalar. See the module for the other arguments and errors.
    """
    _require(labels=labels, predictions=predictions)
    with name_scope(scope, "mean_pairwise_squared_error", (predictions, labels, weights)):
        weights, labels = cast(weights, dtypes.float32), cast(labels, dtypes.float32)
        with control_dependencies((assert_broadcastable(weights, labels),)):
            labels, predictions = _as_floats(labels, predictions)
            loss, count = _pairwise_sums(subtract(predictions, labels), weights)
            mean = where(reduce_sum(count) > 0, loss, zeros_like(loss), name="value")
            add_loss(mean, loss_collection)
            return mean


def _pairwise_sums(differences: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The weighted sum over examples, and the number of elements of each example that count."""
    axes = sequence(1, rank(differences))
    squares = reduce_sum(square(differences), axis=axes, keepdims=True)
    count = num_present(differences, weights, per_batch=True)
    mean_square = 2.0 * div_no_nan(squares, maximum(count - 1, 0), name="value")
    total = reduce_sum(differences, axis=axes, keepdims=True)
    pairs = maximum(multiply(count, count - 1), 0)
    squared_mean = 2.0 * div_no_nan(square(total), pairs, name="value")
    return reduce_sum(multiply(mean_square - squared_mean, weights)), count


def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = DEFAULT,
) -> Tensor:
    """`tf.nn.sigmoid_cross_entropy_with_logits` of labels ``[batch, classes]``, each between 0 and 1.

    Positive `label_smoothing` moves labels towards 1/2: to ``labels * (1 - s) + s / 2``. See the module for
    the other arguments.
    """
    _require(multi_class_labels=multi_class_labels, logits=logits)
    with name_scope(scope, "sigmoid_cross_entropy_loss", (logits, multi_class_labels, weights)) as scope:
        logits = convert_to_tensor(logits)
        labels = cast(multi_class_labels, logits.dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = DEFAULT,
) -> Tensor:
    """`tf.nn.softmax_cross_entropy_with_logits` of distributions ``[batch, classes]``: a loss an example.

    Positive `label_smoothing` moves labels towards the uniform distribution: to ``labels * (1 - s) +
    s / classes``. Gradients flow to the logits alone. `weights` are scalar or ``[batch]``. See the module
    for the other arguments.
    """
    _require(onehot_labels=onehot_labels, logits=logits)
    with name_scope(scope, "softmax_cross_entropy_loss", (logits, onehot_labels, weights)) as scope:
        logits = convert_to_tensor(logits)
        labels = cast(onehot_labels, logits.dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            classes = cast(shape_of(labels)[-1], logits.dtype)
            labels = labels * (1.0 - label_smoothing) + label_smoothing / classes
        labels = stop_gradient(labels, name="labels_stop_gradient")
        losses = softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = DEFAULT,
) -> Tensor:
    """`tf.nn.sparse_softmax_cross_entropy_with_logits` of class numbers ``[batch]``: a loss an example.

    `logits` are ``[batch, classes]``. Labels and weights may have another dimension of size 1 at the end.
    See the module for the other arguments.
    """
    _require(labels=labels, logits=logits)
    with name_scope(scope, "sparse_softmax_cross_entropy_loss", (logits, labels, weights)) as scope:
        labels, logits, weights = aligned_with_weights(labels, logits, weights, expected_rank_diff=1)
        losses = sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)
