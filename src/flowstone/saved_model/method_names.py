"""`MethodNameUpdater`: other method names for the signatures of a SavedModel."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from flowstone.io.file_system import as_path, create_dir, file_exists, write_string_to_file
from flowstone.saved_model import constants
from flowstone.saved_model.loader import read_saved_model

__all__ = ["MethodNameUpdater"]


class MethodNameUpdater:
    """Changes the method names of the signatures in a folder's SavedModel.

    OSError, with the path, if there is no model that can be read.
    """

    def __init__(self, export_dir: Any) -> None:
        self._folder = as_path(export_dir)
        self._model = read_saved_model(self._folder)

    def replace_method_name(self, signature_key: str, method_name: str, tags: Any = None) -> None:
        """Gives the signature of this key another method name.

        `tags`: of the graphs that are meant, a text or several; None means all. ValueError for an empty key
        or name, and where no graph has these tags and this key.
        """
        if not signature_key:
            raise ValueError("`signature_key` must be defined.")
        if not method_name:
            raise ValueError("`method_name` must be defined.")
        wanted = None if tags is None else {tags} if isinstance(tags, str) else set(_texts(tags))
        found = False
        for graph in self._model.meta_graphs:
            if wanted is None or set(graph.meta_info_def.tags) == wanted:
                if signature_key not in graph.signature_def:
                    raise ValueError(
                        f"MetaGraphDef associated with tags {tags} does not have a signature_def with key: "
                        f"'{signature_key}'."
                    )
                graph.signature_def[signature_key].method_name = method_name
                found = True
        if not found:
            raise ValueError(f"MetaGraphDef associated with tags {tags} could not be found in SavedModel.")

    def save(self, new_export_dir: Any = None) -> None:
        """Writes the model's file, in place or into another folder, which is made."""
        folder = self._folder if new_export_dir is None else as_path(new_export_dir)
        if not file_exists(folder):
            create_dir(folder)
        path = os.path.join(folder, constants.SAVED_MODEL_FILENAME_PB)
        write_string_to_file(path, self._model.SerializeToString(deterministic=True))


def _texts(tags: Iterable[Any]) -> list[str]:
    return [str(each) for each in tags]
