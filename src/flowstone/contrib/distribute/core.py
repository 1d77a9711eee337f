"""`tf.distribute` of TensorFlow 1.14 and 1.15: the strategies of contrib, whose arguments became fewer."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
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
from flowstone.contrib.distribute.cross_device_ops import AllReduceCrossDeviceOps, CrossDeviceOps
from flowstone.contrib.distribute.distribute_lib import DistributionStrategy as Strategy
from flowstone.contrib.distribute.distribute_lib import (
    InputContext,
    ReduceOp,
    ReplicaContext,
    StrategyExtended,
    get_loss_reduction,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from flowstone.contrib.distribute.parameter_server_strategy import ParameterServerStrategy as _WithServers
from flowstone.contrib.distribute.strategies import MirroredStrategy as _Mirrored
from flowstone.contrib.distribute.strategies import OneDeviceStrategy, TPUStrategy
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
    """A replica on each device, here on one, the first GPU or the CPU.

    Args:
        devices: the name of the device in a sequence.
        cross_device_ops: taken, and not needed.

    Raises NotInGraphModeError for several devices.
    """

    def __init__(self, devices: Sequence[str] | None = None, cross_device_ops: Any = None) -> None:
        super().__init__(devices)


class CentralStorageStrategy(_Mirrored):
    """Variables on one device, a replica on each of the others: here on one, as `MirroredStrategy`.

    Raises NotInGraphModeError for several devices.
    """

    def __init__(self, compute_devices: Sequence[str] | None = None, parameter_device: Any = None) -> None:
        super().__init__(compute_devices)


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


class ReductionToOneDevice(CrossDeviceOps):
    """As `NcclAllReduce`, on one device.

    Args:
        reduce_to_device: taken, and not needed, as the other.
        accumulation_fn: of a list of tensors.
    """

    def __init__(
        self, reduce_to_device: str | None = None, accumulation_fn: Callable[..., Any] | None = None
    ) -> None:
        super().__init__()


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
