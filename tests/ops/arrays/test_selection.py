"""Elements found in vectors, beyond the op table."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "bytes"])
def test_distinct_elements_of_distinct_elements(dtype: str) -> None:
    values = np.array([7, 3, 7, 0, 3, 9])
    fed = values.astype(str).astype(object) if dtype == "bytes" else values.astype(dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.string if dtype == "bytes" else dtype, [None])
        once, places = tf.unique(x)
        twice, again = tf.unique(once, out_idx=tf.int64)
        found = session.run([once, places, twice, again], {x: fed})
        counted = session.run(tf.unique_with_counts(once), {x: fed})
    assert [int(each) for each in found[0]] == [int(each) for each in found[2]] == [7, 3, 0, 9]
    assert found[1].tolist() == [0, 1, 0, 2, 1, 3]
    assert found[3].tolist() == [0, 1, 2, 3] and found[3].dtype == np.int64
    assert counted[2].tolist() == [1, 1, 1, 1]


def test_nothing_distinct() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.int32, [None])
        assert [each.size for each in session.run(tf.unique_with_counts(x), {x: []})] == [0, 0, 0]


@pytest.mark.parametrize("count", [200, 5000])  # by Python, by ATen or machine code
@pytest.mark.parametrize("scale", [1, 1 << 40])  # in a table, by sorting
def test_elements_in_the_order_of_their_first_appearance(scale: int, count: int) -> None:
    values = np.random.default_rng(3).integers(-40, 300, count) * scale
    with tf.Graph().as_default(), tf.Session() as session:
        once, places, counts = session.run(tf.unique_with_counts(tf.constant(values)))
    _, first = np.unique(values, return_index=True)
    np.testing.assert_array_equal(once, values[np.sort(first)])
    np.testing.assert_array_equal(once[places], values)
    np.testing.assert_array_equal(counts, (values == once[:, None]).sum(1))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "complex64", "bfloat16"])
def test_difference_of_lists_of_types_that_aten_does_not_search(dtype: str) -> None:
    kind = tf.as_dtype(dtype).as_numpy_dtype
    x, y = np.array([5, 3, 200, 3, 1]).astype(kind), np.array([3, 1, 7]).astype(kind)
    with tf.Session() as session:
        values, places = session.run(tf.setdiff1d(x, y))
    assert values.tolist() == [5, 200]
    assert places.tolist() == [0, 2]


@pytest.mark.parametrize("native", [0, 2])
@pytest.mark.parametrize("shape", [(), (3,), (2, 5)])
def test_of_rows_stitched_to_one_place_the_last_stays(monkeypatch, native, shape):
    monkeypatch.setattr(flags, "NATIVE", native)
    random = np.random.default_rng(3)
    indices = [random.integers(0, 40, 30), random.integers(0, 45, (4, 6)), np.zeros([0], np.int64)]
    data = [random.normal(size=(*each.shape, *shape)).astype(np.float32) for each in indices]
    wanted = np.zeros([1 + max(each.max() for each in indices[:2]), *shape], np.float32)
    for places, rows in zip(indices, data):
        for place, row in zip(places.reshape(-1), rows.reshape(-1, *shape)):
            wanted[place] = row
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(tf.dynamic_stitch([each.astype(np.int32) for each in indices], data))
    covered = np.isin(np.arange(len(wanted)), np.concatenate([each.reshape(-1) for each in indices]))
    np.testing.assert_array_equal(found[covered], wanted[covered])


@pytest.mark.parametrize("width", [1, 3, 40])
@pytest.mark.parametrize(
    "places", [([0, 2], [3, 1]), ([0, 5], [3]), ([1, 1, 0], [1, 0]), ([], [2]), ([], [])]
)
def test_stitched_rows(places: tuple[list[int], list[int]], width: int) -> None:
    """Of rows for one place the last stays; rows that none is for are zeros."""
    parts = [np.array(each, np.int32) for each in places]
    rows = [np.random.RandomState(i).randn(len(each), width).astype("f") for i, each in enumerate(parts)]
    expected = np.zeros((max([*places[0], *places[1], -1]) + 1, width), np.float32)
    for each, values in zip(parts, rows):
        for place, value in zip(each, values):
            expected[place] = value
    with tf.Graph().as_default(), tf.Session() as session:
        fed = [tf.placeholder(tf.int32, [None]) for _ in parts]
        data = [tf.placeholder(tf.float32, [None, width]) for _ in parts]
        found = tf.dynamic_stitch(fed, data)
        for _ in range(2):
            got = session.run(found, dict(zip((*fed, *data), (*parts, *rows))))
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("count", [0, 1, 70, 1500])
@pytest.mark.parametrize("width", [1, 30])
def test_rows_parted_and_stitched_together_again(count: int, width: int) -> None:
    """Few and many, of which each way has its own: in order within a part."""
    labels = np.random.RandomState(count).randint(0, 5, count).astype(np.int32)
    rows = np.arange(count * width, dtype=np.float32).reshape(count, width)
    with tf.Graph().as_default(), tf.Session() as session:
        parts = tf.dynamic_partition(tf.placeholder_with_default(rows, (None, width)), labels, 7)
        places = tf.dynamic_partition(tf.range(count), labels, 7)
        found, together = session.run([parts, tf.dynamic_stitch(places, parts)])
    for label, part in enumerate(found):
        np.testing.assert_array_equal(part, rows[labels == label])
    np.testing.assert_array_equal(together, rows)


def test_parts_that_do_not_fit_together_are_no_stitch() -> None:
    places, x, y = (tf.placeholder(dtype) for dtype in (tf.int32, tf.float32, tf.float32))
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="data"):
        session.run(
            tf.dynamic_stitch([places, places], [x, y]),
            {places: [0, 1], x: np.ones((2, 3)), y: np.ones((2, 2))},
        )
