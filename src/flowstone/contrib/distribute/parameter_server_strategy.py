"""`ParameterServerStrategy`: variables on the parameter servers of a cluster, each worker at its own pace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.distribute.cluster_strategy import ClusterStrategy
from flowstone.contrib.distribute.strategy_extended import StrategyExtended

__all__ = ["ParameterServerStrategy"]


class _WithServers(StrategyExtended):
    """`device` places variables on parameter servers, in turn, and all else on the worker."""

    experimental_between_graph = True

    def __init__(self, device: Any, worker: str, servers: Sequence[str], is_chief: bool) -> None:
        super().__init__(device)
        self._worker, self._servers = worker, tuple(servers)
        self.experimental_should_init = is_chief
        self.should_checkpoint = self.should_save_summary = is_chief

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """Where functions run."""
        return (self._worker,)

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """Where variables lie."""
        return self._servers or (self._worker,)


class ParameterServerStrategy(ClusterStrategy):
    """Variables on the parameter servers of the cluster that TF_CONFIG or `configure` says, each worker's
    steps at its own pace; without a cluster, here alone.

    A session needs the configuration of `update_config_proto`; the first worker, or the chief, initialises.

    Args:
        num_gpus_per_worker: 0 or 1.

    Raises NotInGraphModeError for several GPUs a worker.
    """

    def __init__(self, num_gpus_per_worker: int = 0) -> None:
        self._filters: list[str] = []
        super().__init__(num_gpus_per_worker)

    def _made(self, cluster: Any, task_type: str | None, task_id: Any) -> StrategyExtended:
        tasks = {} if not cluster else tf.train.ClusterSpec(cluster).as_dict()
        if not tasks.get("ps") or task_type == "evaluator":
            return StrategyExtended(f"/device:{self._kind}:0")
        job, number = task_type or "worker", int(task_id or 0)
        own = f"/job:{job}/task:{number}"
        self._filters = ["/job:ps", own]
        worker = f"{own}/device:{self._kind}:0"
        setter = tf.train.replica_device_setter(worker_device=worker, ps_device="/job:ps", cluster=tasks)
        servers = [f"/job:ps/task:{i}" for i in range(len(tasks["ps"]))]
        is_chief = job == "chief" or ("chief" not in tasks and (job, number) == ("worker", 0))
        return _WithServers(setter, worker, servers, is_chief)

    def update_config_proto(self, config_proto: Any) -> Any:
        """The configuration of this worker's sessions: a copy, with no devices but its own and the parameter
        servers'."""
        copy = super().update_config_proto(config_proto)
        if self._filters:
            del copy.device_filters[:]
            copy.device_filters.extend(self._filters)
        return copy
