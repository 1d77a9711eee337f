"""A deterministic simulation of masters and workers: the state machines of `flowstone.distributed` under
messages that are lost, delayed, duplicated and reordered.

A worker's part of a step sends a value to some other workers and needs one from others. A connection that
breaks loses what is on its way, in both directions, and both ends notice. Steps follow each other; each
commits once on every worker or fails. `Network(seed).run()` checks what must hold, whatever the order of
events.
"""

from __future__ import annotations

import contextlib
import random
import sys
from collections import Counter
from typing import Any

from flowstone.distributed.masters import master_step
from flowstone.distributed.masters.master_step import MasterStep
from flowstone.distributed.task_names import task_name, task_of
from flowstone.distributed.workers.step_rendezvous import StepRendezvous, incarnation_of
from flowstone.distributed.workers.worker_steps import WorkerSteps
from flowstone.framework import errors

MASTER = "master"


def device(task: str) -> str:
    return f"{task}/device:CPU:0"


class Others:
    """The other tasks as a step of one worker sees them: a value is pushed, unless this link is closed to
    pushes."""

    def __init__(self, worker: Worker, step: int) -> None:
        self.worker, self.step = worker, step

    def push(self, task: str, key: str, value: Any) -> bool:
        network = self.worker.network
        if (self.worker.task, task) in network.pulls:
            return False
        network.send(self.worker.task, task, "push", self.step, key, value)
        return True

    def expect(self, task: str, key: str, meeting: StepRendezvous) -> None:
        network = self.worker.network
        if (task, self.worker.task) in network.pulls:
            network.send(self.worker.task, task, "ask", self.step, key)
        else:
            network.flying.append((self.worker.task, self.worker.task, "late", (self.step, key)))


class Worker:
    """One worker; its part of a step is in `Network.edges`."""

    def __init__(self, network: Network, task: str) -> None:
        self.network, self.task = network, task
        self.steps: WorkerSteps[StepRendezvous] = WorkerSteps(
            lambda step: StepRendezvous(task, network.incarnations, Others(self, step))
        )

    # ---- messages

    def run(self, step: int) -> None:
        try:
            meeting = self.steps.begun(step)
        except errors.AbortedError as error:
            if "begun already" not in error.message:
                self.network.send(self.task, MASTER, "failed", step, error)
            return
        Part(self, step, meeting).begin()

    def push(self, step: int, key: str, value: Any) -> None:
        with contextlib.suppress(errors.AbortedError):
            self.steps.asked(step).arrived(key, value)

    def ask(self, step: int, key: str, asker: str) -> None:
        assert incarnation_of(key)[0] == device(self.task)
        try:
            meeting = self.steps.asked(step)
        except errors.AbortedError as error:
            self.network.send(self.task, asker, "answer", step, key, None, error)
            return

        def done(values: Any, error: BaseException | None = None) -> None:
            value = None if values is None else values[0]
            self.network.send(self.task, asker, "answer", step, key, value, error)

        meeting.answer(key, done)

    def late(self, step: int, key: str) -> None:
        """A while has passed since the value of this key was expected."""
        if step in self.steps and self.steps.asked(step).is_expected(key):
            self.network.send(self.task, task_of(key.partition(";")[0]), "ask", step, key)

    def answer(self, step: int, key: str, value: Any, error: BaseException | None) -> None:
        try:
            meeting = self.steps.asked(step)
        except errors.AbortedError:
            return
        if error is None:
            meeting.arrived(key, value)
        else:
            meeting.failed(key, error)

    def clean(self, step: int) -> None:
        meeting = self.steps.cleaned(step)
        if meeting is not None:
            meeting.cancel(errors.AbortedError(None, None, "over"))

    def abort(self, step: int, error: BaseException) -> None:
        meeting = self.steps.failed(step, error)
        if meeting is not None:
            meeting.cancel(error)

    def lost(self, task: str) -> None:
        for _, meeting in self.steps.all():
            meeting.lost(task, errors.UnavailableError(None, None, f"{task} is lost"))


class Part:
    """A worker's part of one step: it is done when all that it needs has come."""

    def __init__(self, worker: Worker, step: int, meeting: StepRendezvous) -> None:
        self.worker, self.step, self.meeting = worker, step, meeting
        self.sources = [a for a, b in worker.network.edges if b == worker.task]
        self.open = len(self.sources) + 1  # and the sends
        self.error: BaseException | None = None

    def begin(self) -> None:
        network, task = self.worker.network, self.worker.task
        if network.choose.random() < network.failures:
            self.error = errors.InvalidArgumentError(None, None, f"{task} fails")
            self.worker.abort(self.step, self.error)
            self.open = 1
        else:
            for a, b in network.edges:
                if a == task:
                    self.meeting.send((("x", device(a), device(b)), ()), (self.step, a))
            for source in self.sources:
                self.meeting.receive((("x", device(source), device(task)), ()), self.received)
        self.count()

    def received(self, values: Any, error: BaseException | None = None) -> None:
        if error is not None:
            if self.error is None:
                self.error = error
                self.worker.abort(self.step, error)
        else:
            self.worker.network.taken[self.step, values[0][1], self.worker.task] += 1
            assert values[0][0] == self.step, "a value of another step"
        self.count()

    def count(self) -> None:
        self.open -= 1
        if not self.open:
            self.end()

    def end(self) -> None:
        network, task = self.worker.network, self.worker.task
        self.worker.steps.ended(self.step)
        if self.error is None:
            network.committed[self.step, task] += 1
            network.send(task, MASTER, "ended", self.step)
        else:
            network.send(task, MASTER, "failed", self.step, self.error)


class Network:
    """A master and `workers` workers, whose messages arrive in any order, some twice, some not at all."""

    def __init__(self, seed: int, workers: int = 100, steps: int = 3) -> None:
        self.choose = random.Random(seed)
        tasks = [task_name("worker", i) for i in range(workers)]
        self.incarnations = {device(task): i + 1 for i, task in enumerate(tasks)}
        self.workers = {task: Worker(self, task) for task in tasks}
        self.failures = self.choose.choice((0.0, 0.0, 0.002))
        self.losses = self.choose.choice((0.0, 0.0005, 0.003))
        self.duplicates = self.choose.choice((0.0, 0.02))
        count = self.choose.randint(workers, 3 * workers)
        self.edges = sorted({(a, b) for a, b in (self.choose.sample(tasks, 2) for _ in range(count))})
        self.pulls = {edge for edge in self.edges if self.choose.random() < 0.2}
        self.flying: list[tuple[str, str, str, tuple[Any, ...]]] = []
        self.taken: Counter[Any] = Counter()
        self.committed: Counter[Any] = Counter()
        self.machines: dict[int, MasterStep] = {}
        self.finished: dict[int, BaseException | None] = {}
        self.last = steps

    # ---- the network

    def send(self, source: str, target: str, kind: str, *arguments: Any) -> None:
        self.flying.append((source, target, kind, arguments))
        if self.choose.random() < self.duplicates and kind not in ("ended", "failed"):
            self.flying.append((source, target, kind, arguments))

    def deliver(self) -> None:
        i = self.choose.randrange(len(self.flying))
        self.flying[i], self.flying[-1] = self.flying[-1], self.flying[i]
        source, target, kind, arguments = self.flying.pop()
        if source != target and self.choose.random() < self.losses:
            self.break_connection(source, target)
            return
        if target == MASTER:
            self.told(kind, source, *arguments)
        elif kind == "ask":
            self.workers[target].ask(*arguments, source)
        else:
            getattr(self.workers[target], kind)(*arguments)

    def break_connection(self, a: str, b: str) -> None:
        """What flies between two is lost, and both notice."""
        self.flying = [each for each in self.flying if {each[0], each[1]} != {a, b}]
        for one, other in ((a, b), (b, a)):
            if one == MASTER:
                error = errors.UnavailableError(None, None, f"{other} is lost")
                for step, machine in list(self.machines.items()):
                    if step not in self.finished:
                        self.follow(step, machine.failed(other, error))
            elif other == MASTER:
                for step, _ in self.workers[one].steps.all():  # what the master's going would do, and its own
                    self.workers[one].abort(step, errors.UnavailableError(None, None, "the master is lost"))
                    self.workers[one].clean(step)
            else:
                self.workers[one].lost(other)

    # ---- the master

    def told(self, kind: str, worker: str, step: int, error: BaseException | None = None) -> None:
        machine = self.machines[step]
        self.follow(step, machine.ended(worker, None) if error is None else machine.failed(worker, error))

    def follow(self, step: int, instructions: list[Any]) -> None:
        for each in instructions:
            if isinstance(each, master_step.RunPart):
                self.send(MASTER, each.task, "run", step)
            elif isinstance(each, master_step.AbortPart):
                self.send(MASTER, each.task, "abort", step, each.error)
            elif isinstance(each, master_step.CleanUp):
                self.send(MASTER, each.task, "clean", step)
            else:
                assert step not in self.finished, "a step ends once"
                self.finished[step] = each.error

    def run(self) -> None:
        """Runs all steps until nothing flies any more, and checks what must hold."""
        for step in range(1, self.last + 1):
            machine = self.machines[step] = MasterStep(self.workers)
            self.follow(step, machine.begin())
            rounds = 0
            while self.flying and (step not in self.finished or self.choose.random() < 0.995):
                self.deliver()
                rounds += 1
                assert rounds < 10**6, "the step does not end"
            assert step in self.finished, "the step hangs"
            machine.validate()
        while self.flying:
            self.deliver()
        self.check()

    def check(self) -> None:
        """A step commits on all workers once, or is a failure; each value is taken once at most; nothing is
        left."""
        for step, error in self.finished.items():
            commits = [self.committed[step, task] for task in self.workers]
            assert max(commits) <= 1
            assert error is not None or min(commits) == 1, "a step that ended well has committed everywhere"
        assert max(self.taken.values(), default=0) <= 1
        for worker in self.workers.values():
            worker.steps.validate()
            if not self.losses:  # else a lost CleanUp leaves a step to the end of its session
                assert len(worker.steps) == 0, "steps are left"


def main(seeds: int, workers: int) -> None:
    """Runs so many seeds, and prints how the steps ended."""
    outcomes: Counter[str] = Counter()
    for seed in range(seeds):
        network = Network(seed, workers)
        network.run()
        outcomes.update(type(error).__name__ if error else "committed" for error in network.finished.values())
    print(f"{seeds} seeds, {workers} workers, {sum(outcomes.values())} steps:")
    for name, count in outcomes.most_common():
        print(f"  {name}: {count}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100)
