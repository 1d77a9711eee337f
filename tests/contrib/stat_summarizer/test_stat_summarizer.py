"""Tables of where the time of steps went."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf


@pytest.mark.by_aten
def test_tables_of_steps() -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [30, 30])
        total = tf.reduce_sum(tf.matmul(x, x, name="product"), name="total")
        summarizer = tf.contrib.stat_summarizer.StatSummarizer(graph.as_graph_def())
        for _ in range(3):
            metadata = tf.RunMetadata()
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            session.run(total, {x: np.ones((30, 30))}, options=options, run_metadata=metadata)
            summarizer.ProcessStepStats(metadata.step_stats)
        summarizer.ProcessStepStatsStr(metadata.step_stats.SerializeToString())
    text = summarizer.GetOutputString()
    for title in ("Run Order", "Top by Computation Time", "Top by Memory Use", "Summary by node type"):
        assert f"{'=' * 30} {title} {'=' * 30}" in text
    row = next(line.split("\t") for line in text.splitlines() if line.endswith("\tproduct"))
    assert (row[0].strip(), row[7].strip()) == ("MatMul", "4")
    assert "Timings (microseconds): count=4 curr=" in text and "nodes observed" in text
    summarizer.PrintStepStats()


def test_no_steps() -> None:
    summarizer = tf.contrib.stat_summarizer.StatSummarizer()
    assert "count=0" in summarizer.GetOutputString()
    with pytest.raises(TypeError, match="at most one"):
        tf.contrib.stat_summarizer.StatSummarizer(1, 2)
