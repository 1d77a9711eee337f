"""`Saver`: keeps the variables of a graph in checkpoints, and restores them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowstone.framework import errors
from flowstone.framework.graphs.collection_protos import ProtoFunctions, register_late
from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.process import logging
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.types.tensor_proto import messages
from flowstone.io.file_system import as_path, file_exists
from flowstone.ops.variables.save_slice_info import without_scope
from flowstone.training.checkpoints.checkpoint_state import (
    checkpoint_exists,
    get_checkpoint_mtimes,
    meta_graph_path,
    remove_checkpoint,
    update_checkpoint_state,
)
from flowstone.training.checkpoints.meta_graph import export_meta_graph
from flowstone.training.checkpoints.object_names import keys_by_name, renamed_saveables
from flowstone.training.checkpoints.saver_graph import V2, SaverGraph
from flowstone.training.hooks.global_step import global_step as step_of

__all__ = ["Saver"]

_HOUR = 3600.0


class Saver:
    """Saves variables to checkpoints and restores them.

    Args:
        var_list: variables, partitioned variables and SaveableObjects, or a dict of them by the names that
            they have in checkpoints. None: all of the graph that can be saved.
        reshape: restored tensors get the variables' shapes.
        sharded: each device's variables are a shard of the checkpoint.
        max_to_keep: how many checkpoints are kept; 0 or None: all.
        keep_checkpoint_every_n_hours: of those that would be deleted, one is kept for each such period.
        name: the prefix of the operations' names.
        restore_sequentially: variables are restored one after the other, which takes less memory.
        saver_def: a SaverDef that names operations of the graph, instead of new ones.
        builder: what adds the operations; `SaverGraph` if None.
        defer_build: the operations are added by `build`.
        allow_empty: nothing to save is no error.
        write_version: the format, ``SaverDef.V1`` or ``V2``.
        pad_step_number: step numbers in file names have at least eight digits.
        save_relative_paths: the state file has paths relative to its folder.
        filename: the default of the file name's tensor.

    Raises ValueError for nothing to save, names that two variables have, and wrong combinations; TypeError
    for what is no variable.
    """

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: Any = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: int = V2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:
        if defer_build and var_list:
            raise ValueError(
                "If `var_list` is provided then build cannot be deferred. "
                "Either set defer_build=False or var_list=None."
            )
        self._var_list, self._reshape, self._sharded = var_list, reshape, sharded
        self._max_to_keep, self._hours = max_to_keep, keep_checkpoint_every_n_hours
        self._name, self._in_turn, self.saver_def = name, restore_sequentially, saver_def
        self._builder, self._allow_empty, self._write_version = builder, allow_empty, write_version
        self._pad_step_number, self._save_relative_paths = pad_step_number, save_relative_paths
        self._filename, self._is_built, self._is_empty = filename or "model", False, False
        self._last_checkpoints: list[tuple[str, float]] = []
        self._to_be_deleted: list[tuple[str, float]] = []
        self._next_kept = time.time() + keep_checkpoint_every_n_hours * _HOUR
        self._of_objects: dict[Any, Saver] = {}  # for checkpoints of objects, by their keys
        if not defer_build:
            self.build()

    def build(self) -> None:
        """Adds the operations to the default graph; does nothing the second time."""
        if self._is_built:
            return
        self._is_built = True
        if self.saver_def is None:
            self._build_def()
        if self.saver_def is not None:
            self._check_def()
            self._max_to_keep = self.saver_def.max_to_keep
            self._hours = self.saver_def.keep_checkpoint_every_n_hours
            self._write_version = self.saver_def.version
            self._sharded = self.saver_def.sharded
        self._next_kept = time.time() + self._hours * _HOUR

    def _build_def(self) -> None:
        if self._var_list is None:
            self._var_list = _all_saved(get_default_graph())
        if not self._var_list:
            if not self._allow_empty:
                raise ValueError("No variables to save")
            self._is_empty = True
            return
        builder = self._builder or SaverGraph(self._write_version)
        self.saver_def = builder.build(
            self._var_list,
            reshape=self._reshape,
            sharded=self._sharded,
            max_to_keep=self._max_to_keep or 0,
            keep_checkpoint_every_n_hours=self._hours,
            name=self._name,
            restore_sequentially=self._in_turn,
            filename=self._filename,
        )

    def _check_def(self) -> None:
        definition = self.saver_def
        if not isinstance(definition, messages("saver_pb2").SaverDef):
            raise ValueError("saver_def must be a saver_pb2.SaverDef: " + str(definition))
        if not definition.save_tensor_name:
            raise ValueError(f"saver_def must specify the save_tensor_name: {definition}")
        if not definition.restore_op_name:
            raise ValueError(f"saver_def must specify the restore_op_name: {definition}")

    def _check_built(self) -> None:
        if not self._is_built:
            raise RuntimeError("`build()` should be called before save if defer_build==True")

    # ---- messages

    def as_saver_def(self) -> Any:
        """The SaverDef."""
        return self.saver_def

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The SaverDef with names as seen from inside `export_scope`; None if the Saver lies outside."""
        names = ("filename_tensor_name", "save_tensor_name", "restore_op_name")
        if export_scope is None:
            return self.saver_def
        if not all(getattr(self.saver_def, name).startswith(export_scope) for name in names):
            return None
        message = messages("saver_pb2").SaverDef()
        message.CopyFrom(self.saver_def)
        for name in names:
            setattr(message, name, without_scope(getattr(message, name), export_scope))
        return message

    @staticmethod
    def from_proto(saver_def: Any, import_scope: str | None = None) -> Saver:
        """The Saver of a SaverDef, whose operations are in the default graph, below `import_scope`."""
        if import_scope:
            message = messages("saver_pb2").SaverDef()
            message.CopyFrom(saver_def)
            for name in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
                setattr(message, name, f"{import_scope}/{getattr(message, name)}")
            saver_def = message
        return Saver(saver_def=saver_def, name=import_scope)

    # ---- which checkpoints there are

    @property
    def last_checkpoints(self) -> list[str]:
        """The paths of the checkpoints that are kept, the oldest first."""
        return [path for path, _ in self._last_checkpoints]

    def set_last_checkpoints(self, last_checkpoints: Sequence[str]) -> None:
        """Makes these the checkpoints that are kept, the oldest first. (Use `recover_last_checkpoints`.)"""
        self._last_checkpoints = [(path, np.inf) for path in last_checkpoints]

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: Sequence[tuple[str, float]]) -> None:
        """As `set_last_checkpoints`, of (path, seconds since 1970)."""
        self._last_checkpoints = list(last_checkpoints_with_time)

    def recover_last_checkpoints(self, checkpoint_paths: Sequence[str]) -> None:
        """Makes those of the paths that exist the checkpoints that are kept, the oldest first."""
        found = [path for path in checkpoint_paths if checkpoint_exists(path)]
        self.set_last_checkpoints_with_time(list(zip(found, get_checkpoint_mtimes(found), strict=True)))

    def _record(self, path: str) -> None:
        if not self._max_to_keep:
            return
        self._last_checkpoints = [each for each in self._last_checkpoints if each[0] != path]
        self._last_checkpoints.append((path, time.time()))
        if len(self._last_checkpoints) > self._max_to_keep:
            self._to_be_deleted.append(self._last_checkpoints.pop(0))

    def _delete_old(self, meta_graph_suffix: str) -> None:
        if not self._to_be_deleted:
            return
        path, saved_at = self._to_be_deleted.pop(0)
        if saved_at > self._next_kept:
            self._next_kept += self._hours * _HOUR
            return
        try:
            remove_checkpoint(path, self._write_version, meta_graph_suffix)
        except Exception as error:  # a checkpoint that cannot be deleted is no reason to stop training
            logging.warning(f"Ignoring: {error}")

    # ---- saving

    def save(
        self,
        sess: Any,
        save_path: Any,
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str | None:
        """Saves the variables and the graph; returns the checkpoint's prefix, None if there are no variables.

        `global_step`: a number, or a tensor, that is added to `save_path`. `latest_filename`: the name of the
        state file; `write_state`: whether it is written, and old checkpoints deleted. `write_meta_graph`: the
        graph is written to the prefix with `meta_graph_suffix`.

        Raises TypeError if `sess` is no session, ValueError for a `latest_filename` with a folder, one that
        collides with `save_path`, and a folder that does not exist.
        """
        self._check_built()
        path = os.fspath(save_path) if not isinstance(save_path, bytes) else save_path.decode()
        latest = _checked_latest_filename(latest_filename)
        prefix = self._prefix(sess, path, global_step, latest)
        saved = None if self._is_empty else self._run_save(sess, prefix)
        if write_state and saved is not None:
            self._record(saved)
            update_checkpoint_state(
                os.path.dirname(path),
                saved,
                all_model_checkpoint_paths=self.last_checkpoints,
                latest_filename=latest,
                save_relative_paths=self._save_relative_paths,
            )
            self._delete_old(meta_graph_suffix)
        if write_meta_graph:
            with sess.graph.as_default():
                self.export_meta_graph(
                    meta_graph_path(prefix, meta_graph_suffix), strip_default_attrs=strip_default_attrs
                )
        return saved

    def _prefix(self, sess: Any, path: str, global_step: Any, latest: str) -> str:
        if not hasattr(sess, "run") or not hasattr(sess, "graph"):
            raise TypeError(f"'sess' must be a Session; {sess}")
        if global_step is not None:
            if not isinstance(global_step, (int, np.integer)):
                global_step = step_of(sess, global_step)
            return f"{path}-{global_step:08d}" if self._pad_step_number else f"{path}-{global_step}"
        if os.path.basename(path) == latest and not self._sharded:
            raise ValueError(f"'latest_filename' collides with 'save_path': '{latest}' and '{path}'")
        return path

    def _run_save(self, sess: Any, prefix: str) -> str:
        definition = self.saver_def
        try:
            saved = sess.run(definition.save_tensor_name, {definition.filename_tensor_name: prefix})
        except (errors.FailedPreconditionError, errors.NotFoundError) as error:
            folder = os.path.dirname(prefix)
            if folder and not file_exists(folder):
                raise ValueError(f"Parent directory of {prefix} doesn't exist, can't save.") from error
            raise
        return as_path(saved)

    def export_meta_graph(
        self,
        filename: Any = None,
        collection_list: Any = None,
        as_text: bool = False,
        export_scope: str | None = None,
        clear_devices: bool = False,
        clear_extraneous_savers: bool = False,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> Any:
        """The MetaGraphDef of the default graph with this Saver, written to `filename` if it is given; see
        `tf.train.export_meta_graph`."""
        return export_meta_graph(
            filename=filename,
            graph_def=get_default_graph().as_graph_def(add_shapes=True),
            saver_def=self.saver_def,
            collection_list=collection_list,
            as_text=as_text,
            export_scope=export_scope,
            clear_devices=clear_devices,
            clear_extraneous_savers=clear_extraneous_savers,
            strip_default_attrs=strip_default_attrs,
        )

    # ---- restoring

    def restore(self, sess: Any, save_path: Any) -> None:
        """Gives the variables the values of the checkpoint with this prefix; they need no initialisation.

        ValueError for None or a checkpoint that does not exist; NotFoundError and InvalidArgumentError where
        the checkpoint does not have the graph's variables; DataLossError if it is damaged.
        """
        if self._is_empty:
            return
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        path = as_path(save_path)
        if not checkpoint_exists(path):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {path}")
        logging.info(f"Restoring parameters from {path}")
        definition = self.saver_def
        try:
            sess.run(definition.restore_op_name, {definition.filename_tensor_name: path})
        except errors.NotFoundError as error:
            keys = keys_by_name(path)
            if keys is None:
                raise _explained(
                    error, "a Variable name or other graph key that is missing from the checkpoint"
                ) from None
            logging.warning(f"{path} was written by objects; its variables are looked up by their names")
            self._saver_of_objects(sess.graph, keys).restore(sess, path)
        except errors.InvalidArgumentError as error:
            raise _explained(
                error, "a mismatch between the current graph and the graph from the checkpoint"
            ) from None

    def _saver_of_objects(self, graph: Any, keys: dict[str, str]) -> Saver:
        """The Saver of the same variables whose names in checkpoints are `keys`."""
        found = tuple(sorted(keys.items()))
        if found not in self._of_objects:
            with graph.as_default():
                variables = self._var_list or _all_saved(graph)
                self._of_objects[found] = Saver(renamed_saveables(variables, keys))
        return self._of_objects[found]


def _all_saved(graph: Any) -> list[Any]:
    """What a Saver saves of a graph unless it is told."""
    keys = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.SAVEABLE_OBJECTS)
    return [each for key in keys for each in graph.get_collection(key)]


def _explained(error: Any, reason: str) -> Any:
    return type(error)(
        error.node_def,
        error.op,
        f"Restoring from checkpoint failed. This is most likely due to {reason}. Please ensure that you have "
        f"not altered the graph expected based on the checkpoint. Original error:\n\n{error.message}",
    )


def _checked_latest_filename(latest_filename: str | None) -> str:
    if latest_filename is None:
        return "checkpoint"
    if os.path.split(latest_filename)[0]:
        raise ValueError("'latest_filename' must not contain path components")
    return latest_filename


def _saver_functions() -> ProtoFunctions:
    def to_proto(saver: Any, export_scope: str | None = None) -> Any:
        return saver.to_proto(export_scope) if isinstance(saver, Saver) else saver

    return ProtoFunctions(messages("saver_pb2").SaverDef, to_proto, Saver.from_proto)


register_late(GraphKeys.SAVERS, _saver_functions)
