"""The op _Cluster: by its members' kernels, by machine code, and in messages."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.native import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "-")


@pytest.mark.parametrize("when", [1, 2], ids=["by the members' kernels", "by machine code"])
def test_both_ways_give_the_same(when: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float64, [3, 5])
    y = tf.where(x > 0.5, tf.square(x), -x) / (tf.abs(x) + 1.0)
    value = np.random.RandomState(1).randn(3, 5)
    monkeypatch.setattr(flags, "NATIVE", when)
    with tf.Session() as session:
        assert "_Cluster" in session.explain(y, {x: value})
        found = session.run(y, {x: value})
    np.testing.assert_array_equal(found, np.where(value > 0.5, value**2, -value) / (np.abs(value) + 1))


def test_a_traced_step_shows_clusters_in_its_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    x = tf.placeholder(tf.float32, [3, 5])
    y = tf.exp(x) * x
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    with tf.Session() as session:
        session.run(y, {x: np.ones((3, 5))}, options=options, run_metadata=metadata)
    (graph,) = metadata.partition_graphs
    (cluster,) = [node for node in graph.node if node.op == "_Cluster"]
    assert cluster.attr["operations"].s == b"Exp+Mul"
    assert "members" not in cluster.attr
