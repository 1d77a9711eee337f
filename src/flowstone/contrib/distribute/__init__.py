"""`tf.contrib.distribute`: strategies, of several devices in one graph or of one device a worker."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.distribute.cross_device_ops": "AllReduceCrossDeviceOps CrossDeviceOps",
        "flowstone.contrib.distribute.distribute_lib": "DistributionStrategy ReplicaContext UpdateContext"
        " get_cross_replica_context get_distribution_strategy=get_strategy get_loss_reduction"
        " get_replica_context get_strategy has_distribution_strategy=has_strategy has_strategy"
        " in_cross_replica_context require_replica_context",
        "flowstone.contrib.distribute.step_fn": "Monitor StandardInputStep StandardSingleLossStep Step",
        "flowstone.contrib.distribute.collective_strategy": "CollectiveAllReduceStrategy",
        "flowstone.contrib.distribute.parameter_server_strategy": "ParameterServerStrategy",
        "flowstone.contrib.distribute.strategies": "DistributeConfig MirroredStrategy MultiWorkerAllReduce"
        " OneDeviceStrategy TPUStrategy initialize_tpu_system"
        " run_standard_tensorflow_server",
    },
)
