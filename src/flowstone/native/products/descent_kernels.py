"""A layer's gradient with the descent of its weights in machine code, as a function of tensors.

All are contiguous float32 on a host. What a plan first asks for is compiled on a thread (`prepare`); what is
called before it is there waits.
"""

from __future__ import annotations

import functools

import torch

from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.products.descent_code import PLACES, WORDS, descent_code

__all__ = ["descend", "prepare", "suits"]


@functools.cache
def _library() -> CodeLibrary:
    return CodeLibrary(lambda: descent_code(host.lanes()), WORDS, PLACES)


def prepare() -> None:
    """Has the code compiled."""
    _library().prepare()


def suits(outputs: int) -> bool:
    """Whether there is code for weights of so many columns."""
    return outputs % host.lanes() == 0


def descend(weights: torch.Tensor, rate: float, x: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    """The gradient dy weights' by x [rows, inputs], of which `rate` x' dy is then subtracted from the weights
    [inputs, outputs]; dy is [rows, outputs].
    """
    rows, inputs = x.shape
    dx = torch.zeros(rows, inputs)
    words = {"threads": torch.get_num_threads(), "rows": rows, "inputs": inputs, "outputs": dy.shape[1]}
    places = {"weights": weights, "scaled": (x * -rate).t().contiguous(), "dy": dy, "dx": dx}
    _library().call("descend", words, places)
    return dx
