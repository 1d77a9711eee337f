"""`tf.contrib.stateless`: random values that depend on their seed alone."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.stateless.random_values": "stateless_random_normal stateless_random_uniform"
        " stateless_truncated_normal",
        "flowstone.random": "stateless_categorical stateless_multinomial",
    },
)
