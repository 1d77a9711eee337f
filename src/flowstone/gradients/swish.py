"""`swish`, with TensorFlow's gradient for complex numbers: it is a custom gradient, which leaves out the
conjugate that other gradients of complex numbers have."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.gradients.custom_gradients import custom_gradient
from flowstone.ops.networks import activations

__all__ = ["swish"]


def swish(features: Any) -> Tensor:
    """features * sigmoid(features), element-wise; floating types and complex numbers."""
    features = convert_to_tensor(features, name="features")
    if features.dtype.is_complex:
        return _with_own_gradient(features)  # type: ignore[no-any-return]
    return activations.swish(features)


@custom_gradient
def _with_own_gradient(features: Tensor) -> Any:
    def gradient(dy: Any) -> Any:
        sigmoid = F.Sigmoid(features)
        rest = F.Sub(F.OnesLike(sigmoid), sigmoid)
        slope = F.Mul(sigmoid, F.AddV2(F.OnesLike(rest), F.Mul(features, rest)))
        return F.Mul(dy, slope)

    return activations.swish(features), gradient
