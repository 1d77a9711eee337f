"""Slots: variables that an optimiser or an average keeps beside another variable.

The slot `name` of a variable ``w`` is the variable ``w/name`` (``w/name_1`` … where taken), inside the
current variable scope, untrainable, of the same kind (reference or resource) and, unless told otherwise, on
the same device.
"""

from __future__ import annotations

import contextlib
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors import scope
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.arrays.constants import constant
from flowstone.ops.variables.initializers import zeros_initializer
from flowstone.ops.variables.replicas import container_of
from flowstone.ops.variables.variable_scope import get_variable, get_variable_scope, variable_scope

__all__ = ["create_slot", "create_slot_with_initializer", "create_zeros_slot"]


def create_slot(primary: Any, val: Any, name: str, colocate_with_primary: bool = True) -> Any:
    """A slot of `primary` with the initial value `val`, a Tensor or array."""
    with _slot_scope(primary, name, colocate_with_primary):
        return _create_slot_var(
            primary, val, validate_shape=_shape_of(val).is_fully_defined(), shape=None, dtype=None
        )


def create_slot_with_initializer(
    primary: Any, initializer: Any, shape: Any, dtype: Any, name: str, colocate_with_primary: bool = True
) -> Any:
    """A slot of `primary` with this shape and dtype, filled by `initializer`, a function of both."""
    shape = TensorShape(shape)
    known = shape.is_fully_defined()
    with _slot_scope(primary, name, colocate_with_primary):
        return _create_slot_var(
            primary, initializer, validate_shape=known, shape=shape if known else None, dtype=dtype
        )


def create_zeros_slot(primary: Any, name: str, dtype: Any = None, colocate_with_primary: bool = True) -> Any:
    """A slot of `primary` in its shape, filled with zeros of `dtype` (default: its own)."""
    dtype = (primary.dtype if dtype is None else dtype).base_dtype
    shape = primary.get_shape()
    if shape.is_fully_defined():
        return create_slot_with_initializer(
            primary, zeros_initializer(), shape, dtype, name, colocate_with_primary=colocate_with_primary
        )
    source = primary.initialized_value() if hasattr(primary, "initialized_value") else primary
    zeros = F.Fill(F.Shape(source), _zero(dtype), name="zeros")
    return create_slot(primary, zeros, name, colocate_with_primary=colocate_with_primary)


def is_resource(variable: Any) -> bool:
    """Whether a variable is of the resource kind."""
    op = getattr(variable, "op", None)
    if not isinstance(op, Operation) or op.declaration.role != "variable":
        return False
    return op.outputs[0].dtype is dtypes.resource


def _zero(dtype: Any) -> Any:
    return constant(0, dtype)


def _shape_of(value: Any) -> TensorShape:
    if hasattr(value, "get_shape"):
        shape: TensorShape = value.get_shape()
        return shape
    return TensorShape(getattr(value, "shape", None))


@contextlib.contextmanager
def _slot_scope(primary: Any, name: str, colocate_with_primary: bool) -> Any:
    with contextlib.ExitStack() as stack:
        stack.enter_context(variable_scope(None, _name_of(primary) + "/" + name))
        if colocate_with_primary:
            stack.enter_context(scope.get_default_graph().colocate_with(primary.op))
        yield


def _name_of(primary: Any) -> str:
    whole = container_of(primary)
    name: str = getattr(whole, "primary", whole).op.name
    return name


def _create_slot_var(primary: Any, val: Any, validate_shape: bool, shape: Any, dtype: Any) -> Any:
    variables = get_variable_scope()
    # A partitioner would split the slot of a part once more.
    partitioner = variables.partitioner
    variables.set_partitioner(None)
    use_resource = None if not hasattr(primary, "initializer") else is_resource(primary)
    slot = get_variable(
        "", initializer=val, trainable=False, use_resource=use_resource, shape=shape, dtype=dtype,
        validate_shape=validate_shape,
    )  # fmt: skip
    variables.set_partitioner(partitioner)
    info = getattr(primary, "_save_slice_info", None)
    if info is not None:
        _share_slice(primary, slot, info)
    return slot


def _share_slice(primary: Any, slot: Any, info: Any) -> None:
    """The slot of one part of a partitioned variable is the same part of the whole's slot."""
    own_name = slot.op.name[len(primary.op.name + "/") :]
    full_name = f"{info.full_name}/{own_name}"
    slot._set_save_slice_info(type(info)(full_name, info.full_shape, info.var_offset, info.var_shape))
