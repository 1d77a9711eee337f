"""`tf.contrib.testing`: summaries and event files as tests ask for them, and a writer that keeps them."""

from __future__ import annotations

import os
from typing import Any

import flowstone as tf

__all__ = [
    "FakeSummaryWriter",
    "assert_summary",
    "latest_event_file",
    "latest_events",
    "latest_summaries",
    "simple_values_from_events",
    "to_summary_proto",
]


def to_summary_proto(summary_str: bytes) -> Any:
    """The Summary of serialised bytes."""
    return tf.Summary.FromString(summary_str)


def assert_summary(expected_tags: Any, expected_simple_values: Any, summary_proto: Any) -> None:
    """Raises AssertionError unless a Summary has these tags, and these values: a dict of floats by tag."""
    values = {value.tag: value.simple_value for value in summary_proto.value}
    assert set(values) == set(expected_tags), f"expected the tags {set(expected_tags)}, got {set(values)}"
    for tag, expected in expected_simple_values.items():
        assert abs(values[tag] - expected) < 1e-6, f"expected {expected} for {tag}, got {values[tag]}"


def latest_event_file(base_dir: str) -> str:
    """The path of the event file in a folder that was changed last. AssertionError if there is none."""
    paths = tf.gfile.Glob(os.path.join(base_dir, "*tfevents*"))
    assert paths, f"There is no event file in {base_dir}."
    return str(max(paths, key=lambda path: (tf.gfile.Stat(path).mtime_nsec, path)))


def latest_events(base_dir: str) -> list[Any]:
    """The events of `latest_event_file`."""
    return list(tf.train.summary_iterator(latest_event_file(base_dir)))


def latest_summaries(base_dir: str) -> list[Any]:
    """The events of `latest_event_file` that hold summaries."""
    return [event for event in latest_events(base_dir) if event.HasField("summary")]


def simple_values_from_events(events: Any, tags: Any) -> dict[str, float]:
    """The scalars of these tags in events, by tag; the first of each."""
    found: dict[str, float] = {}
    for event in events:
        for value in event.summary.value:
            if value.tag in tags:
                found.setdefault(value.tag, value.simple_value)
    return found


class FakeSummaryWriter:
    """A FileWriter that writes nothing and keeps what it got.

    Between `install()` and `uninstall()`, `tf.summary.FileWriter` is this class.
    """

    _replaced: Any = None

    @classmethod
    def install(cls) -> None:
        """Has `tf.summary.FileWriter` be this class. ValueError if it is already."""
        if cls._replaced:
            raise ValueError("FakeSummaryWriter already installed.")
        cls._replaced = tf.summary.FileWriter
        cls._put(cls)

    @classmethod
    def uninstall(cls) -> None:
        """Has `tf.summary.FileWriter` be what it was. ValueError if it is not this class."""
        if not cls._replaced:
            raise ValueError("FakeSummaryWriter not installed.")
        cls._put(cls._replaced)
        cls._replaced = None

    @staticmethod
    def _put(writer: Any) -> None:
        summary: Any = tf.summary
        summary.FileWriter = writer
        summary.FileWriterCache.clear()

    def __init__(self, logdir: str, graph: Any = None) -> None:
        self._logdir, self._graph = logdir, graph
        self._summaries: dict[Any, list[Any]] = {}
        self._added_graphs: list[Any] = [graph] if graph is not None else []
        self._added_meta_graphs: list[Any] = []
        self._added_session_logs: list[Any] = []
        self._added_run_metadata: dict[str, Any] = {}

    @property
    def summaries(self) -> dict[Any, list[Any]]:
        """The Summaries by step."""
        return self._summaries

    def add_summary(self, summ: Any, current_global_step: Any) -> None:
        """Keeps a summary under its step."""
        if isinstance(summ, bytes):
            summ = to_summary_proto(summ)
        self._summaries.setdefault(current_global_step, []).append(summ)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Keeps a graph. ValueError for a step, or a GraphDef in its place."""
        if global_step not in (None, 0):
            raise ValueError(f"Expected no or zero global step, got {global_step}")
        if graph_def is not None:
            raise ValueError("Unexpected graph_def")
        self._added_graphs.append(graph)

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Keeps a MetaGraphDef. ValueError for a step."""
        if global_step not in (None, 0):
            raise ValueError(f"Expected no or zero global step, got {global_step}")
        self._added_meta_graphs.append(meta_graph_def)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Keeps a SessionLog."""
        self._added_session_logs.append(session_log)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Keeps a RunMetadata under its tag. ValueError for a step."""
        if global_step is not None:
            raise ValueError(f"Expected no or zero global step, got {global_step}")
        self._added_run_metadata[tag] = run_metadata

    def flush(self) -> None:
        """Does nothing: nothing is written."""

    def reopen(self) -> None:
        """Does nothing: nothing is open."""

    def close(self) -> None:
        """Does nothing: nothing is open."""

    def assert_summaries(
        self,
        test_case: Any,
        expected_logdir: Any = None,
        expected_graph: Any = None,
        expected_summaries: Any = None,
        expected_added_graphs: Any = None,
        expected_added_meta_graphs: Any = None,
        expected_session_logs: Any = None,
    ) -> None:
        """Has a test case fail unless the writer got what is expected; None expects nothing in particular.

        `expected_summaries` are dicts of values by tag, by step.
        """
        for expected, got in (
            (expected_logdir, self._logdir),
            (expected_graph, self._graph),
            (expected_added_graphs, self._added_graphs),
            (expected_added_meta_graphs, self._added_meta_graphs),
            (expected_session_logs, self._added_session_logs),
        ):
            if expected is not None:
                test_case.assertEqual(expected, got)
        for step, tags in (expected_summaries or {}).items():
            test_case.assertIn(step, self._summaries)
            values = {value.tag: value for each in self._summaries[step] for value in each.value}
            test_case.assertCountEqual(tags, values)
            for tag, expected in tags.items():
                if isinstance(expected, (int, float)):
                    test_case.assertAlmostEqual(expected, values[tag].simple_value, places=5)
