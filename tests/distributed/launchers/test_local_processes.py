"""Clusters of real processes. Their programs need nothing of flowstone, and run without its import."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowstone.distributed.launchers.cluster_description import ClusterDescription, Program, Task
from flowstone.distributed.launchers.local_processes import run_locally
from flowstone.distributed.launchers.outcome import ClusterOutcome
from flowstone.distributed.launchers.task_output import TaskOutput
from flowstone.distributed.launchers.task_process import TaskProcess

PLAIN = (sys.executable, "-S")
BEGINNING = """\
import json, os, signal, socket, subprocess, sys, time
config = json.loads(os.environ["TF_CONFIG"])
job, task = config["task"]["type"], config["task"]["index"]
def once(name):
    try:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False
"""
SERVES = "if job == 'ps': time.sleep(60)\n"


class Ran:
    """A cluster that has run, and what was seen of it."""

    def __init__(self, outcome: ClusterOutcome, screen: str, own: str, logs: Path) -> None:
        self.status = outcome.exit_status
        self.table = {str(each.task): (each.exit_text, each.restarts) for each in outcome.tasks}
        self.tasks = {str(each.task): each for each in outcome.tasks}
        self.screen, self.own, self.logs = screen.splitlines(), own, logs


Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a program, given as text, as a cluster with these tasks; the folder is the program's own."""
    monkeypatch.chdir(tmp_path)

    def run(text: str, jobs: dict[str, int], *arguments: str, grace_s: float = 10.0, **options: Any) -> Ran:
        path = tmp_path / "program.py"
        path.write_text(BEGINNING + textwrap.dedent(text))
        program = Program(str(path), arguments, runner=PLAIN, with_flags=options.pop("with_flags", False))
        description = ClusterDescription(jobs, program, **options)
        screen, own = io.StringIO(), io.StringIO()
        output = TaskOutput(description.tasks, tmp_path / "logs", screen, own)
        outcome = run_locally(description, output, grace_s)
        output.close()
        return Ran(outcome, screen.getvalue(), own.getvalue(), tmp_path / "logs")

    return run


def test_tasks_learn_their_places(run: Run) -> None:
    """From TF_CONFIG and from their arguments, at addresses that are free."""
    ran = run(
        """
        if job != "evaluator":
            host, port = config["cluster"][job][task].split(":")
            server = socket.create_server((host, int(port)))
        print(json.dumps([config["cluster"], sys.argv[1:], os.environ["OMP_NUM_THREADS"]]))
        sys.stdout.flush()
        if job == "ps":
            once("served")
            time.sleep(60)
        while not os.path.exists("served"): time.sleep(0.02)
        """,
        {"ps": 1, "chief": 1, "worker": 2, "evaluator": 1},
        "{job}/{task}",
        "{ps_hosts};{worker_hosts}",
        threads=3,
    )
    said = {}
    for line in ran.screen:
        name, _, text = line.partition(" | ")
        said[name.strip()] = json.loads(text)
    (cluster,) = {json.dumps(each[0]) for each in said.values()}
    jobs = json.loads(cluster)
    assert {job: len(hosts) for job, hosts in jobs.items()} == {"ps": 1, "chief": 1, "worker": 2}
    hosts = f"{jobs['ps'][0]};{','.join(jobs['worker'])}"
    names = ["ps/0", "chief/0", "worker/0", "worker/1", "evaluator/0"]
    assert {name: each[1:] for name, each in said.items()} == {name: [[name, hosts], "3"] for name in names}
    assert ran.status == 0
    assert ran.table == {name: ("ended" if name == "ps/0" else "0", 0) for name in names}


def test_tasks_share_a_token_that_nobody_else_knows(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    program = """
        print("token", os.environ.get("FLOWSTONE_CLUSTER_TOKEN"), sys.argv[1:])
        if once("died") and os.environ["TF_CONFIG"].count('"type": "worker"'):
            sys.exit(1)
    """
    monkeypatch.delenv("FLOWSTONE_CLUSTER_TOKEN", raising=False)
    tokens = []
    for _ in range(2):
        ran = run(program, {"ps": 1, "worker": 2}, restarts=2)
        found = {line.split()[3] for line in ran.screen if " token " in line}
        assert ran.status == 0 and len(found) == 1, ran.screen
        tokens += found
    assert len(set(tokens)) == 2 and all(len(token) >= 32 for token in tokens)
    assert not any(token in line for token in tokens for line in ran.own)
    monkeypatch.setenv("FLOWSTONE_CLUSTER_TOKEN", "mine")
    ran = run(program, {"worker": 1}, restarts=2)
    assert any(line.endswith("token mine []") for line in ran.screen)


def test_flags_are_appended(run: Run) -> None:
    ran = run("print(sys.argv[1], sys.argv[2], task)", {"worker": 2}, with_flags=True)
    assert sorted(ran.screen) == [f"worker/{i} | --job_name=worker --task_index={i} {i}" for i in range(2)]


def test_the_first_failure_ends_the_others(run: Run) -> None:
    ran = run(SERVES + "time.sleep(0.2 if task == 1 else 60); sys.exit(7)", {"ps": 1, "worker": 3})
    assert ran.status == 7
    assert ran.table == {
        "ps/0": ("ended", 0),
        "worker/0": ("ended", 0),
        "worker/1": ("7", 0),
        "worker/2": ("ended", 0),
    }
    assert "worker/1 failed with exit 7 after" in ran.own


def test_a_task_that_died_is_restarted_at_its_address(run: Run) -> None:
    text = """
    print(config["cluster"][job][task], flush=True)
    if task == 1 and once("first"): os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.3)
    """
    ran = run(text, {"worker": 2}, restarts=1)
    assert ran.status == 0
    assert ran.table == {"worker/0": ("0", 0), "worker/1": ("0", 1)}
    first, second = (ran.logs / "worker-1.log").read_text().splitlines()
    assert first == second
    assert "worker/1 failed with exit SIGKILL after" in ran.own and "started again, 1 of 1" in ran.own


def test_restarts_come_to_an_end(run: Run) -> None:
    ran = run("print('run'); sys.exit(5)", {"worker": 1}, restarts=2)
    assert (ran.status, ran.table) == (5, {"worker/0": ("5", 2)})
    assert ran.screen == ["worker/0 | run"] * 3


def test_a_task_that_will_not_end_is_killed(run: Run) -> None:
    """With the processes that it has started."""
    ran = run(
        """
        if job == "ps":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
            print(child.pid, flush=True)
            once("ready")
            time.sleep(60)
        while not os.path.exists("ready"): time.sleep(0.02)
        """,
        {"ps": 1, "worker": 1},
        grace_s=0.3,
    )
    assert (ran.status, ran.table["ps/0"]) == (0, ("SIGKILL", 0))
    assert have_ended([int((ran.logs / "ps-0.log").read_text())])


def test_what_tasks_write(run: Run) -> None:
    """Both streams in order, a long line, bytes that are no text, and a last line without its end."""
    ran = run(
        r"""
        print("one"); print("two", file=sys.stderr); print("x" * 100_000)
        sys.stdout.flush()
        os.write(1, b"bar\r\n\xff\nthe end")
        """,
        {"worker": 1},
    )
    lines = [line.removeprefix("worker/0 | ") for line in ran.screen]
    assert lines[:2] == ["one", "two"]
    assert "".join(lines[2:-3]) == "x" * 100_000
    assert lines[-3:] == ["bar", "\ufffd", "the end"]


def test_much_output_is_complete(run: Run) -> None:
    ran = run("for i in range(20_000): print(task, i, 'x' * 60)\n", {"worker": 2})
    for task in range(2):
        lines = (ran.logs / f"worker-{task}.log").read_text().splitlines()
        assert lines == [f"{task} {i} {'x' * 60}" for i in range(20_000)]


def test_a_task_that_closes_its_output_runs_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks the closed pipe again and again."""
    calls: list[TaskProcess] = []
    read_lines = TaskProcess.read_lines
    monkeypatch.setattr(TaskProcess, "read_lines", lambda self: calls.append(self) or read_lines(self))
    ran = run("os.close(1); os.close(2); time.sleep(0.5); sys.exit(4)", {"worker": 1})
    assert ran.status == 4
    assert len(calls) < 5


def test_a_port_that_somebody_takes_is_left(run: Run) -> None:
    """The cluster starts at other ports if a task fails while somebody else listens on its port."""
    ran = run(
        """
        host, port = config["cluster"][job][task].split(":")
        if task == 0 and once("first"):
            listen = f"s = socket.create_server(('{host}', {port})); print(flush=True); time.sleep(60)"
            command = [sys.executable, "-S", "-c", "import socket, time; " + listen]
            thief = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
            thief.stdout.readline()
            print(thief.pid, flush=True)
        socket.create_server((host, int(port)))
        print("listens", flush=True)
        """,
        {"worker": 2},
    )
    text = [line for line in ran.screen if "worker/0 | " in line]
    os.kill(int(text[0].rpartition(" ")[2]), signal.SIGKILL)
    assert text[-1] == "worker/0 | listens"
    assert (ran.status, ran.table) == (0, {"worker/0": ("0", 0), "worker/1": ("0", 0)})
    assert "worker/0 failed, and somebody else listens on its port" in ran.own


@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_ends_all(run: Run, times: int) -> None:
    """The first asks, and tasks that want to save something have time; the second does not ask."""
    text = """
    def end(*_):
        print("saves", flush=True)
        once(f"saves{task}")
        time.sleep(0.1 if sys.argv[1] == "1" else 60)
        sys.exit(0)
    signal.signal(signal.SIGTERM, end)
    once(f"ready{task}")
    time.sleep(60)
    """

    # A shell has programs that it begins in the background ignore interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt() -> None:
        for file in ("ready", "saves")[:times]:
            while not all(Path(f"{file}{task}").exists() for task in range(2)):
                time.sleep(0.02)
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    ran = run(text, {"worker": 2}, str(times), restarts=5)
    thread.join()
    assert ran.status == 130
    assert ran.table == {f"worker/{i}": ("ended" if times == 1 else "SIGKILL", 0) for i in range(2)}
    assert sorted(ran.screen) == ["worker/0 | saves", "worker/1 | saves"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_a_program_that_cannot_start(run: Run, tmp_path: Path) -> None:
    description = ClusterDescription({"worker": 2}, Program("p", runner=(str(tmp_path / "none"),)))
    with pytest.raises(FileNotFoundError, match="none"):
        run_locally(description, TaskOutput(description.tasks, tmp_path, io.StringIO(), io.StringIO()))
    with pytest.raises(ValueError, match="no job store"):
        run("", {"worker": 1}, "{store_hosts}")


LAUNCHER = """\
import sys, types
from pathlib import Path
SOURCES = {sources!r}
for name in ("flowstone", "flowstone.distributed", "flowstone.framework"):  # without importing all of it
    package = types.ModuleType(name)
    package.__path__ = [SOURCES + "/" + name.replace(".", "/")]
    sys.modules[name] = package
from flowstone.distributed.launchers.cluster_description import ClusterDescription, Program
from flowstone.distributed.launchers.local_processes import run_locally
from flowstone.distributed.launchers.task_output import TaskOutput
description = ClusterDescription({{"worker": 2}}, Program("program.py", runner=(sys.executable, "-S")))
run_locally(description, TaskOutput(description.tasks, Path("logs")))
"""


def test_a_killed_launcher_leaves_nobody(tmp_path: Path) -> None:
    """Neither its tasks, nor what they have started, even if they ignore all that can be ignored."""
    (tmp_path / "program.py").write_text(
        BEGINNING
        + textwrap.dedent(
            """
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)
            child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
            print(os.getpid(), child.pid, flush=True)
            time.sleep(60)
            """
        )
    )
    sources = str(Path(__file__).parents[3] / "src")
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER.format(sources=sources)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert launcher.stdout is not None
    pids = [int(word) for _ in range(2) for word in launcher.stdout.readline().split()[2:]]
    assert len(pids) == 4 and all(map(is_alive, pids))
    launcher.kill()
    launcher.wait()
    assert have_ended(pids)
    launcher.stdout.close()


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and that nobody has asked about does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def have_ended(pids: list[int]) -> bool:
    """Whether none of the processes runs any more, soon."""
    until = time.monotonic() + 10
    while any(map(is_alive, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    return not any(map(is_alive, pids))


def test_ports_are_given_back(run: Run) -> None:
    ran = run("print(config['cluster'][job][task])", {"worker": 1})
    host, _, port = ran.screen[0].rpartition(" | ")[2].rpartition(":")
    socket.create_server((host, int(port))).close()
    assert ran.tasks["worker/0"].task == Task("worker", 0) and ran.tasks["worker/0"].duration_s < 60
