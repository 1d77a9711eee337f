"""Descriptions of clusters: their tasks, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flowstone.distributed.launchers.cluster_description import (
    ClusterDescription,
    Program,
    Task,
    parse_cluster,
    parse_job_count,
)

PROGRAM = Program("program.py")


def test_who_serves_is_started_first() -> None:
    jobs = {"evaluator": 1, "worker": 2, "trainer": 1, "chief": 1, "ps": 1}
    tasks = [str(task) for task in ClusterDescription(jobs, PROGRAM).tasks]
    assert tasks == ["ps/0", "chief/0", "worker/0", "worker/1", "trainer/0", "evaluator/0"]


def test_an_evaluator_is_outside_the_cluster() -> None:
    cluster = ClusterDescription({"chief": 1, "evaluator": 1}, PROGRAM)
    addresses = {task: f"host:{place}" for place, task in enumerate(cluster.tasks)}
    assert cluster.addresses_by_job(addresses) == {"chief": ["host:0"]}


@pytest.mark.parametrize(
    ("jobs", "program", "passive"),
    [
        ({"ps": 1, "worker": 1}, PROGRAM, ["ps/0"]),
        ({"ps": 1, "store": 1, "worker": 1}, PROGRAM, ["ps/0", "store/0"]),
        ({"ps": 2}, PROGRAM, []),
        ({"ps": 1, "worker": 1}, Program(""), []),
    ],
)
def test_passive_tasks_wait_for_others(jobs: dict[str, int], program: Program, passive: list[str]) -> None:
    cluster = ClusterDescription(jobs, program, passive_jobs=frozenset({"ps", "store"}))
    assert [str(task) for task in cluster.tasks if cluster.is_passive(task)] == passive


@pytest.mark.parametrize(
    ("jobs", "restarts", "words"),
    [
        ({}, 0, "no tasks"),
        ({"evaluator": 1}, 0, "no tasks"),
        ({"worker": -1}, 0, "worker cannot have -1"),
        ({"chief": 2}, 0, "at most one chief"),
        ({"chief": 1, "master": 1}, 0, "not by both"),
        ({"a b": 1}, 0, "'a b'"),
        ({"worker": 1}, -1, "restarted -1 times"),
    ],
)
def test_clusters_that_cannot_be(jobs: dict[str, int], restarts: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ClusterDescription(jobs, PROGRAM, restarts=restarts)


def test_texts_are_read() -> None:
    assert parse_job_count("trainer=2") == ("trainer", 2)
    assert parse_cluster(" ps=[::1]:2222; worker=a:1, b.c:2;") == {
        "ps": ["[::1]:2222"],
        "worker": ["a:1", "b.c:2"],
    }
    assert str(Task("ps", 3)) == "ps/3"


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_job_count, "trainer"),
        (parse_job_count, "trainer=two"),
        (parse_job_count, "=2"),
        (parse_cluster, ""),
        (parse_cluster, "worker"),
        (parse_cluster, "worker=a"),
        (parse_cluster, "worker=a:1,,b:2"),
        (parse_cluster, "worker=a:1;worker=b:1"),
    ],
)
def test_texts_that_say_nothing(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)
