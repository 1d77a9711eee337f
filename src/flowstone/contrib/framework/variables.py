"""Variables of models: made with a device and a regulariser, found by name, set from checkpoints and values.

`model_variable` puts a variable into the collection MODEL_VARIABLES, `variable` only where it is told. The
functions that find variables take regular expressions for the beginning of a name, as collections do.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.framework.arg_scope import add_arg_scope
from flowstone.contrib.framework.values_from_checkpoints import (
    assign_from_checkpoint as assign_from_checkpoint,
)
from flowstone.contrib.framework.values_from_checkpoints import (
    assign_from_checkpoint_fn as assign_from_checkpoint_fn,
)
from flowstone.contrib.framework.values_from_checkpoints import (
    get_variable_full_name as get_variable_full_name,
)

Initializer = Any
Regularizer = Callable[[Any], Any] | None

# ---- making


def local_variable(
    initial_value: Any, validate_shape: bool = True, name: str | None = None, use_resource: bool | None = None
) -> Any:
    """A variable of this process alone, in LOCAL_VARIABLES, that is not trained."""
    return _untrained(tf.GraphKeys.LOCAL_VARIABLES, initial_value, validate_shape, name, use_resource)


def global_variable(
    initial_value: Any, validate_shape: bool = True, name: str | None = None, use_resource: bool | None = None
) -> Any:
    """A variable in GLOBAL_VARIABLES that is not trained."""
    return _untrained(tf.GraphKeys.GLOBAL_VARIABLES, initial_value, validate_shape, name, use_resource)


def _untrained(collection: str, value: Any, validate_shape: bool, name: str | None, use_resource: Any) -> Any:
    make: Any = tf.Variable
    return make(
        value,
        trainable=False,
        collections=[collection],
        validate_shape=validate_shape,
        name=name,
        use_resource=use_resource,
    )


@add_arg_scope
def variable(
    name: str, shape: Any = None, dtype: Any = None, initializer: Initializer = None,
    regularizer: Regularizer = None, trainable: bool = True, collections: Iterable[str] | None = None,
    caching_device: Any = None, device: Any = None, partitioner: Any = None,
    custom_getter: Callable[..., Any] | None = None, use_resource: bool | None = None,
    synchronization: Any = tf.VariableSynchronization.AUTO, aggregation: Any = tf.VariableAggregation.NONE,
) -> Any:  # fmt: skip
    """The variable of this name in the scope in force, an existing one or a new one, as `tf.get_variable`.

    Args:
        name, shape, dtype, initializer, regularizer, trainable, caching_device, partitioner, use_resource,
        synchronization, aggregation: see `tf.get_variable`.
        collections: those that a new variable is added to; default: GLOBAL_VARIABLES.
        device: a device or a device function for the variable.
        custom_getter: is called in place of `tf.get_variable`, with its keyword arguments.
    """
    names = [tf.GraphKeys.GLOBAL_VARIABLES] if collections is None else collections
    getter = tf.get_variable
    if custom_getter is not None:
        getter = functools.partial(custom_getter, reuse=tf.get_variable_scope().reuse)
    with tf.device(device or ""):
        return getter(
            name,
            shape=shape,
            dtype=dtype,
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
            collections=list(dict.fromkeys(names)),
            caching_device=caching_device,
            partitioner=partitioner,
            use_resource=use_resource,
            synchronization=synchronization,
            aggregation=aggregation,
        )


@add_arg_scope
def model_variable(
    name: str,
    shape: Any = None,
    dtype: Any = tf.float32,
    initializer: Initializer = None,
    regularizer: Regularizer = None,
    trainable: bool = True,
    collections: Iterable[str] | None = None,
    caching_device: Any = None,
    device: Any = None,
    partitioner: Any = None,
    custom_getter: Callable[..., Any] | None = None,
    use_resource: bool | None = None,
    synchronization: Any = tf.VariableSynchronization.AUTO,
    aggregation: Any = tf.VariableAggregation.NONE,
) -> Any:
    """As `variable`, and in the collections GLOBAL_VARIABLES and MODEL_VARIABLES beside `collections`."""
    keys = tf.GraphKeys
    return variable(
        name,
        shape=shape,
        dtype=dtype,
        initializer=initializer,
        regularizer=regularizer,
        trainable=trainable,
        collections=[*(collections or ()), keys.GLOBAL_VARIABLES, keys.MODEL_VARIABLES],
        caching_device=caching_device,
        device=device,
        partitioner=partitioner,
        custom_getter=custom_getter,
        use_resource=use_resource,
        synchronization=synchronization,
        aggregation=aggregation,
    )


def add_model_variable(var: Any) -> None:
    """Adds a variable to MODEL_VARIABLES, once."""
    if var not in tf.get_collection(tf.GraphKeys.MODEL_VARIABLES):
        tf.add_to_collection(tf.GraphKeys.MODEL_VARIABLES, var)


def zero_initializer(ref: Any, use_locking: bool = True, name: str = "zero_initializer") -> Any:
    """Sets a variable of known shape to zeros; gives the variable's value."""
    zeros = tf.zeros(ref.shape, ref.dtype.base_dtype)
    return tf.assign(ref, zeros, use_locking=use_locking, name=name)


# ---- the global step


def assert_global_step(global_step_tensor: Any) -> None:
    """Raises TypeError or ValueError unless the tensor is a scalar of an integer type."""
    tf.train.assert_global_step(global_step_tensor)


def assert_or_get_global_step(graph: Any = None, global_step_tensor: Any = None) -> Any:
    """The tensor, after `assert_global_step`; without one the graph's global step, or None."""
    if global_step_tensor is None:
        return tf.train.get_global_step(graph)
    assert_global_step(global_step_tensor)
    return global_step_tensor


# ---- finding


def get_variables(
    scope: Any = None, suffix: str | None = None, collection: str = tf.GraphKeys.GLOBAL_VARIABLES
) -> list[Any]:
    """The variables of a collection whose names begin with `scope` and end with `suffix`.

    `scope` is a regular expression or a variable scope, `suffix` a regular expression.
    """
    if isinstance(scope, tf.VariableScope):
        scope = scope.name
    if suffix is not None:
        end = suffix if ":" in suffix else f"{suffix}:"
        scope = f"{scope or ''}.*{end}"
    return list(tf.get_collection(collection, scope))


def get_model_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of MODEL_VARIABLES."""
    return get_variables(scope, suffix, tf.GraphKeys.MODEL_VARIABLES)


def get_local_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of LOCAL_VARIABLES."""
    return get_variables(scope, suffix, tf.GraphKeys.LOCAL_VARIABLES)


def get_trainable_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of TRAINABLE_VARIABLES."""
    return get_variables(scope, suffix, tf.GraphKeys.TRAINABLE_VARIABLES)


def get_variables_by_suffix(suffix: str, scope: Any = None) -> list[Any]:
    """The variables whose names end with `suffix`."""
    return get_variables(scope, suffix)


def get_variables_by_name(given_name: str, scope: Any = None) -> list[Any]:
    """The variables that have this name in any scope."""
    return get_variables(scope, f"/{given_name}:|^{given_name}:")


def get_unique_variable(var_op_name: str) -> Any:
    """The variable whose operation has this name. ValueError if there is none."""
    candidates = get_variables(var_op_name)
    for candidate in candidates:
        if candidate.op.name == var_op_name:
            return candidate
    if not candidates:
        raise ValueError(f"Couldn't find variable {var_op_name}")
    raise ValueError(f"Variable {var_op_name} does not uniquely identify a variable")


def get_variables_to_restore(
    include: Sequence[str] | None = None, exclude: Sequence[str] | None = None
) -> list[Any]:
    """The variables in the scopes `include` (default: all) that are not in the scopes `exclude`.

    Raises:
        TypeError: one of them is not a list or a tuple.
    """
    for argument, scopes in (("include", include), ("exclude", exclude)):
        if scopes is not None and not isinstance(scopes, (list, tuple)):
            raise TypeError(f"{argument} is provided but is not a list or a tuple.")
    if include is None:
        chosen = get_variables()
    else:
        chosen = [var for scope in include for var in get_variables(scope)]
    left_out = {id(var) for scope in exclude or () for var in get_variables(scope)}
    return [var for var in chosen if id(var) not in left_out]


def filter_variables(
    var_list: Iterable[Any],
    include_patterns: Iterable[str] | None = None,
    exclude_patterns: Iterable[str] | None = None,
    reg_search: bool = True,
) -> list[Any]:
    """The variables whose operations' names match a pattern of the first list and none of the second.

    `reg_search`: a pattern may match anywhere in a name; otherwise at its beginning. None and an empty list
    of patterns to include take all variables.
    """
    matches = re.search if reg_search else re.match
    found = list(var_list)
    if include_patterns:
        found = [var for var in found if any(matches(pattern, var.op.name) for pattern in include_patterns)]
    return [
        var for var in found if not any(matches(pattern, var.op.name) for pattern in exclude_patterns or ())
    ]


# ---- setting


def assign_from_values(var_names_to_values: Mapping[str, Any]) -> tuple[Any, dict[Any, Any]]:
    """An operation that sets variables, and the `feed_dict` with the arrays that it sets them to.

    The arrays stay out of the graph. ValueError for a name that no global variable has, and for an array of
    another size.
    """
    feed_dict: dict[Any, Any] = {}
    assign_ops = []
    for name, value in var_names_to_values.items():
        found = [var for var in get_variables() if var.op.name == name]
        if not found:
            raise ValueError(f"Variable {name} wasn't found")
        var = found[0]
        given = tf.placeholder(var.dtype.base_dtype, var.shape, name=f"placeholder/{var.op.name}")
        assign_ops.append(var.assign(given))
        feed_dict[given] = np.reshape(value, var.shape.as_list())
    return tf.group(*assign_ops), feed_dict


def assign_from_values_fn(var_names_to_values: Mapping[str, Any]) -> Callable[[Any], Any]:
    """A function of a session that sets the variables there; see `assign_from_values`."""
    assign_op, feed_dict = assign_from_values(var_names_to_values)
    return lambda session: session.run(assign_op, feed_dict)


# ---- devices


class VariableDeviceChooser:
    """A device function for variables that takes parameter servers in turn.

    Args:
        num_tasks: how many servers there are; none: devices name no job.
        job_name: the servers' job.
        device_type, device_index: of the device on every server.
        replica: the replica's number, if any.
    """

    def __init__(
        self,
        num_tasks: int = 0,
        job_name: str = "ps",
        device_type: str = "CPU",
        device_index: int = 0,
        replica: int | None = None,
    ) -> None:
        self._job_name, self._device_type, self._device_index = job_name, device_type, device_index
        self._replica, self._num_tasks, self._next_task_id = replica, num_tasks, 0

    def __call__(self, op: Any) -> str:
        spec = tf.DeviceSpec(
            replica=self._replica, device_type=self._device_type, device_index=self._device_index
        )
        if self._num_tasks > 0:
            spec = spec.replace(job=self._job_name, task=self._next_task_id)
            self._next_task_id = (self._next_task_id + 1) % self._num_tasks
        return spec.to_string()
