"""Lines under their tasks' names."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from flowstone.distributed.launchers.cluster_description import Task
from flowstone.distributed.launchers.task_output import TaskOutput

TASKS = [Task("ps", 0), Task("worker", 10)]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_are_shown_and_kept(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "logs"
    screen, own = io.StringIO(), io.StringIO()
    for lines in (["old", "old"], ["one", "", "two ü"]):
        output = TaskOutput(TASKS, folder, screen, own)
        output.show(TASKS[0], lines)
        output.show(TASKS[1], ["three"])
        output.say("all is well")
        output.close()
    assert screen.getvalue().splitlines()[-4:] == [
        "ps/0      | one",
        "ps/0      | ",
        "ps/0      | two ü",
        "worker/10 | three",
    ]
    assert own.getvalue().splitlines()[-1] == "cluster   | all is well"
    assert sorted(path.name for path in folder.iterdir()) == ["ps-0.log", "worker-10.log"]
    assert (folder / "ps-0.log").read_text(encoding="utf-8") == "one\n\ntwo ü\n"


def test_names_are_coloured_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen = Terminal()
    TaskOutput(TASKS, tmp_path, screen, Terminal()).show(TASKS[0], ["one"])
    assert screen.getvalue() == "\033[36mps/0     \033[0m | one\n"
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Terminal()
    TaskOutput(TASKS, tmp_path, plain, Terminal()).show(TASKS[0], ["one"])
    assert plain.getvalue() == "ps/0      | one\n"
