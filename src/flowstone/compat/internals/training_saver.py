"""`tensorflow.python.training.saver`: what adds a Saver's operations, to be overridden."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.checkpoints import saveable_object
from flowstone.training.checkpoints import saveables as kinds
from flowstone.training.checkpoints.saver_graph import SaverGraph

__all__ = ["BaseSaverBuilder", "BulkSaverBuilder"]


class BaseSaverBuilder(SaverGraph):
    """A Saver's operations, with one that reads for each tensor. Subclasses override `save_op`, `restore_op`
    or `bulk_restore`, and are given to a Saver as its `builder`."""

    SaveSpec = saveable_object.SaveSpec
    SaveableObject = saveable_object.SaveableObject
    VariableSaveable = kinds.VariableSaveable
    ResourceVariableSaveable = kinds.ResourceVariableSaveable

    def bulk_restore(
        self,
        filename_tensor: Tensor,
        saveables: Sequence[Any],
        preferred_shard: int,
        restore_sequentially: bool,
    ) -> Sequence[Tensor]:
        """The tensors of all of these in turn, by `restore_op`."""
        each = (self.restore_op(filename_tensor, saveable, preferred_shard) for saveable in saveables)
        return [tensor for tensors in each for tensor in tensors]


class BulkSaverBuilder(BaseSaverBuilder):
    """A Saver's operations, with one that reads all tensors."""

    bulk_restore = SaverGraph.bulk_restore
