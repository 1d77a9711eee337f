"""`Asset`: a file that an object needs, which a SavedModel has a copy of."""

from __future__ import annotations

from typing import Any

from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes

__all__ = ["Asset"]


class Asset:
    """A file that functions and tables read: `tf.saved_model.save` copies it, and `load` names the copy.

    `path`: text, a path, or a string tensor. `asset_path` is the path as a tensor, for functions.
    """

    def __init__(self, path: Any) -> None:
        graph = get_default_graph()
        given = path if isinstance(path, (str, bytes, Tensor)) else str(path)
        with graph.device("CPU"):
            self._path = convert_to_tensor(given, dtypes.string, name="asset_path")
        graph.add_to_collection(GraphKeys.ASSET_FILEPATHS, self._path)

    @property
    def asset_path(self) -> Tensor:
        """The path: a string scalar."""
        return self._path

    def _checkpoint_children(self) -> list[tuple[str, Any]]:
        """Nothing: the file is no part of checkpoints."""
        return []
