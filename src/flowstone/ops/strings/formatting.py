"""A template filled with the text of tensors.

>>> tensor_text(np.arange(20).reshape(2, 10), 3).decode()
'[[0 1 2 ... 7 8 9]\\n [10 11 12 ... 17 18 19]]'
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims
from flowstone.framework.types.values import to_numpy
from flowstone.ops.control.reporting import summary
from flowstone.ops.strings.elementwise_strings import Strings, as_array, attribute_bytes

__all__ = ["string_format"]

_NAMED = {9: b"\\t", 10: b"\\n", 13: b"\\r", 34: b'\\"', 39: b"\\'", 92: b"\\\\"}
_SPECIAL = re.compile(rb"[\x00-\x1f\x7f\"'\\]")


# ---- values as text


def tensor_text(array: np.ndarray[Any, Any], summarize: int) -> bytes:
    """A value as nested brackets, a line a row; of each dimension only the first and the last `summarize`
    (all if it is negative; of a single element none if it is 0), with ``...`` between. Strings are quoted.
    """
    if not array.ndim:
        return _element_text(array[()]) if summarize else b"..."
    if array.size == 0:
        summarize = 0
    return _dimension_text(array, 0, summarize)


def _dimension_text(array: np.ndarray[Any, Any], depth: int, most: int) -> bytes:
    between = b"\n" * (array.ndim - 1) + b" " * (depth + 1 if array.ndim > 1 else 1)

    def text(part: Any) -> bytes:
        return _dimension_text(part, depth + 1, most) if array.ndim > 1 else _element_text(part)

    if most < 0 or len(array) <= 2 * most:
        return b"[" + between.join([text(part) for part in array]) + b"]"
    first, last = ([text(part) for part in parts] for parts in (array[:most], array[len(array) - most :]))
    if not most:
        first = [b""]
    return b"[" + between.join([*first, b"...", *last]) + b"]"


def _element_text(element: Any) -> bytes:
    if isinstance(element, bytes):
        return b'"' + _SPECIAL.sub(_escape, element) + b'"'
    if isinstance(element, (int, np.integer)):
        return b"%d" % element
    if isinstance(element, np.floating) and np.isnan(element):
        return b"-nan" if np.signbit(element) else b"nan"
    return summary(element, 1).encode()


def _escape(match: re.Match[bytes]) -> bytes:
    code = match[0][0]
    return _NAMED.get(code) or b"\\%03o" % code


# ---- the op

string_format_op = op(
    "StringFormat",
    "inputs: *T -> output: string",
    "T: list(type) >= 0 ; template: string = '%s' ; placeholder: string = '%s' ; summarize: int = 3",
)
string_format_op.no_gradient()


@string_format_op.infer
def _(node: Node) -> Dims:
    wanted = len(_pieces(node)) - 1
    if wanted != len(node.inputs):
        raise ValueError(
            f"num placeholders in template and num inputs must match: {wanted} vs. {len(node.inputs)}"
        )
    return ()


def _pieces(node: Node) -> list[bytes]:
    return attribute_bytes(node, "template").split(attribute_bytes(node, "placeholder"))


@string_format_op.kernel(CPU)  # strings are in host memory
def _(node: Node, env: Environment) -> Callable[..., Strings]:
    first, *others = _pieces(node)
    types, summarize = node.attributes["T"], node.attributes["summarize"]

    def fill(*values: Any) -> Strings:
        text = [first]
        for value, dtype, piece in zip(values, types, others):
            text += [tensor_text(to_numpy(value, dtype), summarize), piece]
        return as_array([b"".join(text)], ())

    return fill


def string_format(
    template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None
) -> Tensor:
    """`template` with the text of the tensors `inputs` (one, or a list) in place of its placeholders: string,
    [].

    Of each dimension the first and last `summarize` elements are shown, all if it is -1. Raises ValueError if
    there are more or fewer placeholders than tensors.
    """
    tensors = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    wanted = template.count(placeholder)
    if wanted != len(tensors):
        raise ValueError(
            f"The template expects {wanted} tensors, but the inputs only has {len(tensors)}. Please ensure "
            "the number of placeholders in template matches inputs length."
        )
    return string_format_op(
        tensors, template=template, placeholder=placeholder, summarize=summarize, name=name
    )
