"""N-grams of many rows at once are those of each row alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import flowstone as tf

CASES = [
    (widths, pad_width, keeps_short)
    for widths in ([2], [3, 1], [], [40])
    for pad_width in (-1, 0, 1, 5)
    for keeps_short in (False, True)
    if widths or pad_width >= 0 or not keeps_short  # else nothing says how wide a padded row would be
]


@pytest.mark.parametrize(("widths", "pad_width", "keeps_short"), CASES)
def test_rows_together_and_alone(widths: list[int], pad_width: int, keeps_short: bool) -> None:
    random = np.random.RandomState(0)
    lengths = random.randint(0, 6, 200)
    splits = np.append(0, np.cumsum(lengths))
    strings = np.array([b"%d" % i for i in range(splits[-1])], object)
    with tf.Graph().as_default(), tf.Session() as session:
        data, rows = tf.placeholder(tf.string, [None]), tf.placeholder(tf.int64, [None])
        result = tf.raw_ops.StringNGrams(
            data=data,
            data_splits=rows,
            separator="-",
            ngram_widths=widths,
            left_pad="<",
            right_pad=">",
            pad_width=pad_width,
            preserve_short_sequences=keeps_short,
        )
        together, places = session.run(result, {data: strings, rows: splits})
        alone = [
            session.run(result, {data: strings[a:b], rows: [0, b - a]})[0].tolist()
            for a, b in itertools.pairwise(splits)
        ]
    assert together.tolist() == [each for row in alone for each in row]
    assert np.diff(places).tolist() == [len(row) for row in alone]
