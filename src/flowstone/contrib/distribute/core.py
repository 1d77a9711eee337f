"""`tf.distribute` of TensorFlow 1.14 and 1.15: the strategies of contrib, whose arguments became fewer."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

from flowstone.contrib.cluster_resolver import (
    ClusterResolver,
    GCEClusterResolver,
    KubernetesClusterResolver,
    SimpleClusterResolver,
    SlurmClusterResolver,
    TFConfigClusterResolver,
    TPUClusterResolver,
    UnionClusterResolver,
)
from flowstone.contrib.distribute.collective_strategy import CollectiveAllReduceStrategy
from flowstone.contrib.distribute.cross_device_ops import (
    AllReduceCrossDeviceOps,
    CrossDeviceOps,
    ReductionToOneDevice,
)
from flowstone.contrib.distribute.distribute_lib import DistributionStrategy as Strategy
from flowstone.contrib.distribute.distribute_lib import (
    ReplicaContext,
    get_loss_reduction,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from flowstone.contrib.distribute.input_iterators import InputContext
from flowstone.contrib.distribute.parameter_server_strategy import ParameterServerStrategy as _WithServers
from flowstone.contrib.distribute.reduce_ops import ReduceOp
from flowstone.contrib.distribute.several_replicas import CentralExtended, full_device_name
from flowstone.contrib.distribute.strategies import MirroredStrategy as _Mirrored
from flowstone.contrib.distribute.strategies import OneDeviceStrategy, TPUStrategy, own_devices
from flowstone.contrib.distribute.strategy_extended import StrategyExtended
from flowstone.training.sessions.server import Server

__all__ = [
    "CrossDeviceOps",
    "HierarchicalCopyAllReduce",
    "InputContext",
    "InputReplicationMode",
    "MirroredStrategy",
    "NcclAllReduce",
    "OneDeviceStrategy",
    "ReduceOp",
    "ReductionToOneDevice",
    "ReplicaContext",
    "Server",
    "Strategy",
    "StrategyExtended",
    "cluster_resolver",
    "experimental",
    "experimental_set_strategy",
    "get_loss_reduction",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
]


class MirroredStrategy(_Mirrored):
    """A replica on each of several devices, whose variables are kept equal.

    Args:
        devices: their names; by default all GPUs, or the CPU.
        cross_device_ops: a `CrossDeviceOps`, what reduces values of the replicas.
    """

    splits_batches = True

    def __init__(self, devices: Sequence[str] | None = None, cross_device_ops: Any = None) -> None:
        super().__init__(devices, cross_device_ops=cross_device_ops)


class CentralStorageStrategy(Strategy):
    """A replica on each of several devices; they share the variables on one.

    Args:
        compute_devices: the replicas'; by default all GPUs, or the CPU.
        parameter_device: the variables'; by default the only GPU, or the CPU.
    """

    def __init__(
        self, compute_devices: Sequence[str] | None = None, parameter_device: str | None = None
    ) -> None:
        devices = [full_device_name(each) for each in compute_devices or own_devices(None)]
        one = devices[0] if len(devices) == 1 else "/device:CPU:0"
        place = full_device_name(parameter_device or one)
        is_one = devices == [place]
        super().__init__(StrategyExtended(place) if is_one else CentralExtended(devices, place))


class CollectiveCommunication(enum.Enum):
    """How workers exchange gradients; the runtime chooses."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


class MultiWorkerMirroredStrategy(CollectiveAllReduceStrategy):
    """A replica on each worker of the cluster that TF_CONFIG says; without one, here alone.

    Args:
        communication: taken, and not needed.
    """

    def __init__(self, communication: CollectiveCommunication = CollectiveCommunication.AUTO) -> None:
        super().__init__(0, communication)


class ParameterServerStrategy(_WithServers):
    """Variables on the parameter servers of the cluster that TF_CONFIG says, or a resolver.

    Args:
        cluster_resolver: what says the cluster and this task, in place of TF_CONFIG.
    """

    def __init__(self, cluster_resolver: Any = None) -> None:
        super().__init__()
        if cluster_resolver is not None:
            spec, task = cluster_resolver.cluster_spec(), cluster_resolver.task_type
            self.configure(None, spec.as_dict(), task, cluster_resolver.task_id)


class NcclAllReduce(AllReduceCrossDeviceOps):
    """Sums over devices; how values go from device to device is the runtime's affair.

    Args:
        num_packs: taken, and not needed.
    """

    def __init__(self, num_packs: int = 1) -> None:
        super().__init__("nccl", num_packs)


class HierarchicalCopyAllReduce(AllReduceCrossDeviceOps):
    """As `NcclAllReduce`."""

    def __init__(self, num_packs: int = 1) -> None:
        super().__init__("hierarchical_copy", num_packs)


class InputReplicationMode(enum.Enum):
    """How many pipelines of inputs there are: one a worker."""

    PER_WORKER = "PER_WORKER"


_set: list[AbstractContextManager[Any]] = []


def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Makes `strategy` the current one until the next call; None ends that.

    Raises RuntimeError within the scope of another strategy.
    """
    if _set:
        _set.pop().__exit__(None, None, None)
    if has_strategy():
        raise RuntimeError("Must not be called inside a `tf.distribute.Strategy` scope.")
    if strategy is not None:
        _set.append(strategy.scope())
        _set[-1].__enter__()


experimental = SimpleNamespace(
    CentralStorageStrategy=CentralStorageStrategy,
    CollectiveCommunication=CollectiveCommunication,
    MultiWorkerMirroredStrategy=MultiWorkerMirroredStrategy,
    ParameterServerStrategy=ParameterServerStrategy,
    TPUStrategy=TPUStrategy,
)
cluster_resolver = SimpleNamespace(
    ClusterResolver=ClusterResolver,
    GCEClusterResolver=GCEClusterResolver,
    KubernetesClusterResolver=KubernetesClusterResolver,
    SimpleClusterResolver=SimpleClusterResolver,
    SlurmClusterResolver=SlurmClusterResolver,
    TFConfigClusterResolver=TFConfigClusterResolver,
    TPUClusterResolver=TPUClusterResolver,
    UnionResolver=UnionClusterResolver,
)
