"""Products of few rows by weights that do not change, from a packed copy of the weights.

A layer that sees few examples reads each weight for a handful of multiplications. oneDNN reads weights in
its own blocked order at the speed of the memory; in the program's order, where rows are multiples of 4 KiB
apart, at a third to a half of it (4096 x 4096 and 16 examples: 1.6 ms instead of 3.8). Plans only: where a
plan does not change a variable, `weight_packing.py` makes ``_PackedMatMul`` of a product, and has
its weights read in the form "product" (`packed_weights.py`). Packing takes as long as about twenty products
save. Measured in docs/design/017.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, X2, Call
from flowstone.framework.declarations.operation import op
from flowstone.framework.machine import onednn
from flowstone.framework.types import dtypes
from flowstone.lowering.packing.packed_weights import FORMS, Dims, Form
from flowstone.ops.algebra.matrices import ACTIVATED, activated_by_onednn

__all__: list[str] = []

_USUAL_ROWS = 16  # for which oneDNN is to choose the order; it suits all of 1 to 64


# the weights [out, in] for oneDNN's product, of [in, out], or of [out, in] if the first number says so


def _view(weights: torch.Tensor, numbers: Dims) -> Sequence[torch.Tensor]:
    return (weights if numbers[0] else weights.t(),)


def _pack(weights: Sequence[torch.Tensor], numbers: Dims) -> Sequence[torch.Tensor]:
    reorder = onednn.reordered_weights
    return (reorder(weights[0].contiguous(), _USUAL_ROWS),)


def _dims(dims: Any, numbers: Dims) -> list[Any]:
    return [dims if numbers[0] or dims is None else dims[::-1]]


FORMS["product"] = Form(_dims, _view, _pack)


_product = op(
    "_PackedMatMul",
    "a: T, weights: T, bias: NB*T -> product: T",
    "NB: int >= 0 ; activation: string = ''",
    T=[dtypes.float32],
    cost=work.product,
    multiplies="product",
)
_product.infer(lambda node: (node.known_dims(0)[0], node.known_dims(1)[0]))


@_product.kernel(CPU, GPU)
def _(node: Any, env: Any) -> Any:
    """activation(a weights' + bias)."""
    activation, bias = node.attributes["activation"], X2 if node.attributes["NB"] else None
    if env.device.type == "cpu":
        return activated_by_onednn(X0, X1, bias, activation)
    total = Call(torch.nn.functional.linear, X0, X1, bias)
    return Call(ACTIVATED[activation], total) if activation else total


_product.not_differentiable()
