"""One step of every optimiser, on tensors, in place: ``f(var, *slots, *numbers, gradient)``.

The arguments are in the order of those of the op that `updates.py` makes of it. Numbers (learning rates …)
are Python's on the host. On an accelerator they may be scalar tensors, so that no step waits for it; the
functions use only arithmetic that accepts both. ATen's fused optimisers, which pass over memory once, take
Python numbers only. A gradient may lie in another order in memory than its variable.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from flowstone.ops.variables.step_arithmetic import (
    Number,
    add_product,
    add_scaled,
    average_squares,
    inverse,
    is_zero,
    move_towards,
    soft_threshold,
    square_root,
)

_aten: Any = torch  # whose stubs ask tensors where these steps give Python numbers


def gradient_descent(var: torch.Tensor, alpha: Number, delta: torch.Tensor) -> None:
    """var -= alpha * delta."""
    add_scaled(var, delta, -alpha)


def proximal_gradient_descent(
    var: torch.Tensor, alpha: Number, l1: Number, l2: Number, delta: torch.Tensor
) -> None:
    """A descent step, then shrinkage by alpha * l1 and division by 1 + alpha * l2."""
    stepped = var - delta * alpha
    var.copy_((stepped if is_zero(l1) else soft_threshold(stepped, alpha * l1)) / (1 + l2 * alpha))


def momentum(
    var: torch.Tensor,
    accum: torch.Tensor,
    lr: Number,
    grad: torch.Tensor,
    momentum: Number,
    use_nesterov: bool = False,
) -> None:
    """accum = momentum * accum + grad; var -= lr * accum, or the step after it (Nesterov)."""
    fused = _for_fused((var, grad, accum), lr, momentum)
    if fused and momentum:  # ATen's step keeps no sum for a momentum of 0.
        _aten._fused_sgd_(
            *fused, lr=lr, momentum=momentum, nesterov=use_nesterov, weight_decay=0.0, dampening=0.0,
            maximize=False, is_first_step=False,
        )  # fmt: skip
        return
    accum.mul_(momentum).add_(grad)
    if use_nesterov:
        add_scaled(var, grad, -lr)
        add_scaled(var, accum, -lr * momentum)
    else:
        add_scaled(var, accum, -lr)


def keras_momentum(
    var: torch.Tensor,
    accum: torch.Tensor,
    lr: Number,
    grad: torch.Tensor,
    momentum: Number,
    use_nesterov: bool = False,
) -> None:
    """accum = momentum * accum - lr * grad; var += accum, or the step after it (Nesterov)."""
    accum.mul_(momentum)
    add_scaled(accum, grad, -lr)
    if use_nesterov:
        add_scaled(var, accum, momentum)
        add_scaled(var, grad, -lr)
    else:
        var.add_(accum)


def adagrad(
    var: torch.Tensor, accum: torch.Tensor, lr: Number, grad: torch.Tensor, update_slots: bool = True
) -> None:
    """accum += grad^2; var -= lr * grad / sqrt(accum)."""
    fused = _for_fused((var, grad, accum), lr) if update_slots else None
    if fused:
        variables, grads, accums = fused
        fused_adagrad(variables, grads, accums, lr, 0.0)
        return
    if update_slots:
        accum.addcmul_(grad, grad)
    var.sub_(grad * lr * torch.rsqrt(accum))


def adagrad_v2(
    var: torch.Tensor,
    accum: torch.Tensor,
    lr: Number,
    epsilon: Number,
    grad: torch.Tensor,
    update_slots: bool = True,
) -> None:
    """accum += grad^2; var -= lr * grad / (sqrt(accum) + epsilon)."""
    fused = _for_fused((var, grad, accum), lr, epsilon) if update_slots else None
    if fused:
        variables, grads, accums = fused
        fused_adagrad(variables, grads, accums, lr, epsilon)
        return
    if update_slots:
        accum.addcmul_(grad, grad)
    var.sub_(grad * lr / torch.sqrt(accum).add_(epsilon))


def fused_adagrad(
    variables: list[torch.Tensor],
    grads: list[torch.Tensor],
    accums: list[torch.Tensor],
    lr: Number,
    epsilon: Number,
    maximize: bool = False,
) -> None:
    """`adagrad_v2` on each variable of a list, or with its sign turned, by ATen's fused step."""
    count = [STEP_WITHOUT_BIAS] * len(variables)
    _aten._fused_adagrad_(
        variables, grads, accums, count, lr=lr, lr_decay=0.0, weight_decay=0.0, eps=epsilon, maximize=maximize
    )


def adagrad_da(
    var: torch.Tensor,
    gradient_accum: torch.Tensor,
    squared_accum: torch.Tensor,
    grad: torch.Tensor,
    lr: Number,
    l1: Number,
    l2: Number,
    global_step: Number,
) -> None:
    """Dual averaging: the variable from the sums of gradients and of their squares."""
    gradient_accum.add_(grad)
    squared_accum.addcmul_(grad, grad)
    total = gradient_accum if is_zero(l1) else soft_threshold(gradient_accum, l1 * global_step)
    below = torch.sqrt(squared_accum).add_(l2 * global_step * lr)
    torch.div(total * -lr, below, out=var)


def adadelta(
    var: torch.Tensor,
    accum: torch.Tensor,
    accum_update: torch.Tensor,
    lr: Number,
    rho: Number,
    epsilon: Number,
    grad: torch.Tensor,
) -> None:
    """Steps in proportion to the root mean square of earlier steps over that of the gradients."""
    average_squares(accum, grad, rho)
    update = (accum_update + epsilon).div_(accum + epsilon).sqrt_().mul_(grad)
    add_scaled(var, update, -lr)
    average_squares(accum_update, update, rho)


def proximal_adagrad(
    var: torch.Tensor, accum: torch.Tensor, lr: Number, l1: Number, l2: Number, grad: torch.Tensor
) -> None:
    """An Adagrad step, then shrinkage, both with each element's own rate."""
    accum.addcmul_(grad, grad)
    rate = torch.rsqrt(accum).mul_(lr)
    stepped = var - grad * rate
    var.copy_((stepped if is_zero(l1) else soft_threshold(stepped, rate * l1)) / (1 + rate * l2))


FUSED_TYPES = frozenset({torch.float32, torch.float64})
STEP_WITHOUT_BIAS = torch.tensor(1e9)  # at this step _fused_adam_'s own bias corrections are exactly 1


def are_shares(*betas: Number) -> bool:
    """Whether ATen's own bias corrections are 1 for these, after many steps."""
    return all([not isinstance(beta, torch.Tensor) and 0 <= beta < 1 for beta in betas])


def adam_rate(lr: Number, beta1_power: Number, beta2_power: Number) -> Number:
    """The learning rate corrected for moments that started at zero."""
    return lr * square_root(1 - beta2_power) / (1 - beta1_power)


def adam(
    var: torch.Tensor,
    m: torch.Tensor,
    v: torch.Tensor,
    beta1_power: Number,
    beta2_power: Number,
    lr: Number,
    beta1: Number,
    beta2: Number,
    epsilon: Number,
    grad: torch.Tensor,
    use_nesterov: bool = False,
) -> None:
    """Moments m and v of the gradient; var -= lr_t * m / (sqrt(v) + epsilon), lr_t the
    bias-corrected rate.
    """
    rate = adam_rate(lr, beta1_power, beta2_power)
    fused = None
    if not use_nesterov and are_shares(beta1, beta2):
        fused = _for_fused((var, grad, m, v), rate, beta1, beta2, epsilon)
    if fused:
        variables, grads, means, squares = fused
        _aten._fused_adam_(
            variables, grads, means, squares, [], [STEP_WITHOUT_BIAS], lr=rate, beta1=beta1, beta2=beta2,
            weight_decay=0.0, eps=epsilon, amsgrad=False, maximize=False,
        )  # fmt: skip
        return
    move_towards(m, grad, 1 - beta1)
    average_squares(v, grad, beta2)
    step = m * beta1 + grad * (1 - beta1) if use_nesterov else m
    var.sub_(step * rate / torch.sqrt(v).add_(epsilon))


def _for_fused(tensors: tuple[torch.Tensor, ...], *numbers: Number) -> list[list[torch.Tensor]] | None:
    """The arguments of ATen's fused optimisers for a variable, its gradient and slots: lists of one tensor.

    None where they do not suit: accelerators, numbers that are tensors, other types, orders that differ.
    """
    var, grad, *slots = tensors
    if var.device.type != "cpu" or var.dtype not in FUSED_TYPES:
        return None
    if any([isinstance(number, torch.Tensor) for number in numbers]):
        return None
    laid_out = in_memory_order((var, laid_out_as(var, grad), *slots))
    return None if laid_out is None else [[x] for x in laid_out]


def in_memory_order(
    tensors: tuple[torch.Tensor, ...],
) -> list[torch.Tensor] | tuple[torch.Tensor, ...] | None:
    """Contiguous views of tensors of one shape that lie in memory in the same order; None of others."""
    if all([x.is_contiguous() for x in tensors]):
        return tensors
    strides = tensors[0].stride()
    order = sorted(range(len(strides)), key=strides.__getitem__, reverse=True)
    views = [x.permute(order) for x in tensors]
    return views if all([x.is_contiguous() for x in views]) else None


def laid_out_as(var: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    """A gradient in the variable's order in memory: itself, or a copy, which costs less than what
    differing orders keep from being one call."""
    return grad if grad.stride() == var.stride() else torch.empty_like(var).copy_(grad)


def adam_with_amsgrad(
    var: torch.Tensor,
    m: torch.Tensor,
    v: torch.Tensor,
    vhat: torch.Tensor,
    beta1_power: Number,
    beta2_power: Number,
    lr: Number,
    beta1: Number,
    beta2: Number,
    epsilon: Number,
    grad: torch.Tensor,
) -> None:
    """Adam that divides by the largest second moment so far."""
    rate = adam_rate(lr, beta1_power, beta2_power)
    move_towards(m, grad, 1 - beta1)
    move_towards(v, grad * grad, 1 - beta2)
    torch.maximum(vhat, v, out=vhat)
    var.sub_(m * rate / torch.sqrt(vhat).add_(epsilon))


def ada_max(
    var: torch.Tensor,
    m: torch.Tensor,
    v: torch.Tensor,
    beta1_power: Number,
    lr: Number,
    beta1: Number,
    beta2: Number,
    epsilon: Number,
    grad: torch.Tensor,
) -> None:
    """Adam with the largest magnitude in place of the second moment."""
    move_towards(m, grad, 1 - beta1)
    torch.maximum(v.mul_(beta2), torch.abs(grad), out=v)
    var.sub_(m * (lr / (1 - beta1_power)) / (v + epsilon))


def rms_prop(
    var: torch.Tensor,
    ms: torch.Tensor,
    mom: torch.Tensor,
    lr: Number,
    rho: Number,
    momentum: Number,
    epsilon: Number,
    grad: torch.Tensor,
) -> None:
    """ms = mean square; mom = momentum * mom + lr * grad / sqrt(ms + epsilon); var -= mom."""
    fused = None
    if var.stride() == mom.stride() and not (isinstance(rho, torch.Tensor) or rho == 1):
        fused = _for_fused((mom, grad, ms), lr, momentum, epsilon)
    if fused is None:
        average_squares(ms, grad, rho)
        mom.mul_(momentum).add_(grad * lr * torch.rsqrt(ms + epsilon))
    else:  # Adagrad's sum of squares would be (ms + epsilon) / (1 - rho) after the step
        moments, grads, averages = fused
        squares = torch.mul(averages[0], rho / (1 - rho)).add_(epsilon / (1 - rho))
        mom.mul_(momentum)
        fused_adagrad(moments, grads, [squares], lr / math.sqrt(1 - rho), 0.0, maximize=True)
        average_squares(ms, grad, rho)
    var.sub_(mom)


def centered_rms_prop(
    var: torch.Tensor,
    mg: torch.Tensor,
    ms: torch.Tensor,
    mom: torch.Tensor,
    lr: Number,
    rho: Number,
    momentum: Number,
    epsilon: Number,
    grad: torch.Tensor,
) -> None:
    """As `rms_prop`, divided by the deviation from the mean gradient mg."""
    average_squares(ms, grad, rho)
    move_towards(mg, grad, 1 - rho)
    mom.mul_(momentum).add_(grad * lr * torch.rsqrt((ms - mg * mg).add_(epsilon)))
    var.sub_(mom)


def ftrl(
    var: torch.Tensor,
    accum: torch.Tensor,
    linear: torch.Tensor,
    grad: torch.Tensor,
    lr: Number,
    l1: Number,
    l2: Number,
    lr_power: Number,
) -> None:
    """Follow the regularised leader."""
    ftrl_v2(var, accum, linear, grad, lr, l1, l2, 0.0, lr_power)


def ftrl_v2(
    var: torch.Tensor,
    accum: torch.Tensor,
    linear: torch.Tensor,
    grad: torch.Tensor,
    lr: Number,
    l1: Number,
    l2: Number,
    l2_shrinkage: Number,
    lr_power: Number,
) -> None:
    """Follow the regularised leader, with shrinkage of the gradient towards the origin."""
    shrunk = grad if is_zero(l2_shrinkage) else grad + var * (2 * l2_shrinkage)
    before = _ftrl_power(accum, lr_power)
    power = _ftrl_power(accum.addcmul_(grad, grad), lr_power)
    linear.add_(shrunk)
    add_product(linear, before.sub_(power), var, inverse(lr))
    if is_zero(l2):
        power.clamp_min_(torch.finfo(power.dtype).tiny)  # what is 0 / 0 is 0 then
    else:
        power.add_(2 * l2 * lr)
    step, rate = (linear, -lr) if is_zero(l1) else (_aten.clamp(linear, -l1, l1).sub_(linear), lr)
    if isinstance(rate, torch.Tensor):
        var.copy_((step * rate).div_(power))
    else:
        var.zero_().addcdiv_(step, power, value=rate)


def _ftrl_power(accum: torch.Tensor, lr_power: Number) -> torch.Tensor:
    if not isinstance(lr_power, torch.Tensor) and lr_power == -0.5:
        return torch.sqrt(accum)
    return torch.pow(accum, -lr_power)


def _direction_agreement(m: torch.Tensor, beta: Number, grad: torch.Tensor) -> torch.Tensor:
    move_towards(m, grad, 1 - beta)
    return torch.sign(grad).mul_(torch.sign(m))


def add_sign(
    var: torch.Tensor,
    m: torch.Tensor,
    lr: Number,
    alpha: Number,
    sign_decay: Number,
    beta: Number,
    grad: torch.Tensor,
) -> None:
    """Steps of (alpha + sign_decay * sign(grad) * sign(m)) * grad."""
    agreement = _direction_agreement(m, beta, grad)
    var.sub_((agreement * sign_decay).add_(alpha).mul_(grad).mul_(lr))


def power_sign(
    var: torch.Tensor,
    m: torch.Tensor,
    lr: Number,
    logbase: Number,
    sign_decay: Number,
    beta: Number,
    grad: torch.Tensor,
) -> None:
    """Steps of exp(logbase * sign_decay * sign(grad) * sign(m)) * grad."""
    agreement = _direction_agreement(m, beta, grad)
    var.sub_((agreement * (logbase * sign_decay)).exp_().mul_(grad).mul_(lr))
