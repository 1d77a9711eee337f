"""Files beside the source of whoever asks."""

from __future__ import annotations

import os
import sys
from typing import Any

from flowstone.io.file_system import as_path

__all__ = [
    "get_data_files_path", "get_path_to_datafile", "get_root_dir_with_all_resources", "load_resource",
    "readahead_file_path",
]  # fmt: skip


def _folder(depth: int) -> str:
    """The folder of the source file `depth` calls above this one."""
    return os.path.dirname(os.path.abspath(sys._getframe(depth + 1).f_code.co_filename))


def get_data_files_path() -> str:
    """The folder of the caller's source file."""
    return _folder(1)


def get_path_to_datafile(path: Any) -> str:
    """The path of a file that is named relative to the caller's source file."""
    return os.path.join(_folder(1), as_path(path))


def get_root_dir_with_all_resources() -> str:
    """The folder of the caller's source file."""
    return _folder(1)


def load_resource(path: Any) -> bytes:
    """The bytes of a file that is named relative to the package's folder. OSError if it cannot be read."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    name = os.path.join(package, as_path(path))
    with open(name, "rb") as file:
        return file.read()


def readahead_file_path(path: Any, readahead: str = "128M") -> Any:
    """The path itself: a system that reads ahead is told by its own means."""
    return path
