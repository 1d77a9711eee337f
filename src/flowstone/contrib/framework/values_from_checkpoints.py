"""Values of a checkpoint for variables of any names, parts of partitioned ones included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import flowstone as tf

__all__ = ["assign_from_checkpoint", "assign_from_checkpoint_fn", "get_variable_full_name"]


def get_variable_full_name(var: Any) -> str:
    """The variable's name in checkpoints; for a part of a partitioned variable the whole one's."""
    info = getattr(var, "_save_slice_info", None)
    name: str = info.full_name if info else var.op.name
    return name


def _grouped(var_list: Any) -> dict[str, list[Any]]:
    """name in the checkpoint -> the variable, or the parts of a partitioned one."""
    groups: dict[str, list[Any]] = {}
    if isinstance(var_list, dict):
        for name, value in var_list.items():
            groups[name] = list(value) if isinstance(value, (list, tuple)) else [value]
    else:
        for var in var_list:
            groups.setdefault(get_variable_full_name(var), []).append(var)
    return groups


def _value_of(var: Any, whole: Any, name: str) -> Any:
    """What a variable, or a part of one, takes of a tensor."""
    info = getattr(var, "_save_slice_info", None)
    if info:
        ends = [start + size for start, size in zip(info.var_offset, info.var_shape)]
        whole = whole[tuple(slice(*bounds) for bounds in zip(info.var_offset, ends))]
    if not var.shape.is_fully_defined() or var.shape.num_elements() != whole.size:
        raise ValueError(
            f"Total size of new array must be unchanged for {name} lh_shape: [{whole.shape}], "
            f"rh_shape: [{var.shape}]"
        )
    return whole.reshape(var.shape.as_list())


def assign_from_checkpoint(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False
) -> tuple[Any, dict[Any, Any]]:
    """An operation that sets variables, and the `feed_dict` with a checkpoint's values for them.

    Args:
        model_path: the checkpoint.
        var_list: variables, or a dict of variables (or the parts of a partitioned one) by their names in the
            checkpoint.
        ignore_missing_vars: whether variables that the checkpoint lacks are left out.

    Raises:
        ValueError: the checkpoint lacks a variable, or has it with another number of elements.
    """
    reader = tf.train.NewCheckpointReader(model_path)
    feed_dict: dict[Any, Any] = {}
    assign_ops = []
    for name, variables in _grouped(var_list).items():
        if not reader.has_tensor(name):
            message = f"Checkpoint is missing variable [{name}]"
            if not ignore_missing_vars:
                raise ValueError(message)
            tf.logging.warning(message)
            continue
        whole = np.asarray(reader.get_tensor(name))
        for var in variables:
            given = tf.placeholder(var.dtype.base_dtype, var.shape, name=f"placeholder/{var.op.name}")
            assign_ops.append(var.assign(given))
            feed_dict[given] = _value_of(var, whole, name)
    return tf.group(*assign_ops), feed_dict


def assign_from_checkpoint_fn(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False, reshape_variables: bool = False
) -> Callable[[Any], None] | None:
    """A function of a session that restores variables there from a checkpoint.

    Args:
        model_path: the checkpoint.
        var_list: variables, or a dict of variables by their names in the checkpoint.
        ignore_missing_vars: whether variables that the checkpoint lacks are left out.
        reshape_variables: whether a variable may have another shape than in the checkpoint.

    None, with a warning, if no variable is left.

    Raises:
        ValueError: `var_list` is empty.
    """
    if not var_list:
        raise ValueError("var_list cannot be empty")
    if ignore_missing_vars:
        reader = tf.train.NewCheckpointReader(model_path)
        by_name = var_list if isinstance(var_list, dict) else {var.op.name: var for var in var_list}
        var_list = {name: var for name, var in by_name.items() if reader.has_tensor(name)}
        for name in by_name.keys() - var_list.keys():
            tf.logging.warning(f"Variable {name} missing in checkpoint {model_path}")
        if not var_list:
            tf.logging.warning("No Variables to restore")
            return None
    saver = tf.train.Saver(var_list, reshape=reshape_variables)

    def callback(session: Any) -> None:
        saver.restore(session, model_path)

    return callback
