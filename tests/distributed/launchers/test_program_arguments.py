"""What tasks find in their arguments."""

from __future__ import annotations

import pytest

from flowstone.distributed.launchers.cluster_description import Program, Task
from flowstone.distributed.launchers.program_arguments import fill, flags, task_arguments

CLUSTER = {"ps": ["a:1"], "worker": ["b:1", "c:1"], "trainer": ["d:1"]}
WORKER = Task("worker", 1)


def test_placeholders_are_replaced_and_other_braces_stay() -> None:
    arguments = [
        "{job}-{task}",
        "--ps={ps_hosts}",
        "{worker_hosts}",
        "{trainer_hosts}",
        '{"job": {x}}',
        "{chief_hosts}",
    ]
    filled = ["worker-1", "--ps=a:1", "b:1,c:1", "d:1", '{"job": {x}}', ""]
    assert fill(arguments, WORKER, CLUSTER) == filled


def test_the_hosts_of_an_unknown_job_are_an_error() -> None:
    with pytest.raises(ValueError, match="no job server, but ps, worker, trainer"):
        fill(["{server_hosts}"], WORKER, CLUSTER)


def test_flags_are_those_of_the_tutorials() -> None:
    assert flags(WORKER, CLUSTER) == [
        "--job_name=worker",
        "--task_index=1",
        "--ps_hosts=a:1",
        "--worker_hosts=b:1,c:1",
        "--trainer_hosts=d:1",
    ]


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        (Program("p.py", ("x",)), ["x"]),
        (
            Program("p.py", ("x",), with_flags=True),
            ["x", "--job_name=ps", "--task_index=0", "--ps_hosts=", "--worker_hosts="],
        ),
        (Program("p.py", ("{job}",), with_flags=True), ["ps"]),
    ],
)
def test_flags_are_appended_where_nothing_else_says_it(program: Program, arguments: list[str]) -> None:
    assert task_arguments(program, Task("ps", 0), {}) == arguments
