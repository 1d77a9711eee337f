"""Scores of generated images by what a classifier makes of them.

The classifier score is the Inception score of Salimans et al. 2016 for any classifier, the distance the
Fréchet Inception distance of Heusel et al. 2017.
"""

from __future__ import annotations

import functools
import os
import tarfile
import tempfile
from collections.abc import Callable
from typing import Any
from urllib.request import urlretrieve

import flowstone as tf
from flowstone.contrib.gan.eval.activation_metrics import (
    classifier_score_from_logits,
    frechet_classifier_distance_from_activations,
    kernel_classifier_distance_and_std_from_activations,
)

__all__ = [
    "classifier_score",
    "classifier_score_from_logits",
    "frechet_classifier_distance",
    "frechet_classifier_distance_from_activations",
    "frechet_inception_distance",
    "get_graph_def_from_disk",
    "get_graph_def_from_resource",
    "get_graph_def_from_url_tarball",
    "inception_score",
    "kernel_classifier_distance",
    "kernel_classifier_distance_and_std",
    "preprocess_image",
    "run_image_classifier",
    "run_inception",
]

INCEPTION_URL = "http://download.tensorflow.org/models/frozen_inception_v3_2017_09_13.tar.gz"
INCEPTION_FROZEN_GRAPH = "frozen_inception_v3.pb"
INCEPTION_V3_INPUT = "input"
INCEPTION_V3_OUTPUT = "InceptionV3/Logits/SpatialSqueeze:0"
INCEPTION_V3_FINAL_POOL = "InceptionV3/Logits/AvgPool_1a_8x8/AvgPool:0"
INCEPTION_DEFAULT_IMAGE_SIZE = 299


def preprocess_image(
    image: Any,
    height: int = INCEPTION_DEFAULT_IMAGE_SIZE,
    width: int = INCEPTION_DEFAULT_IMAGE_SIZE,
    central_fraction: float = 0.875,
    scope: str | None = None,
) -> Any:
    """An image's centre, resized, with values from -1 to 1, as Inception networks take it.

    Args:
        image: tensor of shape [height, width, 3].
        height: of the result.
        width: of the result.
        central_fraction: of each side, which is kept.
        scope: a name scope.

    Raises ValueError for an image of another rank.
    """
    with tf.name_scope(scope, "eval_image", [image]):
        image = tf.image.convert_image_dtype(image, tf.float32)
        image = tf.image.central_crop(image, central_fraction)
        image = tf.squeeze(tf.image.resize_bilinear(tf.expand_dims(image, 0), [height, width]), [0])
        image = (image - 0.5) * 2.0
        image.set_shape([height, width, 3])
        return image


def get_graph_def_from_disk(filename: str) -> Any:
    """The GraphDef that a file has the bytes of; NotFoundError if there is none."""
    with tf.gfile.GFile(filename, "rb") as file:
        return tf.GraphDef.FromString(file.read())


def get_graph_def_from_resource(filename: str) -> Any:
    """The GraphDef that a data file of the program has the bytes of."""
    return tf.GraphDef.FromString(tf.resource_loader.load_resource(filename))


def get_graph_def_from_url_tarball(url: str, filename: str) -> Any:
    """The GraphDef in a member of a tar archive, which is fetched and not kept."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "archive")
        urlretrieve(url, path)
        with tarfile.open(path) as archive:
            member = archive.extractfile(filename)
            if member is None:
                raise ValueError(f"{filename} is no file of {url}")
            return tf.GraphDef.FromString(member.read())


def _default_graph_def_fn() -> Any:
    return get_graph_def_from_url_tarball(INCEPTION_URL, INCEPTION_FROZEN_GRAPH)


def run_image_classifier(
    tensor: Any, graph_def: Any, input_tensor: str, output_tensor: str, scope: str = "RunClassifier"
) -> Any:
    """The output of a graph for images: `graph_def` is imported with `tensor` in place of `input_tensor`."""
    mapped = {input_tensor: tensor}
    outputs: Any = tf.import_graph_def(graph_def, mapped, return_elements=[output_tensor], name=scope)
    return outputs[0]


def run_inception(
    images: Any,
    graph_def: Any = None,
    default_graph_def_fn: Callable[[], Any] = _default_graph_def_fn,
    image_size: int = INCEPTION_DEFAULT_IMAGE_SIZE,
    input_tensor: str = INCEPTION_V3_INPUT,
    output_tensor: str = INCEPTION_V3_OUTPUT,
) -> Any:
    """The output of an Inception network for images, as vectors.

    Args:
        images: tensor of shape [batch size, image_size, image_size, channels], from `preprocess_image`.
        graph_def: the network; by default what `default_graph_def_fn` gives, which fetches Inception v3.
        default_graph_def_fn: a function without arguments, which gives a GraphDef.
        image_size: of the images.
        input_tensor: what stands for the images in the graph.
        output_tensor: what is returned, flattened to [batch size, features].

    Raises ValueError for images of another size.
    """
    images.shape.assert_is_compatible_with([None, image_size, image_size, None])
    if graph_def is None:
        graph_def = default_graph_def_fn()
    output = run_image_classifier(images, graph_def, input_tensor, output_tensor)
    return tf.contrib.layers.flatten(output)


def _classified(images: Any, classifier_fn: Callable[[Any], Any], num_batches: int) -> Any:
    """The classifier's outputs of all images, computed in batches one after another."""
    batches = tf.stack(tf.split(images, num_batches))
    outputs = tf.map_fn(
        classifier_fn, batches, parallel_iterations=1, back_prop=False, swap_memory=True, name="RunClassifier"
    )
    outputs = tf.concat(tf.unstack(outputs, num_batches), 0)
    outputs.shape.assert_has_rank(2)
    return outputs


def classifier_score(images: Any, classifier_fn: Callable[[Any], Any], num_batches: int = 1) -> Any:
    """The exponential of the mean divergence of each image's classes from those of all images.

    Args:
        images: generated images, of shape [n, ...].
        classifier_fn: from images to logits, of shape [n, classes].
        num_batches: in how many batches the classifier runs; divides n.

    Returns a scalar from 1 to the number of classes; the higher, the more distinct and varied the images are.
    Raises ValueError if n is not divided or the logits have another rank.
    """
    return classifier_score_from_logits(_classified(images, classifier_fn, num_batches))


def frechet_classifier_distance(
    real_images: Any, generated_images: Any, classifier_fn: Callable[[Any], Any], num_batches: int = 1
) -> Any:
    """The Fréchet distance of normal distributions of a classifier's outputs of real and generated images.

    Args:
        real_images: of shape [n, ...].
        generated_images: of shape [n, ...].
        classifier_fn: from images to outputs of shape [n, features].
        num_batches: in how many batches the classifier runs; divides n.

    Returns a scalar: 0 for equal distributions. Raises ValueError if n is not divided or not the same, or the
    outputs have another rank.
    """
    real = _classified(real_images, classifier_fn, num_batches)
    generated = _classified(generated_images, classifier_fn, num_batches)
    real.shape.assert_is_compatible_with(generated.shape)
    return frechet_classifier_distance_from_activations(real, generated)


def kernel_classifier_distance(
    real_images: Any,
    generated_images: Any,
    classifier_fn: Callable[[Any], Any],
    num_classifier_batches: int = 1,
    max_block_size: int = 1024,
    dtype: Any = None,
) -> Any:
    """The estimate of `kernel_classifier_distance_and_std`, without its deviation."""
    return kernel_classifier_distance_and_std(
        real_images, generated_images, classifier_fn, num_classifier_batches, max_block_size, dtype
    )[0]


def kernel_classifier_distance_and_std(
    real_images: Any,
    generated_images: Any,
    classifier_fn: Callable[[Any], Any],
    num_classifier_batches: int = 1,
    max_block_size: int = 1024,
    dtype: Any = None,
) -> Any:
    """`kernel_classifier_distance_and_std_from_activations` of what a classifier makes of images.

    The classifier runs in `num_classifier_batches` batches, which divide the numbers of images.
    """
    real, generated = (
        _classified(images, classifier_fn, num_classifier_batches)
        for images in (real_images, generated_images)
    )
    return kernel_classifier_distance_and_std_from_activations(real, generated, max_block_size, dtype)


inception_score = functools.partial(
    classifier_score, classifier_fn=functools.partial(run_inception, output_tensor=INCEPTION_V3_OUTPUT)
)
frechet_inception_distance = functools.partial(
    frechet_classifier_distance,
    classifier_fn=functools.partial(run_inception, output_tensor=INCEPTION_V3_FINAL_POOL),
)
