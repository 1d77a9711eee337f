"""`tf.contrib.summary`: what stands in the event files, as TensorFlow 1.15.5 wrote it for these programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

summary = tf.contrib.summary


def events(folder: Path) -> list[Any]:
    (file,) = folder.glob("events.out.tfevents.*")
    return list(tf.train.summary_iterator(str(file)))[1:]


def test_all_kinds_at_every_second_step(tmp_path: Path) -> None:
    step = tf.train.create_global_step()
    writer = summary.create_file_writer(str(tmp_path), 5, 1000, ".end", name="w")
    with writer.as_default(), summary.record_summaries_every_n_global_steps(2):
        with tf.name_scope("sc"):
            summary.scalar("loss", 2.5, family="fam")
            summary.histogram("h", [1.0, 2.0])
            summary.image("im", tf.zeros([1, 2, 2, 3]), bad_color=[0, 0, 0, 0])
            summary.audio("au", tf.zeros([1, 4, 1]), 100, 2)
            summary.generic("gen", tf.constant([1, 2]))
        assert summary.should_record_summaries().dtype == tf.bool
        recorded = summary.all_summary_ops()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            with pytest.raises(tf.errors.NotFoundError):
                session.run(recorded)
            summary.initialize(session=session)
            assert session.run(recorded) == [True] * 5
            session.run(step.assign_add(1))
            assert session.run(recorded) == [False] * 5
            session.run(step.assign_add(1))
            session.run(recorded)
            session.run([writer.flush()])
            session.run(writer.close())
    found = events(tmp_path)
    tags = {"fam/sc/fam/loss", "sc/h", "sc/im/image/0", "sc/au/audio/0", "sc/gen"}
    for number in (0, 2):
        assert {e.summary.value[0].tag for e in found if e.step == number} == tags
    assert len(found) == 10
    (scalar, *_) = (e.summary.value[0] for e in found if e.summary.value[0].tag.startswith("fam"))
    assert scalar.simple_value == 2.5
    (generic, *_) = (e.summary.value[0] for e in found if e.summary.value[0].tag == "sc/gen")
    assert tf.make_ndarray(generic.tensor).tolist() == [1, 2]
    assert next(tmp_path.iterdir()).name.endswith(".end")


def test_graphs_and_events(graph: Any, tmp_path: Path) -> None:
    summary.create_file_writer(str(tmp_path)).set_as_default()
    try:
        event = tf.Event(step=7, wall_time=1.5)
        imported = summary.import_event(event.SerializeToString())
        written = summary.graph(graph.as_graph_def(), step=3)
        with tf.Session() as session:
            summary.initialize(graph, session)
            session.run(imported)
            session.run(written)
            session.run(summary.flush())
    finally:
        summary.create_file_writer(None).set_as_default()
        tf.contrib.summary.summary_writers._defaults[-1] = None
    first, second, third = events(tmp_path)
    assert (first.step, second.step, second.wall_time, third.step) == (0, 7, 1.5, 3)
    assert "SummaryWriter" in [node.name for node in tf.GraphDef.FromString(first.graph_def).node]
    with pytest.raises(TypeError):
        summary.graph(graph)


def test_nothing_is_written_without_a_writer_or_a_wish(tmp_path: Path) -> None:
    assert summary.scalar("a", 1.0).type == "NoOp"
    assert summary.flush().type == "NoOp"
    assert summary.graph(tf.GraphDef()).type == summary.import_event(b"").type == "NoOp"
    with pytest.raises(RuntimeError, match="No default"):
        summary.initialize()
    nothing = summary.create_file_writer(None)
    assert isinstance(nothing, summary.SummaryWriter)
    assert nothing.init().type == nothing.close().type == "NoOp"
    writer = summary.create_summary_file_writer(str(tmp_path))
    assert summary.summary_writer_initializer_op() == [writer.init()]
    with writer.as_default(), pytest.raises(ValueError, match="session"):
        summary.initialize()
    with writer.as_default(), tf.Session() as session:
        assert not session.run(summary.scalar("a", 1.0, step=1))
        session.run(writer.init())
        with summary.always_record_summaries():
            assert session.run(summary.scalar("a", 1.0, step=1))
            with summary.never_record_summaries():
                assert not session.run(summary.should_record_summaries())
        session.run(summary.flush(writer))
    assert [e.step for e in events(tmp_path)] == [1]


def test_folders_and_databases() -> None:
    assert (summary.eval_dir("/x"), summary.eval_dir("/x", "n")) == ("/x/eval", "/x/eval_n")
    with pytest.raises(NotImplementedError, match="create_file_writer"):
        summary.create_db_writer("sqlite:x")
