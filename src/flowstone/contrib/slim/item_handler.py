"""What makes one item of an example: the class of all item handlers."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

import flowstone as tf

__all__ = ["ItemHandler", "dense"]


class ItemHandler(abc.ABC):
    """Makes an item of the features `keys`, a name or a list of names."""

    def __init__(self, keys: Any) -> None:
        self._keys = list(keys) if isinstance(keys, (tuple, list)) else [keys]

    @property
    def keys(self) -> list[str]:
        """The names of the features that the item is made of."""
        return self._keys

    @abc.abstractmethod
    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        """The item, from the tensors of the features."""


def dense(tensor: Any) -> Any:
    """A tensor, dense if it is sparse."""
    return tf.sparse_tensor_to_dense(tensor) if isinstance(tensor, tf.SparseTensor) else tensor
