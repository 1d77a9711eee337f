"""`tf.contrib.checkpoint.split_dependency`: tensors of a checkpoint that one function makes and takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.training.checkpoints.python_state import StoredTensor

__all__ = ["split_dependency"]

_Buffer = dict[str, Any]


def split_dependency(
    component_names: Sequence[str],
    component_dtypes: Sequence[Any],
    fill_save_buffer_fn: Callable[[_Buffer], Any],
    consume_restore_buffer_fn: Callable[[_Buffer], Any],
    device: Any,
) -> dict[str, Any]:
    """Objects by the names of the components, each of which a checkpoint has as a tensor.

    Args:
        fill_save_buffer_fn: puts the tensors to save into the dictionary that it is given, by their names.
        consume_restore_buffer_fn: of a dictionary of all restored tensors the operation that takes them.
        device: where both functions' nodes are.

    KeyError, when a checkpoint is saved, for a component that was not put in.
    """
    group = _Group(fill_save_buffer_fn, consume_restore_buffer_fn, device)
    for name, dtype in zip(component_names, component_dtypes):
        group.components[name] = _Component(group, name, tf.as_dtype(dtype))
    return dict(group.components)


class _Group:
    """What the components share. `saved`: the tensors to save, once asked for; `arrived`: those restored."""

    def __init__(
        self, fill: Callable[[_Buffer], Any], consume: Callable[[_Buffer], Any], device: Any
    ) -> None:
        self.fill, self.consume, self.device = fill, consume, device
        self.components: dict[str, _Component] = {}
        self.saved: _Buffer | None = None
        self.arrived: _Buffer = {}


class _Component(StoredTensor):
    """One of the tensors."""

    def __init__(self, group: _Group, name: str, dtype: Any) -> None:
        self._group, self._name, self.dtype = group, name, dtype

    def saved_tensor(self) -> Any:
        """What the function put into its dictionary."""
        group = self._group
        if group.saved is None:
            buffer: _Buffer = {}
            with tf.device(group.device):
                group.fill(buffer)
            group.saved = buffer
        return group.saved[self._name]

    def restored(self, tensor: Any) -> Any:
        """The operation of the function that takes all, with the last of them."""
        group = self._group
        group.arrived[self._name] = tensor
        if len(group.arrived) < len(group.components):
            return None
        arrived, group.arrived = group.arrived, {}
        with tf.device(group.device):
            return group.consume(arrived)
