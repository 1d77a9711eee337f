"""The debugger's commands, as a person types them."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest

import flowstone as tf
from flowstone import debugger as tf_debug


def typed(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


@pytest.fixture
def model() -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2], name="x")
        yield session, x, tf.reduce_sum(tf.log(x, name="logs"), name="z")


def test_commands_of_one_run(
    model: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path
) -> None:
    session, x, z = model
    wrapper = tf_debug.LocalCLIDebugWrapperSession(session, str(tmp_path / "dumps"), ui_type="readline")
    commands = ["ri", "lt", "run", "lt", "lt -f has_inf_or_nan", "lt -n log", "pt logs", "ni logs", "li logs"]
    typed(
        monkeypatch,
        *commands,
        "lo logs",
        "pt other",
        "ni other",
        "nonsense",
        "pt",
        "run -f nothing",
        "run -n",
    )
    assert wrapper.run(z, {x: [1.0, 0.0]}) == float("-inf")
    assert wrapper.run(z, {x: [1.0, 1.0]}) == 0.0
    shown = capsys.readouterr().out
    assert "run #1: fetches <tf.Tensor 'z:0'" in shown and "feeds: x:0" in shown
    assert "No run has been dumped yet" in shown
    assert (
        "4 dumped tensor(s):" in shown and "2 dumped tensor(s):" in shown and "1 dumped tensor(s):" in shown
    )
    assert "[  0. -inf]" in shown and "dtype: float32  shape: (2,)" in shown
    assert "Op: Log" in shown and "Inputs: x" in shown and "Recipients: z" in shown and __file__ in shown
    assert "Node name 'other' is not found" in shown and "There is no command 'nonsense'" in shown
    assert "argument(s), not 0" in shown and "no tensor filter named 'nothing'" in shown
    assert len(os.listdir(tmp_path / "dumps")) == 1


def test_until_a_filter_passes(
    model: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path
) -> None:
    session, x, z = model
    wrapper = tf_debug.LocalCLIDebugWrapperSession(session, str(tmp_path / "dumps"))
    wrapper.add_tensor_filter("large", lambda datum, value: datum.node_name == "x" and value.max() > 5)
    typed(monkeypatch, "run -f large", "run -t 3", "exit")
    for value in (1.0, 2.0, 6.0):
        wrapper.run(z, {x: [value, value]})
    shown = capsys.readouterr().out
    assert "the filter large passed first for x:0" in shown and shown.count("has ended") == 1
    assert len(os.listdir(tmp_path / "dumps")) == 1
    wrapper.run(z, {x: [1.0, 1.0]})
    wrapper.run(z, {x: [1.0, 1.0]})
    assert "has ended" not in capsys.readouterr().out
    with pytest.raises(SystemExit):
        wrapper.run(z, {x: [1.0, 1.0]})
    assert "run #6 has ended" in capsys.readouterr().out


def test_the_end_of_the_input_leaves(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    session, x, z = model
    typed(monkeypatch)
    with pytest.raises(SystemExit):
        tf_debug.LocalCLIDebugWrapperSession(session).run(z, {x: [1.0, 1.0]})


def test_wrong_arguments(model: Any) -> None:
    wrapper = tf_debug.LocalCLIDebugWrapperSession(model[0])
    with pytest.raises(ValueError, match="cannot be empty"):
        wrapper.add_tensor_filter("", lambda datum, value: True)
    with pytest.raises(TypeError, match="expected to be callable"):
        wrapper.add_tensor_filter("f", 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ui_type"):
        tf_debug.LocalCLIDebugWrapperSession(model[0], ui_type="window")


def test_hooks(monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path) -> None:
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        train = tf.assign_add(step, 1, name="train")
        dumping = tf_debug.DumpingDebugHook(str(tmp_path / "runs"))
        asking = tf_debug.LocalCLIDebugHook(dump_root=str(tmp_path / "asked"))
        asking.add_tensor_filter("third", lambda datum, value: datum.node_name == "train" and value == 3)
        typed(monkeypatch, "run -f third", "pt train", "run -n")
        with tf.train.SingularMonitoredSession(hooks=[dumping]) as session:
            session.run(train)
            session.run(train)
        assert len(os.listdir(tmp_path / "runs")) == 2
        with tf.train.SingularMonitoredSession(hooks=[asking]) as session:
            for _ in range(4):
                session.run(train)
    assert "the filter third passed first for train:0" in capsys.readouterr().out
