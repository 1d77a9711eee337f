"""Steps of a cluster on the loopback: one parameter server and 1, 2 or 4 workers, each a process of its own.

A worker steps as fast as it can: it fetches a scalar that lies on the server (null), sums of 100 MB of
parameters (dense), or of 32 random rows of an embedding (sparse); or, with two workers, it trains a
perceptron in synchronous steps (two gradients averaged on the server). The figure is the median of all
workers' steps.
"""

import functools
import json
import os
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import threading

from tf1 import tf  # isort: skip
import numpy as np

from measuring import SECONDS, once, report

ROWS, COLUMNS, MEGABYTES = 200_000, 128, 100
KINDS = ("null", "dense", "sparse")
WORKERS = (1, 2, 4)
LIMIT_S = 60  # for a task to begin, or to measure a kind of step


def exchange_steps(worker):
    """What a worker runs, by kind."""
    with tf.device("/job:ps/task:0"):
        zeros = tf.zeros_initializer()
        scalar = tf.get_variable("scalar", [], initializer=zeros)
        dense = [
            tf.get_variable(f"dense{i}", [2500, 1000], initializer=zeros) for i in range(MEGABYTES // 10)
        ]
        embedding = tf.get_variable("embedding", [ROWS, COLUMNS], initializer=zeros)
        rows = tf.gather(embedding, tf.random_uniform([32], 0, ROWS, tf.int32))
    with tf.device(f"/job:worker/task:{worker}"):
        return {
            "null": scalar + 1.0,
            "dense": tf.add_n([each[0, 0] for each in dense]),
            "sparse": tf.reduce_sum(rows),
        }


def run_exchange(server, worker):
    """Runs kinds for a while each, as lines of the standard input name them."""
    steps = exchange_steps(worker)
    with tf.Session(server.target) as session:
        if worker == 0:
            session.run(tf.global_variables_initializer())
        print("ready", flush=True)
        for line in sys.stdin:
            step = functools.partial(session.run, steps[line.strip()])
            for _ in range(2 if line.strip() == "dense" else 5):
                step()
            times = [once(step) for _ in range(3)]
            while sum(times) < SECONDS:
                times.append(once(step))
            print(json.dumps(times), flush=True)


def run_synchronous(server, worker, cluster):
    """Trains in synchronous steps for a while."""
    device = f"/job:worker/task:{worker}"
    with tf.device(
        tf.train.replica_device_setter(worker_device=device, cluster=tf.train.ClusterSpec(cluster))
    ):
        x, y = tf.placeholder(tf.float32, [64, 784]), tf.placeholder(tf.int32, [64])
        hidden = x
        for i, (inputs, outputs) in enumerate(((784, 256), (256, 128), (128, 10))):
            weights = tf.get_variable(f"w{i}", [inputs, outputs])
            hidden = tf.matmul(hidden if i == 0 else tf.nn.relu(hidden), weights)
            hidden += tf.get_variable(f"b{i}", [outputs], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=hidden))
        step = tf.train.get_or_create_global_step()
        count = len(cluster["worker"])
        optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.01), count, count)
        train = optimizer.minimize(loss, global_step=step)
        hook = optimizer.make_session_run_hook(worker == 0)
    numbers = np.random.RandomState(worker)
    feed = {x: numbers.rand(64, 784).astype(np.float32), y: numbers.randint(10, size=64).astype(np.int32)}
    settings = {"save_checkpoint_secs": None, "save_summaries_steps": None, "log_step_count_steps": None}
    session = tf.train.MonitoredTrainingSession(
        master=server.target, is_chief=worker == 0, hooks=[hook], **settings
    )
    # A worker never rests, not even to be told what to do: the other's steps need its gradients. Since those
    # that come too late are dropped, agreeing on a number of steps would leave one waiting for ever.
    asked = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), asked.set()), daemon=True).start()
    for _ in range(20):
        session.run([train, loss], feed)
    print("ready", flush=True)
    while not asked.is_set():
        session.run([train, loss], feed)
    times = [once(lambda: session.run([train, loss], feed)) for _ in range(3)]
    while sum(times) < SECONDS:
        times.append(once(lambda: session.run([train, loss], feed)))
    print(json.dumps(times), flush=True)
    while True:
        session.run([train, loss], feed)


def task(job, index, cluster, method):
    """One process of the cluster."""
    server = tf.train.Server(cluster, job_name=job, task_index=index)
    if job == "ps":
        server.join()
    elif method == "exchange":
        run_exchange(server, index)
    else:
        run_synchronous(server, index, cluster)


def free_port():
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        return listening.getsockname()[1]


class Cluster:
    """Processes on free ports of the loopback, which end with the context. RuntimeError with what a task
    wrote if it ends or does not answer within `LIMIT_S`."""

    def __init__(self, workers, method):
        ports = [free_port() for _ in range(workers + 1)]
        cluster = {"ps": [f"localhost:{ports[0]}"], "worker": [f"localhost:{port}" for port in ports[1:]]}
        tasks = [("ps", 0), *[("worker", i) for i in range(workers)]]
        self.processes, self.errors = [], []
        for job, i in tasks:
            self.start(job, i, json.dumps(cluster), method)

    def start(self, job, index, cluster, method):
        command = [sys.executable, __file__, job, str(index), cluster, method]
        self.errors.append(tempfile.TemporaryFile("w+"))  # noqa: SIM115
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.errors[-1]}
        self.processes.append(subprocess.Popen(command, text=True, env=dict(os.environ), **pipes))

    def __enter__(self):
        try:
            for i in range(1, len(self.processes)):
                self.line(i)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()

    def line(self, i):
        """The next line of a process."""
        answer = self.processes[i].stdout
        line = answer.readline() if select.select([answer], [], [], LIMIT_S)[0] else ""
        if not line:
            self.errors[i].seek(0)
            said = self.errors[i].read()[-500:]
            raise RuntimeError(f"worker {i - 1} did not answer within {LIMIT_S} s, or ended: {said}")
        return line

    def times(self, line):
        """The seconds of each worker's steps."""
        for worker in self.processes[1:]:
            worker.stdin.write(line + "\n")
            worker.stdin.flush()
        return [json.loads(self.line(i)) for i in range(1, len(self.processes))]


def median_ms(times):
    """Of all workers' steps."""
    return statistics.median([each for worker in times for each in worker]) * 1e3


def main():
    """Measures each kind of step with each number of workers."""
    for workers in WORKERS:
        with Cluster(workers, "exchange") as cluster:
            for kind in KINDS:
                times = cluster.times(kind)
                report(f"{kind} step, {workers} workers", median_ms(times), "ms")
                if kind == "dense":
                    rate = sum(MEGABYTES * len(worker) / sum(worker) for worker in times)
                    report(
                        f"dense exchange of {workers} workers, ms for 100 MB", 1e3 * MEGABYTES / rate, "ms"
                    )
    with Cluster(2, "synchronous") as cluster:
        report("synchronous step, 2 workers", median_ms(cluster.times("go")), "ms")


if len(sys.argv) > 1:
    task(sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4])
else:
    main()
