"""`tf.contrib.sparsemax`: a softmax with zeros (Martins and Astudillo 2016, https://arxiv.org/abs/1602.02068)."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.sparsemax.sparsemax": "sparsemax",
        "flowstone.contrib.sparsemax.sparsemax_loss": "sparsemax_loss",
    },
)
