"""`tf.keras.applications.imagenet_utils`, which the package has as a module that it does not import."""

from __future__ import annotations

from types import ModuleType

from flowstone.keras.published import own

__all__ = ["extend"]


def extend(module: ModuleType) -> None:
    """Puts the module into `keras.applications`."""
    vars(module)["imagenet_utils"] = own("applications.imagenet_utils")
