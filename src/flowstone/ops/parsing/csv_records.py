"""Lines of comma-separated values as one tensor a column.

A field may stand in quotes, where two quotes are one, and delimiters and line ends are text (RFC 4180).

>>> fields_of(b'1,"a ""b"", c"', b",", quotes=True)
[b'1', b'a "b", c']
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.machine.record_code import csv_reader
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.parsing.feature_tensors import as_array, as_value
from flowstone.ops.strings.number_texts import parse_numbers

Array = np.ndarray[Any, Any]
_NAMES = {dtypes.float32: "float", dtypes.float64: "double", dtypes.int32: "int32", dtypes.int64: "int64"}


def fields_of(record: bytes, delimiter: bytes, quotes: bool) -> list[bytes]:
    """The fields of a record. InvalidArgumentError for quotes or line ends in the wrong places."""
    is_plain = b"\n" not in record and b"\r" not in record
    if is_plain and (not quotes or b'"' not in record):
        return record.split(delimiter)
    fields, at, end = [], 0, len(record)
    while True:
        if record[at : at + 1] in (b"\n", b"\r"):
            at += 1
        if quotes and record[at : at + 1] == b'"':
            field, at = _quoted(record, at + 1, delimiter)
        else:
            stop = record.find(delimiter, at)
            stop = end if stop < 0 else stop
            field, at = record[at:stop], stop
            if b"\n" in field or b"\r" in field or (quotes and b'"' in field):
                raise invalid("Unquoted fields cannot have quotes/CRLFs inside")
        fields.append(field)
        if at >= end:
            return fields
        at += 1


def _quoted(record: bytes, at: int, delimiter: bytes) -> tuple[bytes, int]:
    """The field whose opening quote is before `at`, and the place behind its closing quote."""
    parts = []
    while True:
        stop = record.find(b'"', at)
        if stop < 0:
            raise invalid("Quoted field has to end with quote followed by delim or end")
        parts.append(record[at:stop])
        following = record[stop + 1 : stop + 2]
        if following != b'"':
            if following not in (b"", delimiter):
                raise invalid("Quote inside a string has to be escaped by another quote")
            return b"".join(parts), stop + 1
        parts.append(b'"')
        at = stop + 2


# ---- columns


def columns_of(
    records: Sequence[bytes], delimiter: bytes, quotes: bool, chosen: Sequence[int], count: int
) -> tuple[list[Sequence[bytes]], bool]:
    """The fields of each of the `count` columns, or of the chosen ones, and whether any may be empty.

    Records without quotes and line ends, all of one number of fields, are split in one go. Raises as
    `fields_of`, and InvalidArgumentError for records of other numbers of fields.
    """
    text = delimiter.join(records)
    is_plain = b"\n" not in text and b"\r" not in text and (not quotes or b'"' not in text)
    width = records[0].count(delimiter) + 1 if records else 0
    fits = width > chosen[-1] if chosen else width == count
    if is_plain and fits and {each.count(delimiter) for each in records} == {width - 1}:
        fields = text.split(delimiter)
        has_gaps = delimiter * 2 in text or text[:1] in (b"", delimiter) or text[-1:] == delimiter
        return [fields[i::width] for i in chosen or range(width)], has_gaps
    rows = _chosen([fields_of(each, delimiter, quotes) for each in records], chosen, count)
    return list(zip(*rows)) or [()] * count, True


def _column(
    texts: Sequence[bytes], place: int, dtype: DType, default: Array, missing: bytes, has_gaps: bool
) -> Array:
    """The values of a column; where a field is empty, which it is only if it `has_gaps`, or says `missing`,
    `default`."""
    has_gaps = has_gaps or (missing != b"" and missing in texts)
    gaps = [i for i, text in enumerate(texts) if not text or text == missing] if has_gaps else []
    if gaps and not default.size:
        raise invalid(f"Field {place} is required but missing in record {gaps[0]}!")
    if dtype is dtypes.string:
        values = np.empty(len(texts), object)
        values[:] = texts
    else:
        known = [text if text and text != missing else b"0" for text in texts] if gaps else list(texts)
        values = _numbers(known, place, dtype)
    if gaps:
        values[gaps] = default.reshape(-1)[0]
    return values


def _numbers(texts: list[bytes], place: int, dtype: DType) -> Array:
    try:
        return parse_numbers(texts, dtype)
    except errors.InvalidArgumentError:
        for i, text in enumerate(texts):
            try:
                parse_numbers([text], dtype)
            except errors.InvalidArgumentError:
                shown = text.decode("utf-8", "backslashreplace")
                raise invalid(
                    f"Field {place} in record {i} is not a valid {_NAMES[dtype]}: {shown}"
                ) from None
        raise


# ---- the op

decode_csv_op = op(
    "DecodeCSV",
    "records: string, record_defaults: *OUT_TYPE -> output: *OUT_TYPE",
    "OUT_TYPE: list(type) in [float, double, int32, int64, string] >= 1 ; field_delim: string = ',' ; "
    "use_quote_delim: bool = true ; na_value: string = '' ; select_cols: list(int) = []",
)
decode_csv_op.no_gradient()


@decode_csv_op.infer
def _(node: Node) -> Shapes:
    count = len(node.attributes["OUT_TYPE"])
    for i in range(1, count + 1):
        dims = node.dims(i)
        if dims is not None and len(dims) > 1:
            raise ValueError(f"Shape must be at most rank 1 but is rank {len(dims)}")
        if dims and dims[0] is not None and dims[0] > 1:
            raise ValueError("Shape of a default must be a length-0 or length-1 vector, or a scalar.")
    return [node.dims(0)] * count


@decode_csv_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    attributes = node.attributes
    types, quotes, chosen = attributes["OUT_TYPE"], attributes["use_quote_delim"], attributes["select_cols"]
    delimiter, missing = _as_bytes(attributes["field_delim"]), _as_bytes(attributes["na_value"])
    quote = b'"' if quotes else b""
    if len(delimiter) != 1:
        raise invalid("field_delim should be only 1 char")
    if chosen and len(chosen) != len(types):
        raise invalid("select_cols should match output size")
    if any(b <= a for a, b in pairwise((-1, *chosen))):
        raise invalid("select_cols should be strictly increasing indices that are not negative")

    def run(records: Array, *defaults: Any) -> tuple[Any, ...]:
        given = [as_array(each) for each in defaults]
        for i, default in enumerate(given):
            if default.ndim > 1 or default.size > 1:
                raise invalid(
                    f"There should only be 1 default per field but field {i} has {default.size} or is of "
                    "higher rank"
                )
        lines = np.ascontiguousarray(records.reshape(-1))
        reader = csv_reader()
        found = None if reader is None else reader(lines, delimiter, quote, missing, chosen, given)
        if found is None:
            columns, has_gaps = columns_of(lines.tolist(), delimiter, quotes, chosen, len(types))
            found = [
                _column(texts, i, types[i], given[i], missing, has_gaps) for i, texts in enumerate(columns)
            ]
        return tuple([as_value(each.reshape(records.shape)) for each in found])

    return run


def _as_bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _chosen(rows: list[list[bytes]], chosen: Sequence[int], count: int) -> list[list[bytes]]:
    """The fields of the chosen columns of each record, or all."""
    expected = count if not chosen else chosen[-1] + 1
    for i, row in enumerate(rows):
        if len(row) < expected or (not chosen and len(row) != count):
            raise invalid(f"Expect {count} fields but have {len(row)} in record {i}")
    return [[row[i] for i in chosen] for row in rows] if chosen else rows


def decode_csv(
    records: Any,
    record_defaults: Any,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[Tensor]:
    """Lines of comma-separated values as columns.

    Args:
        records: string Tensor of any shape, a record each.
        record_defaults: for each column a Tensor of its type (float32, float64, int32, int64 or string) with
            the value of empty fields, or with none, where the column must not be empty.
        field_delim: the character between fields.
        use_quote_delim: whether fields may stand in double quotes.
        name: of the operation.
        na_value: a text that counts as empty.
        select_cols: the columns to return, in increasing order; default all.

    Returns:
        A list of Tensors of the shape of `records`, one a column.

    Raises:
        ValueError: defaults of more than one value, or columns that do not increase.
        InvalidArgumentError: (in the step) other records.
    """
    columns = list(select_cols or [])
    if any(b <= a for a, b in pairwise(columns)):
        raise ValueError("select_cols is not strictly increasing.")
    if columns and columns[0] < 0:
        raise ValueError("select_cols contains negative values.")
    if columns and len(columns) != len(record_defaults):
        raise ValueError("Length of select_cols and record_defaults do not match.")
    with get_default_graph().name_scope(name or "DecodeCSV") as scope:
        defaults = [convert_to_tensor(each) for each in record_defaults]
        return decode_csv_op.several(  # type: ignore[no-any-return]
            records, defaults, field_delim=field_delim, use_quote_delim=use_quote_delim, na_value=na_value,
            select_cols=columns, name=scope,
        )  # fmt: skip
