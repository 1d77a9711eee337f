"""The file `checkpoint` of a folder: which checkpoints there are, and which is the latest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from flowstone.framework import errors
from flowstone.framework.process import logging
from flowstone.io.checkpoint_files.checkpoints import checkpoint_exists as _exists
from flowstone.io.checkpoint_files.checkpoints import checkpoint_paths
from flowstone.io.file_system import (
    as_path,
    atomic_write_string_to_file,
    delete_file,
    file_exists,
    read_file_to_string,
    stat,
)

__all__ = [
    "checkpoint_exists",
    "generate_checkpoint_state_proto",
    "get_checkpoint_mtimes",
    "get_checkpoint_state",
    "latest_checkpoint",
    "remove_checkpoint",
    "update_checkpoint_state",
]

_SECONDS_OF_NANOSECONDS = 1e-9


def _message() -> Any:
    from flowstone.io.proto.checkpoint_state_pb2 import CheckpointState

    return CheckpointState()


def state_path(checkpoint_dir: Any, latest_filename: str | None = None) -> str:
    """The path of the state file."""
    return os.path.join(as_path(checkpoint_dir), latest_filename or "checkpoint")


def generate_checkpoint_state_proto(
    save_dir: Any,
    model_checkpoint_path: Any,
    all_model_checkpoint_paths: Sequence[Any] | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> Any:
    """The CheckpointState of a folder: the latest checkpoint, and all, the oldest first.

    Relative paths in a relative folder are told relative to it. ValueError if there is not a time for each
    path, the latest one included.
    """
    folder = as_path(save_dir)
    latest = as_path(model_checkpoint_path)
    paths = [as_path(path) for path in all_model_checkpoint_paths or ()]
    times = list(all_model_checkpoint_timestamps or ())
    if not paths or paths[-1] != latest:
        logging.info(f"{latest} is not in all_model_checkpoint_paths. Manually adding it.")
        paths.append(latest)
    if times and len(times) != len(paths):
        raise ValueError(
            "Checkpoint timestamps, if provided, must match checkpoint paths "
            f"(got paths {paths} and timestamps {times})"
        )
    if not os.path.isabs(folder):  # both are relative then, or absolute
        paths = [path if os.path.isabs(path) else os.path.relpath(path, folder) for path in paths]
        latest = latest if os.path.isabs(latest) else os.path.relpath(latest, folder)
    message = _message()
    message.model_checkpoint_path = latest
    message.all_model_checkpoint_paths.extend(paths)
    message.all_model_checkpoint_timestamps.extend(times)
    if last_preserved_timestamp is not None:
        message.last_preserved_timestamp = last_preserved_timestamp
    return message


def update_checkpoint_state(
    save_dir: Any,
    model_checkpoint_path: Any,
    all_model_checkpoint_paths: Sequence[Any] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
    save_relative_paths: bool = False,
) -> None:
    """Writes the state file of a folder, whole or not at all; see `generate_checkpoint_state_proto`.

    `save_relative_paths`: absolute paths are told relative to the folder. RuntimeError if the state file has
    the path of the checkpoint.
    """
    folder, latest = as_path(save_dir), as_path(model_checkpoint_path)
    file = state_path(folder, latest_filename)
    paths = [as_path(path) for path in all_model_checkpoint_paths or ()]
    if save_relative_paths:
        latest = os.path.relpath(latest, folder) if os.path.isabs(latest) else latest
        paths = [os.path.relpath(path, folder) if os.path.isabs(path) else path for path in paths]
    if file == latest:
        raise RuntimeError(
            f"Save path '{latest}' conflicts with path used for checkpoint state.  Please use a different "
            "save path."
        )
    state = generate_checkpoint_state_proto(
        folder, latest, paths, all_model_checkpoint_timestamps, last_preserved_timestamp
    )
    from google.protobuf import text_format

    atomic_write_string_to_file(file, text_format.MessageToString(state))


def get_checkpoint_state(checkpoint_dir: Any, latest_filename: str | None = None) -> Any:
    """The CheckpointState of a folder, with paths that can be opened from here; None if there is none, or it
    cannot be read, which a warning says. ValueError if it names no checkpoint."""
    from google.protobuf import text_format

    folder = as_path(checkpoint_dir)
    file = state_path(folder, latest_filename)
    if not file_exists(file):
        return None
    state = _message()
    try:
        text_format.Merge(read_file_to_string(file), state)
    except errors.OpError as error:
        logging.warning(f"{type(error).__name__}: {error}")
        logging.warning(f"{file}: Checkpoint ignored")
        return None
    except text_format.ParseError as error:
        logging.warning(f"{type(error).__name__}: {error}")
        logging.warning(f"{file}: Checkpoint ignored")
        return None
    if not state.model_checkpoint_path:
        raise ValueError(f"Invalid checkpoint state loaded from {folder}")
    state.model_checkpoint_path = _from_here(state.model_checkpoint_path, folder)
    for i, path in enumerate(state.all_model_checkpoint_paths):
        state.all_model_checkpoint_paths[i] = _from_here(path, folder)
    return state


def _from_here(path: str, folder: str) -> str:
    return path if os.path.isabs(path) or "://" in path else os.path.join(folder, path)


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """The prefix of a folder's latest checkpoint; None if it has none, or its files are gone."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None or not state.model_checkpoint_path:
        return None
    if checkpoint_exists(state.model_checkpoint_path):
        return str(state.model_checkpoint_path)
    logging.error(f"Couldn't match files for checkpoint {state.model_checkpoint_path}")
    return None


def checkpoint_exists(checkpoint_prefix: Any) -> bool:
    """Whether there is a checkpoint with this prefix, of either format."""
    return _exists(checkpoint_prefix)


def get_checkpoint_mtimes(checkpoint_prefixes: Iterable[Any]) -> list[float]:
    """When each checkpoint was last changed, in seconds since 1970; those that are not there are left out."""
    times = []
    for prefix in checkpoint_prefixes:
        paths = checkpoint_paths(prefix)
        if paths:
            times.append(stat(paths[0]).mtime_nsec * _SECONDS_OF_NANOSECONDS)
    return times


def meta_graph_path(checkpoint: str, suffix: str = "meta") -> str:
    """The path of the MetaGraphDef that belongs to a checkpoint, which may be a pattern of shards."""
    head, _, tail = checkpoint.rpartition("-?????-of-")
    return f"{head if head and tail.isdigit() else checkpoint}.{suffix}"


def remove_checkpoint(
    checkpoint_prefix: Any, checkpoint_format_version: int = 2, meta_graph_suffix: str = "meta"
) -> None:
    """Deletes the files of a checkpoint, and its MetaGraphDef; those that are not there are no error."""
    prefix = as_path(checkpoint_prefix)
    for path in [meta_graph_path(prefix, meta_graph_suffix), *checkpoint_paths(prefix)]:
        if file_exists(path):
            delete_file(path)
