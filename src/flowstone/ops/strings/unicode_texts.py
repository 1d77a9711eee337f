"""Unicode: strings from one encoding into another, into code points and back."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import OpDeclaration, Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.strings.elementwise_strings import Strings, as_array, as_list, declare_each
from flowstone.ops.strings.packed import WORD, Packed, blocks_of
from flowstone.ops.strings.unicode_codecs import HIGHEST, Decoder, character, code_points

_FEW = 100  # strings that are decoded one after the other
_Array = np.ndarray[Any, Any]
_ERRORS = (
    "errors: string in ['strict', 'replace', 'ignore'] = 'replace' ; replacement_char: int = 65533 ; "
    "replace_control_characters: bool = false"
)
_OUTPUT = "output_encoding: string in ['UTF-8', 'UTF-16-BE', 'UTF-32-BE']"
_SPLITS = "Tsplits: type in [int32, int64] = int64"


# ---- into another encoding


def _transcoder(node: Node) -> Callable[[list[bytes]], list[bytes]]:
    decoder, output = Decoder.of(node), node.attributes["output_encoding"].lower()
    if output == "utf-8" == decoder.codec and not decoder.replaces_controls:
        return lambda strings: [each if each.isascii() else decoder.text(each).encode() for each in strings]
    return lambda strings: [decoder.text(each).encode(output) for each in strings]


unicode_transcode_op = declare_each(
    "UnicodeTranscode",
    "input: string -> output: string",
    f"input_encoding: string ; {_OUTPUT} ; {_ERRORS}",
    _transcoder,
).no_gradient()


# ---- into code points


def _declare_decoding(name: str, outputs: str) -> OpDeclaration:
    declaration = op(
        name,
        f"input: string -> row_splits: Tsplits, char_values: int32{outputs}",
        f"input_encoding: string ; {_ERRORS} ; {_SPLITS}",
        by_element=True,
    )

    @declaration.infer
    def _(node: Node) -> Shapes:
        dims = node.dims(0)
        count = None if dims is None or None in dims else int(np.prod(dims)) + 1  # type: ignore[arg-type]
        return [(count,), *[(None,)] * (len(node.outputs) - 1)]

    return declaration.no_gradient()


unicode_decode_op = _declare_decoding("UnicodeDecode", "")
unicode_decode_with_offsets_op = _declare_decoding("UnicodeDecodeWithOffsets", ", char_to_byte_starts: int64")


def _row_splits(node: Node, lengths: _Array) -> torch.Tensor:
    ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    return torch.from_numpy(ends).to(node.attributes["Tsplits"].torch)


def _well_formed(strings: list[bytes]) -> tuple[_Array, ...] | None:
    """What `_points` gives, of strings all of which are UTF-8; else None."""
    packed = Packed(strings)
    try:
        points = code_points(str(packed.buffer.data, "utf-8"))  # a zero byte ends what stands before it
    except UnicodeDecodeError:
        return None
    begins, first, counts = packed.characters()
    kept = np.ones(len(points), bool)
    kept[first + counts] = False
    kept[-WORD:] = False
    return counts, points[kept], begins[kept] - np.repeat(packed.starts, counts)


def _points(decoder: Decoder, strings: list[bytes]) -> tuple[_Array, ...]:
    """How many code points each string has, all of them, and at which byte of its string each begins."""
    if decoder.codec == "utf-8" and not decoder.replaces_controls:
        found = _well_formed(strings)
        if found is not None:
            return found
    rows = list(map(decoder.points, strings))
    counts = np.array([len(points) for points, _ in rows], np.int64)
    return counts, np.concatenate([row[0] for row in rows]), np.concatenate([row[1] for row in rows])


def _decode_kernel(node: Node, env: Environment) -> Callable[[Strings], tuple[torch.Tensor, ...]]:
    decoder, with_offsets = Decoder.of(node), len(node.outputs) > 2
    none = np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64)

    def decode(strings: Strings) -> tuple[torch.Tensor, ...]:
        if strings.size < _FEW and not with_offsets:
            texts = list(map(decoder.text, as_list(strings)))
            points = torch.from_numpy(code_points("".join(texts)))
            return _row_splits(node, np.array(list(map(len, texts)), np.int64)), points
        blocks = [_points(decoder, block) for block in blocks_of(as_list(strings))]
        counts, values, offsets = map(np.concatenate, zip(none, *blocks))
        found = _row_splits(node, counts), torch.from_numpy(values)
        return (*found, torch.from_numpy(offsets)) if with_offsets else found

    return decode


unicode_decode_op.kernel(CPU)(_decode_kernel)  # strings are in host memory
unicode_decode_with_offsets_op.kernel(CPU)(_decode_kernel)


# ---- from code points

unicode_encode_op = op(
    "UnicodeEncode",
    "input_values: int32, input_splits: Tsplits -> output: string",
    f"errors: string in ['ignore', 'replace', 'strict'] = 'replace' ; {_OUTPUT} ; "
    f"replacement_char: int = 65533 ; {_SPLITS}",
    by_element=True,
)
unicode_encode_op.no_gradient()


@unicode_encode_op.infer
def _(node: Node) -> Dims:
    for i in (0, 1):
        dims = node.dims(i)
        if dims is not None and len(dims) != 1:
            raise ValueError(f"Shape must be rank 1 but is rank {len(dims)}")
    splits = node.dims(1)
    return (None,) if not splits or splits[0] is None else (splits[0] - 1,)


def _check_splits(splits: list[int], size: int) -> None:
    if not splits:
        raise invalid("Input_splits should contain elements, but given input_values has 0 elements")
    if splits[0] != 0:
        raise invalid("First value in input_splits must be zero.")
    if splits[-1] != size:
        raise invalid("Last value in input_splits must be equal to length of input_tensor.")
    if any(begin > end for begin, end in itertools.pairwise(splits)):
        raise invalid("Values in input_splits must be equal or in ascending order.")


@unicode_encode_op.kernel(CPU)  # strings are in host memory
def _(node: Node, env: Environment) -> Callable[..., Strings]:
    errors, codec = node.attributes["errors"], node.attributes["output_encoding"].lower()
    replacement = np.int32(ord(character(node.attributes["replacement_char"])))

    def encode(values: torch.Tensor, input_splits: torch.Tensor) -> Strings:
        points, splits = values.numpy(), input_splits.tolist()
        _check_splits(splits, len(points))
        wrong = (points < 0) | (points > HIGHEST) | ((points >= 0xD800) & (points < 0xE000))
        if wrong.any():
            if errors == "strict":
                raise invalid("Code point is out of range for Unicode, or is a surrogate.")
            if errors == "ignore":
                removed = np.concatenate([[0], np.cumsum(wrong)])
                splits = (np.asarray(splits) - removed[splits]).tolist()
                points = points[~wrong]
            else:
                points = np.where(wrong, replacement, points)
        text = points.astype("<i4").tobytes().decode("utf-32-le")
        rows = [text[begin:end].encode(codec) for begin, end in itertools.pairwise(splits)]
        return as_array(rows, (len(rows),))

    return encode
