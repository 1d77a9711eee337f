"""The processes of `op_sweep.py`: what the sweep asks them, and what the scripts among the workloads answer.

A question and its answer are a line of JSON each. ``{"op": name, "way": i}`` prepares an op and runs it
twice; ``{"seconds": s}`` runs it for about that long and answers ``{"seconds": least}``. What goes wrong is
``{"fault": text}``.
"""

from __future__ import annotations

import json
import os
import queue
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any


def bounded_memory(gigabytes: float) -> Callable[[], None]:
    """What a process does before it starts, so that it cannot take more: allocations fail instead."""
    most = int(gigabytes * 1e9)
    return lambda: resource.setrlimit(resource.RLIMIT_DATA, (most, most))


class Worker:
    """A process that measures; one that ends or takes longer than `limit` seconds is started anew."""

    def __init__(self, command: list[str], environment: dict[str, str], limit: float, memory: float) -> None:
        self._command, self._environment = command, os.environ | environment
        self._limit, self._memory = limit, memory
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()

    def _start(self) -> subprocess.Popen[str]:
        process = self._process = subprocess.Popen(
            self._command,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            preexec_fn=bounded_memory(self._memory),
        )
        answers = self._answers = queue.SimpleQueue()

        def pass_on() -> None:
            for line in process.stdout or ():
                if line.startswith("{"):
                    answers.put(line)
            answers.put("")

        threading.Thread(target=pass_on, daemon=True).start()
        answers.get(timeout=max(120.0, self._limit))  # it says that it is there
        return process

    def ask(self, question: dict[str, Any]) -> None:
        """Sends a question."""
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer will say that it has ended

    def answer(self) -> dict[str, Any]:
        """The answer to the question, or what is wrong."""
        try:
            line = self._answers.get(timeout=self._limit)
        except queue.Empty:
            self.end()
            return {"fault": f"took longer than {self._limit:g} s"}
        if not line:
            self.end()
            return {"fault": "ended the process"}
        found: dict[str, Any] = json.loads(line)
        return found

    def end(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def least_seconds(run: Callable[[], object], seconds: float) -> float:
    """The least time of a run, of those that fit in so many seconds; of at least one."""
    least, end = float("inf"), time.perf_counter() + seconds
    while least == float("inf") or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - start)
    return least


def serve(prepared: Callable[[str, int], Callable[[], object]]) -> None:
    """Answers the questions of the standard input; `prepared` gives the function that runs an op."""
    print(json.dumps({"ready": True}), flush=True)
    run: Callable[[], object] | None = None
    for line in sys.stdin:
        question = json.loads(line)
        answer: dict[str, Any] = {}
        try:
            if "op" in question:
                run = None  # its memory goes first
                run = prepared(question["op"], question["way"])
                for _ in range(2):
                    run()
            elif run is not None:
                answer["seconds"] = least_seconds(run, question["seconds"])
        except Exception as error:
            answer = {"fault": f"{type(error).__name__}: {str(error)[:200]}"}
        print(json.dumps(answer), flush=True)
