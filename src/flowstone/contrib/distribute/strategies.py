"""The strategies of TensorFlow 1.15: of one device, and those of several, which are refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import flowstone as tf
from flowstone.contrib.distribute.cross_device_ops import AllReduceCrossDeviceOps
from flowstone.contrib.distribute.distribute_lib import DistributionStrategy, StrategyExtended
from flowstone.framework.flags import task_configuration
from flowstone.framework.refusals import refuse

__all__ = [
    "DistributeConfig",
    "MirroredStrategy",
    "MultiWorkerAllReduce",
    "OneDeviceStrategy",
    "ParameterServerStrategy",
    "TPUStrategy",
    "initialize_tpu_system",
    "run_standard_tensorflow_server",
]

_ONE = "tf.contrib.distribute.OneDeviceStrategy"
_SEVERAL = "tf.train.replica_device_setter and tf.train.SyncReplicasOptimizer"


class OneDeviceStrategy(DistributionStrategy):
    """All variables and all computation on one device.

    Args:
        device: its name.
    """

    def __init__(self, device: str) -> None:
        super().__init__(StrategyExtended(device))


class MirroredStrategy(DistributionStrategy):
    """A replica on each device, here on one: as `OneDeviceStrategy`.

    Args:
        devices: the names of the devices; by default the first GPU, or the CPU.
        num_gpus: the number of GPUs, in place of the names.
        num_gpus_per_worker: the same.
        cross_device_ops: taken, and not needed.
        auto_shard_dataset: taken, and not needed.
        cross_tower_ops: taken, and not needed.

    Raises NotInGraphModeError for several devices.
    """

    def __init__(
        self,
        devices: Sequence[str] | None = None,
        num_gpus: int | None = None,
        num_gpus_per_worker: int | None = None,
        cross_device_ops: Any = None,
        auto_shard_dataset: bool = False,
        cross_tower_ops: Any = None,
    ) -> None:
        count = num_gpus if num_gpus is not None else num_gpus_per_worker
        if (devices is not None and len(devices) > 1) or (count is not None and count > 1):
            refuse("tf.contrib.distribute.MirroredStrategy of several devices", _SEVERAL)
        on_gpu = count == 1 or (count is None and tf.test.is_gpu_available())
        default = "/device:GPU:0" if on_gpu else "/device:CPU:0"
        super().__init__(StrategyExtended(devices[0] if devices else default))


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


class ParameterServerStrategy(DistributionStrategy):
    """Variables on the parameter servers of the cluster that TF_CONFIG or `configure` says, each worker's
    steps at its own pace; without a cluster, here alone.

    A session needs the configuration of `update_config_proto`; the first worker, or the chief, initialises.

    Args:
        num_gpus_per_worker: 0 or 1.

    Raises NotInGraphModeError for several GPUs a worker.
    """

    def __init__(self, num_gpus_per_worker: int = 0) -> None:
        if num_gpus_per_worker > 1:
            refuse(
                "tf.contrib.distribute.ParameterServerStrategy with several GPUs a worker",
                "tf.train.Server, with a worker for each GPU",
            )
        self._kind = "GPU" if num_gpus_per_worker else "CPU"
        given = json.loads(task_configuration() or "{}")
        task = given.get("task", {})
        self._filters: list[str] = []
        super().__init__(self._made(given.get("cluster"), task.get("type"), task.get("index")))

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

    def configure(
        self, session_config: Any = None, cluster_spec: Any = None, task_type: Any = None, task_id: Any = None
    ) -> None:
        """Takes its place in a cluster, before anything is built; changes `session_config` as
        `update_config_proto` does."""
        if cluster_spec:
            self._extended = self._made(cluster_spec, task_type, task_id)
        if session_config is not None:
            session_config.CopyFrom(self.update_config_proto(session_config))


class TPUStrategy(DistributionStrategy):
    """Replicas on the cores of a TPU: refused, there is none."""

    def __init__(
        self,
        tpu_cluster_resolver: Any = None,
        steps_per_run: int | None = None,
        device_assignment: Any = None,
        **kwargs: Any,
    ) -> None:
        refuse("tf.contrib.distribute.TPUStrategy", _ONE)

    @property
    def steps_per_run(self) -> int:
        """How many steps a session's run has."""
        return 1


class MultiWorkerAllReduce(AllReduceCrossDeviceOps):
    """Sums over several workers: refused, gradients are added up by an optimiser."""

    def __init__(
        self,
        worker_devices: Any,
        num_gpus_per_worker: int,
        all_reduce_spec: Any = ("pscpu/pscpu", 2, -1),
        num_packs: int = 0,
        agg_small_grads_max_bytes: int = 0,
        agg_small_grads_max_group: int = 10,
    ) -> None:
        refuse("tf.contrib.distribute.MultiWorkerAllReduce", _SEVERAL)


def initialize_tpu_system(cluster_resolver: Any = None) -> NoReturn:
    """Refused: there is no TPU."""
    refuse("tf.contrib.distribute.initialize_tpu_system", _ONE)


class DistributeConfig(NamedTuple):
    """The strategies of an Estimator's training and evaluation, and the cluster that computes them."""

    train_distribute: Any = None
    eval_distribute: Any = None
    remote_cluster: Any = None


def run_standard_tensorflow_server(session_config: Any = None) -> Any:
    """The server of this task of the cluster in the environment's TF_CONFIG, running.

    Raises ValueError without a cluster there.
    """
    config = json.loads(task_configuration() or "{}")
    if not config.get("cluster"):
        raise ValueError("TF_CONFIG names no cluster")
    task = config.get("task", {})
    server = tf.train.Server(
        config["cluster"], task.get("type"), int(task.get("index", 0)), config=session_config, start=False
    )
    server.start()
    return server
