"""The losses with a model's tuple as the argument that the tensors come from."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from flowstone.contrib.gan.losses import wargs

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


def _of_model(loss: Callable[..., Any]) -> Callable[..., Any]:
    """The loss with a model in the place of the arguments that have a field's name."""

    # A model given by keyword has this parameter's name, TensorFlow's.
    def of_model(gan_model: Any, **kwargs: Any) -> Any:
        names = [name for name in inspect.signature(loss).parameters if name in gan_model._fields]
        for name in names:
            if name in kwargs:
                raise ValueError(f"`{name}` comes from the model: it can't be given besides.")
        return loss(**{name: getattr(gan_model, name) for name in names}, **kwargs)

    functools.update_wrapper(of_model, loss)
    del of_model.__wrapped__  # type: ignore[attr-defined]  # its parameters are the loss's
    of_model.__doc__ = f"`wargs.{loss.__name__}` of a model's tensors; further arguments by keyword."
    return of_model


acgan_discriminator_loss = _of_model(wargs.acgan_discriminator_loss)
acgan_generator_loss = _of_model(wargs.acgan_generator_loss)
least_squares_discriminator_loss = _of_model(wargs.least_squares_discriminator_loss)
least_squares_generator_loss = _of_model(wargs.least_squares_generator_loss)
minimax_discriminator_loss = _of_model(wargs.minimax_discriminator_loss)
minimax_generator_loss = _of_model(wargs.minimax_generator_loss)
modified_discriminator_loss = _of_model(wargs.modified_discriminator_loss)
modified_generator_loss = _of_model(wargs.modified_generator_loss)
mutual_information_penalty = _of_model(wargs.mutual_information_penalty)
wasserstein_discriminator_loss = _of_model(wargs.wasserstein_discriminator_loss)
wasserstein_generator_loss = _of_model(wargs.wasserstein_generator_loss)
wasserstein_gradient_penalty = _of_model(wargs.wasserstein_gradient_penalty)


def combine_adversarial_loss(
    gan_loss: Any,
    gan_model: Any,
    non_adversarial_loss: Any,
    weight_factor: Any = None,
    gradient_ratio: Any = None,
    gradient_ratio_epsilon: float = 1e-6,
    scalar_summaries: bool = True,
    gradient_summaries: bool = True,
) -> Any:
    """The losses with the generator's combined with another loss, as `wargs.combine_adversarial_loss` does.

    Gradients are those of the generator's variables.
    """
    combined = wargs.combine_adversarial_loss(
        non_adversarial_loss,
        gan_loss.generator_loss,
        weight_factor,
        gradient_ratio,
        gradient_ratio_epsilon,
        gan_model.generator_variables,
        scalar_summaries,
        gradient_summaries,
    )
    return gan_loss._replace(generator_loss=combined)
