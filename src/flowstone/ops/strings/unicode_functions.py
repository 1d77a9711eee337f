"""Public functions over Unicode and over rows of strings, whose results may be ragged."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.ragged.conversions import from_tensor
from flowstone.ops.ragged.ragged_tensor import RaggedTensor, as_ragged_or_tensor
from flowstone.ops.ragged.row_layouts import splits_of_ids


def _of_strings(input: Any, of_vector: Callable[[Any], list[Any]]) -> list[Any]:
    """What `of_vector` gives for the strings of a vector, splits and lists of values, as ragged tensors: a
    dimension more than the strings have. Of one string, vectors. ValueError for an unknown rank.
    """
    text = as_ragged_or_tensor(input, dtypes.string, name="input")
    if isinstance(text, RaggedTensor):
        return [text.with_flat_values(each) for each in _of_strings(text.flat_values, of_vector)]
    rank = text.shape.ndims
    if rank is None:
        raise ValueError("Rank of `input` must be statically known.")
    if rank > 1:
        rows = from_tensor(text, ragged_rank=rank - 1)
        return [rows.with_flat_values(each) for each in _of_strings(rows.flat_values, of_vector)]
    splits, *values = of_vector(text if rank else F.Reshape(text, [1]))
    if rank == 0:
        return values
    splits.set_shape([None if text.shape.as_list()[0] is None else text.shape.as_list()[0] + 1])
    return [RaggedTensor.from_row_splits(each, splits, validate=False) for each in values]


def _decoded(
    op: Any, input: Any, encoding: str, errors: str, replacement: int, replaces_control_characters: bool
) -> list[Any]:
    """What an op gives that decodes strings: see `unicode_decode`."""
    of_vector = functools.partial(
        op.several,
        input_encoding=encoding,
        errors=errors,
        replacement_char=replacement,
        replace_control_characters=replaces_control_characters,
    )
    return _of_strings(input, of_vector)


def unicode_transcode(
    input: Any,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Tensor:
    """Each string in another encoding.

    `input_encoding`: an encoding's name, as ICU knows it. `output_encoding`: 'UTF-8', 'UTF-16-BE' or
    'UTF-32-BE'. `errors`: malformed bytes are replaced by `replacement_char` ('replace'), left out
    ('ignore'), or a step raises InvalidArgumentError ('strict'). `replace_control_characters`: U+0000 to
    U+001F are treated as malformed, but for the error.
    """
    return F.UnicodeTranscode(
        input,
        input_encoding=input_encoding,
        output_encoding=output_encoding,
        errors=errors,
        replacement_char=replacement_char,
        replace_control_characters=replace_control_characters,
        name=name,
    )


def unicode_decode(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """The code points of a string: int32, [characters]; the arguments are `unicode_transcode`'s. Of several
    strings, a RaggedTensor.

    Raises ValueError for an unknown rank.
    """
    with get_default_graph().name_scope(name or "UnicodeDecode"):
        (points,) = _decoded(
            F.UnicodeDecode, input, input_encoding, errors, replacement_char, replace_control_characters
        )
        return points


def unicode_decode_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> tuple[Any, Any]:
    """As `unicode_decode`, and the byte at which each character begins: int64, [characters]."""
    with get_default_graph().name_scope(name or "UnicodeDecodeWithOffsets"):
        points, offsets = _decoded(
            F.UnicodeDecodeWithOffsets,
            input,
            input_encoding,
            errors,
            replacement_char,
            replace_control_characters,
        )
        return points, offsets


def unicode_encode(
    input: Any,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Any:
    """The strings of the code points (int32) along the last axis of `input`.

    What is no code point is replaced, left out or an error, by `errors` as of `unicode_transcode`. Raises
    ValueError for a scalar and for an unknown rank.
    """
    with get_default_graph().name_scope(name or "UnicodeEncode"):
        points = as_ragged_or_tensor(input, dtypes.int32)
        if isinstance(points, RaggedTensor):
            if points.ragged_rank > 1 or points.flat_values.shape.ndims != 1:
                inner = unicode_encode(points.values, output_encoding, errors, replacement_char)
                return points.with_values(inner)
            return F.UnicodeEncode(
                points.flat_values,
                points.row_splits,
                errors=errors,
                output_encoding=output_encoding,
                replacement_char=replacement_char,
            )
        if not points.shape.ndims:
            raise ValueError("input's rank must be known, and at least 1")
        outer, _, splits = _rows(points)
        texts = F.UnicodeEncode(
            F.Reshape(points, [-1]),
            splits,
            errors=errors,
            output_encoding=output_encoding,
            replacement_char=replacement_char,
        )
        result = F.Reshape(texts, outer)
        result.set_shape(points.shape[:-1])
        return result


def unicode_split(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Any:
    """The characters of a string as strings in its encoding: [characters]; arguments as above. Of several
    strings, a RaggedTensor.

    Raises ValueError for an unknown rank.
    """
    with get_default_graph().name_scope(name or "UnicodeSplit"):
        points = unicode_decode(input, input_encoding, errors, replacement_char)
        return _single_characters(points, input_encoding)


def unicode_split_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> tuple[Any, Any]:
    """As `unicode_split`, and the byte at which each character begins: int64, [characters]."""
    with get_default_graph().name_scope(name or "UnicodeSplitWithOffsets"):
        points, offsets = unicode_decode_with_offsets(input, input_encoding, errors, replacement_char)
        return _single_characters(points, input_encoding), offsets


def _rows(values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The sizes of all axes but the last, how many rows along the last there are, and where each begins, with
    the end of the last: int64.
    """
    zero, one = convert_to_tensor(0, dtypes.int64), convert_to_tensor(1, dtypes.int64)
    shape = F.Shape(values, out_type=dtypes.int64)
    outer = F.StridedSlice(shape, [0], [-1], [1])
    size = F.StridedSlice(shape, [-1], [0], [1], end_mask=1, shrink_axis_mask=1)
    rows = F.Prod(outer, 0)
    return outer, rows, F.Mul(F.Range(zero, F.AddV2(rows, one), one), size)


def _single_characters(points: Any, encoding: str) -> Any:
    if isinstance(points, RaggedTensor):
        return points.with_flat_values(_single_characters(points.flat_values, encoding))
    return unicode_encode(F.ExpandDims(points, 1), encoding, "ignore")


def bytes_split(input: Any, name: str | None = None) -> Any:
    """The bytes of a string as strings: [bytes]. Of several strings, a RaggedTensor.

    Raises ValueError for an unknown rank.
    """

    def parts(text: Tensor) -> list[Any]:
        indices, values, shape = F.StringSplit.several(text, "", skip_empty=False)
        return [splits_of_ids(indices[:, 0], shape[0]), values]

    with get_default_graph().name_scope(name or "StringsByteSplit"):
        (found,) = _of_strings(input, parts)
        return found


def ngrams(
    data: Any,
    ngram_width: Any,
    separator: str = " ",
    pad_values: Any = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Any:
    """Neighbours along the last axis of the strings `data` joined, `ngram_width` (or each of several widths)
    at a time: [..., n-grams].

    Args:
        data: strings of known rank, at least 1, or ragged ones.
        separator: what stands between them.
        pad_values: what rows are filled up with, on both sides or as a pair (left, right); None: nothing.
        padding_width: the most of it a side; None: one less than the width.
        preserve_short_sequences: a row too short for any n-gram gives one of all its strings.

    Raises ValueError for widths below 1, a padding without values, and an unknown rank; TypeError for values
    that are no strings.
    """
    widths, left, right, padding = _ngram_settings(ngram_width, pad_values, padding_width)
    with get_default_graph().name_scope(name or "StringNGrams"):
        strings = as_ragged_or_tensor(data, "string")
        if isinstance(strings, RaggedTensor) and strings.values.shape.ndims != 1:
            given = separator, pad_values, padding_width, preserve_short_sequences
            return strings.with_values(ngrams(strings.values, widths, *given))
        if not strings.shape.ndims:
            raise ValueError("The rank of data must be known, and at least 1")
        if isinstance(strings, RaggedTensor):
            flat, splits = strings.values, strings.row_splits
        else:
            outer, rows, splits = _rows(strings)
            flat = F.Reshape(strings, [-1])
        found, ends = F.StringNGrams.several(
            flat,
            splits,
            separator=separator,
            ngram_widths=widths,
            left_pad=left,
            right_pad=right,
            pad_width=padding,
            preserve_short_sequences=preserve_short_sequences,
        )
        if isinstance(strings, RaggedTensor):
            return RaggedTensor.from_row_splits(found, ends, validate=False)
        total = F.StridedSlice(ends, [-1], [0], [1], end_mask=1, shrink_axis_mask=1)
        count = F.FloorDiv(total, F.Maximum(rows, convert_to_tensor(1, dtypes.int64)))
        result = F.Reshape(found, F.ConcatV2([outer, F.ExpandDims(count, 0)], 0))
        result.set_shape([*strings.shape[:-1].as_list(), None])
        return result


def _ngram_settings(
    ngram_width: Any, pad_values: Any, padding_width: int | None
) -> tuple[list[int], str | bytes, str | bytes, int]:
    """The widths, what is filled in left and right, how much of it at most (-1: one less than a width)."""
    widths = [ngram_width] if isinstance(ngram_width, int) else list(ngram_width)
    if any(width < 1 for width in widths):
        raise ValueError(f"All ngram_widths must be greater than 0. Got {ngram_width}")
    if pad_values is None:
        if padding_width is not None:
            raise ValueError("pad_values must be provided if padding_width is set.")
        return widths, "", "", 0
    if padding_width is not None and padding_width < 0:
        raise ValueError(f"padding_width must be non-negative. Got {padding_width}")
    pair = tuple(pad_values) if isinstance(pad_values, (list, tuple)) else (pad_values, pad_values)
    if len(pair) != 2 or not all(isinstance(each, (str, bytes)) for each in pair):
        raise TypeError("pad_values must be a string, tuple of strings, or None.")
    return widths, pair[0], pair[1], -1 if padding_width is None else padding_width
