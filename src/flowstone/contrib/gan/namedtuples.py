"""The tuples that functions of `tf.contrib.gan` take and give."""

from __future__ import annotations

from collections import namedtuple

__all__ = ["ACGANModel", "GANLoss", "GANModel", "GANTrainOps", "GANTrainSteps", "InfoGANModel"]


class GANModel(
    namedtuple(
        "GANModel",
        (
            "generator_inputs",
            "generated_data",
            "generator_variables",
            "generator_scope",
            "generator_fn",
            "real_data",
            "discriminator_real_outputs",
            "discriminator_gen_outputs",
            "discriminator_variables",
            "discriminator_scope",
            "discriminator_fn",
        ),
    )
):
    """A generator and a discriminator: functions, scopes, variables, inputs and outputs."""


class InfoGANModel(
    namedtuple(
        "InfoGANModel",
        (
            "generator_inputs",
            "generated_data",
            "generator_variables",
            "generator_scope",
            "generator_fn",
            "real_data",
            "discriminator_real_outputs",
            "discriminator_gen_outputs",
            "discriminator_variables",
            "discriminator_scope",
            "discriminator_fn",
            "structured_generator_inputs",
            "predicted_distributions",
            "discriminator_and_aux_fn",
        ),
    )
):
    """A model with structured inputs, whose distributions the discriminator predicts."""


class ACGANModel(
    namedtuple(
        "ACGANModel",
        (
            "generator_inputs",
            "generated_data",
            "generator_variables",
            "generator_scope",
            "generator_fn",
            "real_data",
            "discriminator_real_outputs",
            "discriminator_gen_outputs",
            "discriminator_variables",
            "discriminator_scope",
            "discriminator_fn",
            "one_hot_labels",
            "discriminator_real_classification_logits",
            "discriminator_gen_classification_logits",
        ),
    )
):
    """A model whose discriminator also classifies."""


class GANLoss(namedtuple("GANLoss", ("generator_loss", "discriminator_loss"))):
    """The losses, scalars."""


class GANTrainOps(
    namedtuple("GANTrainOps", ("generator_train_op", "discriminator_train_op", "global_step_inc_op"))
):
    """What trains the generator, what trains the discriminator, what counts a step."""


class GANTrainSteps(namedtuple("GANTrainSteps", ("generator_train_steps", "discriminator_train_steps"))):
    """How often each of them is trained in a step."""
