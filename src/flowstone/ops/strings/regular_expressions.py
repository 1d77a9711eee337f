"""Strings matched with and rewritten by regular expressions, in the syntax of RE2 (`re2_patterns.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims, format_dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.strings.elementwise_strings import (
    Strings,
    as_array,
    as_list,
    attribute_bytes,
    declare_each,
    same_shape,
)
from flowstone.ops.strings.re2_patterns import Pattern, compiled, rewriting

__all__ = ["regex_full_match", "regex_replace"]


def _infer_scalars(node: Node) -> Dims:
    for i in range(1, len(node.inputs)):
        dims = node.dims(i)
        if dims:
            raise ValueError(f"Shape must be rank 0 but is rank {len(dims)}")
    return node.dims(0)


def _scalar(strings: Strings, called: str) -> bytes:
    if strings.ndim:
        raise invalid(f"{called} must be scalar, but received {format_dims(strings.shape)}")
    value: bytes = strings.item()
    return value


def _replaced(pattern: Pattern, rewrite: bytes, every: bool, strings: list[bytes]) -> list[bytes]:
    return (pattern.replace_all if every else pattern.replace_first)(rewriting(rewrite), strings)


def _fits(pattern: Pattern, strings: Strings) -> torch.Tensor:
    return torch.from_numpy(np.array(pattern.fit(as_list(strings)), bool).reshape(strings.shape))


# ---- replacing

regex_replace_op = op(
    "RegexReplace",
    "input: string, pattern: string, rewrite: string -> output: string",
    "replace_global: bool = true",
    by_element=True,
)
regex_replace_op.infer(_infer_scalars)
regex_replace_op.not_differentiable()


@regex_replace_op.kernel(CPU)  # strings are in host memory
def _(node: Node, env: Environment) -> Callable[..., Strings]:
    every = node.attributes["replace_global"]

    def replace(strings: Strings, pattern: Strings, rewrite: Strings) -> Strings:
        found = compiled(_scalar(pattern, "Pattern"))
        result = _replaced(found, _scalar(rewrite, "Rewrite"), every, as_list(strings))
        return as_array(result, strings.shape)

    return replace


def _static_replacer(node: Node) -> Callable[[list[bytes]], list[bytes]]:
    pattern, rewrite = compiled(attribute_bytes(node, "pattern")), attribute_bytes(node, "rewrite")
    every = node.attributes["replace_global"]
    return lambda strings: _replaced(pattern, rewrite, every, strings)


static_regex_replace_op = declare_each(
    "StaticRegexReplace",
    "input: string -> output: string",
    "pattern: string ; rewrite: string ; replace_global: bool = true",
    _static_replacer,
).no_gradient()


# ---- matching

regex_full_match_op = op("RegexFullMatch", "input: string, pattern: string -> output: bool", by_element=True)
regex_full_match_op.infer(_infer_scalars)
regex_full_match_op.no_gradient()


@regex_full_match_op.kernel(CPU)  # strings are in host memory
def _(node: Node, env: Environment) -> Callable[[Strings, Strings], torch.Tensor]:
    return lambda strings, pattern: _fits(compiled(_scalar(pattern, "Pattern")), strings)


static_regex_full_match_op = op(
    "StaticRegexFullMatch", "input: string -> output: bool", "pattern: string", by_element=True
)
static_regex_full_match_op.infer(same_shape)
static_regex_full_match_op.no_gradient()


@static_regex_full_match_op.kernel(CPU)  # strings are in host memory
def _(node: Node, env: Environment) -> Callable[[Strings], torch.Tensor]:
    pattern = compiled(attribute_bytes(node, "pattern"))
    return lambda strings: _fits(pattern, strings)


# ---- public functions


@dispatched("unary")
def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Tensor:
    r"""Each string with what `pattern` matches replaced by `rewrite`, in which \1 is the first group and \0
    the match.

    `pattern` and `rewrite`: strings or string scalars; the syntax is RE2's, without \C. `replace_global`:
    every match, not only the first. A step raises InvalidArgumentError for a malformed pattern.
    """
    if isinstance(pattern, (str, bytes)) and isinstance(rewrite, (str, bytes)):
        return static_regex_replace_op(
            input, pattern=pattern, rewrite=rewrite, replace_global=replace_global, name=name
        )
    return regex_replace_op(input, pattern, rewrite, replace_global=replace_global, name=name)


@dispatched("unary")
def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Tensor:
    """Whether all of each string matches `pattern`, as of `regex_replace`: bool."""
    if isinstance(pattern, (str, bytes)):
        return static_regex_full_match_op(input, pattern=pattern, name=name)
    return regex_full_match_op(input, pattern, name=name)
