"""Names that `tf.keras` gives to layers and models: `dense`, then `dense_1`, `dense_2`."""

from __future__ import annotations

import re

from flowstone.keras.sessions import get_uid

__all__ = ["snake_case", "to_snake_case", "unique_name"]


def snake_case(name: str) -> str:
    """The name of a class in lower case, with underscores; of a private class, behind "private"."""
    parted = re.sub("(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    lower = re.sub("([a-z])([A-Z])", r"\1_\2", parted).lower()
    return f"private{lower}" if lower.startswith("_") else lower


to_snake_case = snake_case  # its name in `tensorflow.python.keras.utils.generic_utils`


def unique_name(class_name: str) -> str:
    """A name of the default graph's that no layer was given yet by this function."""
    base = snake_case(class_name)
    number = get_uid(f"{base} of tf.keras") - 1
    return f"{base}_{number}" if number else base
