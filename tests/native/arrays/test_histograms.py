"""Histogram summaries by machine code, beside those by NumPy: the same bytes, which are protobuf's."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.types.tensor_proto import messages
from flowstone.native.arrays.histograms import SizeHistogram
from flowstone.native.codegen import host
from flowstone.ops.summaries.histograms import positive_limits

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
RANDOM = np.random.default_rng(2)
LIMITS = np.array(positive_limits()[:-1])
AROUND = np.concatenate(
    [LIMITS, np.nextafter(LIMITS, 0), np.nextafter(LIMITS, np.inf), [0, 5e-324, 1e-300, 1e150]]
)


def summaries(monkeypatch, values):
    """The summary without machine code and with it; whether that counted."""
    found, called, call = [], [], SizeHistogram.__call__

    def watched(*given):
        called.append(call(*given) is not None)
        return call(*given)

    monkeypatch.setattr(SizeHistogram, "__call__", watched)
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            fed = tf.placeholder(values.dtype, values.shape)
            found.append(session.run(tf.summary.histogram("x", fed), {fed: values}))
    return found, called


@pytest.mark.parametrize(
    "values",
    [
        np.concatenate([AROUND, -AROUND]),
        np.concatenate([AROUND[:-1], -AROUND[:-1]]).astype(np.float32),
        RANDOM.normal(size=(300, 40)).astype(np.float32),
        np.maximum(RANDOM.normal(size=5001), 0).astype(np.float32),
        np.exp(RANDOM.normal(size=3000) * 40) * RANDOM.choice([-1, 1], 3000),
        np.float32([0, 0, 0]),
        np.float64(-7.5),
        np.float32([-0.0, 1e-20, -1e-20, 3e38]),
    ],
)
def test_summaries(monkeypatch, values) -> None:
    (plain, fast), called = summaries(monkeypatch, values)
    assert called == [True]
    assert fast == plain
    message = messages("summary_pb2").Summary.FromString(fast)
    assert message.SerializeToString() == fast
    histogram = message.value[0].histo
    assert (message.value[0].tag, histogram.num, histogram.max) == ("x", np.size(values), np.max(values))
    assert sum(histogram.bucket) == np.size(values)


def test_no_values(monkeypatch) -> None:
    (plain, fast), called = summaries(monkeypatch, np.zeros((0, 3), np.float32))
    assert called == [] and fast == plain
    histogram = messages("summary_pb2").Summary.FromString(fast).value[0].histo
    assert (histogram.num, histogram.sum, list(histogram.bucket)) == (0, 0, [0])


def test_squares_beyond_all_numbers_are_left_to_numpy(monkeypatch) -> None:
    (plain, fast), called = summaries(monkeypatch, np.array([1e200, 1.0]))
    assert called == [False] and fast == plain


@pytest.mark.parametrize(("bad", "kind"), [(np.nan, "Nan"), (-np.inf, "Infinity")])
def test_what_is_not_finite_is_refused(bad, kind) -> None:
    refused = pytest.raises(tf.errors.InvalidArgumentError, match=f"{kind} in summary histogram for: x")
    with tf.Graph().as_default(), tf.Session() as session, refused:
        session.run(tf.summary.histogram("x", [1.0, bad]))
