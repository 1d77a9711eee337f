"""Trains `programs/replica.py` while tasks are killed with SIGKILL at random instants and started again.

    PYTHONPATH=tests/processes python tests/distributed/killed_tasks.py 200

A training run has a parameter server, a chief and a worker, and loses some tasks; it must end with the loss
of an undisturbed run, and never begin again before the last checkpoint that was committed.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import clusters
from forked import Process

PROGRAM = Path(__file__).parent / "programs" / "replica.py"
TASKS = [("ps", 0), ("worker", 0), ("worker", 1)]
_RUN_S = 120.0


class Training:
    """One training run of `steps` steps, whose tasks may be killed."""

    def __init__(self, folder: str, steps: int, pause: float = 0.004, method: str = "async") -> None:
        self.cluster = clusters.cluster_of(ps=1, worker=2)
        self.folder, self.steps, self.pause, self.method = folder, steps, pause, method
        self.lines: list[str] = []
        self.processes = {task: self.start(*task) for task in TASKS}

    def start(self, job: str, task: int) -> Process:
        """Starts a task; its lines are kept."""
        hosts = [f"--{name}_hosts={','.join(addresses)}" for name, addresses in self.cluster.items()]
        arguments = [f"--job_name={job}", f"--task_index={task}", f"--train_dir={self.folder}"]
        arguments += [f"--steps={self.steps}", f"--pause={self.pause}", f"--method={self.method}"]
        process = Process(["run", str(PROGRAM), *hosts, *arguments], joins=True)
        threading.Thread(target=self._read, args=(process, f"{job}/{task}"), daemon=True).start()
        return process

    def _read(self, process: Process, name: str) -> None:
        for line in process.stdout:
            self.lines.append(f"{name} | {line.rstrip()}")

    def kill(self, job: str, task: int) -> None:
        """Kills a task, and starts it again."""
        process = self.processes[job, task]
        process.kill()
        process.wait()
        self.processes[job, task] = self.start(job, task)

    def is_over(self) -> bool:
        """Whether both workers have ended; of synchronous ones, whether both have trained and the chief has
        saved (it then waits two minutes for its thread that collects gradients, as in TensorFlow)."""
        if self.method == "sync":
            has_trained = sum(": loss" in line for line in list(self.lines)) >= 2
            return has_trained and self.saved_step() >= self.steps
        return all(self.processes[task].poll() is not None for task in TASKS[1:])

    def saved_step(self) -> int:
        """The step of the last checkpoint that is committed; 0 without one."""
        try:
            text = Path(self.folder, "checkpoint").read_text(encoding="utf-8")
        except OSError:
            return 0
        found = re.search(r'^model_checkpoint_path: ".*model.ckpt-(\d+)"', text, re.MULTILINE)
        return int(found[1]) if found else 0

    def end(self) -> None:
        """Kills what is left."""
        for process in self.processes.values():
            process.kill()
            process.wait()

    def check(self, saved: list[int]) -> None:
        """AssertionError unless the workers ended well with the loss of an undisturbed run, and no checkpoint
        was lost (`saved`: their steps as they were seen)."""
        text = "\n".join(self.lines)
        if self.method != "sync":
            assert [self.processes[task].returncode for task in TASKS[1:]] == [0, 0], text
        assert saved == sorted(saved), f"a checkpoint was lost: {saved}"
        assert self.saved_step() >= self.steps, text
        losses = [float(found) for found in re.findall(r"loss (\S+) at step", text)]
        assert losses and max(losses) < 1e-3, text


def run(kills: int, seed: int, folder: str, steps: int = 2500, method: str = "async") -> Counter[str]:
    """Trains once, and kills so many tasks meanwhile; returns how often which."""
    choose, killed = random.Random(seed), Counter[str]()
    training = Training(folder, steps, method=method)
    saved, deadline = [0], time.monotonic() + _RUN_S + 15 * kills
    try:
        next_kill = time.monotonic() + choose.uniform(0.3, 2.0)
        while not training.is_over():
            assert time.monotonic() < deadline, "the training hangs:\n" + "\n".join(training.lines[-40:])
            saved.append(training.saved_step())
            near_the_end = saved[-1] > steps * 0.8
            if time.monotonic() > next_kill and sum(killed.values()) < kills and not near_the_end:
                job, task = choose.choice(TASKS)
                if training.processes[job, task].poll() is None:
                    killed[f"{job}/{task}"] += 1
                    training.kill(job, task)
                next_kill = time.monotonic() + choose.uniform(0.3, 2.0)
            time.sleep(0.05)
        training.check(saved)
    finally:
        training.end()
    return killed


def main(kills: int) -> None:
    """Trains until so many tasks have been killed, and prints what was seen."""
    killed, runs, begin = Counter[str](), 0, time.monotonic()
    while sum(killed.values()) < kills:
        with tempfile.TemporaryDirectory() as folder:
            killed += run(min(8, kills - sum(killed.values())), runs, folder)
        runs += 1
        print(f"{runs} training runs, {sum(killed.values())} tasks killed", flush=True)
    each = ", ".join(f"{name} {count}" for name, count in sorted(killed.items()))
    print(f"{each}; {time.monotonic() - begin:.0f} s; each run ended with the loss of an undisturbed one")


if __name__ == "__main__":
    main(int(sys.argv[1]))
