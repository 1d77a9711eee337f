"""The log that TensorBoard reads: what is written, when, and what a stock TensorBoard makes of it."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import flowstone as tf
from browser import Browser

pytestmark = pytest.mark.usefixtures("graph")


def events(folder: Path) -> list[Any]:
    return [event for path in sorted(folder.iterdir()) for event in tf.train.summary_iterator(str(path))]


def test_everything_is_written_in_order(tmp_path: Path, graph: Any) -> None:
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    summary = tf.summary.scalar("mean", tf.reduce_mean(x))
    note = tf.summary.text("note", tf.constant("hello"))
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    metadata = tf.RunMetadata()
    with tf.summary.FileWriter(str(tmp_path), graph) as writer, tf.Session() as session:
        for step in range(2):
            feed = {x: np.full([2, 3], step)}
            writer.add_summary(session.run(summary, feed, options, metadata), step)
            writer.add_summary(session.run(note), step)
        writer.add_run_metadata(metadata, "step 1", 1)
        with pytest.raises(ValueError, match="already used"):
            writer.add_run_metadata(metadata, "step 1", 1)
        writer.add_session_log(tf.SessionLog(status=tf.SessionLog.START), 1)
        assert writer.get_logdir() == str(tmp_path)
    found = events(tmp_path)
    kinds = [event.WhichOneof("what") for event in found]
    assert kinds[:3] == ["file_version", "graph_def", "meta_graph_def"]
    assert kinds[3:] == [*["summary"] * 4, "tagged_run_metadata", "session_log"]
    nodes = {node.name: node for node in tf.GraphDef.FromString(found[1].graph_def).node}
    shape = nodes["x"].attr["_output_shapes"].list.shape[0]
    assert [dim.size for dim in shape.dim] == [-1, 3]
    assert [event.step for event in found[3:7]] == [0, 0, 1, 1]
    assert [event.summary.value[0].simple_value for event in found[3:7:2]] == [0, 1]
    has_metadata = [event.summary.value[0].HasField("metadata") for event in found[4:7:2]]
    assert has_metadata == [True, False]  # once a tag
    assert tf.RunMetadata.FromString(found[7].tagged_run_metadata.run_metadata).step_stats.dev_stats


def test_writers_are_flushed_reopened_and_shared(tmp_path: Path) -> None:
    writer = tf.summary.FileWriter(str(tmp_path), filename_suffix=".mine")
    writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="a", simple_value=1)]), 3)
    writer.flush()
    assert [event.step for event in events(tmp_path)] == [0, 3]
    writer.close()
    time.sleep(1.1)  # the second is in the file's name
    writer.reopen()
    writer.add_event(tf.Event(step=4, wall_time=1.0))
    writer.close()
    names = [path.name for path in tmp_path.iterdir()]
    assert len(names) == 2 and all(
        re.match(r"events\.out\.tfevents\.\d{10}\..*\.mine$", name) for name in names
    )
    cache = tf.summary.FileWriterCache
    one = cache.get(str(tmp_path / "other"))
    assert cache.get(str(tmp_path / "other")) is one
    cache.clear()
    assert cache.get(str(tmp_path / "other")) is not one


def test_graphs_that_are_none_are_refused(tmp_path: Path, graph: Any) -> None:
    writer = tf.summary.FileWriter(str(tmp_path))
    with pytest.raises(TypeError, match="must be an instance of `Graph`"):
        writer.add_graph("graph")
    with pytest.raises(ValueError, match="not both"):
        writer.add_graph(graph, graph_def=tf.GraphDef())
    with pytest.raises(ValueError, match="Please pass one"):
        writer.add_graph(None)
    with pytest.raises(TypeError, match="MetaGraphDef"):
        writer.add_meta_graph(tf.GraphDef())
    writer.close()


# ---- TensorBoard


def write_log(folder: Path) -> None:
    """A log with a page of every kind."""
    with tf.name_scope("layer"), tf.device("/cpu:0"):
        x = tf.placeholder(tf.float32, [4, 8, 8, 1], name="images")
        mean = tf.reduce_mean(x)
    tf.summary.scalar("mean", mean)
    tf.summary.histogram("pixels", x)
    tf.summary.image("digits", x, 2)
    tf.summary.audio("sound", tf.reshape(x, [4, 64]) - 0.5, 8000.0, 1)
    tf.summary.text("note", tf.constant("*hello*"))
    merged, metadata = tf.summary.merge_all(), tf.RunMetadata()
    random = np.random.default_rng(0)
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session() as session, tf.summary.FileWriter(str(folder), session.graph) as writer:
        for step in range(5):
            feed = {x: random.random([4, 8, 8, 1])}
            writer.add_summary(session.run(merged, feed, options, metadata), step)
        writer.add_run_metadata(metadata, "last", 4)


@contextlib.contextmanager
def tensorboard(folder: Path) -> Iterator[str]:
    """Gives the address of a TensorBoard that has read the log in `folder`."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder), "--port", "0",
               "--host", "127.0.0.1", "--reload_interval", "1"]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        found = (re.search(r"http://127\.0\.0\.1:\d+", line) for line in process.stderr)
        address = next((match.group() for match in found if match), "")
        assert address, "TensorBoard did not start"
        deadline = time.monotonic() + 30
        while not json.loads(get(f"{address}/data/plugin/scalars/tags")) and time.monotonic() < deadline:
            time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


def get(address: str) -> str:
    with urllib.request.urlopen(address, timeout=30) as answer:
        return answer.read().decode()  # type: ignore[no-any-return]


def test_a_stock_tensorboard_shows_all_of_it(tmp_path: Path) -> None:
    write_log(tmp_path)
    with tensorboard(tmp_path) as address:

        def data(path: str) -> Any:
            return json.loads(get(f"{address}/data/plugin/{path}"))

        assert list(data("scalars/tags")["."]) == ["mean"]
        assert [row[1] for row in data("scalars/scalars?run=.&tag=mean")] == [0, 1, 2, 3, 4]
        assert list(data("histograms/tags")["."]) == ["pixels"]
        assert len(data("histograms/histograms?run=.&tag=pixels")) == 5
        assert sorted(data("images/tags")["."]) == ["digits/image/0", "digits/image/1"]
        assert list(data("audio/tags")["."]) == ["sound/audio"]
        assert list(data("text/tags")["."]) == ["note"]
        assert "<em>hello</em>" in data("text/text?run=.&tag=note")[0]["text"]
        text = get(f"{address}/data/plugin/graphs/graph?run=.&conceptual=false")
        assert 'name: "layer/images"' in text and "device:CPU:0" in text.replace("cpu", "CPU")
        stats = get(f"{address}/data/plugin/graphs/run_metadata?run=.&tag=last")
        assert "layer/Mean" in stats and "all_end_rel_micros" in stats


# Of what a page shows: a colour, and how many pixels have it.
PAGES = {"scalars": ((255, 112, 67), 50), "graphs": ((238, 238, 238), 1000)}  # the line; boxes of scopes
CHROMIUM = shutil.which("chromium")


@pytest.mark.skipif(CHROMIUM is None, reason="chromium, which takes pictures of pages, is not installed")
def test_a_browser_shows_the_pages(tmp_path: Path) -> None:
    write_log(tmp_path / "log")
    with tensorboard(tmp_path / "log") as address:
        for page, (color, least) in PAGES.items():
            picture = tmp_path / f"{page}.png"
            command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1100,700",
                       f"--user-data-dir={tmp_path / 'browser'}", "--virtual-time-budget=20000",
                       f"--screenshot={picture}", f"{address}/#{page}"]  # fmt: skip
            subprocess.run(command, check=True, capture_output=True, timeout=120)
            pixels = np.asarray(Image.open(picture).convert("RGB"))[130:, 320:]  # right of the choices
            found = (np.abs(pixels.astype(int) - color).max(-1) < 3).sum()
            assert found >= least, f"{page}: {found} pixels of {color}"


_CONTROLS = "const controls = find('tf-graph-controls')[0];"
_FILLS = "return find('rect, ellipse, path').some(x => getComputedStyle(x).fill == '%s');"


@pytest.mark.skipif(CHROMIUM is None, reason="chromium, which shows the page, is not installed")
def test_graph_page_has_colours_of_devices_times_and_memory(tmp_path: Path) -> None:
    with tf.device("/cpu:1"):
        tf.tanh(tf.placeholder(tf.float32, name="other"), name="elsewhere")
    write_log(tmp_path / "log")
    with (
        tensorboard(tmp_path / "log") as address,
        Browser(str(CHROMIUM), tmp_path / "browser", f"{address}/#graphs") as browser,
    ):
        browser.wait("return find('tf-graph-controls').length && find('rect').length > 3;")
        browser.run(f"{_CONTROLS} controls.colorBy = 'device';")
        devices = browser.wait(f"{_CONTROLS} return controls.colorByParams && controls.colorByParams.device;")
        assert sorted(each["device"] for each in devices) == ["/device:CPU:0", "/device:CPU:1"]
        assert len({each["color"] for each in devices}) == 2
        for each in devices:
            browser.wait(_FILLS % each["color"])
        browser.run(f"{_CONTROLS} controls._selectedGraphType = 'profile'; controls._selectedTagIndex = 1;")
        for kind in ("compute_time", "memory"):
            browser.run(f"{_CONTROLS} controls.colorBy = '{kind}';")
            scale = f"{_CONTROLS} return controls.stats && controls.colorByParams.{kind}.maxValue;"
            assert browser.wait(scale) > 0
            browser.wait(_FILLS % "rgb(251, 106, 74)")  # what took most
