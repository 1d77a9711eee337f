"""Losses of models: each function takes a model's tuple; `wargs` has them with the tensors as arguments."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

_NAMES = (
    "acgan_discriminator_loss acgan_generator_loss combine_adversarial_loss"
    " least_squares_discriminator_loss least_squares_generator_loss minimax_discriminator_loss"
    " minimax_generator_loss modified_discriminator_loss modified_generator_loss mutual_information_penalty"
    " wasserstein_discriminator_loss wasserstein_generator_loss wasserstein_gradient_penalty"
)

__getattr__, __dir__ = package_names(
    globals(), {"flowstone.contrib.gan.losses.tuple_losses": _NAMES}, "wargs tuple_losses"
)
