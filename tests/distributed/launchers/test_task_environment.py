"""`TF_CONFIG`, and the rest of a task's environment."""

from __future__ import annotations

import json
import shlex
import sys

import pytest

import flowstone as tf
from flowstone.distributed.launchers.cluster_description import Program, Task
from flowstone.distributed.launchers.task_environment import (
    check_task,
    parse_tf_config,
    security_variables,
    share_of_threads,
    task_command,
    task_variables,
    tf_config,
    tf_config_lines,
)

CLUSTER = {"ps": ["a:1"], "chief": ["b:1"], "worker": ["c:1", "d:1"]}


@pytest.mark.parametrize(
    ("task", "is_chief", "master", "workers"),
    [
        (Task("chief", 0), True, "grpc://b:1", 3),
        (Task("worker", 1), False, "grpc://d:1", 3),
        (Task("ps", 0), False, "grpc://a:1", 3),
        (Task("evaluator", 0), False, "", 0),
    ],
)
def test_estimators_understand_it(
    monkeypatch: pytest.MonkeyPatch, task: Task, is_chief: bool, master: str, workers: int
) -> None:
    monkeypatch.setenv("TF_CONFIG", tf_config(CLUSTER, task))
    config = tf.estimator.RunConfig()
    assert (config.task_type, config.task_id, config.is_chief) == (task.job, task.index, is_chief)
    assert (config.master, config.num_worker_replicas) == (master, workers)


def test_a_master_leads_in_the_cloud() -> None:
    """tf.contrib.learn of TensorFlow 1.15.5 takes the master for the chief only with this environment."""
    assert json.loads(tf_config({"master": ["a:1"]}, Task("master", 0)))["environment"] == "cloud"
    assert "environment" not in json.loads(tf_config(CLUSTER, Task("chief", 0)))


def test_what_is_written_is_read() -> None:
    for task in (Task("worker", 1), Task("evaluator", 0)):
        assert parse_tf_config(tf_config(CLUSTER, task)) == (CLUSTER, task)
    partly = '{"cluster": {"worker": {"1": "b:1"}}, "task": {"type": "worker", "index": 1}}'
    assert parse_tf_config(partly) == ({"worker": ["", "b:1"]}, Task("worker", 1))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "must be JSON"),
        ("[]", "must be JSON"),
        ('{"cluster": {}}', "KeyError"),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": "x"}}', "must be JSON"),
        (
            '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}',
            r"no task worker/1.*worker \(1\)",
        ),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"type": "ps", "index": 0}}', "no task ps/0"),
    ],
)
def test_texts_that_say_nothing(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_tf_config(text)


def test_tasks_are_looked_for() -> None:
    check_task(CLUSTER, Task("worker", 1))
    with pytest.raises(ValueError, match="no task worker/-1"):
        check_task(CLUSTER, Task("worker", -1))


def test_threads_are_shared() -> None:
    assert [share_of_threads(None, 8, tasks) for tasks in (1, 3, 16)] == [8, 2, 1]
    assert share_of_threads(5, 8, 4) == 5
    variables = task_variables(CLUSTER, Task("ps", 0), 3, given={"MKL_NUM_THREADS": "1"})
    assert variables.pop("TF_CONFIG") == tf_config(CLUSTER, Task("ps", 0))
    assert variables == {"OMP_NUM_THREADS": "3", "PYTHONUNBUFFERED": "1"}
    assert "OMP_NUM_THREADS" not in task_variables(CLUSTER, Task("ps", 0), None, given={})


def test_tasks_know_each_other_by_a_token() -> None:
    program = Program("p.py")
    (one,), (other,) = (security_variables(program, {"HOME": "/"}).items() for _ in range(2))
    assert one[0] == other[0] == "FLOWSTONE_CLUSTER_TOKEN"
    assert len(one[1]) >= 32 and one[1] != other[1]
    assert security_variables(Program(""), {}) == {}  # whose users are elsewhere
    given = {"FLOWSTONE_CLUSTER_TOKEN": "", "FLOWSTONE_CLUSTER_SECRETS": ""}
    assert security_variables(program, given) == {"FLOWSTONE_CLUSTER_TOKEN": ""}
    given = {"FLOWSTONE_CLUSTER_SECRETS": "/s", "FLOWSTONE_CLUSTER_NAME": "n"}
    assert security_variables(program, given | {"HOME": "/"}) == given
    given["FLOWSTONE_CLUSTER_TOKEN"] = "mine"
    assert security_variables(Program(""), given) == given


def test_commands() -> None:
    task = Task("worker", 1)
    flowstone = [sys.executable, "-m", "flowstone"]
    assert task_command(Program("p.py", ("{task}",)), task, CLUSTER) == [*flowstone, "run", "p.py", "1"]
    assert task_command(Program("a.b", as_module=True), task, CLUSTER) == [*flowstone, "run", "-m", "a.b"]
    assert task_command(Program(""), task, CLUSTER) == [*flowstone, "server"]
    assert task_command(Program("p", runner=("python3", "-S")), task, CLUSTER) == ["python3", "-S", "p"]


def test_lines_for_a_shell() -> None:
    tasks = [Task("ps", 0), Task("worker", 1)]
    lines = tf_config_lines(Program("a b.py", ("{job}",)), tasks, CLUSTER)
    words = [shlex.split(line) for line in lines]
    assert [word[1:] for word in words] == [["flowstone", "run", "a b.py", task.job] for task in tasks]
    assert [word[0].removeprefix("TF_CONFIG=") for word in words] == [
        tf_config(CLUSTER, task) for task in tasks
    ]
    assert shlex.split(tf_config_lines(Program(""), tasks, CLUSTER)[0])[1:] == []
    (line,) = tf_config_lines(Program("p.py"), tasks[:1], CLUSTER, "/a b")
    assert shlex.split(line)[1:] == ["FLOWSTONE_CLUSTER_SECRETS=/a b", "flowstone", "run", "p.py"]
