"""Objects whose attributes are checkpointed, by their names in `tf.contrib`."""

from __future__ import annotations

from flowstone.training.checkpoints.python_state import PythonState
from flowstone.training.checkpoints.tracking import AutoTrackable, NoDependency, Trackable

__all__ = ["Checkpointable", "CheckpointableBase", "NoDependency", "PythonStateWrapper"]

Checkpointable = AutoTrackable
CheckpointableBase = Trackable
PythonStateWrapper = PythonState
