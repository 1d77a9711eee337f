"""Where the parallel examples run: on devices of this process, or with ``--cluster`` on tasks of a cluster.

    flowstone cluster up --workers 3 --ps 1 examples/synchronous_towers.py --cluster

Each task runs the same program and finds in ``TF_CONFIG`` which one it is. Parameter servers serve. Among the
workers there are two ways:

- *in-graph*: worker 0 leads. Its client builds the graph over all workers' devices and drives it; the others
  serve until it is done (`ClusterTask.leading`);
- *between-graph*: each worker builds a graph of its own, and they meet in the variables; worker 0 waits for
  the reports of the others before it goes (`ClusterTask.report`, `wait_for_reports`).

The ends are told by queues, which live on the task that waits: whoever shares a queue's name and device
shares the queue.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import flowstone as tf


class Places(NamedTuple):
    """Where a graph is spread: what its session connects to, the devices that compute, and that of the
    variables."""

    target: str
    config: Any  # ConfigProto
    devices: list[str]
    variables: str

    def session(self) -> Any:
        """A session that has these devices."""
        return tf.Session(self.target, config=self.config)


def on_cpus(count: int) -> Places:
    """The devices ``/cpu:0`` to ``/cpu:count-1`` of this process; variables are on the first."""
    devices = [f"/cpu:{i}" for i in range(count)]
    return Places("", tf.ConfigProto(device_count={"CPU": count}), devices, devices[0])


class ClusterTask:
    """This process's task, with its server; a parameter server serves in here until it is ended.

    SystemExit, with what to do, if ``TF_CONFIG`` names no cluster with workers.
    """

    def __init__(self) -> None:
        place = json.loads(os.environ.get("TF_CONFIG", "{}"))
        cluster = place.get("cluster", {})
        if not cluster.get("worker"):
            sys.exit("--cluster: start this program with `flowstone cluster up --workers N --ps 1 PROGRAM …`")
        self.job, self.index = place["task"]["type"], int(place["task"]["index"])
        self.workers = [f"/job:worker/task:{i}" for i in range(len(cluster["worker"]))]
        self.variables = "/job:ps/task:0" if cluster.get("ps") else self.workers[0]
        server = tf.train.Server(cluster, self.job, self.index)
        if self.job == "ps":
            server.join()
        self.target = server.target

    @property
    def own(self) -> str:
        """The device of this worker."""
        return self.workers[self.index]

    # ---- in-graph

    @contextlib.contextmanager
    def leading(self) -> Iterator[Places]:
        """In worker 0, gives the places of the whole cluster; any other task serves here until that context
        has ended, and exits."""
        if self.index:
            self._wait(self.index, 1)
            sys.exit()
        devices = [f"{worker}/cpu:0" for worker in self.workers]
        yield Places(self.target, tf.ConfigProto(), devices, f"{self.variables}/cpu:0")
        for other in range(1, len(self.workers)):
            self._tell(other)

    # ---- between-graph

    def places(self) -> Places:
        """Those of a graph of this worker alone: it neither waits for the other workers nor fails with
        them."""
        config = tf.ConfigProto(device_filters=[self.variables, self.own])
        return Places(self.target, config, [f"{self.own}/cpu:0"], f"{self.variables}/cpu:0")

    def report(self) -> None:
        """Tells worker 0 that this one is done."""
        self._tell(0)

    def wait_for_reports(self) -> None:
        """Waits until all other workers have reported."""
        self._wait(0, len(self.workers) - 1)

    # ---- who has ended

    def _tell(self, worker: int) -> None:
        with tf.Graph().as_default():
            tell = _ends(self.workers[worker]).enqueue(1)
            config = tf.ConfigProto(device_filters=[self.own, self.workers[worker]])
            with tf.Session(self.target, config=config) as session:
                session.run(tell)

    def _wait(self, worker: int, count: int) -> None:
        with tf.Graph().as_default():
            wait = _ends(self.workers[worker]).dequeue()
            config = tf.ConfigProto(device_filters=[self.workers[worker]])
            with tf.Session(self.target, config=config) as session:
                for _ in range(count):
                    session.run(wait)


def _ends(device: str) -> Any:
    """The queue on this device that has an element for each task that says it is done."""
    with tf.device(device):
        return tf.FIFOQueue(1000, tf.int32, [[]], shared_name="ends")
