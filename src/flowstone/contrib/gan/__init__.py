"""`tf.contrib.gan`: models of a generator and a discriminator, their losses and training
(Goodfellow et al. 2014, https://arxiv.org/abs/1406.2661)."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.gan.namedtuples": "ACGANModel GANLoss GANModel GANTrainOps GANTrainSteps"
        " InfoGANModel",
        "flowstone.contrib.gan.train": "acgan_model gan_loss gan_model gan_train gan_train_ops"
        " get_joint_train_hooks get_sequential_train_hooks get_sequential_train_steps infogan_model",
    },
    "estimator eval features losses",
)
