"""Choices between a value and zero by the sign of a margin: what is left of a value by dropout.

Plans only: `dropout_choices.py` makes these of a choice by a comparison. ATen's gradient of a
threshold is the one kernel that chooses by a number, in one vectorised pass; a choice by a mask takes four.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, X0, X1, Call
from flowstone.framework.declarations.operation import op

__all__: list[str] = []

# Of numbers that are not tiny themselves no difference lies between this and zero.
_BELOW_ZERO = -float(np.finfo(np.float32).tiny)

kept_op = op("_KeptByMargin", "x: T, margin: T -> y: T", T=None)
kept_op.infer(lambda node: node.dims(0))
kept_op.not_differentiable()


@kept_op.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    """x where the margin, of the same shape, is not negative, else zero."""
    choose = torch.ops.aten.threshold_backward
    call = Call(choose.default, X0, X1, _BELOW_ZERO)
    return call.or_in_place(0, choose.grad_input, X0, X1, _BELOW_ZERO, grad_input=X0)
