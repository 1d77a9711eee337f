"""Bytes as text of 64 characters and back: base64 in the alphabet for addresses of the web, RFC 4648 5."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any

from flowstone.framework.node import Node
from flowstone.framework.tensor import Tensor
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.strings.elementwise_strings import declare_each

__all__ = ["decode_base64", "encode_base64"]

_TEXT = re.compile(rb"(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2}(?:==)?|[A-Za-z0-9_-]{3}=?)?")


def _encoder(node: Node) -> Callable[[list[bytes]], list[bytes]]:
    if node.attributes["pad"]:
        return lambda strings: list(map(urlsafe_b64encode, strings))
    return lambda strings: [urlsafe_b64encode(each).rstrip(b"=") for each in strings]


def _decode(string: bytes) -> bytes:
    if not _TEXT.fullmatch(string):
        if len(string) % 4 == 1:
            raise invalid("Base64 string length cannot be 1 modulo 4.")
        raise invalid("Invalid character found in base64.")
    return urlsafe_b64decode(string + b"=" * (-len(string) % 4))


encode_base64_op = declare_each(
    "EncodeBase64", "input: string -> output: string", "pad: bool = false", _encoder
).not_differentiable()
decode_base64_op = declare_each(
    "DecodeBase64",
    "input: string -> output: string",
    "",
    lambda node: lambda strings: list(map(_decode, strings)),
).not_differentiable()


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:
    """Each string as base64 with '-' and '_' in its alphabet; `pad`: filled up with '=' to fours."""
    return encode_base64_op(input, pad=pad, name=name)


def decode_base64(input: Any, name: str | None = None) -> Tensor:
    """The bytes that each string is the base64 of, with '-' and '_' in its alphabet, padded or not.

    A step raises InvalidArgumentError for other characters and for lengths that no bytes give.
    """
    return decode_base64_op(input, name=name)
