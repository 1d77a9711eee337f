"""Records that are split in one go have the fields, and the errors, of records that are split one by one."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import errors
from flowstone.ops.parsing import csv_records
from flowstone.ops.parsing.csv_records import columns_of


def one_by_one(records: list[bytes], delimiter: bytes, quotes: bool, chosen: Any, count: int) -> Any:
    rows = [csv_records.fields_of(each, delimiter, quotes) for each in records]
    return [list(column) for column in zip(*csv_records._chosen(rows, chosen, count))]


@pytest.mark.parametrize("chosen", [[], [0], [1, 2]])
@pytest.mark.parametrize("quotes", [True, False])
def test_records_of_every_kind(chosen: list[int], quotes: bool) -> None:
    draw = random.Random(3)
    fields = [b"", b"a", b"12", b"1.5", b'"q"', b'"a,b"', b"x\ny", b'say "a"']
    wrong = split = 0
    for _ in range(3000):
        usual = fields[: draw.choice((4, len(fields)))]
        width = draw.randrange(1, 5)
        widths = [
            width if draw.random() < 0.95 else draw.randrange(1, 5) for _ in range(draw.randrange(1, 5))
        ]
        records = [b",".join(draw.choices(usual, k=n)) for n in widths]
        count = len(chosen) or width
        try:
            expected = one_by_one(records, b",", quotes, chosen, count)
        except errors.InvalidArgumentError as error:
            with pytest.raises(errors.InvalidArgumentError) as caught:
                columns_of(records, b",", quotes, chosen, count)
            assert str(caught.value) == str(error)
            wrong += 1
            continue
        columns, has_gaps = columns_of(records, b",", quotes, chosen, count)
        assert [list(each) for each in columns] == expected
        assert has_gaps or b"" not in itertools.chain(*columns)
        split += not has_gaps
    assert wrong > 100 and split > 100


def test_delimiters_that_are_quotes_or_line_ends() -> None:
    for delimiter in (b'"', b"\n", b"\r"):
        for records in ([b"a"], [b"a", b"b"]):
            expected = one_by_one(records, delimiter, True, [], 1)
            assert [list(each) for each in columns_of(records, delimiter, True, [], 1)[0]] == expected


def test_no_records() -> None:
    assert columns_of([], b",", True, [], 3)[0] == [(), (), ()]
    assert columns_of([], b",", True, [1, 5], 2)[0] == [(), ()]


def values(records: list[bytes], defaults: Any, **named: Any) -> list[list[Any]]:
    with tf.Graph().as_default(), tf.Session() as session:
        return [each.tolist() for each in session.run(tf.decode_csv(records, defaults, **named))]


@pytest.mark.parametrize("others", [[], [b'"7",8,"q"']])
def test_empty_fields_and_texts_for_missing_ones(others: list[bytes]) -> None:
    defaults = [[5], [0.5], ["none"]]
    records = [b"1,2.5,a", b",3,b", b"3,,", b"NA,NA,NA", *others]
    more = [[7], [8.0], [b"q"]] if others else [[], [], []]
    assert values(records, defaults, na_value="NA") == [
        [1, 5, 3, 5] + more[0],
        [2.5, 3.0, 0.5, 0.5] + more[1],
        [b"a", b"b", b"none", b"none"] + more[2],
    ]
    assert values([b"NA,1,a", b"2,3,b"], defaults, na_value="NA")[0] == [5, 2]
    with pytest.raises(errors.InvalidArgumentError, match="Field 0 in record 0 is not a valid int32: NA"):
        values([b"NA,1,a"], defaults)
    required: Any = [np.array([], np.int32), *defaults[1:]]
    with pytest.raises(errors.InvalidArgumentError, match="Field 0 is required but missing in record 1"):
        values([b"1,1,a", b",1,a", *others], required)
