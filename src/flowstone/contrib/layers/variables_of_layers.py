"""How a layer of `tf.layers` makes its variables as model variables under the names of `tf.contrib.layers`,
and what each function of contrib does with a layer's variables and outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.framework.variables import model_variable
from flowstone.contrib.layers.utils import collect_named_outputs, get_variable_collections
from flowstone.ops.variables.partitioned_variables import PartitionedVariable

Function = Callable[..., Any]


def model_variable_getter(
    getter: Function,
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    rename: Mapping[str, str] | None = None,
    use_resource: bool | None = None,
    synchronization: Any = tf.VariableSynchronization.AUTO,
    aggregation: Any = tf.VariableAggregation.NONE,
    **_: Any,
) -> Any:
    """A variable getter that makes model variables; `rename` gives other last parts of names."""
    scope, slash, short = name.rpartition("/")
    return model_variable(
        scope + slash + (rename or {}).get(short, short),
        shape=shape,
        dtype=dtype,
        initializer=initializer,
        regularizer=regularizer,
        trainable=trainable,
        collections=collections,
        caching_device=caching_device,
        partitioner=partitioner,
        custom_getter=getter,
        use_resource=use_resource,
        synchronization=synchronization,
        aggregation=aggregation,
    )


def variable_getter(rename: Mapping[str, str] | None = None) -> Function:
    """`model_variable_getter` with these new names."""

    def getter(getter: Function, *args: Any, **kwargs: Any) -> Any:
        kwargs["rename"] = rename
        return model_variable_getter(getter, *args, **kwargs)

    return getter


def add_to_variable_collections(variable: Any, variables_collections: Any, name: str) -> None:
    """Adds a variable, or its parts, to the collections for `name`, once to each."""
    collections = get_variable_collections(variables_collections, name) or []
    parts = list(variable) if isinstance(variable, PartitionedVariable) else [variable]
    for collection in [collections] if isinstance(collections, str) else collections:
        for part in parts:
            if not any(part is other for other in tf.get_collection(collection)):
                tf.add_to_collection(collection, part)


def finished(
    outputs: Any,
    scope: str,
    outputs_collections: Any,
    activation_fn: Function | None = None,
    normalizer_fn: Function | None = None,
    normalizer_params: Mapping[str, Any] | None = None,
) -> Any:
    """A layer's outputs, normalised, activated, and collected under the name of the layer's scope."""
    if normalizer_fn is not None:
        outputs = normalizer_fn(outputs, **(normalizer_params or {}))
    if activation_fn is not None:
        outputs = activation_fn(outputs)
    return collect_named_outputs(outputs_collections, scope, outputs)
