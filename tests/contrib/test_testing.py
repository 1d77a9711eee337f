"""`tf.contrib.testing`: events of a folder, and a writer that keeps what it gets."""

from __future__ import annotations

import unittest
from pathlib import Path

import pytest

import flowstone as tf


def scalar(tag: str, value: float) -> tf.Summary:
    return tf.Summary(value=[tf.Summary.Value(tag=tag, simple_value=value)])


def test_events_of_a_folder(tmp_path: Path) -> None:
    testing = tf.contrib.testing
    with pytest.raises(AssertionError, match="no event file"):
        testing.latest_event_file(str(tmp_path))
    writer = tf.summary.FileWriter(str(tmp_path))
    writer.add_summary(scalar("loss", 0.5), 1)
    writer.add_summary(scalar("loss", 0.25), 2)
    writer.close()
    summaries = testing.latest_summaries(str(tmp_path))
    assert [event.step for event in summaries] == [1, 2]
    assert len(testing.latest_events(str(tmp_path))) == 3
    assert testing.simple_values_from_events(summaries, ["loss", "more"]) == {"loss": 0.5}
    testing.assert_summary(
        ["loss"], {"loss": 0.5}, testing.to_summary_proto(scalar("loss", 0.5).SerializeToString())
    )
    with pytest.raises(AssertionError, match="expected 1"):
        testing.assert_summary(["loss"], {"loss": 1}, scalar("loss", 0.5))


def test_a_writer_that_keeps_what_it_gets() -> None:
    fake, real = tf.contrib.testing.FakeSummaryWriter, tf.summary.FileWriter
    fake.install()
    try:
        with pytest.raises(ValueError, match="already installed"):
            fake.install()
        writer = tf.summary.FileWriter("somewhere")
        assert isinstance(writer, fake)
        writer.add_summary(scalar("a", 1.0), 3)
        writer.add_summary(scalar("b", 2.0).SerializeToString(), 3)
        case = unittest.TestCase()
        writer.assert_summaries(
            case, expected_logdir="somewhere", expected_summaries={3: {"a": 1.0, "b": 2.0}}
        )
        with pytest.raises(AssertionError):
            writer.assert_summaries(case, expected_summaries={3: {"a": 1.0, "b": 3.0}})
        with pytest.raises(ValueError, match="global step"):
            writer.add_graph(tf.Graph(), 3)
        writer.add_meta_graph(tf.MetaGraphDef())
        writer.add_session_log(tf.SessionLog(), 1)
        writer.add_run_metadata(tf.RunMetadata(), "run")
        writer.assert_summaries(case, expected_session_logs=[tf.SessionLog()])
        assert list(writer.summaries) == [3]
    finally:
        fake.uninstall()
    assert tf.summary.FileWriter is real
    with pytest.raises(ValueError, match="not installed"):
        fake.uninstall()
