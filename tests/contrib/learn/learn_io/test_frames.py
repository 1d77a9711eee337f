"""Frames of pandas and dask as inputs, where these are installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.contrib.learn import learn_inputs

import flowstone as tf
from flowstone.contrib.learn.learn_io import dask_io, data_feeder, frames

IO = tf.contrib.learn.io


def test_what_is_no_frame_stays_as_it_is() -> None:
    for value in (np.ones(2), [1, 2], None):
        assert IO.extract_pandas_data(value) is value
        assert IO.extract_pandas_labels(value) is value
        assert IO.extract_pandas_matrix(value) is value
        assert IO.extract_dask_data(value) is value
        assert IO.extract_dask_labels(value) is value
        assert not frames.is_frame(value, "pandas") and not frames.is_series(value, "dask")


@pytest.fixture(scope="module")
def pandas() -> Any:
    return pytest.importorskip("pandas")


def test_frames_of_numbers(pandas: Any) -> None:
    frame = pandas.DataFrame({"a": [1, 2], "b": [0.5, 1.0]})
    assert IO.extract_pandas_data(frame).tolist() == [[1, 0.5], [2, 1]]
    assert IO.extract_pandas_data(pandas.DataFrame({"a": [True, False]})).dtype == np.float64
    assert IO.extract_pandas_labels(frame[["a"]]).tolist() == [[1], [2]]
    assert IO.extract_pandas_labels(frame[["a"]]).dtype == np.int64
    assert IO.extract_pandas_matrix(frame[["b"]]).tolist() == [[0.5], [1]]


def test_frames_of_texts_and_of_several_labels_are_refused(pandas: Any) -> None:
    texts = pandas.DataFrame({"a": ["x", "y"]})
    with pytest.raises(ValueError, match="extracting pandas data must be int, float, or bool"):
        IO.extract_pandas_data(texts)
    with pytest.raises(ValueError, match="extracting labels must be int, float, or bool"):
        IO.extract_pandas_labels(texts)
    with pytest.raises(ValueError, match="Only one column for labels is allowed"):
        IO.extract_pandas_labels(pandas.DataFrame({"a": [1], "b": [2]}))


def test_frames_are_fed(pandas: Any) -> None:
    frame = pandas.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.0, 2.0]})
    feeder = data_feeder.setup_train_data_feeder(frame, frame[["a"]], None, 2, shuffle=False)
    with tf.Graph().as_default():
        feeder.input_builder()
        feeds = feeder.get_feed_dict_fn()()
    assert feeds["input:0"].tolist() == [[1, 0.5], [2, 1]] and feeds["output:0"].tolist() == [[1], [2]]


def test_frames_as_an_input_function(pandas: Any) -> None:
    frame = pandas.DataFrame({"a": [1, 2], "b": [0.5, 1.0]})
    labels = pandas.Series([7, 8])
    _, found = learn_inputs.batches(tf, IO.pandas_input_fn(frame, labels, batch_size=2, shuffle=False))
    assert found == [[{"a": [1, 2], "b": [0.5, 1]}, [7, 8]], "end"]


@pytest.fixture(scope="module")
def dask(pandas: Any) -> Any:
    return pytest.importorskip("dask.dataframe")


def test_rows_of_dask_are_numbered(pandas: Any, dask: Any) -> None:
    frame = pandas.DataFrame({"a": np.arange(7), "b": np.arange(7) * 0.5}, index=[5] * 7)
    parted = dask.from_pandas(frame, npartitions=3, sort=False)
    numbered = dask_io.extract_dask_data(parted)
    assert numbered.compute().index.tolist() == list(range(7))
    assert numbered.known_divisions
    assert dask_io.extract_dask_labels(parted["a"]).compute().tolist() == list(range(7))
    with pytest.raises(ValueError, match="Only one column"):
        dask_io.extract_dask_labels(parted)


def test_samples_of_dask_are_fed(pandas: Any, dask: Any) -> None:
    frame = pandas.DataFrame({"a": np.arange(40), "b": np.arange(40) * 0.5})
    x, y = (dask.from_pandas(each, npartitions=3) for each in (frame, frame[["a"]] % 4))
    feeder = data_feeder.setup_train_data_feeder(x, y, 4, 10)
    with tf.Graph().as_default():
        inputs, outputs = feeder.input_builder()
        feed = feeder.get_feed_dict_fn()
        batches = [feed() for _ in range(8)]
    sizes = [len(batch[inputs]) for batch in batches]
    assert 5 < np.mean(sizes) < 15 and feeder.get_feed_params() == {"batch_size": 10}
    for batch in batches:
        assert batch[outputs].argmax(1).tolist() == (batch[inputs][:, 0] % 4).tolist()
        assert (batch[inputs][:, 1] == batch[inputs][:, 0] / 2).all()
