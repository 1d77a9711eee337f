"""Grouped updates: the same step of one optimiser on many variables, as one call.

``_GroupedUpdate`` and ``_GroupedResourceUpdate`` stand, in plans only, for several dense updates that share
their numbers (`update_grouping.py` makes them). Inputs: `held`, the variables, then the first slot
of each, then the second; `numbers`, in the order of the single op's arguments, and, if it is `scaled`, what
gradients are multiplied by; `grads`.

ATen's fused optimisers take lists, and need 0.3 µs a variable, where two to three calls each take 3 µs. The
steps of the other optimisers take 8 to 15 µs a variable, so that very small variables, their slots and
gradients are laid one behind the other, updated as one vector and copied back: 3 to 4 µs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Call, Input
from flowstone.framework.declarations.operation import op
from flowstone.lowering.updates.native_rules import Places, native_call, rule_of
from flowstone.ops.variables import optimizer_steps as steps
from flowstone.ops.variables.stateful import ALL_NUMBERS

__all__: list[str] = []


def _gradient_descent(options: Any, variables: Any, grads: Any, alpha: Any) -> Any:
    """var -= alpha * grad, for each."""
    torch._fused_sgd_(variables, grads, [], lr=alpha, momentum=0.0, nesterov=False, **_PLAIN)  # type: ignore[call-overload]


def _momentum(options: Any, variables: Any, accums: Any, grads: Any, lr: Any, momentum: Any) -> Any:
    """accum = momentum * accum + grad; var -= lr * accum, or the step after it (Nesterov), for each."""
    nesterov = options.get("use_nesterov", False)
    if not momentum:  # ATen's step keeps no sum for a momentum of 0.
        torch._foreach_copy_(accums, grads)
        _gradient_descent(options, variables, grads, lr)
        return
    torch._fused_sgd_(variables, grads, accums, lr=lr, momentum=momentum, nesterov=nesterov, **_PLAIN)  # type: ignore[call-overload]


_PLAIN = {"weight_decay": 0.0, "dampening": 0.0, "maximize": False, "is_first_step": False}


def _adam(
    options: Any,
    variables: Any,
    m: Any,
    v: Any,
    grads: Any,
    beta1_power: Any,
    beta2_power: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
) -> Any:
    """`steps.adam` for each, with one computation of the rate."""
    if not steps.are_shares(beta1, beta2):
        for var, mean, square, grad in zip(variables, m, v, grads):
            steps.adam(var, mean, square, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad)
        return
    rate = steps.adam_rate(lr, beta1_power, beta2_power)
    torch._fused_adam_(
        variables, grads, m, v, [], [steps.STEP_WITHOUT_BIAS] * len(variables),
        lr=rate, beta1=beta1, beta2=beta2, weight_decay=0.0, eps=epsilon, amsgrad=False, maximize=False,
    )  # fmt: skip


def _adagrad(options: Any, variables: Any, accums: Any, grads: Any, lr: Any, epsilon: Any = 0.0) -> Any:
    """accum += grad^2; var -= lr * grad / (sqrt(accum) + epsilon), for each."""
    steps.fused_adagrad(variables, grads, accums, lr, epsilon)


class Grouped(NamedTuple):
    """How an update is done for many: `single`, the step on one variable; its `slots`; how many of the
    numbers come `before` the gradient; `together`, the step on lists, or None where vectors are joined.
    """

    single: Callable[..., None]
    slots: int
    before: int
    together: Callable[..., None] | None = None


# By the single op's name without its prefix.
GROUPED = {
    "ApplyGradientDescent": Grouped(steps.gradient_descent, 0, 1, _gradient_descent),
    "ApplyMomentum": Grouped(steps.momentum, 1, 1, _momentum),
    "ApplyAdam": Grouped(steps.adam, 2, 6, _adam),
    "ApplyAdagrad": Grouped(steps.adagrad, 1, 1, _adagrad),
    "ApplyAdagradV2": Grouped(steps.adagrad_v2, 1, 2, _adagrad),
    "ApplyAdagradDA": Grouped(steps.adagrad_da, 2, 0),
    "ApplyRMSProp": Grouped(steps.rms_prop, 2, 4),
    "ApplyCenteredRMSProp": Grouped(steps.centered_rms_prop, 3, 4),
    "ApplyAdadelta": Grouped(steps.adadelta, 2, 3),
    "ApplyFtrl": Grouped(steps.ftrl, 2, 0),
    "ApplyFtrlV2": Grouped(steps.ftrl_v2, 2, 0),
    "ApplyProximalGradientDescent": Grouped(steps.proximal_gradient_descent, 0, 3),
    "ApplyProximalAdagrad": Grouped(steps.proximal_adagrad, 1, 3),
    "ApplyKerasMomentum": Grouped(steps.keras_momentum, 1, 1),
    "ApplyAdamWithAmsgrad": Grouped(steps.adam_with_amsgrad, 3, 6),
    "ApplyAdaMax": Grouped(steps.ada_max, 2, 5),
    "ApplyAddSign": Grouped(steps.add_sign, 1, 4),
    "ApplyPowerSign": Grouped(steps.power_sign, 1, 4),
}


def _kernel(node: Any, env: Any) -> Any:
    grouped = GROUPED[node.attributes["update"]]
    count, is_scaled = node.group_sizes[2], node.attributes["scaled"]
    options = {"use_nesterov": True} if node.attributes["use_nesterov"] else {}
    numbers = [_number(node, env, count * (grouped.slots + 1) + i) for i in range(node.group_sizes[1])]
    if grouped.together is None:
        step = _on_joined(grouped, options)
    else:
        fusible = env.device.type == "cpu" and not (grouped.single is steps.adam and options)
        step = _on_lists(grouped, options, fusible)

    def run(held: Any, grads: Any, *numbers: Any) -> Any:
        tensors = [variable.tensor for variable in held]
        if is_scaled:
            grads, numbers = [grad * numbers[-1] for grad in grads], numbers[:-1]
        step([tensors[i : i + count] for i in range(0, len(tensors), count)], grads, numbers)

    first_number = count * (grouped.slots + 1)
    first_grad = first_number + len(numbers)
    places = Places(
        range(first_number), range(first_grad, first_grad + count), range(first_number, first_grad)
    )
    constants = [node.constant(i) for i in places.numbers]
    rule = rule_of(node.attributes["update"], bool(options), constants, is_scaled)
    native = native_call(node, rule, places, run) if env.device.type == "cpu" else None
    held = [Input(i) for i in places.held]
    return native or Call(run, held, [Input(i) for i in places.given], *numbers)


def _on_joined(grouped: Any, options: Any) -> Any:
    """The step on vectors, each of all variables' elements one behind the other."""
    single, before = grouped.single, grouped.before
    join, part = torch._C._nn.flatten_dense_tensors, torch._C._nn.unflatten_dense_tensors

    def step(lists: Any, grads: Any, numbers: Any) -> Any:
        joined = [join(tensors) for tensors in lists]
        single(*joined, *numbers[:before], join(grads), *numbers[before:], **options)
        for vector, tensors in zip(joined, lists):
            torch._foreach_copy_(tensors, part(vector, tensors))

    return step


def _on_lists(grouped: Any, options: Any, fusible: Any) -> Any:
    """The step by ATen's fused optimisers; singly where those do not suit."""
    single, before, together = grouped.single, grouped.before, grouped.together

    def step(lists: Any, grads: Any, numbers: Any) -> Any:
        lists = [*lists, grads]
        if not (fusible and all([x.is_contiguous() for tensors in lists for x in tensors])):
            rows = []
            for *tensors, grad in zip(*lists):
                grad = steps.laid_out_as(tensors[0], grad) if fusible else grad
                views = steps.in_memory_order((*tensors, grad)) if fusible else None
                if views is None:
                    single(*tensors, *numbers[:before], grad, *numbers[before:], **options)
                else:
                    rows.append(views)
            lists = [list(tensors) for tensors in zip(*rows)] or [[]]
        if lists[0]:
            together(options, *lists, *numbers)

    return step


def _number(node: Any, env: Any, i: Any) -> Any:
    """Input `i` for the update's function: a Python number, unless reading it would wait for a device."""
    value = node.constant(i)
    if value is not None:
        return value.item()
    return Call(torch.Tensor.item, Input(i)) if env.device.type == "cpu" else Input(i)


for _name, _held in (("_GroupedUpdate", "Ref(M*T)"), ("_GroupedResourceUpdate", "M*resource")):
    _declaration = op(
        _name,
        f"held: {_held}, numbers: K*T, grads: N*T ->",
        "update: string ; use_nesterov: bool = false ; scaled: bool = false ; K: int >= 1",
        stateful=True,
        mutates=[0],
        capturable=True,
        T=ALL_NUMBERS,
    )
    _declaration.infer(lambda node: None)
    _declaration.kernel(CPU, GPU)(_kernel)
    _declaration.not_differentiable()
