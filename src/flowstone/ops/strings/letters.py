"""Letters: strings in lower and upper case, without the white space around them, their lengths.

Without an encoding, only the letters of ASCII have cases; with ``utf-8`` all that Unicode gives one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.machine import string_code
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.strings.elementwise_strings import Strings, declare_each, flat, same_shape
from flowstone.ops.strings.packed import MANY, character_counts, lengths_of, mapped

__all__ = ["string_length", "string_lower", "string_strip", "string_upper"]


def _case_maker(
    ascii_case: Callable[[bytes], bytes], unicode_case: Callable[[str], str]
) -> Callable[[Node], Any]:
    def of_text(string: bytes) -> bytes:
        if string.isascii():
            return ascii_case(string)
        return unicode_case(string.decode("utf-8", "replace")).encode()

    def make(node: Node) -> Callable[[list[bytes]], list[bytes]]:
        encoding = node.attributes["encoding"]
        if encoding not in ("", "utf-8"):
            raise invalid(f"only utf-8 or '' (no encoding) is supported, received {encoding}")
        if not encoding:
            return partial(_by_byte, ascii_case, ascii_case(bytes(range(256))))
        return lambda strings: [of_text(each) for each in strings]

    return make


def _by_byte(case: Callable[[bytes], bytes], table: bytes, strings: list[bytes]) -> Any:
    code = string_code.text_pieces() if len(strings) >= MANY else None
    found = None if code is None else code.mapped(strings, table)
    return mapped(case, strings) if found is None else found


def _declare_case(name: str, make: Callable[[Node], Any]) -> OpDeclaration:
    return declare_each(name, "input: string -> output: string", "encoding: string = ''", make).no_gradient()


string_lower_op = _declare_case("StringLower", _case_maker(bytes.lower, str.lower))
string_upper_op = _declare_case("StringUpper", _case_maker(bytes.upper, str.upper))
string_strip_op = declare_each(
    "StringStrip", "input: string -> output: string", "", lambda node: _strip_each
).no_gradient()

string_length_op = op(
    "StringLength",
    "input: string -> output: int32",
    "unit: string in ['BYTE', 'UTF8_CHAR'] = 'BYTE'",
    by_element=True,
)
string_length_op.infer(same_shape)
string_length_op.no_gradient()


def _strip_each(strings: list[bytes]) -> list[bytes]:
    return [each.strip() for each in strings]


@string_length_op.kernel(CPU)  # strings are in host memory
def _(node: Node, env: Environment) -> Callable[[Strings], torch.Tensor]:
    characters = node.attributes["unit"] == "UTF8_CHAR"

    def lengths(strings: Strings) -> torch.Tensor:
        texts = flat(strings)
        counts = character_counts(texts) if characters else lengths_of(texts)
        return torch.from_numpy(counts).to(torch.int32).reshape(strings.shape)

    return lengths


# ---- public functions


@dispatched("unary")
def string_lower(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Each string in lower case.

    `encoding`: '' for the letters of ASCII alone, or 'utf-8', where malformed bytes become U+FFFD.
    """
    return string_lower_op(input, encoding=encoding, name=name)


@dispatched("unary")
def string_upper(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Each string in upper case; `encoding` as of `string_lower`."""
    return string_upper_op(input, encoding=encoding, name=name)


@dispatched("unary")
def string_strip(input: Any, name: str | None = None) -> Tensor:
    """Each string without the white space of ASCII at its ends."""
    return string_strip_op(input, name=name)


@dispatched("unary")
def string_length(input: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """The length of each string: int32, in the shape of `input`.

    `unit`: 'BYTE', or 'UTF8_CHAR' for the number of characters.
    """
    return string_length_op(input, unit=unit, name=name)
