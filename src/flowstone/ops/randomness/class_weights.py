"""The weights of classes by unnormalised log probabilities, as running sums: what random choices are made by.

>>> running_weights(torch.tensor([[0.0, 0.0, -math.inf, 0.0]]))
tensor([[1., 2., 2., 3.]], dtype=torch.float64)
"""

from __future__ import annotations

import math

import torch

from flowstone.framework.machine_code import running_weights as machine_code

__all__ = ["running_weights"]


def running_weights(logits: torch.Tensor) -> torch.Tensor:
    """The running sums along rows [rows, classes], float64, of the weights, of which the largest is 1;
    logits that are not finite have none. There is at least one class."""
    native = machine_code(logits.dtype) if logits.device.type == "cpu" else None
    found = native(logits) if native is not None else None
    if found is not None:
        return found
    wide = logits.double()
    top = wide.amax(1, keepdim=True)
    if wide.device.type != "cpu" or not bool(top.isfinite().all()):  # so that only -inf may be among them
        never = -math.inf
        wide = torch.nan_to_num(wide, nan=never, posinf=never, neginf=never)
        top = wide.amax(1, keepdim=True).clamp_(min=-1e300)
    weights = torch.sub(wide, top).exp_()
    return torch.cumsum(weights, 1, out=weights)
