"""`TFConfigClusterResolver`: the cluster of the environment variable TF_CONFIG."""

from __future__ import annotations

import json
from typing import Any

import flowstone as tf
from flowstone.contrib.cluster_resolver.cluster_resolver import ClusterResolver
from flowstone.framework.flags import task_configuration

__all__ = ["TFConfigClusterResolver"]


def _config() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(task_configuration() or "{}")
    return found


class TFConfigClusterResolver(ClusterResolver):
    """What TF_CONFIG says, JSON with "cluster", "task", "rpc_layer"; arguments go before it."""

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None:
        config = _config()
        task = config.get("task", {})
        self.task_type = task_type if task_type is not None else task.get("type")
        number = task_id if task_id is not None else task.get("index")
        self.task_id = None if number is None else int(number)
        self.rpc_layer = rpc_layer if rpc_layer is not None else config.get("rpc_layer")
        self._environment = environment if environment is not None else config.get("environment", "")

    def cluster_spec(self) -> Any:
        """The cluster; an empty one without TF_CONFIG."""
        return tf.train.ClusterSpec(_config().get("cluster", {}))

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The address of the task named or of this one; "" for a cluster of one task or none."""
        spec = self.cluster_spec()
        if not spec.jobs or (len(spec.jobs) == 1 and spec.num_tasks(spec.jobs[0]) == 1):
            return ""
        kind = task_type if task_type is not None else self.task_type
        number = task_id if task_id is not None else self.task_id
        return self._address(kind, number, rpc_layer or self.rpc_layer)

    @property
    def environment(self) -> str:
        """Where the cluster runs, as given or as TF_CONFIG says."""
        return self._environment
