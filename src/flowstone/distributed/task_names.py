"""The tasks of a cluster by name: ``/job:worker/replica:0/task:1``.

>>> task_name("worker", 1), task_of("/job:ps/replica:0/task:0/device:CPU:0")
('/job:worker/replica:0/task:1', '/job:ps/replica:0/task:0')
"""

from __future__ import annotations

import functools
from typing import Any

from flowstone.framework import errors

__all__ = ["from_task", "matches_filters", "task_name", "task_of"]


def task_name(job: str, task: int) -> str:
    """The name of a task, with which the names of its devices begin."""
    return f"/job:{job}/replica:0/task:{task}"


@functools.lru_cache(maxsize=4096)
def task_of(device: str) -> str:
    """The task of a device, by full names."""
    return device.rpartition("/device:")[0]


def matches_filters(task: str, filters: list[str]) -> bool:
    """Whether a session with these `ConfigProto.device_filters` uses the task; it uses all without
    filters."""
    parts = set(task.strip("/").split("/"))
    return not filters or any(set(each.strip("/").split("/")) <= parts for each in filters)


def from_task(error: BaseException, task: str) -> BaseException:
    """A failure with the task where it happened, in TensorFlow's words; what came from elsewhere names it."""
    if not isinstance(error, errors.OpError) or error.message.startswith("From /job:"):
        return error
    kind: Any = type(error)
    found: errors.OpError = kind(lambda: error.node_def, error.op, f"From {task}:\n{error.message}")
    found.node_name = error.node_name
    return found
