"""`tf.contrib.slim`: networks, their training and evaluation, and their data, in few lines.

It also has every name of `tf.contrib.layers` and of `tf.contrib.framework`, and the namespaces
`tf.contrib.losses` and `tf.contrib.metrics` as `losses` and `metrics`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from flowstone.contrib.package_names import package_names
from flowstone.framework.alias_modules import import_if_there

# The packages whose names and modules are slim's, too, and the modules of others that it has.
_PACKAGES = ("flowstone.contrib.layers", "flowstone.contrib.framework")
_MODULES = {
    "loss_ops": "flowstone.contrib.losses",
    "losses": "flowstone.contrib.losses",
    "metric_ops": "flowstone.contrib.metrics",
    "metrics": "flowstone.contrib.metrics",
}

_get_own, _own_names = package_names(
    globals(),
    {},
    "data_decoder data_provider dataset dataset_data_provider evaluation learning model_analyzer nets"
    " parallel_reader prefetch_queue queues summaries tfexample_decoder",
)


def __getattr__(name: str) -> Any:
    module = import_if_there(_MODULES[name]) if name in _MODULES else None
    if module is not None:
        return module
    if not name.startswith("_"):
        for package in _PACKAGES:
            module = import_module(package)
            if name in dir(module):
                return getattr(module, name)
        below = import_if_there(f"{_PACKAGES[0]}.{name}")
        if below is not None:
            return below
    return _get_own(name)


def __dir__() -> list[str]:
    names = {name for package in _PACKAGES for name in dir(import_module(package)) if name[0] != "_"}
    return sorted({*_own_names(), *names, *_MODULES})
