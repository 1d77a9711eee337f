"""Bytes as text of 64 characters and back: base64 in the alphabet for addresses of the web, RFC 4648 5."""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework.machine import string_code
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.strings.elementwise_strings import declare_each
from flowstone.ops.strings.packed import KEPT, WORD, Packed, are_similar, blocks_of, mapped, texts_of

__all__ = ["decode_base64", "encode_base64"]

_TEXT = re.compile(rb"(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2}(?:==)?|[A-Za-z0-9_-]{3}=?)?")
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_TO_WEB, _FROM_WEB = bytes.maketrans(b"+/", b"-_"), bytes.maketrans(b"-_", b"+/")
_FILLED = bytes.maketrans(b"-_\0", b"+/A")
_PADDING = (b"", b"", b"==", b"=")
_SHORT = 48  # bytes, up to which texts are encoded together
_FEW = 100  # strings that are encoded one after the other


def _encoder(node: Node) -> Callable[[list[bytes]], Any]:
    pads = node.attributes["pad"]
    unwanted = b"" if pads else b"="

    def encode(strings: list[bytes]) -> Any:
        if len(strings) > _FEW and (packed := Packed(strings)).lengths.max() <= _SHORT:
            return _encoded(packed, pads)
        texts = [b2a_base64(each, newline=False) for each in strings]
        return mapped(lambda text: text.translate(_TO_WEB, unwanted), texts)

    def encode_all(strings: list[bytes]) -> Any:
        code = string_code.string_codecs() if len(strings) > _FEW else None
        found = None if code is None else code.encoded(strings, pads)
        return _by_blocks(encode, strings) if found is None else found

    return encode_all


def _by_blocks(function: Callable[[list[bytes]], Any], strings: list[bytes]) -> list[bytes]:
    found: list[bytes] = []
    for block in blocks_of(strings):
        found += list(function(block))
    return found


def _encoded(packed: Packed, pads: bool) -> Any:
    """All of them as one text: six bytes are eight characters, in rows of equal lengths."""
    lengths = packed.lengths
    rows = packed.rows(packed.starts, lengths, 6)
    data = rows.view(np.uint8).reshape(*rows.shape, WORD)[:, :, :6].tobytes()
    text = bytearray(b2a_base64(data, newline=False).translate(_TO_WEB))
    found = np.frombuffer(text, np.uint8).reshape(len(rows), -1)
    sizes = -(-lengths * 4 // 3)
    if pads:
        for rest, count in ((1, 2), (2, 1)):
            short = np.flatnonzero(lengths % 3 == rest)
            for i in range(count):
                found[short, sizes[short] + i] = ord("=")
        sizes = -(-lengths // 3) * 4
    words = found.view(np.uint64)
    words &= KEPT[np.clip(sizes[:, None] - np.arange(0, found.shape[1], WORD), 0, WORD)]
    return texts_of(words, sizes)


def _decode_all(strings: list[bytes]) -> Any:
    code = string_code.string_codecs() if len(strings) > _FEW else None
    found = None if code is None else code.decoded(strings)
    return _by_blocks(_decode, strings) if found is None else found


def _decode(strings: list[bytes]) -> Any:
    if len(strings) <= _FEW:
        for each in strings:
            _check(each)
        return _each_decoded(strings)
    packed = Packed(strings)
    ends = packed.starts + packed.lengths
    last, one_before = (packed.buffer[np.maximum(ends - i, packed.starts)] == ord("=") for i in (1, 2))
    padding = last.astype(np.int64) + (last & one_before)
    sizes = packed.lengths - padding
    fits = np.where(padding == 0, sizes % 4 != 1, sizes % 4 == 4 - padding)
    other = b"".join(strings).translate(None, _ALPHABET)
    if not fits.all() or other != b"=" * int(padding.sum()):
        for each in strings:
            _check(each)
    return _decoded(packed, sizes) if are_similar(sizes) else _each_decoded(strings)


def _each_decoded(strings: list[bytes]) -> list[bytes]:
    texts = mapped(lambda text: text.translate(_FROM_WEB, b"="), strings)
    return [a2b_base64(each + _PADDING[len(each) % 4]) for each in texts]


def _decoded(packed: Packed, sizes: np.ndarray[Any, Any]) -> Any:
    """All of them as one text, in rows of equal lengths, filled up with the character for zeros."""
    rows = packed.rows(packed.starts, sizes)
    found = np.frombuffer(bytearray(a2b_base64(rows.tobytes().translate(_FILLED))), np.uint8)
    found = found.reshape(len(rows), -1)
    lengths = sizes * 3 // 4
    partly = np.flatnonzero(sizes % 4)
    found[partly, lengths[partly]] = 0  # bits of which there are too few for a byte
    return texts_of(found, lengths)


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
    lambda node: _decode_all,
).not_differentiable()


@dispatched("unary")
def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:
    """Each string as base64 with '-' and '_' in its alphabet; `pad`: filled up with '=' to fours."""
    return encode_base64_op(input, pad=pad, name=name)


@dispatched("unary")
def decode_base64(input: Any, name: str | None = None) -> Tensor:
    """The bytes that each string is the base64 of, with '-' and '_' in its alphabet, padded or not.

    A step raises InvalidArgumentError for other characters and for lengths that no bytes give.
    """
    return decode_base64_op(input, name=name)
