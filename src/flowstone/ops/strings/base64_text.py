"""Bytes as text of 64 characters and back: base64 in the alphabet for addresses of the web, RFC 4648 5."""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from typing import Any

from flowstone.framework.node import Node
from flowstone.framework.tensor import Tensor
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.strings.elementwise_strings import declare_each
from flowstone.ops.strings.packed import lengths_of, mapped

__all__ = ["decode_base64", "encode_base64"]

_TEXT = re.compile(rb"(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2}(?:==)?|[A-Za-z0-9_-]{3}=?)?")
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_TO_WEB, _FROM_WEB = bytes.maketrans(b"+/", b"-_"), bytes.maketrans(b"-_", b"+/")
_PADDING = (b"", b"", b"==", b"=")


def _encoder(node: Node) -> Callable[[list[bytes]], list[bytes]]:
    unwanted = b"" if node.attributes["pad"] else b"="

    def encode(strings: list[bytes]) -> list[bytes]:
        texts = [b2a_base64(each, newline=False) for each in strings]
        return mapped(lambda text: text.translate(_TO_WEB, unwanted), texts)

    return encode


def _decode(strings: list[bytes]) -> list[bytes]:
    if b"".join(strings).translate(None, _ALPHABET) or not (lengths_of(strings) % 4 != 1).all():
        for each in strings:
            _check(each)
    texts = mapped(lambda text: text.translate(_FROM_WEB, b"="), strings)
    return [a2b_base64(each + _PADDING[len(each) % 4]) for each in texts]


def _check(string: bytes) -> None:
    if not _TEXT.fullmatch(string):
        if len(string) % 4 == 1:
            raise invalid("Base64 string length cannot be 1 modulo 4.")
        raise invalid("Invalid character found in base64.")


encode_base64_op = declare_each(
    "EncodeBase64", "input: string -> output: string", "pad: bool = false", _encoder
).not_differentiable()
decode_base64_op = declare_each(
    "DecodeBase64",
    "input: string -> output: string",
    "",
    lambda node: _decode,
).not_differentiable()


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:
    """Each string as base64 with '-' and '_' in its alphabet; `pad`: filled up with '=' to fours."""
    return encode_base64_op(input, pad=pad, name=name)


def decode_base64(input: Any, name: str | None = None) -> Tensor:
    """The bytes that each string is the base64 of, with '-' and '_' in its alphabet, padded or not.

    A step raises InvalidArgumentError for other characters and for lengths that no bytes give.
    """
    return decode_base64_op(input, name=name)
