"""Updates: one step of every optimiser, as an op on the variable and its slots.

Each optimiser is one function on tensors that works in place, ``f(var, *slots, *numbers, gradient)`` in the
order of the op's arguments. `_declare` makes of it up to four ops: ``ApplyX`` on reference variables,
``ResourceApplyX`` on resources, and ``SparseApplyX``, ``ResourceSparseApplyX`` for gradient rows and their
indices. The sparse ones gather the rows of the variable and of the slots, update those, and put them back;
an index that repeats is applied once for each time, in order (`scatter.rounds`).

Hyper-parameters (learning rates …) reach the function as Python numbers: those that are constant from the
plan, others read in the step. On an accelerator the others stay scalar tensors, so that no step waits for
the device; the functions therefore use only arithmetic that accepts both.
"""

from __future__ import annotations

import math

import torch

from flowstone.framework import errors
from flowstone.framework.kernel import CPU, GPU, Call, Input
from flowstone.framework.operation import op
from flowstone.framework.shape import format_dims, merge
from flowstone.ops.scatter import check_rows, rounds
from flowstone.ops.stateful import ALL_NUMBERS, handle_dims

# ---- arithmetic on numbers that may be tensors


def _add_scaled(x, y, scale):
    """x += scale * y, in one call where `scale` is a Python number."""
    if isinstance(scale, torch.Tensor):
        x.add_(y * scale)
    else:
        x.add_(y, alpha=scale)


def _move_towards(x, y, share):
    """x += share * (y - x)."""
    x.lerp_(y, share) if x.is_floating_point() else x.add_((y - x) * share)


def _square_root(x):
    return torch.sqrt(x) if isinstance(x, torch.Tensor) else math.sqrt(x)


def _soft_threshold(x, threshold):
    """sign(x) * max(|x| - threshold, 0)."""
    return torch.sign(x) * (torch.abs(x) - threshold).clamp_min_(0)


def _is_zero(number):
    return not isinstance(number, torch.Tensor) and number == 0


# ---- optimisers


def gradient_descent(var, alpha, delta):
    """var -= alpha * delta."""
    _add_scaled(var, delta, -alpha)


def proximal_gradient_descent(var, alpha, l1, l2, delta):
    """A descent step, then shrinkage by alpha * l1 and division by 1 + alpha * l2."""
    stepped = var - delta * alpha
    var.copy_((stepped if _is_zero(l1) else _soft_threshold(stepped, alpha * l1)) / (1 + l2 * alpha))


def momentum(var, accum, lr, grad, momentum, use_nesterov=False):
    """accum = momentum * accum + grad; var -= lr * accum, or the step after it (Nesterov)."""
    if isinstance(momentum, float):
        torch.add(grad, accum, alpha=momentum, out=accum)  # one pass, and no tensor made of the number
    else:
        accum.mul_(momentum).add_(grad)
    if use_nesterov:
        _add_scaled(var, grad, -lr)
        _add_scaled(var, accum, -lr * momentum)
    else:
        _add_scaled(var, accum, -lr)


def keras_momentum(var, accum, lr, grad, momentum, use_nesterov=False):
    """accum = momentum * accum - lr * grad; var += accum, or the step after it (Nesterov)."""
    accum.mul_(momentum)
    _add_scaled(accum, grad, -lr)
    if use_nesterov:
        _add_scaled(var, accum, momentum)
        _add_scaled(var, grad, -lr)
    else:
        var.add_(accum)


def adagrad(var, accum, lr, grad, update_slots=True):
    """accum += grad^2; var -= lr * grad / sqrt(accum)."""
    if update_slots:
        accum.addcmul_(grad, grad)
    var.sub_(grad * lr * torch.rsqrt(accum))


def adagrad_v2(var, accum, lr, epsilon, grad, update_slots=True):
    """accum += grad^2; var -= lr * grad / (sqrt(accum) + epsilon)."""
    if update_slots:
        accum.addcmul_(grad, grad)
    var.sub_(grad * lr / torch.sqrt(accum).add_(epsilon))


def adagrad_da(var, gradient_accum, squared_accum, grad, lr, l1, l2, global_step):
    """Dual averaging: the variable from the sums of gradients and of their squares."""
    gradient_accum.add_(grad)
    squared_accum.addcmul_(grad, grad)
    total = gradient_accum if _is_zero(l1) else _soft_threshold(gradient_accum, l1 * global_step)
    var.copy_(total * -lr / (torch.sqrt(squared_accum) + l2 * global_step * lr))


def adadelta(var, accum, accum_update, lr, rho, epsilon, grad):
    """Steps in proportion to the root mean square of earlier steps over that of the gradients."""
    _move_towards(accum, grad * grad, 1 - rho)
    update = torch.sqrt(accum_update + epsilon).mul_(torch.rsqrt(accum + epsilon)).mul_(grad)
    _add_scaled(var, update, -lr)
    _move_towards(accum_update, update.mul_(update), 1 - rho)


def proximal_adagrad(var, accum, lr, l1, l2, grad):
    """An Adagrad step, then shrinkage, both with each element's own rate."""
    accum.addcmul_(grad, grad)
    rate = torch.rsqrt(accum).mul_(lr)
    stepped = var - grad * rate
    var.copy_((stepped if _is_zero(l1) else _soft_threshold(stepped, rate * l1)) / (1 + rate * l2))


_FUSED_TYPES = frozenset({torch.float32, torch.float64})
STEP_WITHOUT_BIAS = torch.tensor(1e9)  # at this step _fused_adam_'s own bias corrections are exactly 1


def adam_rate(lr, beta1_power, beta2_power):
    """The learning rate corrected for moments that started at zero."""
    return lr * _square_root(1 - beta2_power) / (1 - beta1_power)


def adam(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad, use_nesterov=False):
    """Moments m and v of the gradient; var -= lr_t * m / (sqrt(v) + epsilon), lr_t the
    bias-corrected rate.
    """
    rate = adam_rate(lr, beta1_power, beta2_power)
    if not use_nesterov and var.dtype in _FUSED_TYPES and _fits_fused_adam(var, rate, beta1, beta2, epsilon):
        laid_out = in_memory_order((var, laid_out_as(var, grad), m, v))
        if laid_out is not None:
            torch._fused_adam_(
                *[[x] for x in laid_out], [], [STEP_WITHOUT_BIAS],
                lr=rate, beta1=beta1, beta2=beta2, weight_decay=0.0, eps=epsilon, amsgrad=False,
                maximize=False,
            )  # fmt: skip
            return
    _move_towards(m, grad, 1 - beta1)
    _move_towards(v, grad * grad, 1 - beta2)
    step = m * beta1 + grad * (1 - beta1) if use_nesterov else m
    var.sub_(step * rate / torch.sqrt(v).add_(epsilon))


def _fits_fused_adam(var, *numbers):
    """Whether ATen's fused kernel takes these: on the host, with numbers that are Python's."""
    return var.device.type == "cpu" and not any(isinstance(number, torch.Tensor) for number in numbers)


def in_memory_order(tensors):
    """Contiguous views of tensors of one shape that lie in memory in the same order; None of others."""
    if all([x.is_contiguous() for x in tensors]):
        return tensors
    strides = tensors[0].stride()
    order = sorted(range(len(strides)), key=strides.__getitem__, reverse=True)
    views = [x.permute(order) for x in tensors]
    return views if all([x.is_contiguous() for x in views]) else None


def laid_out_as(var, grad):
    """A gradient in the variable's order in memory: itself, or a copy, which costs less than what
    differing orders keep from being one call."""
    return grad if grad.stride() == var.stride() else torch.empty_like(var).copy_(grad)


def adam_with_amsgrad(var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad):
    """Adam that divides by the largest second moment so far."""
    rate = adam_rate(lr, beta1_power, beta2_power)
    _move_towards(m, grad, 1 - beta1)
    _move_towards(v, grad * grad, 1 - beta2)
    torch.maximum(vhat, v, out=vhat)
    var.sub_(m * rate / torch.sqrt(vhat).add_(epsilon))


def ada_max(var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad):
    """Adam with the largest magnitude in place of the second moment."""
    _move_towards(m, grad, 1 - beta1)
    torch.maximum(v.mul_(beta2), torch.abs(grad), out=v)
    var.sub_(m * (lr / (1 - beta1_power)) / (v + epsilon))


def rms_prop(var, ms, mom, lr, rho, momentum, epsilon, grad):
    """ms = mean square; mom = momentum * mom + lr * grad / sqrt(ms + epsilon); var -= mom."""
    _move_towards(ms, grad * grad, 1 - rho)
    mom.mul_(momentum).add_(grad * lr * torch.rsqrt(ms + epsilon))
    var.sub_(mom)


def centered_rms_prop(var, mg, ms, mom, lr, rho, momentum, epsilon, grad):
    """As `rms_prop`, divided by the deviation from the mean gradient mg."""
    _move_towards(ms, grad * grad, 1 - rho)
    _move_towards(mg, grad, 1 - rho)
    mom.mul_(momentum).add_(grad * lr * torch.rsqrt((ms - mg * mg).add_(epsilon)))
    var.sub_(mom)


def ftrl(var, accum, linear, grad, lr, l1, l2, lr_power):
    """Follow the regularised leader."""
    ftrl_v2(var, accum, linear, grad, lr, l1, l2, 0.0, lr_power)


def ftrl_v2(var, accum, linear, grad, lr, l1, l2, l2_shrinkage, lr_power):
    """Follow the regularised leader, with shrinkage of the gradient towards the origin."""
    shrunk = grad if _is_zero(l2_shrinkage) else grad + var * (2 * l2_shrinkage)
    new_accum = accum + grad * grad
    power = _ftrl_power(new_accum, lr_power)
    linear.add_(shrunk - (power - _ftrl_power(accum, lr_power)) / lr * var)
    shortfall = torch.sign(linear) * l1 - linear
    divisor = power / lr + 2 * l2
    var.copy_(torch.where(torch.abs(linear) > l1, shortfall / divisor, torch.zeros_like(var)))
    accum.copy_(new_accum)


def _ftrl_power(accum, lr_power):
    if not isinstance(lr_power, torch.Tensor) and lr_power == -0.5:
        return torch.sqrt(accum)
    return torch.pow(accum, -lr_power)


def _direction_agreement(m, beta, grad):
    _move_towards(m, grad, 1 - beta)
    return torch.sign(grad).mul_(torch.sign(m))


def add_sign(var, m, lr, alpha, sign_decay, beta, grad):
    """Steps of (alpha + sign_decay * sign(grad) * sign(m)) * grad."""
    agreement = _direction_agreement(m, beta, grad)
    var.sub_((agreement * sign_decay).add_(alpha).mul_(grad).mul_(lr))


def power_sign(var, m, lr, logbase, sign_decay, beta, grad):
    """Steps of exp(logbase * sign_decay * sign(grad) * sign(m)) * grad."""
    agreement = _direction_agreement(m, beta, grad)
    var.sub_((agreement * (logbase * sign_decay)).exp_().mul_(grad).mul_(lr))


# ---- kernels


def _wrong_shape(var, grad):
    return errors.InvalidArgumentError(
        None,
        None,
        "var and grad do not have the same shape"
        f"{format_dims(tuple(var.shape))} {format_dims(tuple(grad.shape))}",
    )


def _dense(function, slots, grad_at, options, checked):
    """`function` on `Variable`s: unpacks them, checks the gradient's shape unless `checked` at plan time."""

    plain = options.get("update_slots", True) and not options.get("use_nesterov", False)
    if checked and slots < 2 and plain:
        return _DIRECT[slots](function)

    def run(*inputs):
        var = inputs[0].tensor
        if not checked and inputs[grad_at].shape != var.shape:
            raise _wrong_shape(var, inputs[grad_at])
        function(var, *[box.tensor for box in inputs[1 : slots + 1]], *inputs[slots + 1 :], **options)
        return inputs[0]

    return run


def _without_slots(function):
    def run(variable, *inputs):
        function(variable.tensor, *inputs)
        return variable

    return run


def _with_one_slot(function):
    def run(variable, slot, *inputs):
        function(variable.tensor, slot.tensor, *inputs)
        return variable

    return run


_DIRECT = (_without_slots, _with_one_slot)  # by the number of slots


def _sparse(function, slots, grad_at, options):
    """`function` on the rows that the indices behind the gradient name."""

    def run(*inputs):
        tensors = [box.tensor for box in inputs[: slots + 1]]
        grad, indices = inputs[grad_at], inputs[grad_at + 1]
        if grad.shape[1:] != tensors[0].shape[1:] or grad.shape[0] != indices.shape[0]:
            raise _wrong_shape(tensors[0], grad)
        check_rows(indices, tensors[0].shape[0])
        places = indices.long()
        before, after = inputs[slots + 1 : grad_at], inputs[grad_at + 2 :]
        for group in rounds(places) or [None]:
            here, part = (places, grad) if group is None else (places[group], grad[group])
            rows = [tensor.index_select(0, here) for tensor in tensors]
            function(*rows, *before, part, *after, **options)
            for tensor, row in zip(tensors, rows):
                tensor.index_copy_(0, here, row)
        return inputs[0]

    return run


def _with_numbers(node, env, run, numbers):
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


def _reading(run, varying):
    def read(*inputs):
        values = list(inputs)
        for i in varying:
            values[i] = values[i].item()
        return run(*values)

    return read


def _with_lock(run, node):
    if not node.attributes["use_locking"]:
        return run

    def locked(variable, *arguments):
        with variable.lock:
            return run(variable, *arguments)

    return locked


def _kernel(function, names, slots, is_sparse):
    grad_at = next(names.index(name) for name in ("grad", "delta") if name in names)
    numbers = [i for i in range(slots + 1, len(names)) if names[i] not in ("grad", "delta", "indices")]

    def kernel(node, env):
        options = {
            key: value for key, value in node.attributes.items() if key in ("use_nesterov", "update_slots")
        }
        if is_sparse:
            run = _sparse(function, slots, grad_at, options)
        else:
            known = node.static_shape(grad_at)
            held = node.dims(0) if node.inputs[0].dtype.is_ref else handle_dims(node)
            run = _dense(function, slots, grad_at, options, known is not None and known == held)
        return _with_numbers(node, env, _with_lock(run, node), numbers)

    return kernel


# ---- shape inference


# The others leave a resource's shape to the step, as TensorFlow does.
_RESOURCES_CHECKED_WHEN_BUILT = {"GradientDescent", "ProximalAdagrad"}


def _infer(name, names, slots, is_sparse):
    grad_at = next(names.index(name) for name in ("grad", "delta") if name in names)

    def infer(node):
        is_ref = node.inputs[0].dtype.is_ref
        dims = node.dims(0) if is_ref else handle_dims(node)
        for i in range(1, slots + 1):
            dims = merge(dims, node.dims(i) if is_ref else handle_dims(node, i))
        for i in range(slots + 1, len(names)):
            if names[i] not in ("grad", "delta", "indices") and node.dims(i):
                raise ValueError(f"Shape must be rank 0 but is rank {len(node.dims(i))}")
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


def _declare_one(name, function, arguments, slots, attributes, prefix, is_sparse):
    """One of the four ops of an optimiser. `arguments` is the op's list, the gradient rows' indices
    included.
    """
    is_resource = prefix == "Resource"
    held = "resource" if is_resource else "Ref(T)"
    inputs = []
    for i, argument in enumerate(arguments):
        kind = "int64" if argument == "global_step" else "Tindices" if argument == "indices" else "T"
        inputs.append(f"{argument}: {held if i <= slots else kind}")
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
    )
    declaration.infer(_infer(name, arguments, slots, is_sparse))
    declaration.kernel(CPU, GPU)(_kernel(function, arguments, slots, is_sparse))
    return declaration.not_differentiable()


def _declare(name, function, arguments, slots, attributes="", sparse=True, reference=True):
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
_ADAM = "beta1_power beta2_power lr beta1 beta2 epsilon grad"

_declare("GradientDescent", gradient_descent, "var alpha delta", 0, sparse=False)
_declare("ProximalGradientDescent", proximal_gradient_descent, "var alpha l1 l2 delta", 0)
_declare("Momentum", momentum, "var accum lr grad momentum", 1, _NESTEROV)
_declare("KerasMomentum", keras_momentum, "var accum lr grad momentum", 1, _NESTEROV, reference=False)
_declare("Adagrad", adagrad, "var accum lr grad", 1, _SLOTS)
_declare("AdagradV2", adagrad_v2, "var accum lr epsilon grad", 1, _SLOTS)
_declare(
    "AdagradDA",
    adagrad_da,
    "var gradient_accumulator gradient_squared_accumulator grad lr l1 l2 global_step",
    2,
)
_declare("Adadelta", adadelta, "var accum accum_update lr rho epsilon grad", 2)
_declare("ProximalAdagrad", proximal_adagrad, "var accum lr l1 l2 grad", 1)
_declare("Adam", adam, f"var m v {_ADAM}", 2, _NESTEROV, sparse=False)
_declare("AdamWithAmsgrad", adam_with_amsgrad, f"var m v vhat {_ADAM}", 3, sparse=False, reference=False)
_declare("AdaMax", ada_max, "var m v beta1_power lr beta1 beta2 epsilon grad", 2, sparse=False)
_declare("RMSProp", rms_prop, "var ms mom lr rho momentum epsilon grad", 2)
_declare("CenteredRMSProp", centered_rms_prop, "var mg ms mom lr rho momentum epsilon grad", 3)
_declare("Ftrl", ftrl, "var accum linear grad lr l1 l2 lr_power", 2)
_declare("FtrlV2", ftrl_v2, "var accum linear grad lr l1 l2 l2_shrinkage lr_power", 2)
_declare("AddSign", add_sign, "var m lr alpha sign_decay beta grad", 1, sparse=False)
_declare("PowerSign", power_sign, "var m lr logbase sign_decay beta grad", 1, sparse=False)
