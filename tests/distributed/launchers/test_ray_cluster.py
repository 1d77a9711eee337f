"""Clusters on a real Ray of this machine. Their programs need nothing of flowstone, and run without its
import."""

from __future__ import annotations

import io
import os
import signal
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flowstone.distributed.launchers.cluster_description import ClusterDescription, Program
from flowstone.distributed.launchers.outcome import ClusterOutcome
from flowstone.distributed.launchers.task_output import TaskOutput

ray: Any = pytest.importorskip("ray", reason="Ray is an extra: pip install flowstone[ray]")
ray_cluster: Any = pytest.importorskip("flowstone.distributed.launchers.ray_cluster")

SOURCES = str(Path(__file__).parents[3] / "src")
BEGINNING = """\
import json, os, signal, sys, time
config = json.loads(os.environ["TF_CONFIG"])
job, task = config["task"]["type"], config["task"]["index"]
def once(name):
    try:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False
"""


@pytest.fixture(scope="module", autouse=True)
def local_ray() -> Iterator[None]:
    """A Ray of one machine, this one, of which nobody else can use anything."""
    environment = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = SOURCES  # for Ray's processes
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    yield
    ray.shutdown()
    if environment is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = environment


def run(
    folder: Path, text: str, jobs: dict[str, int], *arguments: str, settings: Any = None, **options: Any
) -> tuple[ClusterOutcome, list[str], str]:
    """Runs a program, given as text, as a cluster; what was seen of it."""
    (folder / "program.py").write_text(BEGINNING + textwrap.dedent(text))
    os.chdir(folder)
    program = Program("program.py", arguments, runner=(sys.executable, "-S"))
    description = ClusterDescription(jobs, program, **options)
    screen, own = io.StringIO(), io.StringIO()
    output = TaskOutput(description.tasks, folder / "logs", screen, own)
    outcome = ray_cluster.run_on_ray(description, output, settings or ray_cluster.RaySettings())
    output.close()
    return outcome, screen.getvalue().splitlines(), own.getvalue()


def table(outcome: ClusterOutcome) -> dict[str, tuple[str, int]]:
    return {str(each.task): (each.exit_text, each.restarts) for each in outcome.tasks}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_tasks_find_each_other(folder: Path) -> None:
    text = """
    print(config["cluster"], sys.argv[1], os.environ["OMP_NUM_THREADS"], flush=True)
    if job == "ps":
        once("served")
        time.sleep(60)
    while not os.path.exists("served"): time.sleep(0.02)
    """
    outcome, screen, _ = run(folder, text, {"ps": 1, "worker": 2}, "{ps_hosts}", threads=2)
    assert outcome.exit_status == 0
    assert table(outcome) == {"ps/0": ("ended", 0), "worker/0": ("0", 0), "worker/1": ("0", 0)}
    said = dict(line.split(" | ") for line in sorted(screen))
    assert [name.strip() for name in said] == ["ps/0", "worker/0", "worker/1"]
    (words,) = set(said.values())
    assert words.count("127.0.0.1:") == 4 and words.endswith(" 2")
    assert (folder / "logs" / "worker-1.log").read_text() == words + "\n"


def test_a_failure_ends_the_others(folder: Path) -> None:
    outcome, *_ = run(folder, "time.sleep(60 if task == 0 else 0.2); sys.exit(5)", {"worker": 2})
    assert outcome.exit_status == 5
    assert table(outcome) == {"worker/0": ("ended", 0), "worker/1": ("5", 0)}


def test_a_program_that_died_is_restarted_at_its_address(folder: Path) -> None:
    text = """
    print(config["cluster"][job][task], flush=True)
    if once("first"): os.kill(os.getpid(), signal.SIGKILL)
    """
    outcome, screen, own = run(folder, text, {"worker": 1}, restarts=1)
    assert (outcome.exit_status, table(outcome)) == (0, {"worker/0": ("0", 1)})
    assert len(screen) == 2 and screen[0] == screen[1]
    assert "worker/0 failed with exit SIGKILL" in own


def test_an_actor_that_died_is_replaced(folder: Path) -> None:
    """Its program ends with it, and all start again, since it has another address."""
    text = """
    print("begins", flush=True)
    once(f"{task} of {config['cluster']['worker']}")
    if task == 0 and once("first"):
        while not [name for name in os.listdir() if name.startswith("1 of")]: time.sleep(0.02)
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    if task == 1 and once("second"): time.sleep(60)
    """
    outcome, screen, own = run(folder, text, {"worker": 2}, restarts=1)
    assert (outcome.exit_status, table(outcome)) == (0, {"worker/0": ("0", 1), "worker/1": ("0", 0)})
    assert "worker/0 is lost with its actor" in own and "all start again" in own
    places = [name.partition(" of ")[::2] for name in os.listdir(folder) if " of " in name]
    assert sorted(task for task, _ in places) == ["0", "0", "1", "1"]
    assert len({cluster for _, cluster in places}) == 2
    assert screen.count("worker/1 | begins") == 2


def test_a_lost_actor_without_restarts_is_a_failure(folder: Path) -> None:
    text = "time.sleep(60) if task else os.kill(os.getppid(), signal.SIGKILL)"
    outcome, *_ = run(folder, text, {"worker": 2})
    assert (outcome.exit_status, table(outcome)["worker/0"]) == (128 + signal.SIGKILL, ("SIGKILL", 0))


@pytest.mark.parametrize(
    ("cpus", "gpus", "words"),
    [
        (1.0, 0.0, "found no place for worker/.* in 2 s; it has 2 CPU"),
        (0.0, 1.0, "has no place for worker/0; it has 2 CPU"),
    ],
)
def test_places_that_ray_does_not_have(folder: Path, cpus: float, gpus: float, words: str) -> None:
    """A third core may become free, a GPU will not come."""
    settings = ray_cluster.RaySettings(cpus=cpus, gpus=gpus, placement_s=2.0)
    with pytest.raises(TimeoutError, match=words):
        run(folder, "", {"worker": 3}, settings=settings)


def test_arguments_that_name_no_job(folder: Path) -> None:
    with pytest.raises(ValueError, match="no job store"):
        run(folder, "", {"worker": 1}, "{store_hosts}")


def test_a_program_that_cannot_start(folder: Path) -> None:
    """What an actor raises is raised here."""
    description = ClusterDescription({"worker": 1}, Program("p", runner=("/absent",)))
    output = TaskOutput(description.tasks, folder, io.StringIO(), io.StringIO())
    with pytest.raises(FileNotFoundError, match="/absent"):
        ray_cluster.run_on_ray(description, output, ray_cluster.RaySettings())


def test_tasks_share_a_token_and_what_the_driver_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
    print(*[os.environ.get("FLOWSTONE_CLUSTER_" + each) for each in ("TOKEN", "SECRETS")], flush=True)
    """
    monkeypatch.delenv("FLOWSTONE_CLUSTER_TOKEN", raising=False)
    _, screen, own = run(folder, text, {"worker": 2})
    ((token, secrets),) = {tuple(line.split()[2:]) for line in screen}
    assert len(token) >= 32 and secrets == "None" and token not in own
    monkeypatch.setenv("FLOWSTONE_CLUSTER_SECRETS", "/there")
    _, screen, _ = run(folder, text, {"worker": 1})
    assert screen[0].split()[2:] == ["None", "/there"]
