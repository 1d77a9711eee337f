"""Monitors of `tf.contrib.learn`; the steps, values and errors are those of TensorFlow 1.15.5's monitors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

M = tf.contrib.learn.monitors


class Recorder(M.EveryN):  # type: ignore[misc]
    """Notes the steps on which it acts, and those that it is told of when it ends."""

    def __init__(self, *arguments: int) -> None:
        super().__init__(*arguments)
        self.begun: list[int] = []
        self.posted: list[Any] = []

    def every_n_step_begin(self, step: int) -> list[Any]:
        self.begun.append(step)
        return super().every_n_step_begin(step)

    def every_n_post_step(self, step: int | None, session: Any) -> None:
        self.posted.append((step, session))


class Model:
    """An estimator as monitors see it."""

    class config:
        is_chief = True

    def __init__(self, model_dir: Path, results: list[dict[str, float]] | None = None) -> None:
        self.model_dir = str(model_dir)
        self.results = list(results or [])
        self.exports: list[Any] = []

    def evaluate(self, **arguments: Any) -> dict[str, float]:
        self.arguments = arguments
        return self.results.pop(0)

    def export(self, *arguments: Any, **keywords: Any) -> bytes:
        if self.exports and self.exports[-1][1] == keywords and keywords["exports_to_keep"] == 1:
            raise RuntimeError("exported already")
        self.exports.append((arguments, keywords))
        return b"exported"


def steps_of(monitor: Any, steps: range, outputs: Any = None) -> list[bool]:
    stops = []
    for step in steps:
        wanted = monitor.step_begin(step)
        stops.append(bool(monitor.step_end(step, outputs(step, wanted) if outputs else {})))
        monitor.post_step(step, None)
    return stops


def test_base_monitor_checks_the_order_of_calls() -> None:
    monitor = M.BaseMonitor()
    with pytest.raises(ValueError, match="end called without begin"):
        monitor.end()
    monitor.begin(2)
    with pytest.raises(ValueError, match="begin called twice"):
        monitor.begin()
    monitor.epoch_begin(1)
    with pytest.raises(ValueError, match="epoch_begin called twice"):
        monitor.epoch_begin(2)
    with pytest.raises(ValueError, match="epoch_end expected 1 but got 3"):
        monitor.epoch_end(3)
    monitor.epoch_end(1)
    assert monitor.step_begin(1) == []
    with pytest.raises(ValueError, match="step_end expected 1 but got 2"):
        monitor.step_end(2, {})
    with pytest.raises(ValueError, match="Invalid step 3"):
        monitor.step_begin(3)
    with pytest.raises(ValueError, match="Missing estimator"):
        monitor.set_estimator(None)
    assert not monitor.run_on_all_workers
    monitor.end()


@pytest.mark.parametrize(
    ("arguments", "steps", "last", "acted"),
    [
        ((3, 2), range(12), None, [0, 1, 2, 5, 8, 11]),
        ((3,), range(5, 15), None, [5, 8, 11, 14]),
        ((4, 0), range(1, 13), 12, [4, 8, 12]),
    ],
)
def test_every_n_acts_on(arguments: Any, steps: range, last: int | None, acted: list[int]) -> None:
    monitor = Recorder(*arguments)
    monitor.begin(last)
    steps_of(monitor, steps)
    assert monitor.begun == acted and [step for step, _ in monitor.posted] == acted
    monitor.end("session")
    rest = [] if acted[-1] == steps[-1] else [(steps[-1], "session")]
    assert monitor.posted[len(acted) :] == rest


def test_every_n_is_told_the_last_step() -> None:
    monitor = Recorder(3, 1)
    monitor.begin()
    steps_of(monitor, range(1, 6))
    monitor.end("session")
    assert monitor.posted == [(1, None), (4, None), (5, "session")]


def test_stop_at_step() -> None:
    with pytest.raises(ValueError, match="One of num_steps or last_step"):
        M.StopAtStep()
    with pytest.raises(ValueError, match="Only one of"):
        M.StopAtStep(1, 2)
    monitor = M.StopAtStep(num_steps=3)
    assert monitor.run_on_all_workers
    assert steps_of(monitor, range(10, 14)) == [False, False, True, True]
    assert steps_of(M.StopAtStep(last_step=3), range(1, 5)) == [False, False, True, True]


def test_print_and_log(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(tf.logging, "info", lambda form, *values: lines.append(form % values))
    monitor = M.PrintTensor({"n": "a:0", "m": "z:0"}, every_n=1)
    assert monitor.step_begin(1) == ["a:0", "z:0"]
    monitor.step_end(1, {"a:0": np.float32(1.1)})
    w = tf.get_variable("w", [2])
    with tf.variable_scope("s"):
        tf.get_variable("v", [])
    logging = M.LoggingTrainable()
    assert logging.step_begin(1) == ["w/read:0", "s/v/read:0"]
    logging.step_end(1, {w.value().name: 2.0, "s/v/read:0": 3.0})
    assert M.LoggingTrainable("s").step_begin(1) == ["s/v/read:0"]
    assert lines == ["Step 1: n = 1.1", "Logging Trainable: Step 1: w:0 = 2.0, s/v:0 = 3.0"]


def test_capture_variable() -> None:
    monitor = M.CaptureVariable("w:0", every_n=2, first_n=1)
    monitor.begin()
    steps_of(monitor, range(1, 6), lambda step, wanted: dict.fromkeys(wanted, step * 10))
    assert monitor.values == {1: 10, 3: 30, 5: 50}


def test_nan_loss() -> None:
    loss = tf.reduce_sum(tf.ones([2]), name="loss")
    monitor = M.NanLoss(loss, every_n_steps=1)
    assert monitor.step_begin(1) == [loss]
    assert monitor.step_end(1, {loss: 1.0}) is False
    monitor.step_begin(2)
    with pytest.raises(M.NanLossDuringTrainingError):
        monitor.step_end(2, {"loss:0": np.nan})
    forgiving = M.NanLoss(loss, every_n_steps=1, fail_on_nan_loss=False)
    forgiving.step_begin(1)
    assert forgiving.step_end(1, {loss: np.nan}) is True


def test_graph_dump() -> None:
    product = tf.placeholder(tf.float32, [2], name="a") * 2.0
    dumps = [M.GraphDump(), M.GraphDump()]
    for dump, k in zip(dumps, (4, 5), strict=True):
        dump.begin()
        assert dump.step_begin(1) == [product]
        values = {"b": 3, "c": np.array([1, 2]), "k": np.array([[1.0, 2.0], [3.0, k]])}
        dump.step_end(1, values)
    matched, differences = dumps[0].compare(dumps[1], 1)
    assert matched == ["b", "c"] and list(differences) == ["k"]
    np.testing.assert_array_equal(differences["k"], [[0.0, 0.0], [0.0, -1.0]])
    assert dumps[0].compare(dumps[1], step=1, atol=1.0) == (["b", "c", "k"], {})
    dumps[0].data[1]["q"] = 1
    with pytest.raises(ValueError, match="q missing at step 1"):
        dumps[0].compare(dumps[1], 1)
    assert "Const" in M.GraphDump.IGNORE_OPS


class Writer:
    """Keeps what a monitor writes."""

    def __init__(self) -> None:
        self.summaries: list[Any] = []
        self.flushed = 0

    def add_summary(self, summary: Any, step: int) -> None:
        self.summaries.append((summary, step))

    def flush(self) -> None:
        self.flushed += 1


def test_summary_saver() -> None:
    writer, summary = Writer(), tf.summary.scalar("one", tf.constant(1.0))
    monitor = M.SummarySaver(summary, save_steps=2, summary_writer=writer)
    monitor.begin()
    steps_of(monitor, range(1, 4), lambda step, wanted: dict.fromkeys(wanted, step))
    monitor.end()
    assert writer.summaries == [(1, 1), (3, 3)] and writer.flushed == 1
    assert M.SummarySaver(None, summary_writer=writer).step_begin(1) == []


def test_step_counter(tmp_path: Path) -> None:
    writer = Writer()
    monitor = M.StepCounter(every_n_steps=2, summary_writer=writer)
    monitor.begin()
    steps_of(monitor, range(1, 6))
    assert [step for _, step in writer.summaries] == [3, 5]
    (value,) = writer.summaries[0][0].value
    assert value.tag == "global_step/sec" and value.simple_value > 0
    counter = M.StepCounter()
    counter.set_estimator(Model(tmp_path))
    assert counter._summary_writer is M.SummaryWriterCache.get(str(tmp_path))


def test_checkpoint_saver(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Either save_steps or save_secs"):
        M.CheckpointSaver(str(tmp_path))
    with pytest.raises(ValueError, match="Can not provide both"):
        M.CheckpointSaver(str(tmp_path), save_secs=1, save_steps=1)
    variable = tf.get_variable("w", initializer=1.5)
    monitor = M.CheckpointSaver(str(tmp_path), save_steps=2, saver=tf.train.Saver())
    with tf.Session() as session:
        session.run(variable.initializer)
        monitor.begin()
        for step in range(1, 7):
            monitor.step_begin(step)
            monitor.step_end(step, {})
            monitor.post_step(step, session)
        monitor.end(session)
        saved = sorted(path.name for path in tmp_path.glob("*.index"))
        assert saved == [f"model.ckpt-{step}.index" for step in (1, 3, 5, 6)]
        with pytest.raises(ValueError, match="neither a saver"):
            M.CheckpointSaver(str(tmp_path), save_secs=9).post_step(1, session)


def test_default_monitors() -> None:
    loss = tf.constant(1.0, name="l")
    assert M.get_default_monitors() == []
    printing, saving = M.get_default_monitors(loss, tf.summary.scalar("l", loss), 7, summary_writer=Writer())
    assert printing.step_begin(1) == ["l:0"] and isinstance(saving, M.SummarySaver)


def saved_at(folder: Path, step: int) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable(1.0)
        session.run(variable.initializer)
        tf.train.Saver().save(session, str(folder / f"model.ckpt-{step}"))


def test_validation_monitor_stops_early(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Either x or input_fn"):
        M.ValidationMonitor()
    model = Model(tmp_path, [{"loss": 5.0}, {"loss": 3.0}, {"loss": 4.0}])
    monitor = M.ValidationMonitor(
        x=1,
        y=2,
        batch_size=3,
        eval_steps=4,
        every_n_steps=2,
        early_stopping_rounds=2,
        check_interval_secs=None,
    )
    monitor.begin()
    stops = []
    for step in range(1, 7):
        monitor.step_begin(step)
        if step == 2:
            with pytest.raises(ValueError, match="Missing call to set_estimator"):
                monitor.step_end(step, {})
            monitor.set_estimator(model)
            monitor.step_begin(step)
        stops.append(monitor.step_end(step, {}))
        monitor.post_step(step, None)
        saved_at(tmp_path, step)
    assert stops == [False] * 5 + [True] and monitor.early_stopped
    assert (monitor.best_step, monitor.best_value, monitor.best_metrics) == (4, 3.0, {"loss": 3.0})
    assert model.arguments["steps"] == 4 and model.arguments["batch_size"] == 3


def test_validation_monitor_needs_a_new_checkpoint(tmp_path: Path) -> None:
    model = Model(tmp_path, [{"acc": 0.5}, {"acc": 0.6}])
    monitor = M.ValidationMonitor(
        input_fn=dict,
        every_n_steps=1,
        early_stopping_rounds=3,
        early_stopping_metric="acc",
        early_stopping_metric_minimize=False,
        check_interval_secs=None,
    )
    monitor.set_estimator(model)
    steps_of(monitor, range(1, 2))
    assert len(model.results) == 2
    saved_at(tmp_path, 1)
    steps_of(monitor, range(2, 4))
    assert len(model.results) == 1
    saved_at(tmp_path, 3)
    steps_of(monitor, range(4, 5))
    assert monitor.best_step == 4 and monitor.best_value == 0.6
    other = M.ValidationMonitor(input_fn=dict, every_n_steps=1, early_stopping_rounds=3)
    other.set_estimator(Model(tmp_path, [{"acc": 0.5}]))
    with pytest.raises(ValueError, match="Metric loss missing"):
        steps_of(other, range(1, 2))


def test_export_monitor(tmp_path: Path) -> None:
    model = Model(tmp_path)
    monitor = M.ExportMonitor(3, "exports", signature_fn=dict)
    monitor.set_estimator(model)
    monitor.begin()
    assert monitor.last_export_dir is None
    steps_of(monitor, range(1, 8))
    assert len(model.exports) == 3 and monitor.last_export_dir == b"exported"
    monitor.end()  # without a checkpoint, nothing to export
    assert len(model.exports) == 3
    arguments, keywords = model.exports[0]
    assert arguments == ("exports",) and keywords["use_deprecated_input_fn"] is True
    assert (monitor.export_dir, monitor.exports_to_keep, monitor.signature_fn) == ("exports", 5, dict)
    saved_at(tmp_path, 1)
    again = M.ExportMonitor(1, "exports", input_fn=dict, input_feature_key="f", exports_to_keep=1)
    again.set_estimator(model)
    again.begin()
    steps_of(again, range(1, 3))
    again.end()
    assert len(model.exports) == 4  # the estimator refuses to export a checkpoint twice


class Asking(M.BaseMonitor):  # type: ignore[misc]
    """Asks for a variable, and stops at the third step."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def step_begin(self, step: int) -> list[Any]:
        super().step_begin(step)
        return ["w:0", "w"]

    def step_end(self, step: int, output: Any) -> bool:
        super().step_end(step, output)
        self.seen.append((step, dict(output)))
        return step == 3


def test_monitors_as_a_hook() -> None:
    tf.get_variable("w", initializer=1.5)
    increment = tf.train.create_global_step().assign_add(1)
    asking, all_workers = Asking(), M.StopAtStep(last_step=9)
    stopping = tf.train.StopAtStepHook(8)
    hooks = M.replace_monitors_with_hooks([asking, stopping, all_workers], Model(Path(".")))
    assert hooks[0] is stopping and isinstance(hooks[1], M.RunHookAdapterForMonitors)
    with tf.train.MonitoredSession(hooks=hooks) as session:
        while not session.should_stop():
            session.run(increment)
    assert asking.seen == [(step, {"w:0": 1.5, "w": 1.5}) for step in (1, 2, 3)]
    assert M.replace_monitors_with_hooks(None, Model(Path("."))) == []
