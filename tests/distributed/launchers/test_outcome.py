"""The table of how tasks ended."""

from __future__ import annotations

from flowstone.distributed.launchers.cluster_description import ClusterDescription, Program, Task
from flowstone.distributed.launchers.outcome import ClusterOutcome, TaskOutcome, failure_text
from flowstone.distributed.launchers.supervision import Supervision

WORKER = Task("worker", 0)


def test_the_table() -> None:
    outcome = ClusterOutcome(
        3,
        [
            TaskOutcome(Task("ps", 0), 12, -15, True, 4.26, 0),
            TaskOutcome(WORKER, 1234, -9, True, 14.0, 2),
            TaskOutcome(Task("worker", 1), 9, -15, False, 0.0, 0),
            TaskOutcome(Task("worker", 2), None, None, False, 0.0, 0),
            TaskOutcome(Task("worker", 3), 10, -64, False, 0.0, 0),
            TaskOutcome(Task("worker", 4), 11, 3, True, 0.0, 0),
        ],
    )
    assert outcome.table().splitlines() == [
        "task       pid  exit         seconds  restarts",
        "ps/0        12  ended            4.3         0",
        "worker/0  1234  SIGKILL         14.0         2",
        "worker/1     9  SIGTERM          0.0         0",
        "worker/2     -  not started      0.0         0",
        "worker/3    10  SIGRTMAX         0.0         0",
        "worker/4    11  3                0.0         0",
    ]


def test_failures_in_words() -> None:
    supervision = Supervision(ClusterDescription({"worker": 2}, Program("p"), restarts=1))
    supervision.begin()
    supervision.ended(WORKER, -11)
    text = failure_text(WORKER, -11, 1.25, supervision)
    assert text == "worker/0 failed with exit SIGSEGV after 1.2 s; started again, 1 of 1"
    supervision.ended(WORKER, 300)
    assert failure_text(WORKER, 2, 1.0, supervision).endswith("exit 2 after 1.0 s; the others are ended")
