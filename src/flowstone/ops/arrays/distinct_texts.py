"""Texts, or other hashable objects, numbered as they come, by Python's dictionaries.

>>> distinct, numbers = numbered([b"b", b"a", b"b"])
>>> distinct, numbers.tolist()
([b'b', b'a'], [0, 1, 0])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from operator import itemgetter
from typing import Any

import numpy as np

from flowstone.framework.machine import string_code

_MANY = 64  # texts, from which machine code pays


def numbered(texts: Sequence[Any]) -> tuple[list[Any], np.ndarray[Any, Any]]:
    """The distinct ones in the order in which they come, and which of them each is: int64."""
    code = string_code.distinct_texts() if len(texts) >= _MANY else None
    index = None if code is None or not isinstance(texts, list) else code.index(texts)
    if index is not None:
        first = first_of_each(index.numbers, index.distinct)
        return [texts[i] for i in first.tolist()], index.numbers
    distinct = list(dict.fromkeys(texts))
    if len(distinct) == len(texts):
        return distinct, np.arange(len(texts))
    return distinct, numbers_in(dict(zip(distinct, count())), texts)


def numbers_in(table: Mapping[Any, int], keys: Sequence[Any]) -> np.ndarray[Any, Any]:
    """The number that the table has for each key: int64."""
    if len(keys) < 2:
        return np.array([table[key] for key in keys], np.int64)
    return np.fromiter(itemgetter(*keys)(table), np.int64, len(keys))


def first_of_each(numbers: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    """Where each number below `count` appears first; all of them do."""
    first = np.empty(count, np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]  # what is written last stays
    return first
