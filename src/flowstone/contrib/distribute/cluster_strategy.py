"""`ClusterStrategy`: what the strategies have in common whose replicas are the workers of a cluster."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

from flowstone.contrib.distribute.distribute_lib import DistributionStrategy
from flowstone.framework.flags import task_configuration
from flowstone.framework.names.refusals import refuse

__all__ = ["ClusterStrategy"]


class ClusterStrategy(DistributionStrategy, ABC):
    """A replica on each worker of the cluster that TF_CONFIG or `configure` says; without one, here alone.

    A subclass says in `_made` what its replicas have, by the cluster and this process's task.

    Args:
        num_gpus_per_worker: 0 or 1.

    Raises NotInGraphModeError for several GPUs a worker.
    """

    def __init__(self, num_gpus_per_worker: int = 0) -> None:
        if num_gpus_per_worker > 1:
            refuse(
                f"tf.contrib.distribute.{type(self).__name__} with several GPUs a worker",
                "tf.train.Server, with a worker for each GPU",
            )
        self._kind = "GPU" if num_gpus_per_worker else "CPU"
        given = json.loads(task_configuration() or "{}")
        task = given.get("task", {})
        super().__init__(self._made(given.get("cluster"), task.get("type"), task.get("index")))

    @abstractmethod
    def _made(self, cluster: Any, task_type: str | None, task_id: Any) -> Any:
        """The replicas' `StrategyExtended`."""

    def configure(
        self, session_config: Any = None, cluster_spec: Any = None, task_type: Any = None, task_id: Any = None
    ) -> None:
        """Takes its place in a cluster, before anything is built; changes `session_config` as
        `update_config_proto` does."""
        if cluster_spec:
            self._extended = self._made(cluster_spec, task_type, task_id)
            self._extended.strategy = self
        if session_config is not None:
            session_config.CopyFrom(self.update_config_proto(session_config))
