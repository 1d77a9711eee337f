"""`tf.contrib.slim.nets`: networks for images, with the variables of published checkpoints."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(), {}, "alexnet inception overfeat resnet_utils resnet_v1 resnet_v2 vgg"
)
