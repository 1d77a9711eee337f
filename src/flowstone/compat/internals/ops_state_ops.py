"""`tensorflow.python.ops.state_ops`: the nodes that hold reference variables."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["init_variable", "variable_op", "variable_op_v2"]


def variable_op_v2(
    shape: Any, dtype: Any, name: str = "Variable", container: str = "", shared_name: str = ""
) -> Any:
    """A node that holds a reference variable, which has no value until one is assigned.

    Args:
        shape: its shape. dtype: its type. name: the node's.
        container: where it lives; the session's default container if empty.
        shared_name: the name that it is found under there; the node's if empty.
    """
    return tf.raw_ops.VariableV2(
        shape=tf.TensorShape(shape),
        dtype=tf.as_dtype(dtype).base_dtype,
        name=name,
        container=container,
        shared_name=shared_name,
    )


def variable_op(
    shape: Any,
    dtype: Any,
    name: str = "Variable",
    set_shape: bool = True,
    container: str = "",
    shared_name: str = "",
) -> Any:
    """As `variable_op_v2`; without `set_shape` the result's static shape is unknown."""
    return variable_op_v2(shape if set_shape else None, dtype, name, container, shared_name)


def init_variable(v: Any, init: Any, name: str = "init") -> Any:
    """An operation that assigns a variable its first value.

    Args:
        v: the variable.
        init: the value, or a function of the variable's shape and type.
        name: of the operation, below the variable's name.
    """
    with tf.name_scope(None, f"{v.op.name}/", [v, init]), tf.name_scope(name) as scope, tf.colocate_with(v):
        value = init(v.shape.as_list(), v.dtype.base_dtype) if callable(init) else init
        return tf.assign(v, value, name=scope).op
