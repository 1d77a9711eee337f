"""The op _Cluster: by its members' kernels, by machine code, and in messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.lowering.clusters import cluster_kernel
from flowstone.lowering.clusters.cluster_kernel import by_members
from flowstone.native.codegen import host

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


def test_results_of_the_members_kernels_share_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who takes a result may overwrite it, also one that only repeats an input or views another result."""
    x, column = tf.placeholder(tf.float32, [5, 6]), tf.placeholder(tf.float32, [5, 1])
    repeated, squares = tf.broadcast_to(column, [5, 6]), tf.square(x)
    fetches = [repeated, tf.where(x > 0, repeated, -repeated), squares, tf.reshape(squares, [30])]
    kernels_made: list[Any] = []

    def noted(members: Any, env: Any) -> Any:
        kernels_made.append((members, by_members(members, env)))
        return kernels_made[-1][1]

    monkeypatch.setattr(flags, "NATIVE", 1)
    monkeypatch.setattr(cluster_kernel, "by_members", noted)
    value, ones = torch.linspace(-1, 1, 30).reshape(5, 6), torch.ones(5, 1)
    with tf.Session() as session:
        session.run(fetches, {x: value.numpy(), column: ones.numpy()})
    assert max(len(members.outputs) for members, _ in kernels_made) == 2
    for members, kernel in kernels_made:
        inputs = [value if x.dims == (5, 6) else ones for x in members.inputs]
        wanted = [each.clone() for each in kernel(*inputs)]
        for i, changed in enumerate(found := kernel(*inputs)):
            changed[0] = 7
            assert (changed == 7).sum() == changed[0].numel()
            assert all(torch.equal(*pair) for pair in zip(found[i + 1 :], wanted[i + 1 :]))
    assert (ones == 1).all()
    assert not (value == 7).any()
