"""The command `flowstone cluster`, with a program of TensorFlow's kind."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from pathlib import Path

import certificates
import pytest
import yaml

from flowstone.tools.command_line import build_parser

ADDRESSES = "ps=a:1;worker=b:1,c:1"

# Between-graph replication with asynchronous updates, as in TensorFlow's tutorial.
TRAINS = """\
import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "", "Comma-separated list of hostname:port pairs")
flags.DEFINE_string("worker_hosts", "", "Comma-separated list of hostname:port pairs")
flags.DEFINE_string("job_name", "", "One of 'ps', 'worker'")
flags.DEFINE_integer("task_index", 0, "Index of task within the job")
FLAGS = flags.FLAGS

def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    own = "/job:worker/task:%d" % FLAGS.task_index
    with tf.device(tf.train.replica_device_setter(worker_device=own, cluster=cluster)):
        x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 1])
        w = tf.Variable(tf.zeros([4, 1]))
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
        global_step = tf.Variable(0, trainable=False, name="global_step")
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=global_step)
        start = tf.global_variables_initializer()
    is_chief = FLAGS.task_index == 0
    supervisor = tf.train.Supervisor(
        is_chief=is_chief, logdir="log", init_op=start, global_step=global_step, recovery_wait_secs=1)
    random = np.random.RandomState(FLAGS.task_index)
    config = tf.ConfigProto(device_filters=["/job:ps", own])
    with supervisor.managed_session(server.target, config=config) as session:
        step = 0
        while not supervisor.should_stop() and step < 100:
            inputs = random.randn(16, 4)
            feeds = {x: inputs, y: inputs @ [[1.0], [-2.0], [3.0], [0.5]]}
            _, step = session.run([train, global_step], feeds)
        print(w.device, "ended with", np.round(session.run(w)[:, 0], 1))
    supervisor.stop()

if __name__ == "__main__":
    tf.app.run()
"""


def execute(*arguments: str) -> int:
    """The command, in this process; the tasks' processes are real."""
    options = build_parser().parse_args(["cluster", *arguments])
    status: int = options.execute(options)
    return status


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder; tasks find flowstone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "src"))
    return tmp_path


def test_a_tutorial_trains_on_parameter_server_and_workers(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "train.py").write_text(TRAINS)
    status = execute("up", "--workers", "2", "--ps", "1", "--flags", "--logs", "logs", "train.py")
    shown, said = capfd.readouterr()
    assert status == 0, shown + said
    for task in range(2):
        assert f"worker/{task} | /job:ps/task:0 ended with [ 1.  -2.   3.   0.5]" in shown
    logs = sorted(path.name for path in (folder / "logs").iterdir())
    assert logs == ["ps-0.log", "worker-0.log", "worker-1.log"]
    table = [line.split() for line in said.splitlines()[-5:]]
    assert table[0] == ["task", "pid", "exit", "seconds", "restarts"]
    assert [row[2] for row in table[1:4]] == ["ended", "0", "0"]
    assert table[4] == ["logs", "in", "logs"]


def test_a_failure_is_the_commands(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "fails.py").write_text("import sys; sys.exit(3)\n")
    assert execute("up", "--workers", "1", "fails.py") == 3
    said = capfd.readouterr().err
    assert re.search(r"^worker/0 +\d+ +3 +[\d.]+ +0$", said, re.MULTILINE)
    (logs,) = re.findall(r"^logs in (\S+)$", said, re.MULTILINE)
    assert (Path(logs) / "worker-0.log").read_text() == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["up", "--workers", "1", "absent.py"], "no such file: absent.py"),
        (["up", "absent.py"], "no such file: absent.py"),
        (["up", "--evaluator"], "the cluster has no tasks"),
        (["up", "--workers", "1", "--chief", "--master"], "not by both"),
        (["config", "--cluster", "nonsense"], "write JOB=HOST:PORT"),
        (["config", "--kubernetes", "--cluster", ADDRESSES], "say how many there are"),
        (["config", "--kubernetes", "--workers", "1", "--name", "A"], "'A'"),
        (["task", "p.py"], "TF_CONFIG is not set"),
        (["task", "--slurm", "--workers", "1", "p.py"], "SLURM_PROCID is not set"),
    ],
)
def test_clusters_that_cannot_be(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert execute(*arguments) == 2
    assert words in capsys.readouterr().err


def test_secrets_that_cannot_be_used(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOWSTONE_CLUSTER_SECRETS", "")
    monkeypatch.setenv("FLOWSTONE_CLUSTER_NAME", "")
    (folder / "p.py").write_text("")
    assert execute("up", "--workers", "1", "--secrets", "nowhere", "p.py") == 2
    assert f"is no folder: {folder}/nowhere" in capsys.readouterr().err
    (folder / "secrets").mkdir()
    (folder / "secrets" / "token").write_text("two words")
    assert execute("up", "--workers", "1", "--secrets", "secrets", "p.py") == 2
    assert "a cluster's token is" in capsys.readouterr().err


def test_a_cluster_with_certificates_trains(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOWSTONE_CLUSTER_SECRETS", "")
    monkeypatch.setenv("FLOWSTONE_CLUSTER_NAME", "")
    certificates.write_secrets(folder / "secrets", "a-token", "DNS:tasks.example")
    (folder / "train.py").write_text(TRAINS)
    options = ["--secrets", "secrets", "--certificate-name", "tasks.example"]
    status = execute("up", "--workers", "1", "--ps", "1", "--flags", *options, "train.py")
    shown, said = capfd.readouterr()
    assert status == 0, shown + said
    assert "worker/0 | /job:ps/task:0 ended with [ 1.  -2.   3.   0.5]" in shown
    assert "a-token" not in shown + said


def printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert execute("config", *arguments) == 0
    return capsys.readouterr().out


def test_config_of_counts_and_of_addresses(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(["--ps", "1", "--job", "trainer=1", "--port", "9000", "p.py", "{task}"], capsys)
    words = [shlex.split(line) for line in lines.splitlines()]
    assert words[1][1:] == ["flowstone", "run", "p.py", "0"]
    assert [json.loads(word[0].partition("=")[2]) for word in words] == [
        {
            "cluster": {"ps": ["localhost:9000"], "trainer": ["localhost:9001"]},
            "task": {"type": job, "index": 0},
        }
        for job in ("ps", "trainer")
    ]
    lines = printed(["--cluster", ADDRESSES, "--evaluator"], capsys)
    places = [json.loads(shlex.split(line)[0].partition("=")[2]) for line in lines.splitlines()]
    assert [(each["task"]["type"], each["task"]["index"]) for each in places] == [
        ("ps", 0),
        ("worker", 0),
        ("worker", 1),
        ("evaluator", 0),
    ]
    assert places[3]["cluster"] == {"ps": ["a:1"], "worker": ["b:1", "c:1"]}


def test_config_for_kubernetes(capsys: pytest.CaptureFixture[str]) -> None:
    options = [
        "--kubernetes",
        "--image",
        "i:1",
        "--name",
        "n",
        "--workers",
        "1",
        "--gpus",
        "1",
        "--secret",
        "s",
    ]
    options += ["p.py", "-x"]
    _, job = yaml.safe_load_all(printed(options, capsys))
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert (container["image"], container["command"][-2:]) == ("i:1", ["p.py", "-x"])
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 1}
    assert job["spec"]["template"]["spec"]["volumes"][0]["secret"] == {"secretName": "s"}


class Became(Exception):
    """The process has become this command, with these variables."""


@pytest.fixture
def no_exec(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process stays what it is."""

    def execvpe(file: str, command: list[str], variables: dict[str, str]) -> None:
        raise Became(file, command, variables["TF_CONFIG"])

    monkeypatch.setattr(os, "execvpe", execvpe)


@pytest.mark.usefixtures("no_exec")
def test_one_task_as_tf_config_says(monkeypatch: pytest.MonkeyPatch) -> None:
    place = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}'
    monkeypatch.setenv("TF_CONFIG", place)
    with pytest.raises(Became) as became:
        execute("task", "-m", "package.module", "{task}", "{worker_hosts}")
    command = [sys.executable, "-m", "flowstone", "run", "-m", "package.module", "1", "a:1,b:1"]
    assert became.value.args == (sys.executable, command, place)


@pytest.mark.usefixtures("no_exec")
def test_one_task_as_slurm_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "SLURM_JOB_ID": "1",
        "SLURM_PROCID": "1",
        "SLURM_NTASKS": "2",
        "SLURM_STEP_NODELIST": "n[1-2]",
        "SLURM_STEP_TASKS_PER_NODE": "1(x2)",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(Became) as became:
        execute("task", "--slurm", "--ps", "1", "--workers", "1", "--flags", "p.py")
    _, command, place = became.value.args
    flags = ["--job_name=worker", "--task_index=0", "--ps_hosts=n1:12064", "--worker_hosts=n2:12064"]
    assert command[4:] == ["p.py", *flags]
    assert json.loads(place) == {
        "cluster": {"ps": ["n1:12064"], "worker": ["n2:12064"]},
        "task": {"type": "worker", "index": 0},
    }
