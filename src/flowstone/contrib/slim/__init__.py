"""`tf.contrib.slim`: networks, their training and evaluation, and their data, in few lines.

It also has every name of `tf.contrib.layers` and of `tf.contrib.framework`, and the namespaces
`tf.contrib.losses` and `tf.contrib.metrics` as `losses` and `metrics`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from flowstone.contrib.package_names import package_names
from flowstone.framework.names.alias_modules import import_if_there

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
    {
        "flowstone.contrib.layers.bucketization_op": "bucketize",
        "flowstone.contrib.layers.embedding_ops": "embedding_lookup_sparse_with_distributed_aggregation",
        "flowstone.contrib.layers.optimizers": "adaptive_clipping_fn",
        "flowstone.contrib.layers.rev_block_lib": "RevBlock recompute_grad rev_block",
        "flowstone.contrib.layers.sparse_feature_cross_op": "sparse_feature_cross",
    },
    "data_decoder data_provider dataset dataset_data_provider evaluation learning model_analyzer nets"
    " parallel_reader prefetch_queue queues summaries tfexample_decoder",
)


def __getattr__(name: str) -> Any:
    value = import_if_there(_MODULES[name]) if name in _MODULES else None
    if value is None:
        try:
            return _get_own(name)
        except AttributeError:
            value = None if name.startswith("_") else _taken(name)
            if value is None:
                raise
    globals()[name] = value
    return value


def _taken(name: str) -> Any:
    """What another package has under this name, or None."""
    for package in map(import_module, _PACKAGES):
        if name in dir(package):
            return getattr(package, name)
    return import_if_there(f"{_PACKAGES[0]}.{name}")


def __dir__() -> list[str]:
    names = {name for package in _PACKAGES for name in dir(import_module(package)) if name[0] != "_"}
    return sorted({*_own_names(), *names, *_MODULES})
