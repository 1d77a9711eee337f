"""Training, evaluating and inferring of a graph; losses and steps are TensorFlow 1.15.5's."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

import flowstone as tf

G = tf.contrib.learn.graph_actions


class Program(NamedTuple):
    graph: Any
    x: Any
    w: Any
    loss: Any
    train_op: Any


def program() -> Program:
    """The square of w - x, and a step down its slope and w's."""
    graph = tf.Graph()
    with graph.as_default():
        step = tf.train.create_global_step()
        x = tf.placeholder_with_default(1.0, [], name="x")
        w = tf.get_variable("w", initializer=1.0)
        loss = tf.square(w - x)
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss + w, global_step=step)
        tf.summary.scalar("l", loss)
    return Program(graph, x, w, loss, train_op)


def trained(folder: Path, **arguments: Any) -> Any:
    made = program()
    return tf.contrib.learn.train(made.graph, str(folder), made.train_op, made.loss, **arguments)


def test_training_goes_on_where_it_ended(tmp_path: Path) -> None:
    assert trained(tmp_path, steps=3) == pytest.approx(0.0324)
    assert trained(tmp_path, max_steps=5) == pytest.approx(0.087143034)
    assert trained(tmp_path, max_steps=5) is None
    assert G.load_variable(str(tmp_path), "global_step") == 5
    written = {path.name for path in tmp_path.glob("*.index")}
    # The supervisor's own thread saves another step, the first that it sees.
    assert written >= {f"model.ckpt-{step}.index" for step in (3, 5)}


def test_training_ends_with_its_feeds_or_a_monitor(tmp_path: Path) -> None:
    made, feeds = program(), iter([2.0, 2.0])
    G.train(made.graph, str(tmp_path), made.train_op, made.loss, feed_fn=lambda: {made.x: next(feeds)})
    assert G.load_variable(str(tmp_path), "global_step:0") == 2
    capture = tf.contrib.learn.monitors.CaptureVariable("w:0", every_n=1)
    stop = tf.contrib.learn.monitors.StopAtStep(num_steps=3)
    trained(tmp_path, monitors=[capture, stop])
    assert sorted(capture.values) == [3, 4, 5]


def test_bad_training(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="both steps and max_steps"):
        trained(tmp_path, steps=1, max_steps=1)
    made = program()
    with pytest.raises(ValueError, match="should be non-empty"):
        G.train(made.graph, "", made.train_op, made.loss)
    with pytest.raises(ValueError, match="Missing train_op"):
        G.train(made.graph, str(tmp_path), None, made.loss)
    with tf.Graph().as_default() as graph:
        nothing = tf.constant(1.0)
    with pytest.raises(ValueError, match='No "global_step"'):
        G.train(graph, str(tmp_path), nothing, nothing)


@pytest.mark.parametrize("fails", [True, False])
def test_a_loss_that_is_not_a_number(tmp_path: Path, fails: bool) -> None:
    made = program()
    with made.graph.as_default():
        loss = made.loss * float("nan")
    arguments = {"steps": 3, "fail_on_nan_loss": fails}
    if fails:
        with pytest.raises(tf.train.NanLossDuringTrainingError):
            G.train(made.graph, str(tmp_path), made.train_op, loss, **arguments)
    else:
        G.train(made.graph, str(tmp_path), made.train_op, loss, **arguments)
    assert G.load_variable(str(tmp_path), "global_step") == 1


def test_evaluating_a_checkpoint(tmp_path: Path) -> None:
    trained(tmp_path, steps=3)
    made, latest, folder = program(), tf.train.latest_checkpoint(str(tmp_path)), tmp_path / "evaluation"
    with made.graph.as_default():
        count = tf.Variable(0.0, name="count", collections=[tf.GraphKeys.LOCAL_VARIABLES])
        update = count.assign_add(1.0)
    results, step = tf.contrib.learn.evaluate(
        made.graph, str(folder), latest, {"w": made.w, "count": count}, update_op=update, max_steps=4
    )
    assert step == 3 and results["count"] == 4.0 and results["w"] == pytest.approx(0.756)
    (log,) = folder.glob("events*")
    events = list(tf.train.summary_iterator(str(log)))
    values = {value.tag: value.simple_value for event in events for value in event.summary.value}
    assert values == pytest.approx({"w": 0.756, "count": 4.0})
    with pytest.raises(ValueError, match="not a valid checkpoint"):
        G.evaluate(made.graph, str(folder), str(tmp_path / "none"), {"w": made.w}, max_steps=1)


def test_inferring(tmp_path: Path) -> None:
    trained(tmp_path, steps=3)
    made, latest = program(), tf.train.latest_checkpoint(str(tmp_path))
    with made.graph.as_default():
        assert tf.contrib.learn.infer(latest, {"w": made.w})["w"] == pytest.approx(0.756)
        assert G.infer(None, {"w": made.w}) == {"w": 1.0}
        found = tf.contrib.learn.run_feeds({"l": made.loss}, [{made.x: 1.0}, {made.x: 2.0}, None])
        assert found == [{"l": 0.0}, {"l": 1.0}, {"l": 0.0}]
        assert next(G.run_feeds_iter({"l": made.loss}, [{made.x: 3.0}])) == {"l": 4.0}
        assert tf.contrib.learn.run_n({"w": made.w}, n=2) == [{"w": 1.0}] * 2
        with pytest.raises(ValueError, match="output_dict is invalid"):
            G.infer(None, {})


def test_writers_of_a_folder(tmp_path: Path) -> None:
    writer = G.get_summary_writer(str(tmp_path))
    assert G.get_summary_writer(str(tmp_path)) is writer
    G.clear_summary_writers()
    assert G.get_summary_writer(str(tmp_path)) is not writer
