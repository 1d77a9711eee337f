"""Sessions on servers explain what the cluster made of their steps, with messages and without."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.distributed import clusters

import flowstone as tf

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"


@pytest.fixture(scope="module")
def cluster() -> Iterator[clusters.Cluster]:
    with clusters.running(ps=1, worker=1) as found:
        yield found


@pytest.fixture(params=["own server", "messages"], autouse=True)
def connection(request: pytest.FixtureRequest) -> Iterator[None]:
    hidden = clusters.by_messages() if request.param == "messages" else contextlib.nullcontext()
    with tf.Graph().as_default(), hidden:
        yield


def program() -> tuple[Any, Any]:
    """A product on the parameter server, of which the worker makes a sum."""
    x = tf.placeholder(tf.float32, [None, 20], name="x")
    with tf.device("/job:ps/task:0"):
        w = tf.get_variable(f"w{id(x)}", [20, 5], initializer=tf.ones_initializer())
        y = tf.matmul(x, w, name="y")
    return x, tf.reduce_sum(y * 1.0, name="z")


def test_what_the_master_and_the_workers_did(cluster: clusters.Cluster) -> None:
    x, z = program()
    with tf.Session(cluster.target()) as session:
        text = session.explain(z, [x])
    assert re.search(rf"^  {PS} +\d+ +x +-$", text, re.MULTILINE)
    assert re.search(rf"^  {WORKER} +\d+ +- +z$", text, re.MULTILINE)
    assert re.search(rf"^  y:0 +float32\[\?,5\] +\? +{PS} +{WORKER}$", text, re.MULTILINE)
    assert re.search(rf"^  y +MatMul +{PS}/device:CPU:0$", text, re.MULTILINE)
    assert "apply_identities: mul: multiplies by 1" in text or "rewrites by the master\n" in text
    parts = text.split("\n# ")[1:]
    assert [part.splitlines()[0] for part in parts] == [PS, WORKER]
    assert "_Send" in parts[0] and "_Recv" in parts[1]
    assert all("kernels by the profile" in part and "def segment(step" in part for part in parts)


def test_a_node_of_a_plan_that_fails_is_called_what_the_user_calls_it(cluster: clusters.Cluster) -> None:
    axis = tf.placeholder(tf.int32)
    with tf.device(f"{PS}/cpu:0"):
        place = tf.argmax(tf.zeros([2, 3]), axis, name="place")
    words = r"\[\[node place \(op ArgMax\) defined at"
    with (
        tf.Session(cluster.target()) as session,
        pytest.raises(tf.errors.InvalidArgumentError, match=words),
    ):
        session.run(place, {axis: [1]})


def test_measured_steps_say_what_waited_for_whom(cluster: clusters.Cluster) -> None:
    x, z = program()
    with tf.Session(cluster.target()) as session:
        session.run(tf.global_variables_initializer())
        text = session.explain(z, {x: np.ones((8, 20))}, measure=True, steps=2)
        with pytest.raises(ValueError, match="needs the values of all feeds"):
            session.explain(z, [x], measure=True)
    assert text.startswith("in short\n  [1] z\n") and "steps on 2 tasks, of " in text
    assert "where the time goes (median of 2 traced steps)" in text
    assert re.search(r"^  MatMul +/job:ps/task:0 +1 +[\d.]+ [um]s$", text, re.MULTILINE)
    waits = text[text.index("the longest waits of Receives") :].split("\n\n")[0]
    assert re.search(r"^  y:0 +/job:worker/task:0 +/job:ps/task:0 .* 160 B$", waits, re.MULTILINE)


def test_a_placement_over_tasks(cluster: clusters.Cluster, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    x, z = program()
    with tf.Session(cluster.target()) as session:
        table = session.explain_placement(z, [x], tmp_path / "placed.svg")
    assert f"{PS}/device:CPU:0" in table and f"{WORKER}/device:CPU:0" in table
    drawn = (tmp_path / "placed.svg").read_text()
    assert drawn.startswith("<?xml") and "matplotlib" in drawn


def test_there_is_no_planner_here(cluster: clusters.Cluster) -> None:
    tf.constant(1.0)
    with (
        tf.Session(cluster.target()) as session,
        pytest.raises(RuntimeError, match=rf"planned by the master at {cluster.target()}, not here"),
    ):
        session.planner.plan(None, [])


def test_nothing_to_run_is_nothing(cluster: clusters.Cluster) -> None:
    tf.constant(1.0)
    with tf.Session(cluster.target()) as session:
        assert session.run([]) == [] and session.run({}) == {}


def test_a_session_that_is_closed(cluster: clusters.Cluster) -> None:
    x, z = program()
    session = tf.Session(cluster.target())
    session.close()
    with pytest.raises(RuntimeError, match="closed Session"):
        session.explain(z, [x])
    with pytest.raises(RuntimeError, match="closed Session"):
        session.explain_placement(z, [x])


PROGRAM = """\
import numpy as np
import tensorflow as tf
server = tf.train.Server.create_local_server()
x = tf.placeholder(tf.float32, [None, 4], name="x")
w = tf.Variable(tf.ones([4, 2]))
y = tf.reduce_sum(tf.matmul(x, w), name="y")
with tf.Session(server.target) as session:
    session.run(tf.global_variables_initializer())
    for _ in range(12):
        session.run(y, {x: np.ones((3, 4))})
"""


def test_the_command_explains_programs_on_servers(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "messages" in request.node.name:
        pytest.skip("the program is the same")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "src"))
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "flowstone", "explain", "--graph", "--json", "out.json", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\[\d\] y\n      12 steps on 1 task, of ", done.stdout)
    assert "by /job:local/replica:0/task:0\n" in done.stdout and "what waited for whom" in done.stdout
    told = json.loads((tmp_path / "out.json").read_text())
    (steps,) = [each for each in told["explanations"] if each["fetches"] == ["y"]]
    assert steps["steps"] == 12 and steps["tasks"][0]["plan"]["code"]
    ops = {each["op"] for each in steps["profile"]["ops"]}
    assert "MatMul" in ops and ops & {"Sum", "_Cluster"}
