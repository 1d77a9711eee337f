"""Stands in for the modules that TensorFlow converts Python's statements with: names that may be imported.

What is made with them, or called, is refused: no Python is converted here.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.names.refusals import refused_class, refused_function

__all__: list[str] = []

_INSTEAD = "tf.cond and tf.while_loop in the Python function itself"


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    refuse = refused_class if name[:1].isupper() else refused_function
    return refuse(f"tensorflow.python.autograph's {name}", _INSTEAD)
