"""`tf.contrib.gan.estimator`: an Estimator of a generator and a discriminator."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.gan.estimator.gan_estimator": "GANEstimator SummaryType",
        "flowstone.contrib.gan.estimator.head": "GANHead gan_head",
    },
    "gan_estimator head",
)
