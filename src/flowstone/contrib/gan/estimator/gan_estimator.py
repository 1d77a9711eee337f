"""An Estimator of a generator and a discriminator."""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.gan.estimator.head import gan_head
from flowstone.contrib.gan.eval import summaries
from flowstone.contrib.gan.namedtuples import GANModel
from flowstone.contrib.gan.train import gan_model
from flowstone.estimator.estimator import Estimator

__all__ = ["GANEstimator", "SummaryType"]


class SummaryType(enum.IntEnum):
    """What a GANEstimator summarises besides its losses."""

    NONE = 0
    VARIABLES = 1
    IMAGES = 2
    IMAGE_COMPARISON = 3


_SUMMARIES = {
    SummaryType.VARIABLES: summaries.add_gan_model_summaries,
    SummaryType.IMAGES: summaries.add_gan_model_image_summaries,
    SummaryType.IMAGE_COMPARISON: summaries.add_image_comparison_summaries,
}


class GANEstimator(Estimator):
    """Trains a generator and a discriminator against each other; predicts what the generator makes.

    The features of an input function are the generator's inputs, the labels the real data; when predicting
    there are no labels. Each step of training runs a step of the generator, then one of the discriminator.

    Args:
        model_dir: the directory of checkpoints and summaries.
        generator_fn: from inputs to data; may take `mode`.
        discriminator_fn: from data and the generator's inputs to what the losses take; may take `mode`.
        generator_loss_fn: from a GANModel to the generator's loss, as those of `tf.contrib.gan.losses`.
        discriminator_loss_fn: from a GANModel to the discriminator's loss.
        generator_optimizer: an optimiser, or a function without arguments that makes one.
        discriminator_optimizer: the same for the discriminator.
        add_summaries: a SummaryType or a list of them.
        use_loss_summaries: whether the losses are summarised; None leaves that to their functions.
        config: a RunConfig.
    """

    def __init__(
        self,
        model_dir: str | None = None,
        generator_fn: Callable[..., Any] | None = None,
        discriminator_fn: Callable[..., Any] | None = None,
        generator_loss_fn: Any = None,
        discriminator_loss_fn: Any = None,
        generator_optimizer: Any = None,
        discriminator_optimizer: Any = None,
        add_summaries: Any = None,
        use_loss_summaries: bool | None = True,
        config: Any = None,
    ) -> None:
        def model_fn(features: Any, labels: Any, mode: str) -> Any:
            head = gan_head(
                generator_loss_fn,
                discriminator_loss_fn,
                generator_optimizer,
                discriminator_optimizer,
                use_loss_summaries,
            )
            model = _model(mode, features, labels, generator_fn, discriminator_fn, add_summaries)
            return head.create_estimator_spec(features=None, mode=mode, logits=model, labels=None)

        super().__init__(model_fn=model_fn, model_dir=model_dir, config=config)


def _model(
    mode: str, inputs: Any, data: Any, generator_fn: Any, discriminator_fn: Any, add_summaries: Any
) -> GANModel:
    generator = _in_mode(generator_fn, mode)
    if mode == tf.estimator.ModeKeys.PREDICT:
        if data is not None:
            raise ValueError(f"`labels` must be `None` when mode is `predict`. Instead, found {data}")
        with tf.variable_scope("Generator") as scope:
            generated = generator(inputs)
        return GANModel(inputs, generated, None, scope, generator_fn, None, None, None, None, None, None)
    if data is None:
        raise ValueError("a GANEstimator is trained and evaluated on real data, as the labels")
    discriminator = _in_mode(discriminator_fn, mode)
    model = gan_model(generator, discriminator, data, inputs, check_shapes=False)
    kinds: Sequence[Any] = add_summaries if isinstance(add_summaries, (list, tuple)) else [add_summaries]
    for kind in kinds:
        if kind is not None and kind != SummaryType.NONE:
            _SUMMARIES[kind](model)
    return model


def _in_mode(function: Any, mode: str) -> Callable[..., Any]:
    """The function with the mode as its argument `mode`, if it has that."""
    if "mode" in inspect.signature(function).parameters:
        return functools.partial(function, mode=mode)
    taken: Callable[..., Any] = function
    return taken
