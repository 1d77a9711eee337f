"""`tf.train.ClusterSpec`: jobs and addresses, in each of the forms that it takes."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf


def test_lists_and_dicts() -> None:
    cluster = tf.train.ClusterSpec(
        {"ps": ["a:1", "b:2"], "worker": {1: "d:4", 0: "c:3"}, "chief": {2: b"e:5"}}
    )
    assert sorted(cluster.jobs) == ["chief", "ps", "worker"]
    assert cluster.as_dict() == {"ps": ["a:1", "b:2"], "worker": ["c:3", "d:4"], "chief": {2: "e:5"}}
    assert cluster.num_tasks("ps") == 2
    assert cluster.task_indices("chief") == [2]
    assert cluster.task_address("chief", 2) == "e:5"
    assert cluster.job_tasks("chief") == [None, None, "e:5"]
    assert cluster and not tf.train.ClusterSpec({})


def test_messages_and_copies() -> None:
    cluster = tf.train.ClusterSpec({"ps": ["a:1"], "worker": {3: "b:2"}})
    message = cluster.as_cluster_def()
    assert [(job.name, dict(job.tasks)) for job in message.job] == [
        ("ps", {0: "a:1"}),
        ("worker", {3: "b:2"}),
    ]
    assert tf.train.ClusterSpec(message) == cluster == tf.train.ClusterSpec(cluster)
    assert hash(tf.train.ClusterSpec(message)) == hash(cluster)
    assert cluster != tf.train.ClusterSpec({"ps": ["a:1"]})


@pytest.mark.parametrize("wrong", [None, ["a:1"], {"ps": "a:1"}, {"ps": [1]}])
def test_other_things(wrong: Any) -> None:
    with pytest.raises(TypeError):
        tf.train.ClusterSpec(wrong)


def test_what_is_not_there() -> None:
    cluster = tf.train.ClusterSpec({"ps": ["a:1"]})
    with pytest.raises(ValueError, match="No such job in cluster: 'worker'"):
        cluster.num_tasks("worker")
    with pytest.raises(ValueError, match="No task with index 4 in job 'ps'"):
        cluster.task_address("ps", 4)
