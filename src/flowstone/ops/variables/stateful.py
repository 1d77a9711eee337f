"""State that outlives a step: the operations of whole variables, of both kinds.

A *reference* variable (``VariableV2``) hands its buffer itself along an edge of type ``Ref(T)``; a consumer
that wants a plain tensor reads the buffer when it runs. A *resource* variable (``VarHandleOp``) hands its
handle along, and ``ReadVariableOp`` gives the value at the time of the read. Both are a `Variable` in the
session's containers (white paper 4.7), so the kernels of an assignment serve both kinds; only what they
return differs.

Reading ``.tensor`` of an uninitialised `Variable` is the AttributeError that the runtime turns into
FailedPreconditionError. Updates are made in the buffer, so that whoever shares it sees them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.containers import Variable
from flowstone.framework.declarations.kernel import CPU, GPU, X0, Call, Environment, Kernel, Value
from flowstone.framework.declarations.operation import Gradients, Known, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node, Output
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims, format_dims, merge
from flowstone.framework.types.values import to_runtime

ALL_NUMBERS = (*dtypes.NUMBERS, dtypes.bfloat16, dtypes.qint16, dtypes.quint16)
_PASS_THROUGH = {"Identity", "Switch", "RefIdentity", "Enter", "NextIteration"}
_T = TypeVar("_T")
_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


def find_variable(node: Node, env: Environment) -> Variable:
    """The `Variable` of a variable node, made in its container on first use.

    A reference variable without elements is initialised from the first, as in TensorFlow.
    """
    name = node.attributes["shared_name"] or node.name
    assert env.resources is not None  # a variable node is not folded

    def make() -> Variable:
        variable, dims = Variable(name), node.attributes["shape"]
        if node.type != "VarHandleOp" and dims is not None and 0 in dims and None not in dims:
            variable.tensor = _without_elements(dims, node.attributes["dtype"], env.device)
        return variable

    found: Variable = env.resources.look_up_or_create(node.attributes["container"], name, make)
    return found


def _without_elements(dims: tuple[int, ...], dtype: DType, device: torch.device) -> Any:
    value = to_runtime(np.zeros(dims, dtype.base_dtype.as_numpy_dtype), dtype)
    return value.to(device) if isinstance(value, torch.Tensor) else value


def _variable_kernel(node: Node, env: Environment) -> Kernel:
    variable = find_variable(node, env)
    order = node.attributes.get("memory_order")  # of `lowering/convolutions/filter_layout.py`
    if order is not None and env.device.type == "cpu":
        variable.lay_out(order)
    return Value(variable)


def _declare_variable(name: str, output: str, attributes: str) -> OpDeclaration:
    declaration = op(
        name,
        f"-> {output}",
        f"{attributes} ; container: string = '' ; shared_name: string = ''",
        stateful=True,
        capturable=True,
        free=True,
        holds_state=True,
        role="variable",
    )
    declaration.kernel(CPU, GPU)(_variable_kernel)
    return declaration.not_differentiable()


def _declared_shape(node: Node) -> Shapes:
    """The shape attribute; an old graph's variable of unknown shape says so with a scalar's."""
    dims: Dims = node.attributes["shape"]
    return dims


variable_v2 = _declare_variable("VariableV2", "ref: Ref(dtype)", "shape: shape ; dtype: type")
variable_v2.infer(_declared_shape)
variable_v1 = _declare_variable("Variable", "ref: Ref(dtype)", "shape: shape ; dtype: type")
variable_v1.infer(lambda node: node.attributes["shape"] or None)
var_handle = _declare_variable("VarHandleOp", "resource: resource", "dtype: type ; shape: shape")
var_handle.infer(lambda node: ())

temporary_variable = op(
    "TemporaryVariable",
    "-> ref: Ref(dtype)",
    "shape: shape ; var_name: string = ''",
    dtype=None,
    stateful=True,
)
temporary_variable.infer(_declared_shape)
temporary_variable.not_differentiable()


@temporary_variable.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    shape, dtype, device = node.attributes["shape"], node.attributes["dtype"].torch, env.device
    name = node.attributes["var_name"] or node.name

    def make() -> Variable:
        variable = Variable(name)
        variable.tensor = torch.empty(shape, dtype=dtype, device=device)
        return variable

    return make


destroy_temporary_variable = op(
    "DestroyTemporaryVariable",
    "ref: Ref(T) -> value: T",
    "var_name: string",
    T=None,
    mutates=[0],
    aliases=[0],
    snapshot=True,
)
destroy_temporary_variable.infer(lambda node: node.dims(0))
destroy_temporary_variable.kernel(CPU, GPU)(lambda node, env: attrgetter("tensor"))
destroy_temporary_variable.not_differentiable()


# ---- what a handle stands for


def handle_node(output: Output) -> Node | None:
    """The VarHandleOp that a resource comes from, seen through identities and switches; None if there is
    none.
    """
    node = output.op
    while node.type in _PASS_THROUGH:
        node = node.inputs[0].op
    return node if node.type == "VarHandleOp" else None


def handle_dims(node: Node, i: int = 0) -> tuple[int, ...] | None:
    """Static shape of the variable whose handle is input `i`, or None."""
    source = handle_node(node.inputs[i])
    return None if source is None else source.attributes["shape"]


def check_handle_dtype(node: Node, i: int = 0, attribute: str = "dtype") -> None:
    """Raises ValueError if the variable whose handle is input `i` is of another type than the node's
    attribute says.
    """
    source = handle_node(node.inputs[i])
    if source is not None and source.attributes["dtype"] is not node.attributes[attribute]:
        raise ValueError(
            f"Trying to read variable with wrong dtype. Expected {source.attributes['dtype'].name} "
            f"got {node.attributes[attribute].name}"
        )


# ---- reads


def read_shape(node: Node) -> Shapes:
    """Infers the shape of the variable whose handle is the first input; ValueError for another dtype."""
    check_handle_dtype(node)
    return handle_dims(node)


read_variable = op(
    "ReadVariableOp",
    "resource: resource -> value: dtype",
    dtype=None,
    stateful=True,
    reads=[0],
    aliases=[0],
    snapshot=True,
    capturable=True,
    free=True,
    role="read",
)
read_variable.infer(read_shape)
read_variable.kernel(CPU, GPU)(lambda node, env: Call(attrgetter("tensor"), X0))


@read_variable.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return (dy,)


variable_shape = op(
    "VariableShape",
    "input: resource -> output: out_type",
    "out_type: type in [int32, int64] = int32",
    stateful=True,
    reads=[0],
    host=["output"],
    capturable=True,
)
variable_shape.infer(lambda node: (None if (dims := handle_dims(node)) is None else len(dims),))
variable_shape.not_differentiable()


@variable_shape.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype = node.attributes["out_type"].torch
    return lambda variable: torch.tensor(variable.tensor.shape, dtype=dtype)


@variable_shape.value()
def _(node: Node) -> Known | list[Known]:
    dims = handle_dims(node)
    if dims is None or None in dims:
        return dims
    return np.array(dims, node.attributes["out_type"].as_numpy_dtype)


def _whether_initialized(node: Node, env: Environment) -> Kernel:
    return lambda variable: torch.tensor(variable.is_initialized)


is_variable_initialized_op = op(
    "IsVariableInitialized", "ref: Ref(dtype) -> is_initialized: bool", dtype=None
)
var_is_initialized = op(
    "VarIsInitializedOp", "resource: resource -> is_initialized: bool", stateful=True, reads=[0]
)
for _declaration in (is_variable_initialized_op, var_is_initialized):
    _declaration.infer(lambda node: ())
    _declaration.kernel(CPU, GPU)(_whether_initialized)
    _declaration.not_differentiable()


# ---- whole assignments


def store(variable: Variable, value: torch.Tensor) -> Variable:
    """Gives `variable` this value, in its own buffer where shape and type allow; never keeps `value`
    itself.
    """
    buffer = getattr(variable, "tensor", None)
    if buffer is not None and buffer.shape == value.shape:
        buffer.copy_(value)
    else:
        variable.tensor = variable.copy_of(value)
    return variable


def _store_on(device: torch.device) -> Callable[..., Any]:
    """`store` for variables in the memory of `device`, which is where a host scalar goes too."""
    if device.type == "cpu":
        return store

    def store_there(variable: Variable, value: torch.Tensor) -> Variable:
        if value.device.type == "cpu":
            value = torch.full(value.shape, value.item(), dtype=value.dtype, device=device)  # does not wait
        return store(variable, value)

    return store_there


def store_strings(variable: Variable, value: np.ndarray[Any, Any]) -> Variable:
    """As `store`, for an object array of bytes."""
    variable.tensor = value.copy()
    return variable


def _checked_store(setter: Callable[..., Variable], shape: Dims) -> Callable[..., Any]:
    def store_if_fitting(variable: Variable, value: torch.Tensor) -> Variable:
        expected = shape if shape is not None else getattr(getattr(variable, "tensor", value), "shape", ())
        if tuple(value.shape) != tuple(expected):
            raise errors.InvalidArgumentError(
                None,
                None,
                "Assign requires shapes of both tensors to match. "
                f"lhs shape= {format_dims(tuple(expected))} rhs shape= {format_dims(tuple(value.shape))}",
            )
        return setter(variable, value)

    return store_if_fitting


def locked(function: Callable[..., _T]) -> Callable[..., _T]:
    """`function`, holding the lock of the variable that is its first argument."""

    @functools.wraps(function)
    def run(variable: Variable, *arguments: Any) -> _T:
        with variable.lock:
            return function(variable, *arguments)

    return run


assign_op = op(
    "Assign",
    "ref: Ref(T), value: T -> output_ref: Ref(T)",
    "validate_shape: bool = true ; use_locking: bool = true",
    T=None,
    mutates=[0],
    aliases=[0],
    capturable=True,
)


@assign_op.infer
def _(node: Node) -> Shapes:
    return merge(node.dims(0), node.dims(1)) if node.attributes["validate_shape"] else node.dims(1)


@assign_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    setter = _store_on(env.device) if node.dtype(1).torch is not None else store_strings
    shape = node.static_shape(0)
    if node.attributes["validate_shape"] and (shape is None or node.dims(1) != shape):
        setter = _checked_store(setter, shape)
    return setter  # a whole copy takes no lock, as reads of other steps take none either


assign_op.not_differentiable()

assign_variable = op(
    "AssignVariableOp",
    "resource: resource, value: dtype ->",
    dtype=None,
    stateful=True,
    mutates=[0],
    capturable=True,
)


@assign_variable.infer
def _(node: Node) -> None:
    check_handle_dtype(node)
    merge(handle_dims(node), node.dims(1))


@assign_variable.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return _store_on(env.device) if node.dtype(1).torch is not None else store_strings


assign_variable.not_differentiable()


def _adder(in_place: Callable[..., Any], shapes_agree: bool) -> Callable[..., Any]:
    """The kernel of += or -=: wraps around for unsigned integers, refuses a value that would be broadcast."""

    def run(variable: Variable, value: torch.Tensor) -> Variable:
        buffer = variable.tensor
        if not shapes_agree and buffer.shape != value.shape:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Cannot update variable with shape {format_dims(tuple(buffer.shape))} using a "
                "Tensor with shape "
                f"{format_dims(tuple(value.shape))}, shapes must be equal.",
            )
        signed = _SIGNED.get(buffer.dtype)
        if signed is not None:
            buffer, value = buffer.view(signed), value.view(signed)
        in_place(buffer, value)
        return variable

    return run


def _declare_addition(kind: str, in_place: Callable[..., Any]) -> tuple[OpDeclaration, OpDeclaration]:
    reference = op(
        f"Assign{kind}",
        "ref: Ref(T), value: T -> output_ref: Ref(T)",
        "use_locking: bool = false",
        T=ALL_NUMBERS,
        mutates=[0],
        aliases=[0],
        capturable=True,
    )
    reference.infer(lambda node: merge(node.dims(0), node.dims(1)))

    @reference.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        known = node.static_shape(0)
        run = _adder(in_place, known is not None and known == node.dims(1))
        return locked(run) if node.attributes["use_locking"] else run

    resource = op(
        f"Assign{kind}VariableOp",
        "resource: resource, value: dtype ->",
        dtype=None,
        stateful=True,
        role="element_access",
        mutates=[0],
        capturable=True,
    )

    @resource.infer
    def _(node: Node) -> None:
        check_handle_dtype(node)
        merge(handle_dims(node), node.dims(1))

    @resource.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        return _adder(in_place, False)

    return reference.not_differentiable(), resource.not_differentiable()


assign_add_op, assign_add_variable = _declare_addition("Add", torch.Tensor.add_)
assign_sub_op, assign_sub_variable = _declare_addition("Sub", torch.Tensor.sub_)
