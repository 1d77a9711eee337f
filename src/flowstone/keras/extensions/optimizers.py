"""`tf.keras.optimizers`: its classes, and an optimiser by its name, configuration or class of `tf.train`."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

import flowstone as tf
from flowstone.contrib.mixed_precision.loss_scaling import wrap_with
from flowstone.keras.extensions import learning_rate_schedules, optimizer_kinds, optimizer_moments
from flowstone.keras.extensions.optimizer_base import Optimizer
from flowstone.keras.published import own

__all__ = ["deserialize", "extend", "get", "serialize"]

_FILES = (optimizer_kinds, optimizer_moments)
_CLASSES: dict[str, Any] = {
    name: getattr(file, name) for file in _FILES for name in file.__all__ if name != "Configured"
}


def serialize(optimizer: Any) -> Any:
    """The class and the configuration of an optimiser."""
    return own("utils.generic_utils").serialize_keras_object(optimizer)


def deserialize(config: dict[str, Any], custom_objects: Any = None) -> Any:
    """The optimiser that `serialize` gave `config` for."""
    known = {name.lower(): made for name, made in _CLASSES.items()}
    lower = config["class_name"].lower()
    if lower in known:
        config = {**config, "class_name": lower}
    return own("utils.generic_utils").deserialize_keras_object(
        config, module_objects=known, custom_objects=custom_objects, printable_module_name="optimizer"
    )


def get(identifier: Any) -> Any:
    """The optimiser of a name, a configuration or an optimiser, also one of `tf.train`; or ValueError."""
    if isinstance(identifier, Optimizer):
        return identifier
    if isinstance(identifier, tf.train.Optimizer):
        return own("optimizers").TFOptimizer(identifier)
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, str):
        return deserialize({"class_name": identifier, "config": {}})
    if isinstance(identifier, own("optimizers").TFOptimizer):
        return identifier
    raise ValueError("Could not interpret optimizer identifier:", identifier)


def _with_loss_scale(optimizer: Any, loss_scale: Any) -> Any:
    make = import_module("flowstone.keras.mixed_precision.loss_scale_optimizer").LossScaleOptimizer
    return make(optimizer, loss_scale)


def extend(module: ModuleType) -> None:
    """Puts the classes and functions into `keras.optimizers`."""
    names = vars(module)
    names.update(_CLASSES, Optimizer=Optimizer, serialize=serialize, deserialize=deserialize, get=get)
    for name in _CLASSES:
        names.pop(name.lower(), None)
    wrap_with(Optimizer, _with_loss_scale)
    names["schedules"] = learning_rate_schedules
