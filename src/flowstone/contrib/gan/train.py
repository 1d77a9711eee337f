"""Making models of a generator and a discriminator, their losses, and training both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.gan.losses import tuple_losses
from flowstone.contrib.gan.namedtuples import (
    ACGANModel,
    GANLoss,
    GANModel,
    GANTrainOps,
    GANTrainSteps,
    InfoGANModel,
)
from flowstone.contrib.training.training import create_train_op, train
from flowstone.training.hooks.session_run_hook import SessionRunHook

__all__ = [
    "acgan_model",
    "gan_loss",
    "gan_model",
    "gan_train",
    "gan_train_ops",
    "get_joint_train_hooks",
    "get_sequential_train_hooks",
    "get_sequential_train_steps",
    "infogan_model",
]


def _tensors(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: tf.convert_to_tensor(value) for key, value in values.items()}
    if isinstance(values, (list, tuple)):
        return [tf.convert_to_tensor(value) for value in values]
    return tf.convert_to_tensor(values)


def _networks(
    functions: tuple[Any, Any], scopes: tuple[Any, Any], real_data: Any, inputs: Any, check_shapes: bool
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """The scopes, generated data, real data, and what the discriminator says of these."""
    generator_fn, discriminator_fn = functions
    with tf.variable_scope(scopes[0]) as generator_scope:
        generated = generator_fn(inputs)
    with tf.variable_scope(scopes[1]) as discriminator_scope:
        of_generated = discriminator_fn(generated, inputs)
    with tf.variable_scope(discriminator_scope, reuse=True):
        real_data = tf.convert_to_tensor(real_data)
        of_real = discriminator_fn(real_data, inputs)
    if check_shapes and not generated.shape.is_compatible_with(real_data.shape):
        raise ValueError(
            f"Generator output shape ({generated.shape}) must be the same shape as real data"
            f" ({real_data.shape})."
        )
    return generator_scope, discriminator_scope, generated, real_data, of_generated, of_real


def _fields(
    inputs: Any, generator_fn: Any, discriminator_fn: Any, made: Any, real: Any, generated: Any
) -> tuple[Any, ...]:
    generator_scope, discriminator_scope, data, real_data, _, _ = made
    return (
        inputs,
        data,
        tf.contrib.framework.get_trainable_variables(generator_scope),
        generator_scope,
        generator_fn,
        real_data,
        real,
        generated,
        tf.contrib.framework.get_trainable_variables(discriminator_scope),
        discriminator_scope,
        discriminator_fn,
    )


def gan_model(
    generator_fn: Callable[..., Any],
    discriminator_fn: Callable[..., Any],
    real_data: Any,
    generator_inputs: Any,
    generator_scope: Any = "Generator",
    discriminator_scope: Any = "Discriminator",
    check_shapes: bool = True,
) -> GANModel:
    """A model.

    Args:
        generator_fn: from the inputs to generated data.
        discriminator_fn: from data and the generator's inputs to outputs (logits, for most losses).
        real_data: the data that generated data should be like.
        generator_inputs: a tensor, or a list or dict of tensors.
        generator_scope, discriminator_scope: the variable scopes.
        check_shapes: whether generated data must have the shape of real data, else ValueError.
    """
    inputs = _tensors(generator_inputs)
    functions, scopes = (generator_fn, discriminator_fn), (generator_scope, discriminator_scope)
    made = _networks(functions, scopes, real_data, inputs, check_shapes)
    return GANModel(*_fields(inputs, generator_fn, discriminator_fn, made, made[5], made[4]))


def infogan_model(
    generator_fn: Callable[..., Any],
    discriminator_fn: Callable[..., Any],
    real_data: Any,
    unstructured_generator_inputs: Sequence[Any],
    structured_generator_inputs: Sequence[Any],
    generator_scope: Any = "Generator",
    discriminator_scope: Any = "Discriminator",
) -> InfoGANModel:
    """A model some inputs of which, the structured ones, can be told from the generated data.

    `discriminator_fn` returns outputs and a list of distributions, one for each structured input. The other
    arguments are `gan_model`'s; the generator gets the list of all inputs.
    """
    structured = _tensors(list(structured_generator_inputs))
    inputs = [*_tensors(list(unstructured_generator_inputs)), *structured]
    functions, scopes = (generator_fn, discriminator_fn), (generator_scope, discriminator_scope)
    made = _networks(functions, scopes, real_data, inputs, True)
    (generated, distributions), (real, _) = made[4], made[5]

    def outputs_only(data: Any, given: Any) -> Any:
        return discriminator_fn(data, given)[0]

    fields = _fields(inputs, generator_fn, outputs_only, made, real, generated)
    return InfoGANModel._make([*fields, structured, distributions, discriminator_fn])


def acgan_model(
    generator_fn: Callable[..., Any],
    discriminator_fn: Callable[..., Any],
    real_data: Any,
    generator_inputs: Any,
    one_hot_labels: Any,
    generator_scope: Any = "Generator",
    discriminator_scope: Any = "Discriminator",
    check_shapes: bool = True,
) -> ACGANModel:
    """A model whose discriminator returns outputs and logits of classes.

    `one_hot_labels` is [batch, classes]; the other arguments are `gan_model`'s.
    """
    inputs, labels = _tensors(generator_inputs), tf.convert_to_tensor(one_hot_labels)
    functions, scopes = (generator_fn, discriminator_fn), (generator_scope, discriminator_scope)
    made = _networks(functions, scopes, real_data, inputs, check_shapes)
    (generated, generated_logits), (real, real_logits) = made[4], made[5]
    fields = _fields(inputs, generator_fn, discriminator_fn, made, real, generated)
    return ACGANModel._make([*fields, labels, real_logits, generated_logits])


def _check_loss_arguments(
    model: Any, penalty_weight: Any, information_weight: Any, class_weights: Any
) -> None:
    if not isinstance(penalty_weight, tf.Tensor) and penalty_weight is not None and penalty_weight <= 0:
        raise ValueError(f"`gradient_penalty_weight` must be greater than 0. Instead, was {penalty_weight}")
    if information_weight is not None and not isinstance(model, InfoGANModel):
        raise ValueError(
            "When `mutual_information_penalty_weight` is provided, `model` must be an `InfoGANModel`."
            f" Instead, was {type(model)}."
        )
    if any(weight is not None for weight in class_weights) and not isinstance(model, ACGANModel):
        raise ValueError(
            "When `aux_cond_generator_weight` or `aux_cond_discriminator_weight` is provided, `model` must be"
            f" an `ACGANModel`. Instead, was {type(model)}."
        )


def gan_loss(
    model: Any,
    generator_loss_fn: Callable[..., Any] = tuple_losses.wasserstein_generator_loss,
    discriminator_loss_fn: Callable[..., Any] = tuple_losses.wasserstein_discriminator_loss,
    gradient_penalty_weight: Any = None,
    gradient_penalty_epsilon: float = 1e-10,
    mutual_information_penalty_weight: Any = None,
    aux_cond_generator_weight: Any = None,
    aux_cond_discriminator_weight: Any = None,
    add_summaries: bool = True,
) -> GANLoss:
    """The losses of a model, with the regularisation losses of each part.

    Args:
        model: of `gan_model` and its kin.
        generator_loss_fn, discriminator_loss_fn: from (model, add_summaries=…) to a loss.
        gradient_penalty_weight: of `wasserstein_gradient_penalty`, `gradient_penalty_epsilon` is its epsilon.
        mutual_information_penalty_weight: of `mutual_information_penalty`, in both losses.
        aux_cond_generator_weight, aux_cond_discriminator_weight: of the losses of the classes.
        add_summaries: whether the parts are summaries.

    Raises ValueError for a weight whose model this is not, and a gradient penalty's of 0 or less.
    """
    class_weights = aux_cond_generator_weight, aux_cond_discriminator_weight
    _check_loss_arguments(model, gradient_penalty_weight, mutual_information_penalty_weight, class_weights)
    generator = generator_loss_fn(model, add_summaries=add_summaries)
    discriminator = discriminator_loss_fn(model, add_summaries=add_summaries)
    if gradient_penalty_weight is not None:
        penalty = tuple_losses.wasserstein_gradient_penalty(
            model, epsilon=gradient_penalty_epsilon, add_summaries=add_summaries
        )
        discriminator += gradient_penalty_weight * penalty
    if mutual_information_penalty_weight is not None:
        penalty = tuple_losses.mutual_information_penalty(model, add_summaries=add_summaries)
        generator += mutual_information_penalty_weight * penalty
        discriminator += mutual_information_penalty_weight * penalty
    if aux_cond_generator_weight is not None:
        loss = tuple_losses.acgan_generator_loss(model, add_summaries=add_summaries)
        generator += aux_cond_generator_weight * loss
    if aux_cond_discriminator_weight is not None:
        loss = tuple_losses.acgan_discriminator_loss(model, add_summaries=add_summaries)
        discriminator += aux_cond_discriminator_weight * loss
    of_scopes = [
        tf.losses.get_regularization_loss(scope.name)
        for scope in (model.generator_scope, model.discriminator_scope)
    ]
    return GANLoss(generator + of_scopes[0], discriminator + of_scopes[1])


def gan_train_ops(
    model: Any,
    loss: GANLoss,
    generator_optimizer: Any,
    discriminator_optimizer: Any,
    check_for_unused_update_ops: bool = True,
    **kwargs: Any,
) -> GANTrainOps:
    """What trains both parts; each runs the update operations of its own scope.

    Further arguments are those of `tf.contrib.training.create_train_op`. With `check_for_unused_update_ops`
    ValueError for update operations of neither scope.
    """
    step = tf.train.get_or_create_global_step()
    collected = [
        list(tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope.name))
        for scope in (model.generator_scope, model.discriminator_scope)
    ]
    if check_for_unused_update_ops:
        unused = set(tf.get_collection(tf.GraphKeys.UPDATE_OPS)).difference(*collected)
        if unused:
            raise ValueError(f"There are unused update ops: {sorted(op.name for op in unused)}")
    made = []
    parts = (
        ("generator_train", loss.generator_loss, generator_optimizer, model.generator_variables),
        (
            "discriminator_train",
            loss.discriminator_loss,
            discriminator_optimizer,
            model.discriminator_variables,
        ),
    )
    for (scope, value, optimizer, variables), updates in zip(parts, collected, strict=True):
        with tf.name_scope(scope):
            made.append(
                create_train_op(
                    value,
                    optimizer,
                    global_step=None,
                    update_ops=updates,
                    variables_to_train=variables,
                    **kwargs,
                )
            )
    return GANTrainOps(made[0], made[1], step.assign_add(1))


class RunTrainOpsHook(SessionRunHook):
    """Runs operations, `train_steps` times, before each step."""

    def __init__(self, train_ops: Any, train_steps: int) -> None:
        self._train_ops = list(train_ops) if isinstance(train_ops, (list, tuple)) else [train_ops]
        self._train_steps = train_steps

    def before_run(self, run_context: Any) -> None:
        """Runs them."""
        for _ in range(self._train_steps):
            run_context.session.run(self._train_ops)


def get_sequential_train_hooks(
    train_steps: GANTrainSteps = GANTrainSteps(1, 1),  # noqa: B008 - TensorFlow's default
) -> Callable[[GANTrainOps], list[Any]]:
    """A function from `GANTrainOps` to hooks that train the generator, then the discriminator."""

    def get_hooks(train_ops: GANTrainOps) -> list[Any]:
        return [
            RunTrainOpsHook(train_ops.generator_train_op, train_steps.generator_train_steps),
            RunTrainOpsHook(train_ops.discriminator_train_op, train_steps.discriminator_train_steps),
        ]

    return get_hooks


def get_joint_train_hooks(
    train_steps: GANTrainSteps = GANTrainSteps(1, 1),  # noqa: B008 - TensorFlow's default
) -> Callable[[GANTrainOps], list[Any]]:
    """A function from `GANTrainOps` to hooks that train both at once, then the one that has more steps."""
    generator, discriminator = train_steps
    joint = min(generator, discriminator)

    def get_hooks(train_ops: GANTrainOps) -> list[Any]:
        both = [train_ops.generator_train_op, train_ops.discriminator_train_op]
        more = RunTrainOpsHook(both[0 if generator > joint else 1], max(generator, discriminator) - joint)
        return [RunTrainOpsHook(both, joint), more]

    return get_hooks


def gan_train(
    train_ops: GANTrainOps,
    logdir: Any,
    get_hooks_fn: Callable[[GANTrainOps], list[Any]] | None = None,
    master: str = "",
    is_chief: bool = True,
    scaffold: Any = None,
    hooks: Sequence[Any] | None = None,
    chief_only_hooks: Sequence[Any] | None = None,
    save_checkpoint_secs: float | None = 600,
    save_summaries_steps: int | None = 100,
    config: Any = None,
) -> Any:
    """Trains until a hook stops that, with `get_hooks_fn`'s hooks (default: `get_sequential_train_hooks()`).

    The other arguments are those of `tf.contrib.training.train`. Returns the global step.
    """
    own = (get_hooks_fn or get_sequential_train_hooks())(train_ops)
    return train(
        train_ops.global_step_inc_op,
        logdir,
        master=master,
        is_chief=is_chief,
        scaffold=scaffold,
        hooks=[*own, *(hooks or [])],
        chief_only_hooks=chief_only_hooks,
        save_checkpoint_secs=save_checkpoint_secs,
        save_summaries_steps=save_summaries_steps,
        config=config,
    )


def get_sequential_train_steps(
    train_steps: GANTrainSteps = GANTrainSteps(1, 1),  # noqa: B008 - TensorFlow's default
) -> Callable[..., tuple[Any, bool]]:
    """A function for the `train_step_fn` of slim's training loop: the generator's steps, then the other's."""

    def steps(sess: Any, train_ops: Any, global_step: Any, train_step_kwargs: Any) -> tuple[Any, bool]:
        losses = []
        for op, count in zip(train_ops[:2], train_steps, strict=True):
            value = 0
            for _ in range(count):
                value = sess.run(op)
            losses.append(value)
        sess.run(train_ops.global_step_inc_op)
        total = losses[0] + losses[1]
        if "should_log" in train_step_kwargs and sess.run(train_step_kwargs["should_log"]):
            tf.logging.info("global step %d: loss = %.4f", sess.run(global_step), total)
        stop = "should_stop" in train_step_kwargs and sess.run(train_step_kwargs["should_stop"])
        return total, bool(stop)

    return steps
