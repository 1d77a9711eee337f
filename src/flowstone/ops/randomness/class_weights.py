"""The weights of classes by unnormalised log probabilities, as running sums, and random choices by them.

>>> running_weights(torch.tensor([[0.0, 0.0, -math.inf, 0.0]]))
tensor([[1., 2., 2., 3.]], dtype=torch.float64)
"""

from __future__ import annotations

import math

import torch

from flowstone.framework.declarations import work
from flowstone.framework.machine.machine_code import class_choice
from flowstone.framework.tensors.node import Node

__all__ = ["chosen_classes", "cost_of_choices", "running_weights"]


def running_weights(logits: torch.Tensor) -> torch.Tensor:
    """The running sums along rows [rows, classes], float64, of the weights, of which the largest is 1;
    logits that are not finite have none. There is at least one class."""
    wide = logits.double()
    top = wide.amax(1, keepdim=True)
    if wide.device.type != "cpu" or not bool(top.isfinite().all()):  # so that only -inf may be among them
        never = -math.inf
        wide = torch.nan_to_num(wide, nan=never, posinf=never, neginf=never)
        top = wide.amax(1, keepdim=True).clamp_(min=-1e300)
    weights = torch.sub(wide, top).exp_()
    return torch.cumsum(weights, 1, out=weights)


def chosen_classes(logits: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """The classes, int64 [rows, samples], that numbers of [0, 1), float64, choose by the weights of [rows,
    classes]; the last one where none has a weight."""
    native = class_choice(logits.dtype) if logits.device.type == "cpu" else None
    found = native(logits, uniform) if native is not None else None
    if found is not None:
        return found
    sums = running_weights(logits)
    found = torch.searchsorted(sums, uniform * sums[:, -1:], right=True)
    return found.clamp_(max=logits.shape[1] - 1)


def cost_of_choices(node: Node) -> float:
    """Operations of a choice by the first input: an exponential function of each logit, a search a sample."""
    return 20.0 * (work.count(node.inputs[0]) + work.count(node.outputs[0]))
