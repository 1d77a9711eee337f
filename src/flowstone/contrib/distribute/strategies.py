"""The strategies of TensorFlow 1.15 on one machine; those of TPUs are refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import flowstone as tf
from flowstone.contrib.distribute.cross_device_ops import AllReduceCrossDeviceOps
from flowstone.contrib.distribute.distribute_lib import DistributionStrategy
from flowstone.contrib.distribute.several_replicas import MirroredExtended, full_device_name
from flowstone.contrib.distribute.strategy_extended import StrategyExtended
from flowstone.framework.flags import task_configuration
from flowstone.framework.names.refusals import refuse, refused_function

__all__ = [
    "DistributeConfig",
    "MirroredStrategy",
    "MultiWorkerAllReduce",
    "OneDeviceStrategy",
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
    """A replica on each of several devices, whose variables are kept equal; on one, as `OneDeviceStrategy`.

    Args:
        devices: the names of the devices; by default all GPUs, or the CPU.
        num_gpus: the number of GPUs, in place of the names.
        num_gpus_per_worker: the same.
        cross_device_ops: a `CrossDeviceOps`, what reduces values of the replicas.
        auto_shard_dataset: taken, and not needed.
        cross_tower_ops: the same as `cross_device_ops`.

    Raises ValueError for a device twice, and for both names and numbers.
    """

    splits_batches = False

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
        if devices is not None and count is not None:
            raise ValueError("Must only specify one of `devices` and `num_gpus`.")
        names = [full_device_name(each) for each in devices or own_devices(count)]
        if len(set(names)) < len(names):
            raise ValueError(f"Duplicates in devices: {names}")
        if len(names) == 1:
            super().__init__(StrategyExtended(names[0]))
        else:
            super().__init__(MirroredExtended(names, cross_device_ops or cross_tower_ops))


def own_devices(count: int | None) -> list[str]:
    """So many GPUs of this machine; by default all, or else the CPU."""
    if count is None:
        count = len([each for each in tf.config.experimental_list_devices() if "GPU" in each.upper()])
    return [f"/device:GPU:{i}" for i in range(count)] or ["/device:CPU:0"]


class TPUStrategy(DistributionStrategy):
    """Replicas on the cores of a TPU: refused, there is none."""

    instead = _ONE  # which `flowstone check` says

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

    instead = _SEVERAL

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


initialize_tpu_system = refused_function("tf.contrib.distribute.initialize_tpu_system", _ONE)


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
