"""What the hooks write and refuse."""

from __future__ import annotations

import glob
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def counting() -> Any:
    return tf.assign_add(tf.train.get_or_create_global_step(), 1)


def events(folder: Path) -> list[Any]:
    tf.summary.FileWriterCache.get(folder).flush()
    return [e for path in glob.glob(f"{folder}/*tfevents*") for e in tf.train.summary_iterator(path)]


MISTAKES: dict[str, tuple[str, Callable[[], object]]] = {
    "no period of checkpoints": ("Either every_secs", lambda: tf.train.CheckpointSaverHook("d")),
    "two savers": (
        "both saver and scaffold",
        lambda: tf.train.CheckpointSaverHook("d", save_steps=1, saver=1, scaffold=1),
    ),
    "two periods": ("Can not provide both", lambda: tf.train.SecondOrStepTimer(1.0, 1)),
    "no summaries": ("Exactly one of scaffold", lambda: tf.train.SummarySaverHook(save_steps=1)),
    "no stop": ("One of num_steps", lambda: tf.train.StopAtStepHook()),
    "two stops": ("Only one of num_steps", lambda: tf.train.StopAtStepHook(1, 2)),
    "never logged": ("either at_end", lambda: tf.train.LoggingTensorHook(["x"])),
    "logged every 0": ("invalid every_n_iter=0", lambda: tf.train.LoggingTensorHook(["x"], 0)),
    "two rates": ("exactly one of every_n_steps", lambda: tf.train.StepCounterHook(1, 1.0)),
    "no profile": ("Either every_secs", lambda: tf.train.ProfilerHook()),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    message, make = MISTAKES[name]
    with pytest.raises(ValueError, match=message):
        make()


def test_hooks_that_need_a_global_step(tmp_path: Path) -> None:
    train = tf.train
    for hook in (
        train.StepCounterHook(),
        train.StopAtStepHook(1),
        train.CheckpointSaverHook(tmp_path, save_steps=1),
        train.SummarySaverHook(save_steps=1, summary_op=1),
        train.GlobalStepWaiterHook(1),
        train.ProfilerHook(save_steps=1, output_dir=tmp_path),
    ):
        with pytest.raises(RuntimeError, match="Global step should be created to use"):
            hook.begin()


def test_savers_of_the_collection(tmp_path: Path) -> None:
    count = counting()
    hook = tf.train.CheckpointSaverHook(tmp_path, save_steps=1)
    hook.begin()
    with tf.Session() as session:
        with pytest.raises(RuntimeError, match="No items in collection savers"):
            session.run(tf.global_variables_initializer())
            hook.after_create_session(session, None)
        for _ in range(2):
            tf.add_to_collection("savers", tf.train.Saver())
        with pytest.raises(RuntimeError, match="More than one item in collection savers"):
            hook.after_create_session(session, None)
    assert count.op.type == "AssignAdd"


def test_the_profiler_hook_writes_traces(tmp_path: Path) -> None:
    count = counting()
    hook = tf.train.ProfilerHook(save_steps=2, output_dir=tmp_path, show_memory=True)
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        for _ in range(5):
            session.run(count)
    files = sorted(path.name for path in tmp_path.glob("timeline-*.json"))
    assert files == ["timeline-2.json", "timeline-4.json"]
    assert json.loads((tmp_path / files[0]).read_text())["traceEvents"]
    tags = [e.tagged_run_metadata.tag for e in events(tmp_path) if e.HasField("tagged_run_metadata")]
    assert tags == ["step_2", "step_4"]


def test_rates_are_summaries(tmp_path: Path) -> None:
    count = counting()
    hook = tf.train.StepCounterHook(every_n_steps=2, output_dir=tmp_path)
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        for _ in range(5):
            session.run(count)
    found = [(e.step, v.tag, v.simple_value > 0) for e in events(tmp_path) for v in e.summary.value]
    assert found == [(3, "global_step/sec", True), (5, "global_step/sec", True)]


def test_values_are_logged_with_their_tags(caplog: pytest.LogCaptureFixture) -> None:
    counting()
    tf.logging.set_verbosity(tf.logging.INFO)
    try:
        hooks = [
            tf.train.LoggingTensorHook({"b": tf.constant(2), "a": tf.constant([1.0])}, every_n_iter=1),
            tf.train.LoggingTensorHook([tf.constant(7, name="seven").name], at_end=True),
        ]
        with tf.train.MonitoredSession(hooks=hooks) as session:
            session.run(tf.train.get_global_step())
    finally:
        tf.logging.set_verbosity(tf.logging.WARN)
    messages = [record.getMessage() for record in caplog.records]
    assert "a = [1.], b = 2" in messages
    assert "seven:0 = 7" in messages


def test_a_step_that_does_not_count_is_told(caplog: pytest.LogCaptureFixture) -> None:
    tf.train.get_or_create_global_step()
    with tf.train.MonitoredSession(hooks=[tf.train.StepCounterHook()]) as session:
        for _ in range(3):
            session.run(tf.train.get_global_step())
    told = [record for record in caplog.records if "still 0" in record.getMessage()]
    assert len(told) == 2


def test_final_ops_without_input_raise() -> None:
    queue = tf.FIFOQueue(1, tf.int32)
    close, item = queue.close(), queue.dequeue()
    with (
        pytest.raises(tf.errors.OutOfRangeError),
        tf.train.MonitoredSession(hooks=[tf.train.FinalOpsHook(item)]) as session,
    ):
        session.run(close)


def test_the_message_of_a_loss_that_is_no_number() -> None:
    error = tf.train.NanLossDuringTrainingError()
    assert error.message == str(error) == "NaN loss during training."
