"""`tf.contrib.util`: constants in graphs and messages of tensors."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone": "constant_value=get_static_value make_ndarray make_tensor_proto",
    },
)
