"""Grouped updates: the same step of one optimiser on many variables, as one call.

``_GroupedUpdate`` and ``_GroupedResourceUpdate`` stand, in plans only, for several dense updates that share
their numbers (`rewriting/update_grouping.py` makes them). Inputs: `held`, the variables, then the first slot
of each, then the second; `numbers`, in the order of the single op's arguments; `grads`. ATen's fused
optimisers then need 0.2 µs a variable, where two to three calls each take 3 µs.
"""

from __future__ import annotations

import torch

from flowstone.framework.kernel import CPU, GPU, Call, Input
from flowstone.framework.operation import op
from flowstone.ops import optimizer_steps as steps
from flowstone.ops.stateful import ALL_NUMBERS

__all__: list[str] = []


def _gradient_descent(options, variables, grads, alpha):
    """var -= alpha * grad, for each."""
    torch._fused_sgd_(variables, grads, [], lr=alpha, momentum=0.0, nesterov=False, **_PLAIN)


def _momentum(options, variables, accums, grads, lr, momentum):
    """accum = momentum * accum + grad; var -= lr * accum, or the step after it (Nesterov), for each."""
    nesterov = options.get("use_nesterov", False)
    torch._fused_sgd_(variables, grads, accums, lr=lr, momentum=momentum, nesterov=nesterov, **_PLAIN)


_PLAIN = {"weight_decay": 0.0, "dampening": 0.0, "maximize": False, "is_first_step": False}


def _adam(options, variables, m, v, grads, beta1_power, beta2_power, lr, beta1, beta2, epsilon):
    """`steps.adam` for each, with one computation of the rate."""
    rate = steps.adam_rate(lr, beta1_power, beta2_power)
    torch._fused_adam_(
        variables, grads, m, v, [], [steps.STEP_WITHOUT_BIAS] * len(variables),
        lr=rate, beta1=beta1, beta2=beta2, weight_decay=0.0, eps=epsilon, amsgrad=False, maximize=False,
    )  # fmt: skip


# By the single op's name without its prefix: the function on lists, the one on a single variable, slots,
# and how many of the numbers come before the gradient.
GROUPED = {
    "ApplyGradientDescent": (_gradient_descent, steps.gradient_descent, 0, 1),
    "ApplyMomentum": (_momentum, steps.momentum, 1, 1),
    "ApplyAdam": (_adam, steps.adam, 2, 6),
}


def _kernel(node, env):
    together, single, slots, before = GROUPED[node.attributes["update"]]
    count = node.group_sizes[2]
    options = {"use_nesterov": True} if node.attributes["use_nesterov"] else {}
    numbers = [_number(node, env, count * (slots + 1) + i) for i in range(node.group_sizes[1])]
    fusible = env.device.type == "cpu" and not (single is steps.adam and options)

    def run(held, grads, *numbers):
        lists = [[variable.tensor for variable in held[i : i + count]] for i in range(0, len(held), count)]
        lists.append(grads)
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

    first_grad = count * (slots + 1) + len(numbers)
    held = [Input(i) for i in range(count * (slots + 1))]
    return Call(run, held, [Input(first_grad + i) for i in range(count)], *numbers)


def _number(node, env, i):
    """Input `i` for the update's function: a Python number, unless reading it would wait for a device."""
    value = node.constant(i)
    if value is not None:
        return value.item()
    return Call(torch.Tensor.item, Input(i)) if env.device.type == "cpu" else Input(i)


for _name, _held in (("_GroupedUpdate", "Ref(M*T)"), ("_GroupedResourceUpdate", "M*resource")):
    _declaration = op(
        _name,
        f"held: {_held}, numbers: K*T, grads: N*T ->",
        "update: string ; use_nesterov: bool = false ; K: int >= 1",
        stateful=True,
        mutates=[0],
        capturable=True,
        T=ALL_NUMBERS,
    )
    _declaration.infer(lambda node: None)
    _declaration.kernel(CPU, GPU)(_kernel)
    _declaration.not_differentiable()
