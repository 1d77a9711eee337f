"""`swish`, whose gradient is TensorFlow's own.

It takes the sigmoid anew, and leaves out the conjugate that other gradients of complex numbers have.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph_functions import control_dependencies
from flowstone.gradients.custom_gradients import custom_gradient
from flowstone.ops.networks import activations

__all__ = ["swish"]


@custom_gradient
def swish(features: Any) -> Any:
    """features * sigmoid(features), element-wise; floating types and complex numbers."""

    def gradient(dy: Any) -> Any:
        with control_dependencies([dy]):
            sigmoid = F.Sigmoid(features)
        return dy * (sigmoid * (1.0 + features * (1.0 - sigmoid)))

    return activations.swish(features), gradient
