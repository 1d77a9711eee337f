"""`optimize_loss`: a training step from a loss, with clipping, noise, decay of the rate and summaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flowstone as tf
from flowstone.training.optimizers.moving_averages import assign_moving_average

__all__ = ["OPTIMIZER_CLS_NAMES", "OPTIMIZER_SUMMARIES", "adaptive_clipping_fn", "optimize_loss"]

Pairs = list[tuple[Any, Any]]

OPTIMIZER_CLS_NAMES: dict[str, Callable[..., Any]] = {
    "Adagrad": tf.train.AdagradOptimizer,
    "Adam": tf.train.AdamOptimizer,
    "Ftrl": tf.train.FtrlOptimizer,
    "Momentum": lambda learning_rate: tf.train.MomentumOptimizer(learning_rate, momentum=0.9),
    "RMSProp": tf.train.RMSPropOptimizer,
    "SGD": tf.train.GradientDescentOptimizer,
}

OPTIMIZER_SUMMARIES = ["learning_rate", "loss", "gradients", "gradient_norm", "global_gradient_norm"]


def optimize_loss(
    loss: Any, global_step: Any, learning_rate: Any, optimizer: Any,
    gradient_noise_scale: float | None = None, gradient_multipliers: Mapping[Any, Any] | None = None,
    clip_gradients: Any = None, learning_rate_decay_fn: Callable[[Any, Any], Any] | None = None,
    update_ops: Sequence[Any] | None = None, variables: Sequence[Any] | None = None, name: str | None = None,
    summaries: Sequence[str] | None = None, colocate_gradients_with_ops: bool = False,
    increment_global_step: bool = True,
) -> Any:  # fmt: skip
    """A tensor with the loss; to run it makes a step of training.

    Args:
        loss: a scalar.
        global_step: counts the steps; None is the graph's own, if it has one.
        learning_rate: a float or a scalar, kept in the variable ``learning_rate``; None leaves it to the
            optimiser.
        optimizer: a name of `OPTIMIZER_CLS_NAMES`, an optimiser, its class, or a function of the rate (or of
            nothing, without a rate) that returns one.
        gradient_noise_scale: the size of noise that is added to gradients.
        gradient_multipliers: factors of gradients, by variables or their names.
        clip_gradients: a length for all gradients together, or a function of the list of (gradient,
            variable) that returns such a list; see `adaptive_clipping_fn`.
        learning_rate_decay_fn: a function of the rate and the step that gives the rate to use.
        update_ops: run before the step; default: those of UPDATE_OPS.
        variables: what is trained; default: the trainable variables.
        name: the scope; default "OptimizeLoss".
        summaries: of `OPTIMIZER_SUMMARIES`; default: "loss", "learning_rate" and "global_gradient_norm".
        colocate_gradients_with_ops: places gradients with their operations.
        increment_global_step: whether the step counts.

    Raises:
        ValueError: an unknown optimiser or summary, a rate or a clipping of another form, or a decay of the
            rate without a step.
    """
    loss = tf.convert_to_tensor(loss)
    if loss.shape.ndims not in (0, None):
        raise ValueError(f"Expected scalar shape for {loss.name}, saw shape: {loss.shape}.")
    if global_step is None:
        global_step = tf.train.get_global_step()
    else:
        tf.train.assert_global_step(global_step)
    with tf.variable_scope(name, "OptimizeLoss", [loss, global_step]):
        if update_ops is None:
            update_ops = list(dict.fromkeys(tf.get_collection(tf.GraphKeys.UPDATE_OPS)))
        if update_ops:
            with tf.control_dependencies(update_ops):
                loss = tf.identity(loss)
        shown = _checked_summaries(summaries)
        rate = _learning_rate(learning_rate, learning_rate_decay_fn, global_step, shown)
        opt = _optimizer(optimizer, rate)
        trained = tf.trainable_variables() if variables is None else variables
        gradients = opt.compute_gradients(
            loss, trained, colocate_gradients_with_ops=colocate_gradients_with_ops
        )
        if gradient_noise_scale is not None:
            gradients = _add_scaled_noise_to_gradients(gradients, gradient_noise_scale)
        if gradient_multipliers is not None:
            gradients = _multiply_gradients(gradients, gradient_multipliers)
        gradients = _clipped(gradients, clip_gradients, shown, loss)
        grad_updates = opt.apply_gradients(
            gradients, global_step=global_step if increment_global_step else None, name="train"
        )
        with tf.control_dependencies([grad_updates]):
            return tf.identity(loss, name="control_dependency")


def _checked_summaries(summaries: Sequence[str] | None) -> Sequence[str]:
    if summaries is None:
        return ["loss", "learning_rate", "global_gradient_norm"]
    for summary in summaries:
        if summary not in OPTIMIZER_SUMMARIES:
            raise ValueError(
                f"Summaries should be one of [{', '.join(OPTIMIZER_SUMMARIES)}], you provided {summary}."
            )
    return summaries


def _learning_rate(given: Any, decay: Any, global_step: Any, shown: Sequence[str]) -> Any:
    rate = None
    if given is not None:
        if isinstance(given, tf.Tensor) and given.shape.ndims == 0:
            rate = given
        elif isinstance(given, float):
            if given < 0.0:
                raise ValueError(f"Invalid learning_rate {given}.")
            rate = tf.get_variable(
                "learning_rate", [], trainable=False, initializer=tf.constant_initializer(given)
            )
        else:
            raise ValueError(f"Learning rate should be 0d Tensor or float. Got {given} of type {type(given)}")
    if rate is not None and decay is not None:
        if global_step is None:
            raise ValueError("global_step is required for learning_rate_decay_fn.")
        rate = decay(rate, global_step)
        if "learning_rate" in shown:
            tf.summary.scalar("learning_rate", rate)
    return rate


def _optimizer(optimizer: Any, rate: Any) -> Any:
    kind = tf.train.Optimizer
    if isinstance(optimizer, kind):
        return optimizer
    what = "string" if isinstance(optimizer, str) else "class"
    is_class = isinstance(optimizer, type) and issubclass(optimizer, kind)
    if (is_class or isinstance(optimizer, str)) and rate is None:
        raise ValueError(
            f"Learning rate is None, but should be specified if optimizer is {what} ({optimizer})."
        )
    if isinstance(optimizer, str):
        if optimizer not in OPTIMIZER_CLS_NAMES:
            names = ", ".join(OPTIMIZER_CLS_NAMES)
            raise ValueError(f"Optimizer name should be one of [{names}], you provided {optimizer}.")
        return OPTIMIZER_CLS_NAMES[optimizer](learning_rate=rate)
    if is_class:
        return optimizer(learning_rate=rate)
    if not callable(optimizer):
        raise ValueError(
            "Unrecognized optimizer: should be string, subclass of Optimizer, instance of subclass of "
            f"Optimizer or function with one argument. Got {optimizer}."
        )
    made = optimizer() if rate is None else optimizer(rate)
    if not isinstance(made, kind):
        raise ValueError(f"Unrecognized optimizer: function should return subclass of Optimizer. Got {made}.")
    return made


# ---- gradients


def _clipped(gradients: Pairs, clip: Any, shown: Sequence[str], loss: Any) -> Pairs:
    """The gradients, clipped, with the summaries of them before and after."""
    norms = "gradient_norm" in shown or "global_gradient_norm" in shown
    if norms:
        tf.summary.scalar("global_norm/gradient_norm", _length(gradients))
    if isinstance(clip, float):
        gradients = _clip_gradients_by_norm(gradients, clip)
    elif callable(clip):
        gradients = clip(gradients)
    elif clip is not None:
        raise ValueError(f"Unknown type {type(clip)} for clip_gradients")
    if "loss" in shown:
        tf.summary.scalar("loss", loss)
    for gradient, variable in gradients:
        values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
        if values is None:
            continue
        name = variable.name.replace(":", "_")
        if "gradients" in shown:
            tf.summary.histogram(f"gradients/{name}", values)
        if "gradient_norm" in shown:
            tf.summary.scalar(f"gradient_norm/{name}", tf.global_norm([values]))
    if clip is not None and norms:
        tf.summary.scalar("global_norm/clipped_gradient_norm", _length(gradients))
    return gradients


def _length(gradients: Pairs) -> Any:
    return tf.global_norm([gradient for gradient, _ in gradients])


def _clip_gradients_by_norm(grads_and_vars: Pairs, clip_gradients: Any) -> Pairs:
    """The gradients, scaled down to this length together."""
    gradients, variables = zip(*grads_and_vars)
    clipped, _ = tf.clip_by_global_norm(list(gradients), clip_gradients)
    return list(zip(clipped, variables))


def _scaled(gradient: Any, factor: Any) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(gradient.values * factor, gradient.indices, gradient.dense_shape)
    return gradient * factor


def _multiply_gradients(grads_and_vars: Pairs, gradient_multipliers: Mapping[Any, Any]) -> Pairs:
    """The gradients of variables that are named, or have a name there, multiplied."""
    result = []
    for gradient, variable in grads_and_vars:
        key = variable if variable in gradient_multipliers else variable.name
        if gradient is not None and key in gradient_multipliers:
            gradient = _scaled(gradient, tf.cast(gradient_multipliers[key], gradient.dtype))
        result.append((gradient, variable))
    return result


def _add_scaled_noise_to_gradients(grads_and_vars: Pairs, gradient_noise_scale: float) -> Pairs:
    """The gradients plus truncated normal noise of this size."""
    noisy = []
    for gradient, variable in grads_and_vars:
        if gradient is not None:
            sparse = isinstance(gradient, tf.IndexedSlices)
            shape = gradient.dense_shape if sparse else gradient.shape
            gradient = gradient + tf.truncated_normal(shape) * gradient_noise_scale
        noisy.append((gradient, variable))
    return noisy


def adaptive_clipping_fn(
    std_factor: float = 2.0,
    decay: float = 0.95,
    static_max_norm: float | None = None,
    global_step: Any = None,
    report_summary: bool = False,
    epsilon: float = 1e-8,
    name: str | None = None,
) -> Callable[[Pairs], Pairs]:
    """A function for `clip_gradients` that clips gradients which are long compared with those before.

    The longest allowed is exp(mean + std_factor * deviation) of the logarithm of lengths; what is longer gets
    the length exp(mean).

    Args:
        std_factor: how many deviations above the mean are allowed.
        decay: of the moving averages of the mean and the square.
        static_max_norm: a length never to exceed.
        global_step: if given, the first steps average with less decay.
        report_summary: whether the allowed length is a summary.
        epsilon: a small number that keeps logarithms and roots finite.
        name: the scope of the averages; default "AdaptiveMaxNorm".
    """

    def gradient_clipping(grads_and_vars: Pairs) -> Pairs:
        norm = _length(grads_and_vars)
        max_norm, log_mean = _adaptive_max_norm(norm, std_factor, decay, global_step, epsilon, name)
        if report_summary:
            tf.summary.scalar("global_norm/adaptive_max_gradient_norm", max_norm)
        factor = tf.where(norm < max_norm, tf.ones_like(norm), tf.exp(log_mean) / norm)
        if static_max_norm is not None:
            factor = tf.minimum(static_max_norm / norm, factor)
        return [
            (gradient if gradient is None else _scaled(gradient, factor), variable)
            for gradient, variable in grads_and_vars
        ]

    return gradient_clipping


def _adaptive_max_norm(
    norm: Any, std_factor: float, decay: Any, global_step: Any, epsilon: float, name: str | None
) -> tuple[Any, Any]:
    """The longest length allowed, and the mean of the logarithm of lengths."""
    with tf.variable_scope(name, "AdaptiveMaxNorm", [norm]):
        log_norm = tf.log(norm + epsilon)

        def averaged(label: str, value: Any, decay: Any) -> Any:
            average = tf.get_variable(
                label,
                shape=value.shape,
                dtype=value.dtype,
                initializer=tf.zeros_initializer(),
                trainable=False,
            )
            return assign_moving_average(average, value, decay, zero_debias=False)

        if global_step is not None:
            count = tf.cast(global_step, tf.float32)
            decay = tf.minimum(decay, count / (count + 1.0))
        mean = averaged("mean", log_norm, decay)
        square = averaged("sq_mean", tf.square(log_norm), decay)
        deviation = tf.sqrt(tf.maximum(epsilon, square - tf.square(mean)))
        return tf.exp(mean + std_factor * deviation), mean
