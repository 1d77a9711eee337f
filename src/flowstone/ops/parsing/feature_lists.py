"""The lists of features in SequenceExamples, read by machine code, or else through protobuf.

Machine code gives no errors of damaged messages, nor of lists of other kinds: protobuf finds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from flowstone.framework.machine import record_code
from flowstone.io.proto.example_pb2 import SequenceExample
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.parsing.columns import VALUE_TYPES, Column, column_of, parsed
from flowstone.ops.parsing.feature_outputs import is_text
from flowstone.ops.parsing.feature_tensors import Rows
from flowstone.ops.parsing.layouts import Array


class Lists(NamedTuple):
    """The lists of one key in a batch: how many steps each message has, and the column of all steps."""

    steps: Array
    column: Column


class FeatureLists:
    """The lists of a vector of messages, of keys and the kinds that these are asked for with.

    The contexts have been parsed before, as Examples' features, which finds what is damaged in them.
    InvalidArgumentError for other bytes that are no SequenceExample.
    """

    def __init__(self, serialized: Array, kinds: Sequence[tuple[bytes, int]]) -> None:
        self._numbers = {key: i for i, (key, _) in enumerate(dict.fromkeys(kinds))}
        reader: Any = record_code.example_reader()
        keys = None if reader is None else _keys(reader, tuple(dict.fromkeys(kinds)))
        self._walk = None
        if reader is not None and keys is not None and serialized.flags.c_contiguous:
            self._walk = reader.walk_lists(serialized, keys)
        self._messages: list[Any] = []
        if self._walk is None:
            self._messages = [parsed(SequenceExample, text) for text in serialized.tolist()]

    def lists(self, key: bytes, kind: int, rows: Rows, is_optional: bool) -> Lists:
        """The lists of `key`. InvalidArgumentError where one is missing, unless `is_optional`, or of another
        kind."""
        if self._walk is None:
            return self._through_protobuf(key, kind, rows, is_optional)
        number = self._numbers[key]
        steps = self._walk.steps(number)
        missing = steps < 0
        if not is_optional and missing.any():
            raise _missing(rows, int(missing.argmax()), key.decode())
        features = self._walk.features(number)
        values = np.empty(features.totals[0], VALUE_TYPES[kind])
        features.fill_list(0, values)
        features.read()
        return Lists(np.maximum(steps, 0), Column(features.counts(0), features.is_there(0), values))

    def _through_protobuf(self, key: bytes, kind: int, rows: Rows, is_optional: bool) -> Lists:
        name, messages = key.decode(errors="replace"), self._messages
        steps, features, owners = np.zeros(len(messages), np.int64), list[Any](), list[int]()
        for row, message in enumerate(messages):
            found = message.feature_lists.feature_list.get(name)
            if found is None and not is_optional:
                raise _missing(rows, row, name)
            if found is not None:
                steps[row] = len(found.feature)
                features += found.feature
                owners += [row] * len(found.feature)
        return Lists(
            steps, column_of(features, kind, lambda i, kind, other: rows.refusal(key, owners[i], kind, other))
        )


def _missing(rows: Rows, row: int, name: str) -> Exception:
    return invalid(
        f"{rows.key(row, name)}  Feature list '{name}' is required but could not be found.  Did you "
        "mean to include it in feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?"
    )


@lru_cache(maxsize=64)
def _keys(reader: Any, kinds: tuple[tuple[bytes, int], ...]) -> Any:
    """What the reader makes of the keys; None where one has two kinds, or is no text."""
    if len(dict(kinds)) < len(kinds) or not all(is_text(key) for key, _ in kinds):
        return None
    return reader.keys(dict(kinds))
