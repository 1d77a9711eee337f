"""Updates: one step of every optimiser, as an op on the variable and its slots.

Each optimiser is one function on tensors (`optimizer_steps.py`). `_declare` makes of it up to four ops:
``ApplyX`` on reference variables, ``ResourceApplyX`` on resources, and ``SparseApplyX``,
``ResourceSparseApplyX`` for gradient rows and their indices (`row_steps.py`).

Hyper-parameters (learning rates …) reach the function as Python numbers: those that are constant from the
plan, others read in the step. On an accelerator the others stay scalar tensors, so that no step waits for
the device; the functions therefore use only arithmetic that accepts both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.containers import Variable
from flowstone.framework.declarations.kernel import CPU, GPU, Call, Environment, Input, Kernel, KernelFactory
from flowstone.framework.declarations.operation import OpDeclaration, ShapeFunction, Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.shape import Dims, merge
from flowstone.ops.variables import optimizer_steps as steps
from flowstone.ops.variables import row_steps
from flowstone.ops.variables.row_steps import wrong_shape
from flowstone.ops.variables.stateful import ALL_NUMBERS, handle_dims

# ---- kernels


def _dense(
    function: Callable[..., Any], slots: int, grad_at: int, options: Any, checked: bool
) -> Callable[..., Variable]:
    """`function` on `Variable`s: unpacks them, checks the gradient's shape unless `checked` at plan time."""

    plain = options.get("update_slots", True) and not options.get("use_nesterov", False)
    if checked and slots < 2 and plain:
        return _DIRECT[slots](function)

    def run(variable: Variable, *inputs: Any) -> Variable:
        var, grad = variable.tensor, inputs[grad_at - 1]
        if not checked and grad.shape != var.shape:
            raise wrong_shape(var, grad)
        function(var, *[slot.tensor for slot in inputs[:slots]], *inputs[slots:], **options)
        return variable

    return run


def _without_slots(function: Callable[..., Any]) -> Callable[..., Variable]:
    def run(variable: Variable, *inputs: float | torch.Tensor) -> Variable:
        function(variable.tensor, *inputs)
        return variable

    return run


def _with_one_slot(function: Callable[..., Any]) -> Callable[..., Variable]:
    def run(variable: Variable, slot: Variable, *inputs: float | torch.Tensor) -> Variable:
        function(variable.tensor, slot.tensor, *inputs)
        return variable

    return run


_DIRECT = (_without_slots, _with_one_slot)  # by the number of slots


def _held_dims(node: Node) -> Dims:
    return node.dims(0) if node.inputs[0].dtype.is_ref else handle_dims(node)


def _sparse(
    node: Node, env: Environment, function: Callable[..., Any], slots: int, grad_at: int, options: Any
) -> Callable[..., Variable]:
    kind = row_steps.repeats(node, grad_at + 1)
    run = row_steps.on_rows(function, slots, grad_at, options, kind)
    is_host = env.device.type == "cpu"
    if is_host and row_steps.passes_over_all(function, node, _held_dims(node), grad_at, kind):
        return row_steps.adagrad_over_all(run)
    return run


def _with_numbers(node: Node, env: Environment, run: Callable[..., Variable], numbers: list[int]) -> Call:
    """`run` given its hyper-parameters, the inputs in `numbers`, as Python numbers where they
    can be known.
    """
    arguments = [Input(i) for i in range(len(node.inputs))]
    varying = []
    for i in numbers:
        value = node.constant(i)
        if value is not None:
            arguments[i] = value.item()
        elif env.device.type == "cpu":
            varying.append(i)
    if varying:
        run = _reading(run, varying)
    return Call(run, *arguments)


def _reading(run: Callable[..., Variable], varying: list[int]) -> Callable[..., Variable]:
    def read(*inputs: Any) -> Variable:
        values = list(inputs)
        for i in varying:
            values[i] = values[i].item()
        return run(*values)

    return read


def _with_lock(run: Callable[..., Variable], node: Node) -> Callable[..., Variable]:
    if not node.attributes["use_locking"]:
        return run

    def locked(variable: Variable, *arguments: Any) -> Variable:
        with variable.lock:
            return run(variable, *arguments)

    return locked


def _kernel(function: Callable[..., Any], names: list[str], slots: int, is_sparse: bool) -> KernelFactory:
    grad_at = next(names.index(name) for name in ("grad", "delta") if name in names)
    numbers = [i for i in range(slots + 1, len(names)) if names[i] not in ("grad", "delta", "indices")]

    def kernel(node: Node, env: Environment) -> Kernel:
        options = {
            key: value for key, value in node.attributes.items() if key in ("use_nesterov", "update_slots")
        }
        if is_sparse:
            run = _sparse(node, env, function, slots, grad_at, options)
        else:
            known, held = node.static_shape(grad_at), _held_dims(node)
            run = _dense(function, slots, grad_at, options, known is not None and known == held)
        return _with_numbers(node, env, _with_lock(run, node), numbers)

    return kernel


# ---- shape inference


# The others leave a resource's shape to the step, as TensorFlow does.
_RESOURCES_CHECKED_WHEN_BUILT = {"GradientDescent", "ProximalAdagrad"}
_ARRAYS = ("grad", "delta", "indices")  # arguments beside variables that are no scalars


def _infer(name: str, names: list[str], slots: int, is_sparse: bool) -> ShapeFunction:
    grad_at = next(names.index(name) for name in ("grad", "delta") if name in names)

    def infer(node: Node) -> Shapes:
        is_ref = node.inputs[0].dtype.is_ref
        dims = node.dims(0) if is_ref else handle_dims(node)
        for i in range(1, slots + 1):
            dims = merge(dims, node.dims(i) if is_ref else handle_dims(node, i))
        for i in range(slots + 1, len(names)):
            found = node.dims(i)
            if names[i] not in _ARRAYS and found:
                raise ValueError(f"Shape must be rank 0 but is rank {len(found)}")
        grad = node.dims(grad_at)
        if not is_ref and name not in _RESOURCES_CHECKED_WHEN_BUILT:
            return None
        if not is_sparse:
            dims = merge(dims, grad)
        elif grad is not None and dims is not None:
            indices = node.dims(grad_at + 1)
            if indices is not None and len(indices) != 1:
                raise ValueError(f"Shape must be rank 1 but is rank {len(indices)}")
            merge(grad, (None if indices is None else indices[0], *dims[1:]))
        return dims if is_ref else None

    return infer


# ---- declarations


def _declare_one(
    name: str,
    function: Callable[..., Any],
    arguments: list[str],
    slots: int,
    attributes: str,
    prefix: str,
    is_sparse: bool,
) -> OpDeclaration:
    """One of the four ops of an optimiser. `arguments` is the op's list, the gradient rows' indices
    included.
    """
    is_resource = prefix == "Resource"
    held = "resource" if is_resource else "Ref(T)"
    inputs = []
    for i, argument in enumerate(arguments):
        kind = "int64" if argument == "global_step" else "Tindices" if argument == "indices" else "T"
        kind = held if i <= slots else kind if argument in _ARRAYS else f"{kind}[]"
        inputs.append(f"{argument}: {kind}")
    types = {"T": ALL_NUMBERS}
    attributes = "use_locking: bool = false" + attributes
    if is_sparse:
        attributes = "Tindices: type in [int32, int64] ; " + attributes
    declaration = op(
        f"{prefix}{'Sparse' if is_sparse else ''}Apply{name}",
        f"{', '.join(inputs)} -> {'' if is_resource else 'out: Ref(T)'}",
        attributes,
        stateful=is_resource,
        mutates=range(slots + 1),
        aliases=() if is_resource else (0,),
        capturable=not is_sparse,
        **types,
        cost=None if is_sparse else _COSTS.get(name),
        rows=work.input_at(arguments.index("grad")) if is_sparse else None,
    )
    declaration.infer(_infer(name, arguments, slots, is_sparse))
    declaration.kernel(CPU, GPU)(_kernel(function, arguments, slots, is_sparse))
    return declaration.not_differentiable()


def _declare(
    name: str,
    function: Callable[..., Any],
    arguments: str,
    slots: int,
    attributes: str = "",
    sparse: bool = True,
    reference: bool = True,
) -> None:
    """The ops of one optimiser: dense and, if `sparse`, for gradient rows; on references unless told not
    to.
    """
    dense = arguments.split()
    at = dense.index("grad" if "grad" in dense else "delta")
    with_rows = [*dense[:at], "grad", "indices", *dense[at + 1 :]]
    for prefix in ("", "Resource") if reference else ("Resource",):
        _declare_one(name, function, dense, slots, attributes, prefix, False)
        if sparse:
            _declare_one(name, function, with_rows, slots, attributes, prefix, True)


_NESTEROV = " ; use_nesterov: bool = false"
_SLOTS = " ; update_slots: bool = true"
_COSTS = {"Momentum": 4, "KerasMomentum": 4, "Adam": 12, "RMSProp": 12}  # of a dense update, by element
_ADAM = "beta1_power beta2_power lr beta1 beta2 epsilon grad"

_declare("GradientDescent", steps.gradient_descent, "var alpha delta", 0, sparse=False)
_declare("ProximalGradientDescent", steps.proximal_gradient_descent, "var alpha l1 l2 delta", 0)
_declare("Momentum", steps.momentum, "var accum lr grad momentum", 1, _NESTEROV)
_declare("KerasMomentum", steps.keras_momentum, "var accum lr grad momentum", 1, _NESTEROV, reference=False)
_declare("Adagrad", steps.adagrad, "var accum lr grad", 1, _SLOTS)
_declare("AdagradV2", steps.adagrad_v2, "var accum lr epsilon grad", 1, _SLOTS)
_declare(
    "AdagradDA",
    steps.adagrad_da,
    "var gradient_accumulator gradient_squared_accumulator grad lr l1 l2 global_step",
    2,
)
_declare("Adadelta", steps.adadelta, "var accum accum_update lr rho epsilon grad", 2)
_declare("ProximalAdagrad", steps.proximal_adagrad, "var accum lr l1 l2 grad", 1)
_declare("Adam", steps.adam, f"var m v {_ADAM}", 2, _NESTEROV, sparse=False)
_declare(
    "AdamWithAmsgrad", steps.adam_with_amsgrad, f"var m v vhat {_ADAM}", 3, sparse=False, reference=False
)
_declare("AdaMax", steps.ada_max, "var m v beta1_power lr beta1 beta2 epsilon grad", 2, sparse=False)
_declare("RMSProp", steps.rms_prop, "var ms mom lr rho momentum epsilon grad", 2)
_declare("CenteredRMSProp", steps.centered_rms_prop, "var mg ms mom lr rho momentum epsilon grad", 3)
_declare("Ftrl", steps.ftrl, "var accum linear grad lr l1 l2 lr_power", 2)
_declare("FtrlV2", steps.ftrl_v2, "var accum linear grad lr l1 l2 l2_shrinkage lr_power", 2)
_declare("AddSign", steps.add_sign, "var m lr alpha sign_decay beta grad", 1, sparse=False)
_declare("PowerSign", steps.power_sign, "var m lr logbase sign_decay beta grad", 1, sparse=False)
