"""`tf.contrib.quantization`: the ops with their own arguments, those of quantised values among them."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations import generated_ops
from flowstone.framework.names.alias_modules import alias_module


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        within = alias_module(f"tensorflow.contrib.quantization.{name}")
        return getattr(generated_ops, name) if within is None else within
    raise AttributeError(f"flowstone does not have the name tf.contrib.quantization.{name}")


def __dir__() -> list[str]:
    return dir(generated_ops)
