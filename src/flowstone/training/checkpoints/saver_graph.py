"""The operations of a Saver: those that save and restore, named as TensorFlow names them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from flowstone.framework.declarations.building import graph_of
from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.tensor_proto import messages
from flowstone.ops.arrays.constants import constant
from flowstone.ops.control.control_flow import group
from flowstone.training.checkpoints.saveables import SaveableObject, SaveSpec, saveables_of

V1, V2 = 1, 2  # SaverDef.CheckpointFormatVersion


class SaverGraph:
    """Adds the operations of a Saver of this format to the default graph."""

    def __init__(self, write_version: int = V2) -> None:
        self._version = write_version

    def build(
        self,
        names_to_saveables: Any,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        filename: str = "model",
    ) -> Any:
        """Adds the operations; returns the SaverDef that names them. For the arguments see `Saver`."""
        saveables = saveables_of(names_to_saveables)
        graph = graph_of([each.op for each in saveables])
        with graph.as_default(), graph.name_scope(name or "save"):
            given = F.PlaceholderWithDefault(filename or "model", shape=[], name="filename")
            path = F.PlaceholderWithDefault(given, shape=[], name="Const")
            if sharded:
                shards = _by_device(saveables)
                saved = self._save_shards(path, shards)
                restored = self._restore_shards(path, shards, reshape, restore_sequentially)
            else:
                saved = self._save(path, saveables)
                restored = self._restore(path, saveables, reshape, restore_sequentially, "restore_all")
        return messages("saver_pb2").SaverDef(
            filename_tensor_name=path.name,
            save_tensor_name=saved.name,
            restore_op_name=restored.name,
            max_to_keep=max_to_keep,
            sharded=sharded,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            version=self._version,
        )

    # ---- saving

    def save_op(self, filename_tensor: Tensor, saveables: Sequence[SaveableObject]) -> Operation:
        """The operation that saves these in the file (a subclass may save in another way)."""
        specs = [spec for saveable in saveables for spec in saveable.specs]
        names, parts = [spec.name for spec in specs], [spec.slice_spec for spec in specs]
        tensors = [spec.tensor for spec in specs]
        if self._version == V2:
            return F.SaveV2.operation(filename_tensor, names, parts, tensors)
        return F.SaveSlices.operation(filename_tensor, names, parts, tensors, name="save")

    def _save(self, path: Tensor, saveables: Sequence[SaveableObject]) -> Tensor:
        """The path, once everything is saved there."""
        graph = get_default_graph()
        saved = self.save_op(path, saveables)
        with graph.control_dependencies([saved]), graph.colocate_with(path):
            done: Tensor = F.Identity(path, name="control_dependency")
            return done

    def _save_shards(self, path: Tensor, shards: list[tuple[str, list[SaveableObject]]]) -> Tensor:
        graph = get_default_graph()
        prefix = path
        if self._version == V2:
            prefix = F.StringJoin([path, f"_temp_{uuid.uuid4().hex}/part"])
        count = constant(len(shards), name="num_shards")
        paths, saved, last = [], [], _cpu_of("")
        for number, (device, saveables) in enumerate(shards):
            last = _cpu_of(device)
            with graph.device(last):
                paths.append(F.ShardedFilename(prefix, number, count))
                saved.append(self._save(paths[-1], saveables))
        with graph.device(last), graph.control_dependencies([each.op for each in saved]):
            if self._version == V1:
                pattern: Tensor = F.ShardedFilespec(path, count)
                return pattern
            merged = F.MergeV2Checkpoints.operation(paths, path, delete_old_dirs=True)
            with graph.control_dependencies([merged]):
                done: Tensor = F.Identity(path)
                return done

    # ---- restoring

    def _restore(
        self, path: Tensor, saveables: Sequence[SaveableObject], reshape: bool, in_turn: bool, name: str
    ) -> Operation:
        remaining = iter(self.bulk_restore(path, saveables, -1, in_turn))
        done: list[Any] = []
        for saveable in saveables:
            tensors = [next(remaining) for _ in saveable.specs]
            shapes = [_shape_of(spec) for spec in saveable.specs] if reshape else None
            waits = done[-1:] if in_turn else []
            with (
                get_default_graph().device(saveable.device or None),
                get_default_graph().control_dependencies(waits),
            ):
                done.append(saveable.restore(tensors, shapes))
        return group(*done, name=name)

    def bulk_restore(
        self,
        filename_tensor: Tensor,
        saveables: Sequence[SaveableObject],
        preferred_shard: int,
        restore_sequentially: bool,
    ) -> Sequence[Tensor]:
        """The tensors of all of these in turn, read from a file of either format by one operation (a subclass
        may read in another way). The last two arguments mean nothing here."""
        specs = [spec for saveable in saveables for spec in saveable.specs]
        return _read(filename_tensor, specs) if specs else []

    def restore_op(
        self, filename_tensor: Tensor, saveable: SaveableObject, preferred_shard: int
    ) -> Sequence[Tensor]:
        """The tensors of one of these, read from the file by an operation for each."""
        return [tensor for spec in saveable.specs for tensor in _read(filename_tensor, [spec])]

    def _restore_shards(
        self, path: Tensor, shards: list[tuple[str, list[SaveableObject]]], reshape: bool, in_turn: bool
    ) -> Operation:
        restored = []
        for device, saveables in shards:
            with get_default_graph().device(device or None):
                restored.append(self._restore(path, saveables, reshape, in_turn, "restore_shard"))
        return group(*restored, name="restore_all")


def _read(path: Tensor, specs: Sequence[SaveSpec]) -> Sequence[Tensor]:
    with get_default_graph().device("cpu:0"):
        tensors: Any = F.RestoreV2(
            path,
            [spec.name for spec in specs],
            [spec.slice_spec for spec in specs],
            dtypes=[spec.dtype for spec in specs],
        )
    return tensors if isinstance(tensors, (list, tuple)) else [tensors]


def _by_device(saveables: Sequence[SaveableObject]) -> list[tuple[str, list[SaveableObject]]]:
    """The objects of each device, in the order of their names."""
    ordered = sorted(saveables, key=lambda saveable: saveable.device)
    return [(device, list(each)) for device, each in groupby(ordered, lambda saveable: saveable.device)]


def _cpu_of(device: str) -> str:
    """The CPU of the task that a device belongs to."""
    parts = [part for part in device.split("/") if part and not part.startswith(("device:", "cpu:", "gpu:"))]
    return "/" + "/".join([*parts, "device:CPU:0"])


def _shape_of(spec: Any) -> Any:
    """The shape that a restored tensor gets."""
    shape = spec.tensor.shape
    if shape.is_fully_defined():
        return np.array(shape.as_list(), np.int32)
    known: Tensor = F.Shape(spec.tensor)
    return known
