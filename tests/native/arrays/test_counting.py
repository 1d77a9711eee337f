"""Counts by machine code, beside ATen's kernels: the same counts, and sums in the same order."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.native.arrays import counting
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
INF, NAN = float("inf"), float("nan")


def both(monkeypatch, kind, build):
    """What is made without machine code and with it, and whether that was called."""
    found, called, call = [], [], kind.__call__

    def watched(*arguments):
        called.append(call(*arguments) is not None)
        return call(*arguments)

    monkeypatch.setattr(kind, "__call__", watched)
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            values, feeds = build()
            found.append(session.run(values, feeds))
    assert found[0].dtype == found[1].dtype
    np.testing.assert_array_equal(*found)
    return called


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize(("count", "bins"), [(0, 3), (7, 1), (1003, 5), (70_001, 100), (200_000, 4097)])
def test_bins(monkeypatch, dtype, count, bins) -> None:
    random = np.random.default_rng(count)
    values = random.normal(0, 30, count).astype(dtype)
    if dtype.startswith("float") and count > 7:
        values[:4] = [INF, -INF, -20, 41]

    def build():
        fed = tf.placeholder(dtype, [None])
        return tf.histogram_fixed_width(fed, np.array([-20, 41], dtype), bins, "int64"), {fed: values}

    assert both(monkeypatch, counting.BinCounts, build) == [True]


@pytest.mark.parametrize("place", [0, 8, 1002])  # among vectors, and after them
def test_a_number_that_is_none_is_an_error(monkeypatch, place) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    values = np.ones(1003, np.float32)
    values[place] = NAN
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder("float32", [None])
        with pytest.raises(tf.errors.InvalidArgumentError, match="NaN"):
            session.run(tf.histogram_fixed_width(fed, [0.0, 1.0], 5), {fed: values})


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize(("weighed", "marked"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("rank", [1, 2])
def test_groups(monkeypatch, kind, dtype, weighed, marked, rank) -> None:
    random = np.random.default_rng(3)
    rows = random.integers(0, 9, (1000, rank))
    values = random.integers(-1, 12, 1000).astype(kind)
    weights = (random.normal(0, 9, 1000 if weighed else 0)).astype(dtype)
    rest = {"size": np.array(10, kind), "binary_output": marked}

    def of_rows():
        fed = tf.placeholder(kind, [None])
        parts = {"indices": rows, "dense_shape": [9] * rank, "weights": weights, **rest}
        return tf.raw_ops.SparseBincount(values=fed, **parts), {fed: values}

    def of_all():
        dims = (1000,) if rank == 1 else (40, 25)
        fed, each = tf.placeholder(kind, [None] * rank), weights.reshape(dims) if weighed else weights
        return tf.raw_ops.DenseBincount(input=fed, weights=each, **rest), {fed: abs(values).reshape(dims)}

    assert both(monkeypatch, counting.GroupCounts, of_rows) == [True]
    monkeypatch.undo()
    assert both(monkeypatch, counting.GroupCounts, of_all) == [True]


@pytest.mark.parametrize("row", [[3, 0], [0, 9], [-1, 0], [0, -1]])
def test_rows_out_of_bounds_are_errors(monkeypatch, row) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder("int64", [None, 2])
        counts = tf.raw_ops.SparseBincount(
            indices=fed, values=[1, 2], dense_shape=[3, 9], size=5, weights=np.zeros(0, np.float32)
        )
        with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds"):
            session.run(counts, {fed: [[0, 0], row]})


def test_a_type_counts_no_further_than_it_has_numbers() -> None:
    counts, no_weights = counting.group_counts(torch.int32, torch.float32), torch.zeros(0)
    assert counts is not None
    one = torch.zeros(1, dtype=torch.int32)
    for count in (5, 2**24):
        found = counts(None, one.expand(count), no_weights, (1, count, 1), False)
        assert (found is None) == (count > 5)
