"""Checkpoints of either format: what reads them has the same methods."""

from __future__ import annotations

import re
from typing import Any

from flowstone.framework import errors
from flowstone.io.checkpoint_files.bundle_reader import BundleReader, index_path
from flowstone.io.checkpoint_files.v1_files import V1Reader
from flowstone.io.file_system import as_path, file_exists, get_matching_files

__all__ = ["checkpoint_exists", "checkpoint_paths", "open_checkpoint"]

_DATA = re.compile(r"\.data-\d{5}-of-\d{5}$")


def open_checkpoint(prefix: Any) -> BundleReader | V1Reader:
    """The reader of the checkpoint `prefix`: of V2 if there is an index, of V1 if there are such files.

    NotFoundError if there is neither.
    """
    path = as_path(prefix)
    if file_exists(index_path(path)):
        return BundleReader(path)
    if not get_matching_files(path):
        message = f"{path}; No such checkpoint: neither {index_path(path)} nor a file of this name"
        raise errors.NotFoundError(None, None, message)
    return V1Reader(path)


def checkpoint_exists(prefix: Any) -> bool:
    """Whether there is a checkpoint of either format; for V1, `prefix` may be a shell pattern."""
    path = as_path(prefix)
    return file_exists(index_path(path)) or bool(get_matching_files(path))


def checkpoint_paths(prefix: Any) -> list[str]:
    """The files of the checkpoint `prefix`, of whichever format."""
    path = as_path(prefix)
    data = [each for each in get_matching_files(f"{path}.data-*") if _DATA.search(each)]
    return [*get_matching_files(index_path(path)), *data, *get_matching_files(path)]
