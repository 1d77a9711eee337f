"""`tf.contrib.checkpoint`: checkpoints by object, as far as `tf.train.Checkpoint` has them."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.checkpoint.containers": "List Mapping UniqueNameTracker",
        "flowstone.contrib.checkpoint.visualize": "CheckpointableObjectGraph dot_graph_from_checkpoint"
        " list_objects object_metadata",
        "flowstone.contrib.checkpoint.objects": "Checkpointable CheckpointableBase NoDependency"
        " PythonStateWrapper",
        "flowstone.contrib.checkpoint.numpy_state": "NumpyState",
        "flowstone.contrib.checkpoint.split_tensors": "split_dependency",
        "flowstone.ops.variables.captured_variables": "capture_dependencies",
        "flowstone.training.checkpoints.checkpoint_rotation": "CheckpointManager",
    },
)
