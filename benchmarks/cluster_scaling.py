"""What a step costs as workers grow: measured with processes on this machine, simulated beyond.

python benchmarks/cluster_scaling.py [--processes 1,2,4,8,16] [--workers 1,10,100,1000] [--seconds 1]
                                     [--markdown FILE]

The step feeds a scalar and fetches its sum with a variable of every worker, all in one Run. Measured: each
worker is a process of its own, which all share this machine's cores. Simulated: the master with its state
machine, its bookkeeping and the bytes of its messages, written and read as for direct connections, but
without a network and with workers that answer at once. So the figure is what the master's thread has to do,
which bounds the steps a second, however fast workers and network are. Planning is what the first step costs
the master more.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

import flowstone as tf
from compare import machine, markdown_table
from flowstone.distributed.cluster_devices import ClusterDevice
from flowstone.distributed.links.worker_links import RemoteLink
from flowstone.distributed.masters.master import MasterSession
from flowstone.distributed.task_names import task_name
from flowstone.distributed.wire.tensor_codec import pack, unpack
from flowstone.distributed.workers.part_graphs import PartGraph
from flowstone.framework.graphs.graph_def import graph_def

HOME = task_name("master", 0)


class Graph(NamedTuple):
    """The step's graph: what is fed, what is fetched, what initialises the variables."""

    graph: Any
    fed: Any
    sums: list[Any]
    initializer: Any


def graph_of(workers: int) -> Graph:
    """A variable and a sum on each worker."""
    with tf.Graph().as_default() as graph:
        with tf.device(f"{HOME}/device:CPU:0"):
            fed = tf.placeholder(tf.float32, [], name="fed")
        sums = []
        for i in range(workers):
            with tf.device(f"{task_name('worker', i)}/device:CPU:0"):
                variable = tf.get_variable(f"v{i}", [], initializer=tf.zeros_initializer())
                sums.append(tf.add(variable, fed, name=f"sum{i}"))
        return Graph(graph, fed, sums, tf.global_variables_initializer())


def median_seconds(step: Callable[[], object], seconds: float) -> float:
    """Median of a step's times over a while."""
    for _ in range(5):
        step()
    times: list[float] = []
    while len(times) < 5 or sum(times) < seconds:
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


# ---- measured


def free_addresses(count: int) -> list[str]:
    """Addresses of the loopback that nobody uses."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    found = [f"localhost:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return found


def measured(workers: int, seconds: float) -> float:
    """Seconds of a step with so many worker processes; the master is this process."""
    home, *addresses = free_addresses(workers + 1)
    cluster = {"master": [home], "worker": addresses}
    text = ";".join(f"{job}={','.join(each)}" for job, each in cluster.items())
    command = [sys.executable, "-m", "flowstone", "server", "--cluster", text, "--job", "worker", "--task"]
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
    processes = [subprocess.Popen([*command, str(i)], **quiet) for i in range(workers)]  # type: ignore[call-overload]
    try:
        server = tf.train.Server(cluster, "master", 0)
        found = graph_of(workers)
        with tf.Session(server.target, graph=found.graph) as session:
            session.run(found.initializer)
            return median_seconds(lambda: session.run(found.sums, {found.fed: 1.0}), seconds)
    finally:
        for process in processes:
            process.kill()
            process.wait()


# ---- simulated


class Wire:
    """In place of a `Neighbour`: writes each request as a direct connection does, and answers with bytes."""

    def __init__(self, answers: list[Callable[[], None]]) -> None:
        self.task = ""
        self._answers = answers
        self._answer = b"".join(bytes(each) for each in pack([torch.tensor(1.0)]))

    def direct(self) -> Wire:
        """The connection: this."""
        return self

    def is_direct(self) -> bool:
        """Whether there is one."""
        return True

    def run(
        self, handle: str, graph: str, step: int, feeds: Sequence[Any], done: Callable[..., None]
    ) -> None:
        """Writes the request; it is answered once all have been written."""
        b"".join([f"{handle} {graph}".encode(), *(bytes(each) for each in pack(feeds))])
        self._answers.append(lambda: done(unpack(bytearray(self._answer)), None))

    def tell(self, kind: int, step: int, text: str = "") -> None:
        """Writes nothing: a frame's header."""


class Link(RemoteLink):
    """A worker that takes every part."""

    def register(self, handle: str, part: PartGraph) -> str:
        """Writes the part as its request would."""
        part.graph_def.SerializeToString()
        return part.task


class Home:
    """The master's own worker, which has no part: it answers for all others, whose requests are written."""

    is_local = True

    def __init__(self, answers: list[Callable[[], None]]) -> None:
        self._answers = answers

    def register(self, handle: str, part: PartGraph) -> str:
        """Takes a part."""
        return part.task

    def run(
        self, handle: str, graph: str, step: int, part: PartGraph, feeds: Any, done: Any, *_: Any
    ) -> None:
        """Ends the part here, then those of all others."""
        done([value for value, _ in feeds], None)
        answers = self._answers[:]
        self._answers.clear()
        for answer in answers:
            answer()

    def clean_up(self, step: int) -> None:
        """Nothing is kept."""


def simulated(workers: int, seconds: float) -> tuple[float, float]:
    """The master's seconds for a step with so many workers, and for its plan."""
    answers: list[Callable[[], None]] = []
    tasks = [task_name("worker", i) for i in range(workers)]
    links: dict[str, Any] = {task: Link(Wire(answers)) for task in tasks}  # type: ignore[arg-type]
    links[HOME] = Home(answers)
    devices = [
        ClusterDevice(f"{task}/device:CPU:0", "CPU", None, i + 1) for i, task in enumerate((HOME, *tasks))
    ]
    session = MasterSession("0123456789abcdef", tf.ConfigProto(), devices, links, HOME)
    found = graph_of(workers)
    session.extend(graph_def(found.graph))
    fed = [(found.fed.name, torch.tensor(1.0))]
    fetches = [found.fed.name, *[each.name for each in found.sums]]

    def step() -> None:
        values = session.run(session.step(fed, fetches, [])[0])
        assert len(values) == workers + 1 and all(float(value) == 1.0 for value in values)

    begin = time.perf_counter()
    step()
    planning = time.perf_counter() - begin
    return median_seconds(step, seconds), planning


# ---- the table


def table(processes: Sequence[int], workers: Sequence[int], seconds: float) -> str:
    """Both as Markdown."""
    rows = [["workers", "kind", "step, ms", "µs a worker", "plan, ms"]]
    for count in processes:
        found = measured(count, seconds)
        rows.append([str(count), "measured", f"{found * 1e3:.2f}", f"{found / count * 1e6:.0f}", ""])
    for count in workers:
        found, planning = simulated(count, seconds)
        each = f"{found / count * 1e6:.0f}"
        rows.append([f"{count:,}", "simulated master", f"{found * 1e3:.2f}", each, f"{planning * 1e3:.0f}"])
    return markdown_table(rows)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--processes", default="1,2,4,8,16", help="numbers of workers to measure, or nothing")
    parser.add_argument("--workers", default="1,10,100,1000", help="numbers of workers to simulate")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each row")
    parser.add_argument("--markdown", type=Path, help="also write the table there")
    arguments = parser.parse_args()
    processes, workers = (
        [int(each) for each in text.split(",") if each] for text in (arguments.processes, arguments.workers)
    )
    text = f"{machine()}\n\n{table(processes, workers, arguments.seconds)}\n"
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(text)


if __name__ == "__main__":
    main()
