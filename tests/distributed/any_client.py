"""Runs `programs/any_client.py`, as any client, on servers of any TensorFlow, and compares the results.

    python tests/distributed/any_client.py $TF115_PYTHON $TF_PYTHON

Each of these drives flowstone's servers, and flowstone each of theirs. ``tests/golden/distributed`` has what
TensorFlow's clients get of their own servers (``make_any_client_goldens.py``).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import clusters

PROGRAM = Path(__file__).parent / "programs" / "any_client.py"
GOLDEN = Path(__file__).parents[1] / "golden" / "distributed" / "any_client.json"
OURS = [sys.executable, "-m", "flowstone", "run"]
SERVER = """
import json, sys
try:
    import tensorflow.compat.v1 as tf
except ImportError:
    import tensorflow as tf
server = tf.train.Server(json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
print(server.target, flush=True)
server.join()
"""
_LIMIT_S = 240
_ENVIRONMENT = os.environ | {
    "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TF_USE_LEGACY_KERAS": "1",
}


@contextmanager
def servers(python: str) -> Iterator[str]:
    """Servers of that Python's TensorFlow within the context; the target of worker 0."""
    cluster = clusters.cluster_of(ps=1, worker=2)
    with ExitStack() as stack:
        for job, task in (("ps", 0), ("worker", 1), ("worker", 0)):
            command = [python, "-c", SERVER, json.dumps(cluster), job, str(task)]
            server = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=_ENVIRONMENT
            )
            stack.enter_context(server)
            stack.callback(server.kill)
            assert server.stdout is not None
            target = server.stdout.readline().strip()
        yield target


def results(command: list[str], target: str) -> dict[str, Any]:
    """What the client ``command PROGRAM target`` got; RuntimeError with what it said if it failed."""
    ran = subprocess.run(
        [*command, str(PROGRAM), target],
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
        env=_ENVIRONMENT,
    )
    if ran.returncode:
        raise RuntimeError(f"{command[0]} at {target}: {ran.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def difference(first: Any, second: Any) -> str:
    """Where two results differ, numbers by more than 1e-5 of their size; empty if nowhere."""
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        pairs = [(first[name], second[name]) for name in first]
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        pairs = list(zip(first, second))
    elif isinstance(first, float) and isinstance(second, float):
        return "" if abs(first - second) <= 1e-5 * max(1.0, abs(second)) else f"{first} and {second}"
    else:
        return "" if first == second else f"{first} and {second}"
    return "; ".join(filter(None, (difference(*pair) for pair in pairs)))


def compare(who: str, found: dict[str, Any]) -> None:
    """Prints what differs from TensorFlow's own."""
    expected = json.loads(GOLDEN.read_text(encoding="utf-8"))
    print(f"{who}: {difference(found, expected) or 'as TensorFlow on its own servers'}", flush=True)


def main(pythons: list[str]) -> None:
    """Compares each of these Pythons' TensorFlow with flowstone, both ways."""
    with clusters.running(ps=1, worker=2) as cluster:
        compare("flowstone on its servers", results(OURS, cluster.target()))
        for python in pythons:
            compare(f"{python} on flowstone's servers", results([python], cluster.target()))
    for python in pythons:
        with servers(python) as target:
            compare(f"flowstone on the servers of {python}", results(OURS, target))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main(sys.argv[1:])
