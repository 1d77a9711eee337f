"""`tensorflow.python.ops.variable_scope`: the stores and keys behind `tf.variable_scope`."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.ops.variables.variable_store import SCOPE_KEY, STORE_KEY, store_of

__all__ = ["variable"]

_VARSTORE_KEY = STORE_KEY
_VARSCOPE_KEY = _VARSCOPESTORE_KEY = SCOPE_KEY


def _get_default_variable_store() -> Any:
    """The variables of the default graph by name: `_vars` is the dict."""
    return store_of(tf.get_default_graph())


def _pure_variable_scope(
    name_or_scope: Any,
    reuse: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    old_name_scope: str | None = None,
    dtype: Any = None,
    use_resource: bool | None = None,
    constraint: Any = None,
) -> Any:
    """`tf.variable_scope` that enters no name scope."""
    return tf.variable_scope(
        name_or_scope,
        initializer=initializer,
        regularizer=regularizer,
        caching_device=caching_device,
        partitioner=partitioner,
        custom_getter=custom_getter,
        reuse=reuse,
        dtype=dtype,
        use_resource=use_resource,
        constraint=constraint,
        auxiliary_name_scope=False,
    )


def variable(
    initial_value: Any = None,
    trainable: bool = True,
    collections: Any = None,
    validate_shape: bool = True,
    caching_device: Any = None,
    name: str | None = None,
    dtype: Any = None,
    use_resource: bool | None = None,
) -> Any:
    """`tf.Variable(…)`, of the kind that the scope asks for."""
    make: Any = tf.Variable
    return make(
        initial_value,
        trainable=trainable,
        collections=collections,
        validate_shape=validate_shape,
        caching_device=caching_device,
        name=name,
        dtype=dtype,
        use_resource=use_resource,
    )
