"""Losses of generators and discriminators, with the tensors as arguments.

The arguments that several have: weights (`weights`, `real_weights`, `generated_weights`) are scalars, or
broadcast to the outputs; `scope` is the name scope; the loss is added to the collection `loss_collection`;
`reduction` is one of `tf.losses.Reduction`; with `add_summaries` its parts are summaries.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = [
    "acgan_discriminator_loss",
    "acgan_generator_loss",
    "combine_adversarial_loss",
    "least_squares_discriminator_loss",
    "least_squares_generator_loss",
    "minimax_discriminator_loss",
    "minimax_generator_loss",
    "modified_discriminator_loss",
    "modified_generator_loss",
    "mutual_information_penalty",
    "wasserstein_discriminator_loss",
    "wasserstein_generator_loss",
    "wasserstein_gradient_penalty",
]

_LOSSES = "losses"
_MEAN = "weighted_sum_by_nonzero_weights"


def _summarize(add_summaries: bool, **values: Any) -> None:
    for name, value in values.items() if add_summaries else ():
        tf.summary.scalar(name, value)


def wasserstein_generator_loss(
    discriminator_gen_outputs: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """Minus the outputs for generated data (Arjovsky et al. 2017, https://arxiv.org/abs/1701.07875)."""
    with tf.name_scope(scope, "generator_wasserstein_loss", [discriminator_gen_outputs, weights]) as scope:
        loss = -tf.convert_to_tensor(discriminator_gen_outputs)
        loss = tf.losses.compute_weighted_loss(loss, weights, scope, loss_collection, reduction)
        _summarize(add_summaries, generator_wass_loss=loss)
    return loss


def wasserstein_discriminator_loss(
    discriminator_real_outputs: Any,
    discriminator_gen_outputs: Any,
    real_weights: Any = 1.0,
    generated_weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """The outputs for generated data less those for real data."""
    with tf.name_scope(scope, "discriminator_wasserstein_loss") as scope:
        generated = tf.losses.compute_weighted_loss(
            discriminator_gen_outputs, generated_weights, scope, None, reduction
        )
        real = tf.losses.compute_weighted_loss(
            discriminator_real_outputs, real_weights, scope, None, reduction
        )
        loss = generated - real
        tf.losses.add_loss(loss, loss_collection)
        _summarize(
            add_summaries,
            discriminator_gen_wass_loss=generated,
            discriminator_real_wass_loss=real,
            discriminator_wass_loss=loss,
        )
    return loss


def acgan_discriminator_loss(
    discriminator_real_classification_logits: Any,
    discriminator_gen_classification_logits: Any,
    one_hot_labels: Any,
    label_smoothing: float = 0.0,
    real_weights: Any = 1.0,
    generated_weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """The cross entropies of the classes of generated and, smoothed, of real data (Odena et al. 2016,
    https://arxiv.org/abs/1610.09585)."""

    def entropy(logits: Any, weights: Any, smoothing: float) -> Any:
        return tf.losses.softmax_cross_entropy(
            one_hot_labels, logits, weights, smoothing, scope, None, reduction
        )

    generated = entropy(discriminator_gen_classification_logits, generated_weights, 0.0)
    real = entropy(discriminator_real_classification_logits, real_weights, label_smoothing)
    loss = generated + real
    tf.losses.add_loss(loss, loss_collection)
    _summarize(
        add_summaries,
        discriminator_gen_ac_loss=generated,
        discriminator_real_ac_loss=real,
        discriminator_ac_loss=loss,
    )
    return loss


def acgan_generator_loss(
    discriminator_gen_classification_logits: Any,
    one_hot_labels: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """The cross entropy of the classes of generated data."""
    loss = tf.losses.softmax_cross_entropy(
        one_hot_labels,
        discriminator_gen_classification_logits,
        weights,
        scope=scope,
        loss_collection=loss_collection,
        reduction=reduction,
    )
    _summarize(add_summaries, generator_ac_loss=loss)
    return loss


def wasserstein_gradient_penalty(
    real_data: Any,
    generated_data: Any,
    generator_inputs: Any,
    discriminator_fn: Any,
    discriminator_scope: Any,
    epsilon: float = 1e-10,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """The squared distance from 1 of the length of the discriminator's gradient, at points between real and
    generated data (Gulrajani et al. 2017, https://arxiv.org/abs/1704.00028).

    `discriminator_scope` holds the variables. ValueError for data of unknown rank.
    """
    real_data = tf.convert_to_tensor(real_data)
    rank = real_data.shape.ndims
    if rank is None:
        raise ValueError("`real_data` can't have unknown rank.")
    differences = generated_data - real_data
    alpha = tf.random_uniform([tf.shape(real_data)[0]] + [1] * (rank - 1))
    points = real_data + alpha * differences
    with tf.variable_scope(discriminator_scope, reuse=True):
        outputs = discriminator_fn(points, generator_inputs)
    outputs = outputs[0] if isinstance(outputs, tuple) else outputs
    gradients = tf.gradients(outputs, points)[0]
    slopes = tf.sqrt(tf.reduce_sum(tf.square(gradients), axis=list(range(1, rank))) + epsilon)
    penalty = tf.losses.compute_weighted_loss(
        tf.square(slopes - 1.0), weights, scope, loss_collection, reduction
    )
    _summarize(add_summaries, gradient_penalty_loss=penalty)
    return penalty


def minimax_discriminator_loss(
    discriminator_real_outputs: Any,
    discriminator_gen_outputs: Any,
    label_smoothing: float = 0.25,
    real_weights: Any = 1.0,
    generated_weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """The cross entropies of real data as 1, smoothed, and of generated data as 0; outputs are logits."""
    with tf.name_scope(scope, "discriminator_minimax_loss") as scope:
        real = tf.losses.sigmoid_cross_entropy(
            tf.ones_like(discriminator_real_outputs),
            discriminator_real_outputs,
            real_weights,
            label_smoothing,
            scope,
            None,
            reduction,
        )
        generated = tf.losses.sigmoid_cross_entropy(
            tf.zeros_like(discriminator_gen_outputs),
            discriminator_gen_outputs,
            generated_weights,
            scope=scope,
            loss_collection=None,
            reduction=reduction,
        )
        loss = real + generated
        tf.losses.add_loss(loss, loss_collection)
        _summarize(
            add_summaries,
            discriminator_gen_minimax_loss=generated,
            discriminator_real_minimax_loss=real,
            discriminator_minimax_loss=loss,
        )
    return loss


def minimax_generator_loss(
    discriminator_gen_outputs: Any,
    label_smoothing: float = 0.0,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """Minus the discriminator's loss."""
    with tf.name_scope(scope, "generator_minimax_loss") as scope:
        loss = -minimax_discriminator_loss(
            tf.ones_like(discriminator_gen_outputs),
            discriminator_gen_outputs,
            label_smoothing,
            weights,
            weights,
            scope,
            loss_collection,
            reduction,
        )
    _summarize(add_summaries, generator_minimax_loss=loss)
    return loss


def modified_discriminator_loss(
    discriminator_real_outputs: Any,
    discriminator_gen_outputs: Any,
    label_smoothing: float = 0.25,
    real_weights: Any = 1.0,
    generated_weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """The loss of `minimax_discriminator_loss`."""
    return minimax_discriminator_loss(
        discriminator_real_outputs,
        discriminator_gen_outputs,
        label_smoothing,
        real_weights,
        generated_weights,
        scope or "discriminator_modified_loss",
        loss_collection,
        reduction,
        add_summaries,
    )


def modified_generator_loss(
    discriminator_gen_outputs: Any,
    label_smoothing: float = 0.0,
    weights: Any = 1.0,
    scope: str | None = "generator_modified_loss",
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """The cross entropy of generated data as 1: it does not vanish where the discriminator is sure."""
    loss = tf.losses.sigmoid_cross_entropy(
        tf.ones_like(discriminator_gen_outputs),
        discriminator_gen_outputs,
        weights,
        label_smoothing,
        scope,
        loss_collection,
        reduction,
    )
    _summarize(add_summaries, generator_modified_loss=loss)
    return loss


def least_squares_generator_loss(
    discriminator_gen_outputs: Any,
    real_label: float = 1,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """Half the squared distance from the label (Mao et al. 2016, https://arxiv.org/abs/1611.04076)."""
    with tf.name_scope(scope, "lsq_generator_loss") as scope:
        loss = tf.squared_difference(discriminator_gen_outputs, real_label) / 2.0
        loss = tf.losses.compute_weighted_loss(loss, weights, scope, loss_collection, reduction)
    _summarize(add_summaries, generator_lsq_loss=loss)
    return loss


def least_squares_discriminator_loss(
    discriminator_real_outputs: Any,
    discriminator_gen_outputs: Any,
    real_label: float = 1,
    fake_label: float = 0,
    real_weights: Any = 1.0,
    generated_weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """Half the squared distances from the labels of real and generated data."""
    with tf.name_scope(scope, "lsq_discriminator_loss") as scope:
        real = tf.squared_difference(discriminator_real_outputs, real_label) / 2.0
        generated = tf.squared_difference(discriminator_gen_outputs, fake_label) / 2.0
        real = tf.losses.compute_weighted_loss(real, real_weights, scope, None, reduction)
        generated = tf.losses.compute_weighted_loss(generated, generated_weights, scope, None, reduction)
        loss = real + generated
        tf.losses.add_loss(loss, loss_collection)
    _summarize(
        add_summaries,
        discriminator_gen_lsq_loss=generated,
        discriminator_real_lsq_loss=real,
        discriminator_lsq_loss=loss,
    )
    return loss


def mutual_information_penalty(
    structured_generator_inputs: Any,
    predicted_distributions: Any,
    weights: Any = 1.0,
    scope: str | None = "generator_modified_loss",
    loss_collection: str | None = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """Minus the mean log probability of the structured inputs (Chen et al. 2016,
    https://arxiv.org/abs/1606.03657)."""
    pairs = zip(structured_generator_inputs, predicted_distributions, strict=True)
    found = [tf.reduce_mean(distribution.log_prob(value)) for value, distribution in pairs]
    loss = -1 * tf.losses.compute_weighted_loss(found, weights, scope, loss_collection, reduction)
    _summarize(add_summaries, mutual_information_penalty=loss)
    return loss


def combine_adversarial_loss(
    main_loss: Any,
    adversarial_loss: Any,
    weight_factor: Any = None,
    gradient_ratio: Any = None,
    gradient_ratio_epsilon: float = 1e-6,
    variables: Any = None,
    scalar_summaries: bool = True,
    gradient_summaries: bool = True,
    scope: str | None = None,
) -> Any:
    """A loss plus an adversarial loss times a weight: `weight_factor`, or the one that gives the gradients of
    `variables` (default: the trainable ones) the ratio `gradient_ratio`.

    Raises ValueError for both or neither of them.
    """
    if weight_factor is None and gradient_ratio is None:
        raise ValueError("`weight_factor` and `gradient_ratio` cannot both be `None.`")
    if weight_factor is not None and gradient_ratio is not None:
        raise ValueError("`weight_factor` and `gradient_ratio` cannot both be specified.")
    variables = tf.trainable_variables() if variables is None else variables
    with tf.name_scope(scope, "adversarial_loss", [main_loss, adversarial_loss]):
        if gradient_ratio is not None or gradient_summaries:
            main, adversarial = (
                tf.global_norm(tf.gradients(loss, variables)) for loss in (main_loss, adversarial_loss)
            )
        if weight_factor is not None:
            coefficient = weight_factor
        else:
            coefficient = main / (adversarial + gradient_ratio_epsilon) / gradient_ratio
        _summarize(scalar_summaries, main_loss=main_loss, adversarial_loss=adversarial_loss)
        if gradient_summaries:
            _summarize(True, main_loss_gradients=main, adversarial_loss_gradients=adversarial)
        if gradient_ratio is not None:
            _summarize(scalar_summaries, adversarial_coefficient=coefficient)
        return main_loss + tf.stop_gradient(coefficient) * adversarial_loss
