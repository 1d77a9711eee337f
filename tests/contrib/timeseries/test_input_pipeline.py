"""Readers and windows: their order, their limits and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.contrib.timeseries import series_programs

import flowstone as tf

ts = tf.contrib.timeseries


def windows(count: int = 8, **arguments: Any) -> Any:
    """The times and the values of the windows of some batches."""
    times = arguments.pop("times", np.arange(24))
    data = {"times": times, "values": times * 10.0, "known": times[:, None] + [1, 2]}
    read = ts.RandomWindowInputFn(ts.NumpyReader(data), 5, 3, num_threads=1, shuffle_seed=7, **arguments)
    found = series_programs.batches(tf, read, count)
    return tuple(np.concatenate([batch[name] for batch in found]) for name in ("times", "values", "known"))


@pytest.mark.parametrize("jitter", [False, True])
def test_windows_are_consecutive_records_in_another_order(jitter: bool) -> None:
    times, values, known = windows(20, jitter=jitter)
    assert (np.diff(times, axis=1) == 1).all()
    np.testing.assert_array_equal(values[..., 0], times * 10.0)
    np.testing.assert_array_equal(known, times[..., None] + [1, 2])
    assert len({*times[:, 0]}) > 10
    assert (np.diff(times[:, 0]) < 0).any()


def test_windows_over_the_seam_are_sorted_if_they_are_not_left_out() -> None:
    times, values, _ = windows(20, jitter=False, discard_out_of_order=False)
    assert (np.diff(times, axis=1) > 0).all()
    assert (np.diff(times, axis=1) > 1).any()
    np.testing.assert_array_equal(values[..., 0], times * 10.0)


def test_times_that_only_go_back_end_the_input() -> None:
    with pytest.raises(tf.errors.OutOfRangeError):
        windows(1, times=np.arange(24)[::-1].copy(), discard_consecutive_batches_limit=3)


def test_files_without_a_record_end_the_input(tmp_path: Any) -> None:
    path = tmp_path / "empty.csv"
    path.write_text("")
    with pytest.raises(tf.errors.OutOfRangeError):
        series_programs.batches(
            tf, ts.RandomWindowInputFn(ts.CSVReader(str(path), read_num_records_hint=4), 2, 1), 1
        )


def test_records_of_examples_are_read(tmp_path: Any) -> None:
    path = str(tmp_path / "examples")
    with tf.python_io.TFRecordWriter(path) as writer:
        for time in range(6):
            features = {
                "times": tf.train.Feature(int64_list=tf.train.Int64List(value=[time])),
                "values": tf.train.Feature(float_list=tf.train.FloatList(value=[time, -time])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())
    spec = {"times": tf.FixedLenFeature([], tf.int64), "values": tf.FixedLenFeature([2], tf.float32)}
    reader = series_programs.module(tf, "input_pipeline").TFExampleReader(path, spec)
    (batch,) = series_programs.batches(tf, ts.WholeDatasetInputFn(reader), 1)
    assert batch["times"] == [[0, 1, 2, 3, 4, 5]]
    np.testing.assert_array_equal(batch["values"], [[[time, -time] for time in range(6)]])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"times": [1, 2]}, "are both needed"),
        ({"times": [1, 2], "values": [1.0]}, "does not begin"),
        ({"times": [[1], [2]], "values": [[1.0], [2.0]]}, "one series is needed"),
        ({"times": [1, 2], "values": np.zeros([2, 1, 1])}, "at most one dimension more"),
        ({"times": np.zeros([1, 2, 1]), "values": np.zeros([1, 2, 1])}, "at most a batch"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ts.NumpyReader(data)


@pytest.mark.parametrize(
    ("names", "dtypes", "message"),
    [
        (("values",), None, "'times' is needed"),
        (("times",), None, "'values' is needed"),
        (("times", "times", "values"), None, "more than once"),
        (("times", "values"), [tf.int64], "1 types are given"),
    ],
)
def test_columns_that_do_not_fit_are_refused(names: Any, dtypes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ts.CSVReader("none", names, dtypes)


def test_a_series_shorter_than_a_window_is_refused() -> None:
    with pytest.raises(ValueError, match="windows of 9 records"):
        ts.RandomWindowInputFn(ts.NumpyReader(series_programs.series(1, 8)), 9, 1)


def test_times_of_a_prediction_come_after_those_before() -> None:
    before = {"times": np.array([[3, 4]]), "start_tuple": ()}
    times = series_programs.module(tf, "model_utils").canonicalize_times_or_steps_from_output
    np.testing.assert_array_equal(times(None, 3, before), [[5, 6, 7]])
    np.testing.assert_array_equal(times([6, 9], None, before), [[6, 9]])
    for given in ({}, {"steps": 1, "times": [5]}, {"times": [4, 5]}, {"times": [[5], [5]]}):
        with pytest.raises(ValueError, match=r"is needed|must come after|for 2 series"):
            ts.predict_continuation_input_fn(before, **given)
