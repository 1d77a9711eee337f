"""Summaries of a GANModel: its images, variables and losses of regularisation."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.gan.eval.eval_utils import image_grid, image_reshaper

__all__ = [
    "add_gan_model_image_summaries",
    "add_gan_model_summaries",
    "add_image_comparison_summaries",
    "add_regularization_loss_summaries",
]


def _require_images(images: Any) -> None:
    images.shape.assert_has_rank(4)
    images.shape[1:].assert_is_fully_defined()


def add_gan_model_image_summaries(gan_model: Any, grid_size: int = 4) -> None:
    """Adds grids of real and of generated images, `grid_size` by `grid_size`, and the model's summaries.

    Raises ValueError if the data are not images of known size, or too few.
    """
    for name, images in (("real_data", gan_model.real_data), ("generated_data", gan_model.generated_data)):
        _require_images(images)
        height, width, channels = images.shape.as_list()[1:]
        grid = image_grid(images[: grid_size**2], (grid_size, grid_size), (height, width), channels)
        tf.summary.image(name, grid, max_outputs=1)
    add_gan_model_summaries(gan_model)


def add_image_comparison_summaries(
    gan_model: Any, num_comparisons: int = 2, display_diffs: bool = False
) -> None:
    """Adds an image of what the generator was given, what it made of it, and the real data below each other.

    Args:
        gan_model: a GANModel whose generator is given images of the size of its results.
        num_comparisons: how many stand side by side.
        display_diffs: whether a row has the absolute differences of generated and real data.

    Raises ValueError if inputs or data are not images.
    """
    kinds = [gan_model.generator_inputs, gan_model.generated_data, gan_model.real_data]
    for images in kinds:
        _require_images(images)
    rows = [tf.unstack(images[:num_comparisons], num_comparisons) for images in kinds]
    if display_diffs:
        pairs = zip(rows[1], rows[2], strict=True)
        rows.append([tf.abs(real - generated) for generated, real in pairs])
    listed = [image for row in rows for image in row]
    tf.summary.image("image_comparison", image_reshaper(listed, num_cols=num_comparisons), max_outputs=1)


def add_gan_model_summaries(gan_model: Any) -> None:
    """Adds histograms of the generator's and the discriminator's variables."""
    with tf.name_scope("generator_variables"):
        for variable in gan_model.generator_variables:
            tf.summary.histogram(variable.name, variable)
    with tf.name_scope("discriminator_variables"):
        for variable in gan_model.discriminator_variables:
            tf.summary.histogram(variable.name, variable)


def add_regularization_loss_summaries(gan_model: Any) -> None:
    """Adds the losses of regularisation in the generator's and in the discriminator's scope."""
    for part, scope in (
        ("generator", gan_model.generator_scope),
        ("discriminator", gan_model.discriminator_scope),
    ):
        if scope is not None:
            loss = tf.losses.get_regularization_loss(scope.name)
            tf.summary.scalar(f"{part}_regularization_loss", loss)
