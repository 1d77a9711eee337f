"""A program that ends while daemon threads run steps ends as it said: no signal, no word, no delay."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import forked

BEGINNING = """
import contextlib, sys, threading, time
import flowstone as tf
from flowstone.distributed.launchers.loopback_ports import hold_ports
x = tf.Variable(tf.ones([64, 64]))
y = tf.matmul(x, x)
session = tf.Session()
session.run(x.initializer)

def in_thread(function):
    thread = threading.Thread(target=function, daemon=True)
    thread.start()

def steps():
    while True:
        session.run([y, y + 1])

def free_ports(count):
    with contextlib.ExitStack() as stack:
        return [stack.enter_context(each).port for each in hold_ports(count)]
"""

PROGRAMS = {
    "threads that run steps": """
        for _ in range(3):
            in_thread(steps)
        time.sleep(0.05)
        sys.exit(3)
        """,
    "queue runners": """
        queue = tf.FIFOQueue(50, tf.float32, [[64, 64]])
        item = tf.reverse(tf.random_normal([64, 64]), [0])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(item)] * 2))
        element = queue.dequeue()
        tf.train.start_queue_runners(session)
        for _ in range(20):
            session.run(element)
        sys.exit(3)
        """,
    "a thread that waits for an element": """
        queue = tf.FIFOQueue(50, tf.float32, [[]])
        in_thread(lambda: session.run(queue.dequeue()))
        time.sleep(0.1)
        sys.exit(3)
        """,
    "a dataset's threads": """
        dataset = tf.data.Dataset.range(10**9).map(lambda i: tf.matmul(x, x) + tf.to_float(i), 4)
        element = dataset.prefetch(100).make_initializable_iterator()
        session.run(element.initializer)
        session.run(element.get_next())
        sys.exit(3)
        """,
    "a thread that writes to the log": """
        import logging
        logging.getLogger().addHandler(logging.FileHandler("/dev/null"))
        def logs():
            while True:
                tf.logging.error("lines")
                session.run(y)
        in_thread(logs)
        sys.stderr = open("/dev/null", "w")
        time.sleep(0.05)
        sys.exit(3)
        """,
    "a server whose master's threads run steps": """
        server = tf.train.Server.create_local_server()
        session = tf.Session(server.target)
        session.run(x.initializer)
        for _ in range(3):
            in_thread(steps)
        time.sleep(0.2)
        sys.exit(3)
        """,
    "a cluster's step that waits for an element": """
        spec = tf.train.ClusterSpec({"worker": [f"localhost:{port}" for port in free_ports(2)]})
        servers = [tf.train.Server(spec, "worker", i) for i in range(2)]
        with tf.device("/job:worker/task:1"):
            element = tf.FIFOQueue(50, tf.float32, [[]]).dequeue()
        with tf.device("/job:worker/task:0"):
            element = tf.negative(element)
        in_thread(lambda: tf.Session(servers[0].target, graph=element.graph).run(element))
        time.sleep(0.5)
        sys.exit(3)
        """,
}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_the_end_of_a_program_with_threads(kind: str) -> None:
    program = BEGINNING + textwrap.dedent(PROGRAMS[kind])
    for _ in range(3):
        result = forked.run(code=program)
        assert (result.returncode, result.stderr) == (3, ""), result.stderr[-2000:]


LATER = """
def later():
    threading.main_thread().join()
    time.sleep(0.1)
    with session.graph.as_default():
        crop = tf.image.crop_and_resize(tf.ones([1, 9, 9, 1]), [[0.0, 0.0, 1.0, 1.0]], [0], [5, 5])
        print([float(session.run(tf.tanh(y) + tf.reduce_mean(crop) * i)[0, 0]) for i in range(3)])

threading.Thread(target=later).start()
"""
CLUSTER = """
spec = tf.train.ClusterSpec({"worker": [f"localhost:{port}" for port in free_ports(2)]})
servers = [tf.train.Server(spec, "worker", i) for i in range(2)]
session = tf.Session(servers[0].target)
with tf.device("/job:worker/task:1"):
    x = tf.Variable(tf.ones([64, 64]))
y = tf.matmul(x, x)
session.run(x.initializer)
"""


@pytest.mark.parametrize("cluster", ["", CLUSTER])
def test_steps_after_the_main_thread_has_ended(cluster: str) -> None:
    result = forked.run(code=BEGINNING + cluster + LATER)
    assert (result.stdout, result.stderr) == ("[1.0, 2.0, 3.0]\n", "")


WAITED = """
import atexit, threading, time
began = []
atexit.register(lambda: print(time.perf_counter() - began[0]))
import flowstone as tf

def computes():
    x = tf.random_normal([700, 700], seed=1)
    y = tf.while_loop(lambda x: True, lambda x: tf.svd(x, compute_uv=False)[0] * x, [x])
    tf.Session().run(y)

def start(function):
    threading.Thread(target=function, daemon=True).start()

{threads}
time.sleep(0.5)
atexit.register(lambda: began.append(time.perf_counter()))
"""


@pytest.mark.parametrize(
    ("threads", "most_s"),
    [
        ("", 1.0),
        ("start(lambda: time.sleep(60))", 5.0),
        ("start(computes)", 20.0),  # the kernel that computes is waited for, the loop is not
    ],
)
def test_how_long_the_exit_takes(threads: str, most_s: float) -> None:
    program = [sys.executable, "-c", WAITED.format(threads=threads)]
    result = subprocess.run(program, capture_output=True, text=True, timeout=120, check=True)
    assert float(result.stdout) < most_s
    assert result.stderr == ""
