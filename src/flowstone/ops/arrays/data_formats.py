"""Dimensions and sizes carried over from one layout of images to another, both named by their letters.

`DataFormatDimMap` maps numbers of dimensions, `DataFormatVecPermute` rearranges a vector of sizes.

>>> _places("NHWC", "NCHW")
[0, 3, 1, 2]
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid

_FORMATS = "T: type in [int32, int64] = int32 ; src_format: string = 'NHWC' ; dst_format: string = 'NCHW'"


def _places(source: str, target: str) -> list[int]:
    """Where each letter of `target` stands in `source`."""
    return [source.index(letter) for letter in target]


def _formats(node: Node) -> tuple[str, str]:
    """The two formats. InvalidArgumentError unless one has the 4 or 5 letters of the other."""
    source, target = node.attributes["src_format"], node.attributes["dst_format"]
    for what, text in (("Source", source), ("Destination", target)):
        if len(text) not in (4, 5):
            raise invalid(f"{what} format must be of length 4 or 5, received {text!r}")
    if len(set(source)) < len(source) or sorted(source) != sorted(target):
        raise invalid(
            f"Destination and source format must be permutations of each other: {source!r} and {target!r}"
        )
    return source, target


dim_map_op = op("DataFormatDimMap", "x: T -> y: T", _FORMATS)
dim_map_op.infer(lambda node: node.dims(0))
dim_map_op.no_gradient()


@dim_map_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    source, target = _formats(node)
    table = torch.tensor(_places(target, source), dtype=node.dtype(0).torch, device=env.device)
    count = len(source)
    return lambda x: table[torch.remainder(x, count).long()]


vec_permute_op = op("DataFormatVecPermute", "x: T -> y: T", _FORMATS)
vec_permute_op.infer(lambda node: node.dims(0))
vec_permute_op.no_gradient()


@vec_permute_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    source, target = _formats(node)
    count = len(source)
    of_all = torch.tensor(_places(source, target), device=env.device)
    spatial = [_without_batch_and_channels(text) for text in (source, target)]
    of_space = torch.tensor(_places(*spatial), device=env.device)

    def permute(x: Any) -> Any:
        if x.ndim not in (1, 2):
            raise invalid(f"input must be a vector or 2D tensor, but got shape {list(x.shape)}")
        if x.shape[0] not in (count, len(of_space)):
            raise invalid(f"1D input must be of size {len(of_space)} or {count}, but got {x.shape[0]}")
        if x.ndim == 2 and x.shape[1] != 2:
            raise invalid(f"Second dimension of 2D input must be of size 2, but got shape {list(x.shape)}")
        return x[of_all if x.shape[0] == count else of_space]

    return permute


def _without_batch_and_channels(letters: str) -> str:
    return "".join([letter for letter in letters if letter not in "NC"])
